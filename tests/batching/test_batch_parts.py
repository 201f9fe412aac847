"""A batch is the same whatever parts it is handed out in: those of one worker, or those that several take."""

import numpy as np
import pytest
import torch
from tests.batching.test_batches import same, tensors
from tests.conftest import shrink

from bakeoff.batching.batches import batches_of
from bakeoff.batching.rows import joined
from bakeoff.corpus.mixture import open_corpus
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.row import Source
from bakeoff.training.stages import make_batches

WORKERS = (1, 2, 4, 8)
STEPS = (0, 3, 40)  # the last is made with other steps than the first, in another chunk
ALONE = ["t5-tiny", "bart-tiny", "structbert-tiny", "gpt-tiny", "elmo-tiny", "roberta-tiny", "prefix-lm-tiny"]
ALONE += ["gpt-bert-tiny"]
MIXED = ["gpt-tiny on a mixture", "bart-tiny on a mixture", "prefix-lm-tiny on a mixture"]
MIXED += ["gpt-bert-tiny on a mixture"]
CASES = [*ALONE, "xlnet-tiny", "transformer-xl-tiny", *MIXED, "translation"]


def parts_for(name, workers, corpus, mixture, parallel_corpus):
    """The recipe, its padding, and the batches of the steps, in the parts that so many workers would take."""
    if name == "translation":
        sizes = {"training.batch": {"tokens": 160}, "training.micro_batch": {"tokens": 160 // workers}}
        recipe, text = shrink("transformer-translation-tiny", **sizes), parallel_corpus
    else:
        own = {"objective.0.causal": 0.5} if name.startswith("gpt-bert") else {}  # rows of both kinds among eight
        recipe = shrink(name.removesuffix(" on a mixture"), **own, **{"training.micro_batch": 8 // workers})
        text = open_corpus(mixture) if name.endswith("mixture") else corpus
    batches = make_batches(recipe, build_on_meta(recipe, text.tokenizer.size), text, 5)
    found = [batches.step(step) for step in STEPS]
    for parts in found:
        assert len(parts) == workers or name == "translation"
    return recipe, text.tokenizer.pad, found


def rows_of(batch, directions):
    """Each row of a batch alone: its tensors, without what only says that there is nothing, and its targets' places."""
    own = tensors(batch)
    padding_mask = torch.ones_like(batch.row.ids) if batch.row.padding_mask is None else batch.row.padding_mask.long()
    own["segments"] = torch.zeros_like(batch.row.ids) if batch.row.segments is None else batch.row.segments
    own["documents"] = padding_mask if batch.row.documents is None else batch.row.documents
    names = ("ids", "segments", "documents", "backwards", "prefix", "positions", "visible")
    slots = directions * (batch.row.ids.shape[1] if batch.row.queries is None else batch.row.queries.visible.shape[1])
    found = []
    for row in range(len(batch.row.ids)):
        values = {name: own[name][row].tolist() for name in names if own[name] is not None}
        if batch.row.source is not None:
            given = slice(None) if batch.row.source.padding_mask is None else batch.row.source.padding_mask[row]
            values["source"] = batch.row.source.ids[row][given].tolist()
        for name, (places, labels) in batch.targets.items():
            mine = places // slots == row
            values[name] = (places[mine] - row * slots).tolist(), labels[mine].tolist()
        found.append(values)
    return found


@pytest.mark.parametrize("name", CASES)
def test_any_number_of_workers_has_the_same_rows(name, corpus, mixture, parallel_corpus):
    found = {workers: parts_for(name, workers, corpus, mixture, parallel_corpus) for workers in WORKERS}
    recipe, _, whole = found[1]
    for workers in WORKERS[1:]:
        for one, parts in zip(whole, found[workers][2], strict=True):
            expected = [row for part in one for row in rows_of(part, recipe.model.directions)]
            rows = [row for part in parts for row in rows_of(part, recipe.model.directions)]
            if name.endswith("mixture"):  # whose parts each begin with the rows of the first corpus
                expected, rows = sorted(expected, key=str), sorted(rows, key=str)
            assert rows == expected
            assert sum(part.tokens for part in parts) == sum(part.tokens for part in one)
            assert {part.advance for part in parts} == {part.advance for part in one}
            assert all(any(row[kind][0] for row in rows) for kind in one[0].targets)  # there is something to compare


@pytest.mark.parametrize("name", [*ALONE, "xlnet-tiny", "transformer-translation-tiny"])
@pytest.mark.parametrize("seed", range(3))
def test_rows_that_are_made_apart_and_joined_are_those_made_at_once(name, seed, corpus, parallel_corpus):
    text = parallel_corpus if name.startswith("transformer") else corpus
    recipe = shrink(name)
    batches = make_batches(recipe, build_on_meta(recipe, text.tokenizer.size), text, 5)
    rows, chosen = batches.texts[0], batches.order.steps(0)
    owner = np.random.default_rng(seed).integers(3, size=len(chosen.indices))
    places = [np.flatnonzero(owner == number) for number in range(3)]

    def made(own):
        progress = batches.course.progress(chosen.steps)
        done = None if progress is None else progress[own]
        return rows.make(chosen.indices[own], chosen.epochs[own], 5, done, batches.order.even)

    parts = [(0, 5), (5, 8), (8, len(owner))]
    whole = batches_of(made(np.arange(len(owner))), parts, None)
    assert same(batches_of(joined([made(own) for own in places], places, text.tokenizer.pad), parts, None), whole)
    assert all(sum(len(part.targets[each.kind][0]) for part in whole) for each in recipe.objective)


@pytest.mark.parametrize("changes", [{}, {"objective": [{"kind": "mlm"}, {"kind": "permutation"}]}])
def test_shorter_rows_are_padded_where_nothing_is_seen_or_asked(changes, corpus):
    """A second stream stands after the padding, and what is predicted at it is still predicted at it."""
    name = "xlnet-tiny" if changes else "roberta-tiny"
    found = []
    for length in (16, 24):
        recipe = shrink(name, **{"input": {"format": "segment_pair", "length": length}, **changes})
        batches = make_batches(recipe, build_on_meta(recipe, corpus.tokenizer.size), corpus, 5)
        some = np.arange(4)
        found.append(batches.texts[0].make(some, np.zeros_like(some), 5, None, even=False))
    places = [np.array([0, 2, 4, 6]), np.array([1, 3, 5, 7])]
    (batch,) = batches_of(joined(found, places, corpus.tokenizer.pad), [(0, 8)], None)
    assert batch.row.ids.shape == (8, 24)
    assert batch.row.ids[places[0], 16:].eq(corpus.tokenizer.pad).all()
    assert not batch.row.padding_mask[places[0], 16:].any()
    directions = recipe.model.directions
    for rows, own in zip(found, places, strict=True):
        (alone,) = batches_of(rows, [(0, 4)], None)
        narrow = alone.row.ids.shape[1]
        assert batch.row.ids[own, :narrow].equal(alone.row.ids)
        wide, few = (
            each.row.ids.shape[1] if each.row.queries is None else each.row.queries.visible.shape[1]
            for each in (batch, alone)
        )
        if alone.row.queries is not None:
            queries = alone.row.queries.positions.shape[1]
            assert batch.row.queries.positions[own, :queries].equal(alone.row.queries.positions)
            assert batch.row.queries.visible[own, 24 : 24 + queries, :narrow].equal(
                alone.row.queries.visible[:, narrow:]
            )
            assert not batch.row.queries.visible[own][:, :, narrow:].any()
        for kind, (places_alone, labels) in alone.targets.items():
            row, place = places_alone // (few * directions), places_alone % (few * directions)
            moved = place + (place >= narrow * directions) * (24 - narrow) * directions
            expected = torch.from_numpy(own)[row] * wide * directions + moved
            mine = torch.isin(batch.targets[kind][0] // (wide * directions), torch.from_numpy(own))
            assert batch.targets[kind][0][mine].equal(expected)
            assert batch.targets[kind][1][mine].equal(labels)


def test_a_step_is_the_same_whichever_is_made_first(mixture):
    """A training that is resumed begins at any of them, in any chunk."""
    text = open_corpus(mixture)
    recipe = shrink("gpt-tiny", **{"training.micro_batch": 4})

    def batches():
        return make_batches(recipe, build_on_meta(recipe, text.tokenizer.size), text, 5)

    chunk = batches().order.steps_at_once
    steps = [0, 1, chunk - 1, chunk, chunk + 1, 2 * chunk, 3 * chunk]
    one = batches()
    for step in steps:
        alone, after = batches().step(step), one.step(step)
        assert len(alone) > 0
        assert same(alone, after)


def test_sources_of_unequal_lengths_are_padded_with_the_padding(parallel_corpus):
    recipe = shrink("transformer-translation-tiny")
    batches = make_batches(recipe, build_on_meta(recipe, parallel_corpus.tokenizer.size), parallel_corpus, 5)
    rows, chosen = batches.texts[0], batches.order.steps(0)
    found = [rows.make(chosen.indices[:4], chosen.epochs[:4], 5, None, even=True) for _ in range(2)]
    shorter = found[1].examples
    source = shorter.row.source
    shorter.row = shorter.row._replace(source=Source(source.ids[:, :3], source.padding_mask[:, :3]))
    (batch,) = batches_of(joined(found, [np.arange(4), np.arange(4, 8)], 7), [(0, 8)], None)
    assert batch.row.source.ids.shape[1] == found[0].examples.row.source.ids.shape[1] > 3
    assert batch.row.source.ids[4:, 3:].eq(7).all()
    assert not batch.row.source.padding_mask[4:, 3:].any()


def test_a_step_of_a_mixture_has_as_many_tokens_as_it_says(mixture):
    text = open_corpus(mixture)
    recipe = shrink("roberta-tiny")
    batches = make_batches(recipe, build_on_meta(recipe, text.tokenizer.size), text, 5)
    tokens = [sum(part.tokens for part in batches.step(step)) for step in range(60)]
    assert batches.tokens_per_step == pytest.approx(sum(tokens) / len(tokens), rel=0.05)
