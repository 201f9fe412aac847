import numpy as np
import pytest
import torch
from tests.conftest import shrink

from bakeoff.batching.by_length import shuffled_batches, sorted_batches
from bakeoff.errors import UserError
from bakeoff.tasks.rows.batches import collate
from bakeoff.tasks.rows.inputs import InputFormat, longest_first
from bakeoff.tokenizer.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def tokenizer(corpus):
    return Tokenizer.load(corpus)


@pytest.fixture(scope="module")
def names(tokenizer):
    """Ids as words."""
    return lambda ids: tokenizer.decode(ids, skip_special=False).split()


def test_rows_look_as_in_pretraining(tokenizer, names, recipe, causal_recipe):
    both = InputFormat(tokenizer, recipe, 32)
    encoded = both.encode(["apple saw"], ["town"])
    assert names(encoded.ids[0]) == ["[CLS]", "apple", "saw", "[SEP]", "town", "[SEP]"]
    assert encoded.second.tolist() == [4]
    assert names(both.encode(["apple\u00a0 saw"]).ids[0]) == ["[CLS]", "apple", "saw", "[SEP]"]
    causal = InputFormat(tokenizer, causal_recipe, 32)
    assert names(causal.encode(["apple saw"]).ids[0]) == ["[SEP]", "apple", "saw"]
    assert names(causal.encode(["apple saw"], ["town"]).ids[0]) == ["[SEP]", "apple", "saw", "[SEP]", "town"]


def test_pairs_have_as_many_separators_as_are_asked_for(tokenizer, names, recipe):
    encoded = InputFormat(tokenizer, recipe, 12, separators=2).encode(["apple saw", "saw " * 30], ["town", "town"])
    assert names(encoded.ids[0]) == ["[CLS]", "apple", "saw", "[SEP]", "[SEP]", "town", "[SEP]"]
    assert encoded.second.tolist() == [5, 10]
    assert encoded.lengths.tolist() == [7, 12]
    assert names(InputFormat(tokenizer, recipe, 12, separators=2).encode(["saw"]).ids[0]) == ["[CLS]", "saw", "[SEP]"]


def test_the_longer_text_is_cut_first(tokenizer, recipe):
    format = InputFormat(tokenizer, recipe, 12)
    encoded = format.encode(["saw " * 30, "saw " * 30, "saw"], ["town " * 3, "town " * 30, "town"])
    assert encoded.lengths.tolist() == [12, 12, 5]
    assert (encoded.second - 2).tolist() == [6, 5, 1]
    assert encoded.truncated == 2
    assert format.encode(["saw " * 30]).lengths.tolist() == [12]


@pytest.mark.parametrize("room", range(1, 12))
def test_longest_first_is_token_by_token(room):
    for first in range(12):
        for second in range(12):
            a, b = first, second
            while a + b > room:
                a, b = (a - 1, b) if a > b else (a, b - 1)
            assert longest_first(first, second, room) == (a, b)


def test_lengths_that_the_model_cannot_take(tokenizer, recipe, convolution_recipe):
    with pytest.raises(UserError, match="length: 600 is more than the 512 positions"):
        InputFormat(tokenizer, recipe, 600)
    assert InputFormat(tokenizer, convolution_recipe, 600).length == 600
    with pytest.raises(UserError, match="too short"):
        InputFormat(tokenizer, recipe, 3)


def test_batches_hold_every_row_once_and_little_padding(tokenizer, recipe):
    lengths = np.random.default_rng(0).integers(3, 60, size=1000)
    for epoch in range(2):
        batches = shuffled_batches(lengths, 16, 7, epoch)
        assert sorted(np.concatenate(batches)) == list(range(1000))
        assert sorted(len(batch) for batch in batches)[1:] == [16] * 62
        padded = sum(lengths[batch].max() * len(batch) for batch in batches)
        assert padded < 1.12 * lengths.sum()
    again = shuffled_batches(lengths, 16, 7, 1)
    assert all((a == b).all() for a, b in zip(batches, again, strict=True))
    assert any(
        len(a) != len(b) or (a != b).any() for a, b in zip(again, shuffled_batches(lengths, 16, 7, 0), strict=True)
    )
    batches = sorted_batches(lengths, 500, 64)
    assert sorted(np.concatenate(batches)) == list(range(1000))
    assert all(len(rows) <= 64 and (len(rows) == 1 or len(rows) * lengths[rows].max() <= 500) for rows in batches)


