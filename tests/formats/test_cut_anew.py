"""Rows that are cut anew in every epoch, against plain Python, and as a function of the step alone."""

from itertools import chain, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import crossed, shrink
from tests.formats.test_chunks import as_list, bounds, texts

from bakeoff.corpus.mixture import open_corpus
from bakeoff.distributed.processes import Processes
from bakeoff.errors import UserError
from bakeoff.formats.blocks import BlocksConfig
from bakeoff.formats.chunks import full_chunks, packed_sentences, sentence_chunks, sentence_pairs
from bakeoff.formats.cut_anew import Epoch, document_order
from bakeoff.formats.packed_sentences import DocSentencesConfig, FullSentencesConfig
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.randomness.draws import Draws
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.training.stages import make_batches

ABLE = [name for name in recipe_names() if hasattr(load_recipe(name).input, "cut_anew")]
QUICK = ("bert-tiny", "roberta-tiny", "gpt-tiny", "t5-tiny", "structbert-tiny", "gcnn-tiny")
CUT = [
    name for name in ABLE if not load_recipe(name).input.continues and load_recipe(name).objective[0].versions is None
]


def rows_of(format, epoch, seed=5):
    indices = np.arange(format.size)
    return format.examples(indices, Draws(seed, np.full(format.size, epoch), indices))


def texts_of(corpus, order):
    """The documents of the text in an order, a list of tokens each."""
    split = corpus.train
    return [split.tokens[split.documents[d] : split.documents[d + 1]].tolist() for d in order]


@pytest.mark.parametrize(("marks", "context"), [("documents", 0), ("documents", 9), ("none", 0), ("ends", 0)])
@pytest.mark.parametrize("epoch", [1, 7])
def test_blocks_are_cut_from_shuffled_documents(corpus, marks, context, epoch):
    """As a loop would: documents in another order, read from a token of the first row on, round to where it began."""
    length = 32 if marks != "ends" else 30
    config = BlocksConfig(length=32, context=context, cut_anew=True)
    format = config.build(corpus.train, corpus.tokenizer, marks)
    order = document_order(len(corpus.train.documents) - 1, Epoch(5, epoch)).tolist()
    assert sorted(order) == list(range(len(order)))
    assert order != list(range(len(order)))
    begin = format.streams.of(Epoch(5, epoch)).begin
    assert 0 <= begin < length
    mark = [] if marks == "none" else [corpus.tokenizer.separator]
    stream = list(chain.from_iterable([*mark, *own] for own in texts_of(corpus, order)))
    stream = stream[begin:] + stream[:begin]
    found = rows_of(format, epoch)
    step = length - context
    for row, ids in enumerate(found.row.ids):
        expected = stream[row * step : row * step + length]
        inner = ids[1:-1] if marks == "ends" else ids
        assert inner[: len(expected)].tolist() == expected
        if found.following is not None:
            after = (*stream, corpus.tokenizer.separator)[row * step + 1 : row * step + length + 1]
            assert found.following[row, : len(after)].tolist() == list(after)
    ordinary = found.sources >= 0
    assert np.array_equal(corpus.train.tokens[found.sources[ordinary]], found.row.ids[ordinary])
    fresh = (
        found.sources
        if not context
        else np.where(np.arange(found.sources.shape[1]) >= found.context[:, None], found.sources, -1)
    )
    assert np.array_equal(np.sort(fresh[fresh >= 0]), np.arange(len(corpus.train.tokens)))  # each token once
    for ids, owners, sources in zip(found.row.ids, found.row.documents, found.sources, strict=True):
        where = np.searchsorted(corpus.train.documents, sources, side="right")
        inside = (sources[1:] >= 0) & (sources[:-1] >= 0) & (owners[1:] > 0)
        changed = (where[1:] != where[:-1]) | (sources[1:] != sources[:-1] + 1)
        assert np.array_equal((owners[1:] != owners[:-1])[inside], changed[inside]), ids


