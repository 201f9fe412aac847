"""Rows of sources and targets, against rows that are written down here token by token."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import shrink, without_dropout

from bakeoff.resources.device import Placement
from bakeoff.tasks.cut_rows import CutRows
from bakeoff.tasks.heads.writing_head import WritingHead
from bakeoff.tasks.kinds.sequence_to_sequence import SequenceToSequence, SequenceToSequenceConfig, SourceText
from bakeoff.tasks.predictions.predicting import predictions_of
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.rows.writing import WritingFormat, collate_targets

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
START = {"objective.0.source_start": True, "objective.0.decoder_begins": ["separator", "start"]}
FORMS = {
    "bart": lambda: shrink("bart-tiny"),
    "bart from [CLS] on": lambda: shrink("bart-tiny", **START),
    "a decoder alone": lambda: shrink("gpt-tiny"),
    "a prefix": lambda: shrink("prefix-lm-tiny"),
}
TEXTS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=4)


@pytest.fixture(scope="module")
def tokenizer(parallel_corpus):
    return parallel_corpus.tokenizer


@pytest.fixture(scope="module")
def recipes():
    return {name: make() for name, make in FORMS.items()}


def text(count, first):
    return " ".join(WORDS[(first + place) % len(WORDS)] for place in range(count))


@pytest.mark.parametrize("form", FORMS)
@settings(deadline=None, max_examples=25)
@given(sizes=TEXTS, length=st.integers(10, 24), longest=st.integers(2, 30))
def test_what_is_read_and_written_fills_the_row_and_no_more(form, sizes, length, longest, tokenizer, recipes):
    recipe = recipes[form]
    format = InputFormat(tokenizer, recipe, length)
    sources = [text(source, n) for n, (source, _) in enumerate(sizes)]
    targets = [text(target, n + 3) for n, (_, target) in enumerate(sizes)]
    items = WritingFormat(format, longest).encode(sources, targets)
    start, end = tokenizer.start, tokenizer.separator
    first = [start] if "from" in form else []
    prompt = [end, start] if "from" in form else [start]
    encodes = format.has_source
    # The decoder reads its prompt and all of the target but its last token; alone, the source with its marks as well.
    written = min(longest, length + 1 - len(prompt) if encodes else length // 2)
    room = length - len(first) - 1 if encodes else length - 2 - (written - 1)
    rows, wanted, lost, every = [], [], [], 0
    for source, target in zip(sources, targets, strict=True):
        (ids, _), (own, _) = tokenizer.encode([source, target])
        rows.append([*(first if encodes else [end]), *ids[:room], end])
        wanted.append([*own, end][:written])
        lost.append(max(0, len(ids) - room) + max(0, len(own) + 1 - written))
        every += len(ids) + len(own)
    assert [row.tolist() for row in items.encoded.ids] == rows
    assert [own.tolist() for own in items.targets] == wanted
    assert items.lengths.tolist() == [len(row) + len(own) for row, own in zip(rows, wanted, strict=True)]
    whole = [len(row) + (0 if encodes else len(own) - 1) for row, own in zip(rows, wanted, strict=True)]
    assert max(whole) <= length
    found = CutRows.of(items, length)
    assert (found.rows, found.of_rows) == (sum(each > 0 for each in lost), len(sizes))
    assert (found.tokens, found.of_tokens) == (sum(lost), every)
    assert items.sources_cut == sum(source > room for source, _ in sizes)
    assert items.targets_cut == sum(target >= written for _, target in sizes)

    chosen = np.arange(len(sizes))[::-1].copy()
    batch = collate_targets(items, chosen, format)
    read = [(prompt if encodes else rows[item]) + wanted[item][:-1] for item in chosen]
    assert [row[: len(own)].tolist() for row, own in zip(batch.ids, read, strict=True)] == read
    assert batch.prompt.tolist() == [len(prompt) if encodes else len(rows[item]) for item in chosen]
    # From each place the next token is predicted: what stands there is the token before it.
    before = [token for item, own in zip(chosen, read, strict=True) for token in own[-len(wanted[item]) :]]
    assert batch.ids.flatten()[batch.positions].tolist() == before
    for ids, padding_mask, expected in (
        (batch.ids, batch.padding_mask, read),
        *([(batch.source.ids, batch.source.padding_mask, [rows[item] for item in chosen])] if encodes else []),
    ):
        lengths = [len(own) for own in expected]
        assert (padding_mask is None) == (len({*lengths}) == 1 and ids.shape[1] == lengths[0])
        if padding_mask is not None:
            assert padding_mask.sum(1).tolist() == lengths
            assert (ids[~padding_mask] == tokenizer.pad).all()
        assert ids.shape[1] == lengths[0] if len({*lengths}) == 1 else ids.shape[1] % 8 == 0


def test_of_targets_that_cannot_be_written_each_is_counted_once(tokenizer):
    format = InputFormat(tokenizer, shrink("bart-tiny"), 20)
    items = WritingFormat(format, 9).encode(["one"] * 4, ["雪 雪", "one 雪", "one", None])
    assert (items.unknown, items.looked_at, items.targets[3]) == (2, 3, None)
    assert items.changed == []
    assert items.lengths.tolist() == [2 + len(items.targets[row]) for row in range(3)] + [2]


@pytest.mark.parametrize("name", ["bart-tiny", "t5-tiny", "prefix-lm-tiny", "gpt-tiny"])
def test_neither_marks_of_gaps_nor_special_tokens_are_written(name, tokenizer):
    """Though all of them would be the likeliest by far."""
    recipe = without_dropout(shrink(name))
    torch.manual_seed(0)
    head = WritingHead(recipe, tokenizer.size).eval()
    banned = [
        tokenizer.pad,
        tokenizer.start,
        tokenizer.mask,
        *range(tokenizer.size, tokenizer.size + recipe.extra_tokens),
    ]
    if (bias := getattr(head.writer, "bias", None)) is not None:
        bias.data[banned] += 100
    head.model.embedding.weight.data[banned] = 30 * head.model.embedding.weight.data[banned].sign()
    format = InputFormat(tokenizer, recipe, 30)
    rows = WritingFormat(format, 8)
    items = rows.encode([text(3, 0), text(5, 2)], [None, None])
    task = SequenceToSequence(SequenceToSequenceConfig(train="t.tsv"))
    for beams in (1, 3):
        for found in head.write(*rows.prompts(items), tokenizer, task.config.generation(beams, 8)):
            assert not {*found.ids} & {*banned}


def test_looks_write_greedily_and_results_by_the_search_that_was_asked_for(tokenizer, monkeypatch):
    """The longest text of a target is that of the row, whatever the setting says."""
    recipe = without_dropout(shrink("bart-tiny"))
    head, asked = WritingHead(recipe, tokenizer.size), []
    whole = WritingHead.write
    monkeypatch.setattr(WritingHead, "write", lambda *given: asked.append(given[4]) or whole(*given))
    for longest, most in ((5, 5), (99, 20)):
        config = SequenceToSequenceConfig(train="t.tsv", longest=longest, beams=3, length_penalty=0.3, metric="bleu")
        task, format = SequenceToSequence(config), InputFormat(tokenizer, recipe, 20)
        items = task.encode([SourceText(0, ("one",), "two")], format)
        for in_training, beams in ((True, 1), (False, 3)):
            cpu = Placement(torch.device("cpu"), "float32")
            found = predictions_of(head, items, task, format, cpu, labelled=True, in_training=in_training)
            assert found.predictions[0].text is not None
            assert (asked[-1].beams, asked[-1].tokens, asked[-1].length_penalty) == (beams, most, 0.3)
