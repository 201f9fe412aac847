"""Where rows start and stop, against loops over one document after the other."""

import hashlib
from itertools import chain, pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.corpus import row_index
from bakeoff.formats import chunks
from bakeoff.formats.chunks import full_chunks, mean_length, packed_sentences, sentence_chunks, sentence_pairs
from bakeoff.formats.packed_sentences import DocSentencesConfig, FullSentencesConfig
from bakeoff.formats.pairs import SegmentPairConfig
from bakeoff.randomness.draws import Draws

texts = st.lists(st.lists(st.integers(1, 30), min_size=1, max_size=8), min_size=1, max_size=6)


def bounds(documents):
    """(S + 1,) where sentences start and (D + 1,) where documents do, from the lengths of sentences."""
    sentences = np.concatenate([[0], np.cumsum(list(chain.from_iterable(documents)))])
    return sentences, np.concatenate([[0], np.cumsum([sum(own) for own in documents])])


def as_list(found):
    return [(int(first), int(last)) for first, last in zip(*found, strict=True)]


@settings(max_examples=200, deadline=None)
@given(texts, st.integers(2, 40))
def test_full_chunks(documents, longest):
    sentences, starts = bounds(documents)
    expected = []
    for begin, end in pairwise(starts):
        first = begin
        while first < end:
            last = min(first + longest, end)
            inner = [s for s in sentences if first < s <= last]
            if first not in sentences:
                last = min(last, *(s for s in sentences if s > first))
                inner = []
            expected.append((first, last))
            first = last if last == end or not inner else inner[-1]
    found = as_list(full_chunks(sentences, starts, longest))
    assert found == [(first, last) for first, last in expected if last - first >= 2]


@settings(max_examples=200, deadline=None)
@given(texts, st.integers(2, 60))
def test_chunks_of_sentences(documents, longest):
    sentences, starts = bounds(documents)
    expected, place = [], 0
    for own in documents:
        index = 0
        while index < len(own):
            count = max(n for n in range(len(own) - index + 1) if sum(own[index : index + n]) <= longest)
            if count >= 2:
                expected.append((sum(own[:index]) + place, sum(own[: index + count]) + place))
            index += count if count >= 2 else 1
        place += sum(own)
    assert as_list(sentence_chunks(sentences, starts, longest)) == expected


@settings(max_examples=200, deadline=None)
@given(texts, st.integers(2, 60))
def test_pairs_of_sentences(documents, longest):
    sentences, starts = bounds(documents)
    expected, place = [], 0
    for own in documents:
        for index in range(0, len(own) - 1, 2):
            before, both = sum(own[:index]), own[index] + own[index + 1]
            if both <= longest:
                expected.append((place + before, place + before + both))
        place += sum(own)
    assert as_list(sentence_pairs(sentences, starts, longest)) == expected


@settings(max_examples=300, deadline=None)
@given(texts, st.integers(2, 60), st.booleans())
def test_packed_sentences(documents, longest, crossing):
    sentences, starts = bounds(documents)
    expected, first, used, place = [], None, 0, 0
    for number, own in enumerate(documents):
        for index, length in enumerate(own):
            mark = 1 if index == 0 and number > 0 and first is not None else 0
            stays = first is not None and used + mark + length <= longest and (crossing or index > 0)
            if first is not None and not stays:
                expected.append((first, place))
                first = None
            if first is None:
                first, used, mark = place, 0, 0
            used += mark + length
            place += length
            while used > longest:  # a sentence by itself, longer than a row
                expected.append((first, first + longest))
                first, used = first + longest, used - longest
    expected.append((first, place))
    assert as_list(packed_sentences(sentences, starts, longest, crossing)) == expected


@settings(max_examples=200, deadline=None)
@given(texts, st.integers(2, 40), st.integers(5, 50))
def test_long_documents_are_walked_through_in_parts(documents, longest, stretch):
    """Cut where sentences start: nothing is lost, and nothing read twice, but for what a chunk ends inside of."""
    sentences, starts = bounds(documents)
    with patch.object(chunks, "STRETCH", stretch):
        for crossing in (False, True):
            first, last = packed_sentences(sentences, starts, longest, crossing)
            assert np.array_equal(first[1:], last[:-1])
            assert (first[0], last[-1]) == (0, starts[-1])
        first, last = sentence_chunks(sentences, starts, longest)
        assert (first[1:] >= last[:-1]).all()
        assert np.isin(first, sentences).all()
        covered = np.zeros(starts[-1], bool)
        first, last = full_chunks(sentences, starts, longest)
        for begin, end in zip(first, last, strict=True):
            assert not ((starts > begin) & (starts < end)).any()
            covered[begin:end] = True
        assert (~covered).sum() <= 2 * (len(sentences) - 1)