def test_a_single_document_is_cut_elsewhere_too(tmp_path):
    from bakeoff.preparation.prepare import prepare

    (tmp_path / "a.txt").write_text("One two three. Four five six seven. " * 60, encoding="utf-8")
    corpus = prepare(tmp_path / "a.txt", tmp_path / "corpus", validation=0.1)
    for config in (BlocksConfig, FullSentencesConfig, DocSentencesConfig):
        format = config(length=16, cut_anew=True).build(corpus.train, corpus.tokenizer, "ends", None)
        first = {tuple(rows_of(format, epoch).sources[1]) for epoch in range(4)}
        assert len(first) > 1, config


def packed_by_a_loop(documents, longest, room):
    """Rows of whole sentences of documents in their order, a mark before each further one; the first has `room`."""
    rows, row, taken = [], [], 0
    for number, own in enumerate(documents):
        for index, size in enumerate(own):
            mark = int(index == 0 and bool(row))
            if row and taken + mark + size > room:
                rows.append(row)
                row, taken, mark, room = [], 0, 0, longest
            room = max(room, min(size, longest)) if not row else room
            row.append((number, index))
            taken += mark + size
    return [*rows, row] if row else rows


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=8), min_size=1, max_size=6), st.integers(9, 40))
def test_sentences_stay_whole_and_the_first_row_is_shorter(documents, longest):
    sentences, starts = bounds(documents)
    for number in range(1, 4):
        epoch = Epoch(3, number)
        first, last = packed_sentences(sentences, starts, longest, False, epoch)
        assert set(first) | set(last) <= set(sentences.tolist())
        assert np.array_equal(first[1:], last[:-1])  # the whole text, once
        for begin, end, own in zip(starts[:-1], starts[1:], documents, strict=True):
            inside = [(f, e) for f, e in zip(first, last, strict=True) if begin <= f < end]
            room = next(
                room
                for room in range(longest + 1)
                if [len(row) for row in packed_by_a_loop([own], longest, room)]
                == [int(((sentences >= f) & (sentences < e)).sum()) for f, e in inside]
            )
            assert room <= longest
            if end - begin <= longest:
                assert len(inside) == 1


@settings(max_examples=50, deadline=None)
@given(texts, st.integers(2, 40), st.integers(1, 5))
def test_chunks_that_are_cut_anew_hold_what_the_first_ones_may(documents, longest, number):
    sentences, starts = bounds(documents)
    epoch = Epoch(1, number)
    for find in (sentence_chunks, full_chunks, sentence_pairs):
        found = as_list(find(sentences, starts, longest, anew=epoch))
        assert found == as_list(find(sentences, starts, longest, anew=epoch))
        for first, last in found:
            assert 2 <= last - first <= longest
            assert np.searchsorted(starts, first, side="right") == np.searchsorted(starts, last - 1, side="right")
            if find is not full_chunks:
                assert {first, last} <= set(sentences.tolist())
                assert ((sentences >= first) & (sentences < last)).sum() >= 2
        if find is not full_chunks:
            assert all(a[1] <= b[0] for a, b in pairwise(found))


def test_sentences_of_shuffled_documents_are_packed_as_a_loop_would(corpus):
    format = FullSentencesConfig(length=32, cut_anew=True).build(corpus.train, corpus.tokenizer, "ends", None)
    split, epoch = corpus.train, Epoch(5, 2)
    order = document_order(len(split.documents) - 1, epoch)
    sizes = [
        np.diff(split.sentences[(split.sentences >= split.documents[d]) & (split.sentences <= split.documents[d + 1])])
        for d in order
    ]
    assert max(map(max, sizes)) <= 30  # no sentence is cut
    chunks = format.packed.of(epoch).chunks.bounds
    room = 30 - next(
        free
        for free in range(30)
        if sum(map(len, packed_by_a_loop(sizes, 30, 30 - free)[:1]))
        == (np.cumsum(np.concatenate(sizes)) <= chunks[1, 0]).sum()
    )
    loop = packed_by_a_loop([own.tolist() for own in sizes], 30, room)
    begins = np.concatenate([[0], np.cumsum(np.concatenate(sizes))])
    counts = np.cumsum([0, *map(len, loop)])
    assert np.array_equal(chunks, np.stack([begins[counts[:-1]], begins[counts[1:]]]))
    found = rows_of(format, 2)
    ordinary = found.sources >= 0
    assert np.array_equal(split.tokens[found.sources[ordinary]], found.row.ids[ordinary])
    assert abs(chunks.shape[1] - format.size) <= 0.05 * format.size + 1
    read = len(np.unique(found.sources[ordinary])) / len(split.tokens)
    assert read > 0.93 if chunks.shape[1] > format.size else read == 1


