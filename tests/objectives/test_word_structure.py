"""Shuffled runs, undone by a search over all orders."""

import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import shrink

from bakeoff.formats.example import Examples
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.objectives.mlm import MaskedLanguageModelConfig
from bakeoff.objectives.word_structure import WordStructureConfig
from bakeoff.randomness.draws import Draws
from bakeoff.recipe_files import load_recipe
from bakeoff.row import Row
from bakeoff.training.stages import make_batches


def rows_of(sources, corpus):
    ids = np.where(sources >= 0, corpus.train.tokens[np.maximum(sources, 0)], corpus.tokenizer.start).astype(np.int64)
    return Examples(Row(ids, documents=np.ones_like(ids, np.int32)), sources=sources)


def contiguous(corpus, rows, length, seed=0):
    starts = np.random.default_rng(seed).integers(0, len(corpus.train.tokens) - length, rows)
    sources = starts[:, None] + np.arange(length)
    sources[:, [0, length // 2, -1]] = -1
    return sources


def shuffled(corpus, sources, epoch=0, **options):
    """The rows' ids before and after, and the (N, T) labels, -1 where there is none."""
    objective = WordStructureConfig(**options).build(shrink("bert-tiny").model, corpus.tokenizer.size)
    examples = rows_of(sources, corpus)
    before = examples.row.ids.copy()
    draws = Draws(0, np.full(len(sources), epoch), np.arange(len(sources)))
    targets = objective.targets(examples, corpus.train, corpus.tokenizer, draws)
    assert (np.diff(targets.rows) > 0).all()
    labels = np.full(before.size, -1)
    labels[targets.rows] = targets.labels
    return before, examples, labels.reshape(before.shape)


def test_the_labels_are_the_text_and_all_else_stays(corpus):
    sources = contiguous(corpus, 500, 64)
    before, examples, labels = shuffled(corpus, sources)
    chosen = labels >= 0
    assert np.array_equal(np.where(chosen, labels, examples.row.ids), before)  # undone
    assert np.array_equal(examples.taken, chosen)
    assert (chosen.sum(1) == 3 * np.rint(61 * 0.05)).all()
    for row in np.flatnonzero(chosen.any(1)):
        places = np.flatnonzero(chosen[row]).reshape(-1, 3)
        assert (np.diff(places, axis=1) == 1).all()
        assert (np.diff(sources[row, places], axis=1) == 1).all()  # not over a special token
        assert np.array_equal(np.sort(examples.row.ids[row, places], axis=1), np.sort(before[row, places], axis=1))


def test_all_orders_and_all_places_are_equally_likely(corpus):
    sources = np.repeat(np.arange(100, 166)[None], 4000, axis=0)  # distinct places of one stretch of text
    before, examples, labels = shuffled(corpus, sources)
    orders, starts = Counter(), np.zeros(66)
    for row in range(len(sources)):
        for run in np.flatnonzero(labels[row] >= 0).reshape(-1, 3):
            starts[run[0]] += 1
            if len(set(before[row, run])) == 3:
                orders[tuple(before[row, run].tolist().index(value) for value in examples.row.ids[row, run])] += 1
    total = sum(orders.values())
    for order in itertools.permutations(range(3)):
        assert orders[order] / total == pytest.approx(1 / 6, abs=5 * np.sqrt(5 / 36 / total))
    share = starts[:64] / starts.sum()  # the last run begins two places before the end
    assert share.tolist() == pytest.approx([1 / 64] * 64, abs=5 * np.sqrt(1 / 64 / starts.sum()))
    assert not np.array_equal(shuffled(corpus, sources, epoch=1)[2], labels)


@pytest.mark.parametrize("first", ["mlm", "word_structure"])
def test_no_token_is_both_hidden_and_shuffled(corpus, first):
    model = shrink("bert-tiny").model
    both = {"mlm": MaskedLanguageModelConfig(rate=0.3), "word_structure": WordStructureConfig(rate=0.1)}
    examples = rows_of(contiguous(corpus, 300, 64), corpus)
    before, draws = examples.row.ids.copy(), Draws(0, np.zeros(300, np.int64), np.arange(300))
    seen, text = set(), before.copy().ravel()
    for kind in sorted(both, key=lambda kind: kind != first):
        objective = both[kind].build(model, corpus.tokenizer.size)
        targets = objective.targets(examples, corpus.train, corpus.tokenizer, draws)
        assert not seen & set(targets.rows.tolist())
        assert np.array_equal(targets.labels, text[targets.rows])
        seen |= set(targets.rows.tolist())
    assert (examples.row.ids.ravel() != text).sum() <= len(seen)


@pytest.mark.parametrize(
    ("name", "kind", "rate"), [("structbert-tiny", "mlm", 0.15), ("xlnet-tiny", "permutation", 1 / 6)]
)
def test_the_order_in_which_objectives_are_listed_changes_nothing(corpus, name, kind, rate):
    """Runs are of what no other objective has hidden, as many as 5 % of that."""
    listings = [[kind, "word_structure"], ["word_structure", kind]]
    recipes = [
        shrink(
            name,
            **{"objective": [{"kind": each} for each in listing], "input": {"format": "segment_pair", "length": 64}},
        )
        for listing in listings
    ]
    made = [make_batches(each, build_on_meta(each, corpus.tokenizer.size), corpus, seed=0) for each in recipes]
    for step in range(3):
        first, second = (batches.step(step)[0] for batches in made)
        assert torch.equal(first.row.ids, second.row.ids)
        assert [list(batch.targets) for batch in (first, second)] == listings
        for a, b in zip(first.targets[kind], second.targets[kind], strict=True):
            assert torch.equal(a, b)
        for a, b in zip(first.targets["word_structure"], second.targets["word_structure"], strict=True):
            assert torch.equal(a, b)
        slots = first.row.ids.shape[1] if first.row.queries is None else first.row.queries.visible.shape[1]
        hidden, moved = (
            np.bincount(first.targets[each][0] // slots, minlength=len(first.row.ids))
            for each in (kind, "word_structure")
        )
        ordinary = (
            (first.row.padding_mask if first.row.padding_mask is not None else torch.ones_like(first.row.ids)).sum(1)
            - 3
        ).numpy()
        if kind == "mlm":  # of tokens, not of runs of words
            assert np.array_equal(hidden, np.maximum(np.rint(ordinary * rate), 1))
        assert np.array_equal(moved, 3 * np.rint((ordinary - hidden) * 0.05))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from([-1, 3, 4, 5, 6, 50]), min_size=2, max_size=9), min_size=1, max_size=4),
    st.floats(0.01, 1 / 3),
)
def test_short_and_broken_rows(corpus, rows, rate):
    """Whatever the rows: runs of three consecutive places of the text, never more than wanted."""
    sources = np.full((len(rows), max(map(len, rows))), -1)
    for row, own in enumerate(rows):
        sources[row, : len(own)] = own
    before, examples, labels = shuffled(corpus, sources, rate=rate)
    chosen = labels >= 0
    assert np.array_equal(np.where(chosen, labels, examples.row.ids), before)
    assert (chosen.sum(1) <= 3 * np.rint((sources >= 0).sum(1) * rate)).all()
    for row in np.flatnonzero(chosen.any(1)):
        places = np.flatnonzero(chosen[row]).reshape(-1, 3)
        assert (np.diff(sources[row, places], axis=1) == 1).all()


def test_structbert_has_one_head_for_hidden_and_shuffled_tokens():
    structbert = build_on_meta(load_recipe("structbert-base"), 30522)
    bert = build_on_meta(load_recipe("bert-base"), 30522)
    assert structbert.parameter_count() == bert.parameter_count() + 768 + 1  # the third class
    assert list(structbert.heads) == ["mlm", "sentence_structure"]
    alone = load_recipe("bert-tiny", {"objective": [{"kind": "word_structure"}], "input.format": "segment_pair"})
    assert list(build_on_meta(alone, 100).heads) == ["word_structure"]