def test_rows_of_whole_sentences_hold_the_whole_text(corpus):
    split, tokenizer = corpus.train, corpus.tokenizer
    for config in (
        FullSentencesConfig(length=48),
        FullSentencesConfig(length=48, isolate=True),
        DocSentencesConfig(length=48),
    ):
        format = config.build(split, tokenizer, "ends", None)
        indices = np.arange(format.size)
        examples = format.examples(indices, Draws(0, np.zeros_like(indices), indices))
        padding_mask = examples.row.documents > 0
        assert format.tokens_per_example == pytest.approx(padding_mask.sum(1).mean())
        assert (examples.row.ids[:, 0] == tokenizer.start).all()
        assert (examples.row.ids[indices, padding_mask.sum(1) - 1] == tokenizer.separator).all()
        assert (examples.row.ids[~padding_mask] == tokenizer.pad).all()
        sources = examples.sources[examples.sources >= 0]
        assert np.array_equal(sources, np.arange(len(split.tokens)))
        assert np.array_equal(examples.row.ids[examples.sources >= 0], split.tokens[sources])
        for row in indices:
            own = examples.sources[row][examples.sources[row] >= 0]
            documents = np.searchsorted(split.documents, own, side="right")
            if own[-1] + 1 not in split.sentences:  # only within a sentence longer than a row
                assert np.isin(own, split.sentences).sum() <= 1
                assert len(own) == 46
            inner = (examples.sources[row, 1:] < 0) & padding_mask[row, 1:]
            assert inner.sum() == len(set(documents))  # a separator between documents, and one at the end
            if config.format == "doc_sentences":
                assert len(set(documents)) == 1
            told_apart = len(set(examples.row.documents[row][padding_mask[row]]))
            assert told_apart == (len(set(documents)) if config.isolates else 1)


@pytest.mark.parametrize("find", [full_chunks, sentence_chunks])
def test_short_rows_are_as_many_as_wanted_and_of_all_lengths(find):
    sentences, documents = np.arange(100_001), np.array([0, 100_000])  # a sentence a token
    first, last = find(sentences, documents, 61, 0.3)
    counts = np.bincount((last - first)[:-1], minlength=62) / (len(first) - 1)
    tolerance = 5 * np.sqrt(0.25 / len(first))
    assert counts[61] == pytest.approx(0.7 + 0.3 / 60, abs=tolerance)
    assert counts[2:61].tolist() == pytest.approx([0.3 / 60] * 59, abs=tolerance)
    assert counts[:2].sum() == 0
    assert np.array_equal(first[1:], last[:-1])
    assert np.array_equal(find(sentences, documents, 61, 0.3)[0], first)  # drawn for good


def test_pairs_are_made_of_short_chunks(corpus):
    sizes = [
        SegmentPairConfig(length=64, short=short).build(corpus.train, corpus.tokenizer, "ends", None).tokens_per_example
        for short in (0.0, 0.5, 1.0)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[2] < 0.8 * sizes[0]


def test_an_index_is_kept_beside_a_large_corpus(corpus, tmp_path):
    split = corpus.train
    calls = []

    def make(sentences, documents):
        assert np.array_equal(sentences, split.sentences)
        assert np.array_equal(documents, split.documents)
        calls.append(1)
        return np.arange(5), np.arange(5, 10)

    with patch.object(split, "index_path", tmp_path / "indexes" / "train"):
        row_index.row_index(split, "key", make)
        assert not (tmp_path / "indexes").exists()  # a small one is made again
        with patch.object(row_index, "KEPT_FROM", 1):
            first = row_index.row_index(split, "key", make)
            second = row_index.row_index(split, "key", make)
    assert len(calls) == 2
    assert np.array_equal(first, second)
    (kept,) = (tmp_path / "indexes").iterdir()
    whole = kept.read_bytes()
    assert kept.name == f"train.key.{row_index.VERSION}.{hashlib.sha256(whole).hexdigest()}.rows"
    for damaged in (b"", whole[:-3], whole[:-16], whole[16:], bytes([whole[0] ^ 1]) + whole[1:]):  # made anew
        kept.unlink()  # what is mapped stays
        kept.write_bytes(damaged)
        with patch.object(row_index, "KEPT_FROM", 1), patch.object(split, "index_path", tmp_path / "indexes" / "train"):
            assert np.array_equal(row_index.row_index(split, "key", make), first)
        assert kept.read_bytes() == whole
    (tmp_path / "file").write_text("")
    with patch.object(row_index, "KEPT_FROM", 1), patch.object(split, "index_path", tmp_path / "file" / "train"):
        assert np.array_equal(row_index.row_index(split, "key", make), first)  # where nothing can be written


@pytest.mark.parametrize("find", [full_chunks, sentence_chunks, sentence_pairs])
def test_an_index_made_part_by_part_is_that_of_the_whole_text(corpus, find):
    split = corpus.train
    parts = []

    def of_part(sentences, documents):
        parts.append(documents)
        return find(sentences, documents, 40)

    with patch.object(row_index, "AT_ONCE", len(split.tokens) // 7):
        found = row_index.row_index(split, "key", of_part)
    assert len(parts) > 3
    assert np.array_equal(found, np.stack(find(np.asarray(split.sentences), np.asarray(split.documents), 40)))


def test_rows_that_cross_documents_hold_the_whole_text_of_every_part(corpus):
    split = corpus.train
    with patch.object(row_index, "AT_ONCE", len(split.tokens) // 7):
        format = FullSentencesConfig(length=48).build(split, corpus.tokenizer, "ends", None)
    first, last = format.first.chunks.bounds
    assert np.array_equal(first[1:], last[:-1])
    assert (first[0], last[-1]) == (0, len(split.tokens))


def test_the_mean_length_of_very_many_rows_is_that_of_a_part_of_them():
    rows = np.random.default_rng(0).integers(2, 128, 3 * chunks.MEASURED)
    asked = []

    def lengths_of(indices):
        asked.append(indices)
        return rows[indices]

    assert mean_length(len(rows), lengths_of) == pytest.approx(rows.mean(), rel=0.005)
    assert len(asked[0]) == chunks.MEASURED
    assert asked[0][0] == 0
    assert asked[0][-1] == len(rows) - 1
    assert mean_length(1000, lengths_of) == rows[:1000].mean()
    assert mean_length(0, lengths_of) == 0
