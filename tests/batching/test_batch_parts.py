"""A batch is the same whatever parts it is handed out in: those of one worker, or those that several take."""

from dataclasses import replace

import pytest
import torch
from tests.batching.test_batches import equal, same, tensors
from tests.conftest import shrink

from bakeoff.batching.batch import join
from bakeoff.corpus.mixture import open_corpus
from bakeoff.learner.pretraining_model import build_on_meta
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
    real = torch.ones_like(batch.ids) if batch.real is None else batch.real.long()
    own["segments"] = torch.zeros_like(batch.ids) if batch.segments is None else batch.segments
    own["documents"] = real if batch.documents is None else batch.documents
    names = ("ids", "segments", "documents", "backwards", "prefix", "positions", "visible")
    slots = directions * (batch.ids.shape[1] if batch.queries is None else batch.queries.visible.shape[1])
    found = []
    for row in range(len(batch.ids)):
        values = {name: own[name][row].tolist() for name in names if own[name] is not None}
        if batch.source is not None:
            given = slice(None) if batch.source.real is None else batch.source.real[row]
            values["source"] = batch.source.ids[row][given].tolist()
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


@pytest.mark.parametrize("name", [*ALONE, "xlnet-tiny", "translation"])
def test_parts_joined_are_the_batch(name, corpus, mixture, parallel_corpus):
    for workers in WORKERS:
        recipe, pad, found = parts_for(name, workers, corpus, mixture, parallel_corpus)
        whole = parts_for(name, 1, corpus, mixture, parallel_corpus)[2]
        for (one,), parts in zip(whole, found, strict=True):
            turned = None if one.backwards is None else torch.cat([part.backwards for part in parts])
            assert equal(turned, one.backwards)
            joined = join([replace(part, advance=None, backwards=None) for part in parts], recipe.model.directions, pad)
            assert same([replace(joined, advance=one.advance, backwards=one.backwards)], [one])


def test_a_step_is_the_same_whichever_is_made_first(mixture):
    """A training that is resumed begins at any of them, in any chunk."""
    text = open_corpus(mixture)
    recipe = shrink("gpt-tiny", **{"training.micro_batch": 4})

    def batches():
        return make_batches(recipe, build_on_meta(recipe, text.tokenizer.size), text, 5)

    chunk = batches().at_once
    steps = [0, 1, chunk - 1, chunk, chunk + 1, 2 * chunk, 3 * chunk]
    one = batches()
    for step in steps:
        alone, after = batches().step(step), one.step(step)
        assert len(alone) > 0
        assert same(alone, after)


def test_sources_of_unequal_lengths_are_padded_with_the_padding(parallel_corpus):
    recipe = shrink("transformer-translation-tiny")
    batches = make_batches(recipe, build_on_meta(recipe, parallel_corpus.tokenizer.size), parallel_corpus, 5)
    (first,), (second,) = batches.step(0), batches.step(1)
    shorter = replace(second, source=replace_source(second.source, 3))
    joined = join([first, shorter], 1, 7)
    length = first.source.ids.shape[1]
    assert joined.source.ids[len(first.ids) :, 3:].eq(7).all()
    assert joined.source.ids.shape[1] == length > 3
    assert not joined.source.real[len(first.ids) :, 3:].any()


def replace_source(source, length):
    return source._replace(ids=source.ids[:, :length], real=None)


def test_a_step_of_a_mixture_has_as_many_tokens_as_it_says(mixture):
    text = open_corpus(mixture)
    recipe = shrink("roberta-tiny")
    batches = make_batches(recipe, build_on_meta(recipe, text.tokenizer.size), text, 5)
    tokens = [sum(part.tokens for part in batches.step(step)) for step in range(60)]
    assert batches.tokens_per_step == pytest.approx(sum(tokens) / len(tokens), rel=0.05)