def contents(parts):
    return [
        (part.number, part.row.ids.tolist(), *(each[1].tolist() for each in part.targets.values())) for part in parts
    ]


@pytest.mark.parametrize("name", crossed(CUT, QUICK))
def test_every_recipe_reads_other_rows_in_every_epoch_but_the_first(name, corpus):
    """And they are a function of the step alone, whatever was made before; held-out rows stay."""
    changes = {"training.batch": 6, "training.micro_batch": 4}
    plain = shrink(name, **changes)
    recipe = plain.changed({"input.cut_anew": True})
    module = build_on_meta(recipe, corpus.tokenizer.size)
    as_it_was, batches = (make_batches(each, module, corpus, 3) for each in (plain, recipe))
    assert contents(batches.step(0)) == contents(as_it_was.step(0))
    later = -(-2 * batches.rows_an_epoch // 6)
    found = contents(batches.step(later))
    assert found != contents(as_it_was.step(later))
    again = make_batches(recipe, module, corpus, 3)
    assert contents(again.step(later)) == found
    assert contents(batches.step(0)) == contents(again.step(0))
    held_out = [make_batches(each, module, corpus, 3, split="validation").fixed(5) for each in (plain, recipe)]
    assert contents(held_out[0]) == contents(held_out[1])
    shares = [make_batches(recipe, module, corpus, 3, processes=Processes(rank, 2)).step(later) for rank in (0, 1)]
    assert sorted(contents(chain.from_iterable(shares))) == sorted(found)


def test_every_corpus_of_a_mixture_is_cut_anew(mixture):
    recipe, text = shrink("gpt-tiny", **{"input.cut_anew": True, "training.batch": 64}), open_corpus(mixture)
    module = build_on_meta(recipe, text.tokenizer.size)
    anew = make_batches(recipe, module, text, 3)
    plain = make_batches(recipe.changed({"input.cut_anew": False}), module, text, 3)
    later = 3 * anew.rows_an_epoch // 64
    rows = [{tuple(row) for part in each.step(later) for row in part.row.ids.tolist()} for each in (anew, plain)]
    assert len(rows[0] & rows[1]) < 4
    assert torch.equal(anew.step(0)[0].row.ids, plain.step(0)[0].row.ids)


BY_TOKENS = {"training.batch": {"tokens": 500}, "training.micro_batch": {"tokens": 500}}


@pytest.mark.parametrize(
    ("name", "changes", "says"),
    [
        ("transformer-xl-tiny", {}, "recurrent rows continue each other"),
        ("xlnet-tiny", {}, "cut_anew"),
        ("transformer-translation-tiny", {}, "cut_anew"),
        ("bert-tiny", {"objective.0.masking": "static"}, "the static masks of mlm belong to rows that stay"),
        (
            "roberta-tiny",
            {"input": {"format": "doc_sentences", "length": 32}, **BY_TOKENS},
            "give training.batch as a number of rows",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_cut_anew_is_refused(name, changes, says):
    with pytest.raises(UserError, match=says):
        shrink(name, **changes).changed({"input.cut_anew": True})


@pytest.mark.slow
def test_ten_million_documents_are_shuffled_in_seconds():
    order = document_order(10_000_000, Epoch(0, 1))
    assert np.array_equal(np.bincount(order, minlength=10_000_000), np.ones(10_000_000, np.int64))