def test_padding_goes_to_a_multiple_of_eight_but_not_beyond_the_length(tokenizer, recipe):
    format = InputFormat(tokenizer, recipe, 30)
    encoded = format.encode(["saw", "saw " * 7, "saw " * 50], ["town", "town", "town"])
    small = collate(encoded, np.array([0, 1]), format)
    assert small.ids.shape == (2, 16)
    assert small.padding_mask.sum(1).tolist() == [5, 11]
    assert small.segments.sum(1).tolist() == [2, 2]
    assert (small.ids[~small.padding_mask] == tokenizer.pad).all()
    assert collate(encoded, np.array([0, 2]), format).ids.shape == (2, 30)
    assert collate(encoded, np.array([2]), format).padding_mask is None


def test_rows_of_a_model_that_reads_cls_last(tokenizer, names):
    format = InputFormat(tokenizer, shrink("xlnet-tiny"), 32)
    assert names(format.encode(["apple saw"]).ids[0]) == ["apple", "saw", "[SEP]", "[CLS]"]
    pair = format.encode(["apple saw"], ["town"])
    assert names(pair.ids[0]) == ["apple", "saw", "[SEP]", "town", "[SEP]", "[CLS]"]
    assert pair.second.tolist() == [3]
    (row,) = format.encode(["saw " * 50]).ids
    assert names(row) == ["saw"] * 30 + ["[SEP]", "[CLS]"]


@pytest.mark.parametrize("system", ["bert-tiny", "gpt-tiny", "xlnet-tiny", "bart-tiny"])
@pytest.mark.parametrize(("length", "stride"), [(8, 128), (16, 128), (16, 1), (21, 3)])
def test_windows_of_pairs_hold_every_token_of_the_second_text(tokenizer, system, length, stride):
    format = InputFormat(tokenizer, shrink(system), length)
    seconds = [np.arange(100, 100 + count) for count in (0, 1, 7, 40)]
    found = format.windows([np.array([50, 51, 52])] * 4, seconds, 2, stride)
    assert found.cut == 4
    assert sorted(set(found.owners.tolist())) == list(range(4))
    for owner, second in enumerate(seconds):
        windows = np.flatnonzero(found.owners == owner)
        begins, counts = found.first[windows], found.counts[windows]
        for window, begin, count in zip(windows, begins, counts, strict=True):
            row, start = found.encoded.ids[window], found.encoded.second[window]
            assert len(row) <= length
            assert row[start : start + count].tolist() == second[begin : begin + count].tolist()
            assert set(row.tolist()) <= {tokenizer.start, tokenizer.separator, 50, 51, *second.tolist()}
            whole = found.whole[window]
            assert row[whole] in (tokenizer.start, tokenizer.separator)
            assert whole == (0 if system == "bert-tiny" else len(row) - 1)
            assert not start <= whole < start + count
        assert begins[0] == 0
        assert begins[-1] + counts[-1] == len(second)
        assert (np.diff(begins) <= np.minimum(stride, np.maximum(1, counts[:-1] // 2))).all()
        # What is half as long as a window is whole in one of them.
        half = max(1, counts[0] // 2)
        for first in range(len(second) - half + 1):
            assert ((begins <= first) & (begins + counts >= first + half)).any()


def test_windows_of_short_pairs_are_the_rows_of_pairs(tokenizer):
    for system in ("bert-tiny", "xlnet-tiny", "bart-tiny"):
        format = InputFormat(tokenizer, shrink(system), 32)
        (first,), (second,) = (format.tokenizer.encode([text])[0][:1] for text in ("apple saw", "town"))
        found, expected = format.windows([first], [second], 64, 128), format.encode(["apple saw"], ["town"])
        assert found.encoded.ids[0].tolist() == expected.ids[0].tolist()
        assert found.encoded.second.tolist() == expected.second.tolist()


@pytest.mark.parametrize("pairs", [None, ["plum saw", "plum", "saw the town"]])
def test_a_last_start_has_its_segment_in_rows_of_every_length(pairs, tokenizer):
    format = InputFormat(tokenizer, shrink("xlnet-tiny"), 32)
    encoded = format.encode(["apple", "apple saw plum", "apple saw plum saw apple plum"], pairs)
    batch = collate(encoded, np.arange(3), format)
    start = tokenizer.start
    assert len(set(encoded.lengths.tolist())) > 1
    assert torch.equal(batch.segments == 2, batch.ids == start)
    assert torch.equal((batch.ids == start).sum(1), torch.ones(3))
    for row, (length, second) in enumerate(zip(encoded.lengths, encoded.second, strict=True)):
        assert batch.segments[row, : length - 1].tolist() == [int(place >= second) for place in range(length - 1)]
        assert not batch.segments[row, length:].any()
