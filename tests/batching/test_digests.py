"""The same seed gives the same batches, bit for bit, in every version: digests taken once are kept in digests.yaml.

A run that goes on, a published result that is repeated and a comparison that was begun rely on it. A change that means
to draw otherwise writes the digests anew, and says so to the users.
"""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from tests.conftest import shrink

from bakeoff.batching.batch import Batch
from bakeoff.corpus.mixture import open_corpus
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.training.stages import make_batches

DIGESTS = yaml.safe_load((Path(__file__).parent / "digests.yaml").read_text(encoding="utf-8"))
STEPS = (0, 1, 11)
"""Of which the last one reads a later epoch."""
ROWS = {"training.batch": 72, "training.micro_batch": 32}
BY_TOKENS = {"training.batch": {"tokens": 1500}, "training.micro_batch": {"tokens": 600}}
WAYS = {
    "growing batches": ("bert-tiny", {"training.batch": 72, "training.first_batch": 0.25}),
    "growing batches, falling masks": ("gpt-bert-small", {"training.batch": 72, "training.first_batch": 0.25}),
    "batches of tokens": ("roberta-tiny", {**BY_TOKENS, "input": {"format": "doc_sentences", "length": 32}}),
    "static masks": ("roberta-tiny", {**ROWS, "objective.0.masking": "static"}),
    "whole words": ("bert-tiny", {**ROWS, "objective.0.whole_word": True}),
    "runs of tokens": ("bert-tiny", {**ROWS, "objective.0.ngram": 3}),
}


def of_pairs(name):
    return load_recipe(name).input.format == "parallel"


def digest(values):
    """Of whole numbers in their order, whatever holds them."""
    found = hashlib.sha256()
    for value in values:
        whole = np.asarray(-1 if value is None else value, dtype=np.int64)
        found.update(repr(whole.shape).encode())
        found.update(np.ascontiguousarray(whole).astype("<i8").tobytes())
    return found.hexdigest()[:16]


def contents(batch: Batch):
    """Everything that a model and its losses read."""
    row = batch.row
    yield from (row.ids, row.segments, row.padding_mask, row.documents, row.backwards, row.prefix, batch.advance)
    for name in sorted(batch.targets):
        yield from batch.targets[name]
    if row.source is not None:
        yield from (row.source.ids, row.source.padding_mask)
    if row.queries is not None:
        yield from row.queries


def digest_of(name, corpus, changes, seed=3):
    recipe = shrink(name, **changes)
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    batches = make_batches(recipe, module, corpus, seed)
    parts = [part for step in STEPS for part in batches.step(step)]
    held_out = make_batches(recipe, module, corpus, seed, split="validation").fixed(9)
    return digest(value for part in [*parts, *held_out] for value in contents(part))


@pytest.mark.parametrize("name", recipe_names())
def test_batches_of_a_recipe_stay_bit_for_bit(name, corpus, parallel_corpus):
    text, changes = (parallel_corpus, BY_TOKENS) if of_pairs(name) else (corpus, ROWS)
    assert digest_of(name, text, changes) == DIGESTS["recipes"][name]


@pytest.mark.parametrize("way", WAYS)
def test_other_ways_of_batching_stay_bit_for_bit(way, corpus):
    name, changes = WAYS[way]
    assert digest_of(name, corpus, changes) == DIGESTS["ways"][way]


@pytest.mark.parametrize("name", ["bert-tiny", "gpt-tiny"])
def test_batches_of_mixtures_stay_bit_for_bit(name, mixture):
    assert digest_of(name, open_corpus(mixture), ROWS) == DIGESTS["mixtures"][name]


def test_another_seed_gives_another_digest(corpus):
    assert digest_of("bert-tiny", corpus, ROWS, seed=4) != DIGESTS["recipes"]["bert-tiny"]


def test_the_fingerprints_of_corpora_stay(corpus, parallel_corpus):
    assert {"text": corpus.fingerprint, "pairs": parallel_corpus.fingerprint} == DIGESTS["fingerprints"]
