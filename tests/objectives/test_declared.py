"""What an objective's config says of it, that reports, charts and `peek` rely on, is so."""

import numpy as np
import pytest
import torch
from tests.conftest import shrink

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.objectives.legality import TRAITS
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.training.stages import make_batches

RECIPES = {part.kind: name for name in reversed(recipe_names()) for part in load_recipe(name).objective}
"""A recipe with each objective, the first by name."""
RELATIONS = [kind for kind, config in OBJECTIVES.items() if config.classes and config.relates_segments]
"""Objectives that arrange segments, and draw each arrangement as often as the others."""


def labels_of(kind, corpus, rows=4000):
    """The labels of many rows."""
    recipe = shrink(RECIPES[kind]) if kind in RECIPES else shrink("roberta-tiny", objective=[{"kind": kind}])
    torch.manual_seed(0)
    batches = make_batches(recipe, PretrainingModel(recipe, corpus.tokenizer.size), corpus, seed=0)
    steps = range(rows // recipe.training.batch)
    return np.concatenate([part.targets[kind][1].numpy() for step in steps for part in batches.step(step)])


@pytest.mark.parametrize("kind", [kind for kind, config in OBJECTIVES.items() if config.bounded_by_frequencies])
def test_who_knows_how_frequent_tokens_are_has_the_unigram_entropy_as_loss(kind, corpus):
    labels = labels_of(kind, corpus)
    counts = np.bincount(corpus.train.tokens, minlength=corpus.tokenizer.size)
    loss = -np.log(np.maximum(counts, 1)[labels] / counts.sum()).mean()
    assert loss == pytest.approx(corpus.train.unigram_entropy(), rel=0.03)


@pytest.mark.parametrize("kind", RELATIONS)
def test_labels_are_the_classes_that_are_named_each_as_frequent(kind, corpus):
    shares = np.bincount(labels_of(kind, corpus)) / len(labels_of(kind, corpus))
    assert shares == pytest.approx(1 / len(OBJECTIVES[kind].classes), abs=0.03)
    assert len(shares) == len(OBJECTIVES[kind].classes)


@pytest.mark.parametrize("kind", [kind for kind, config in OBJECTIVES.items() if config.whole_text])
def test_each_token_of_the_text_is_predicted_once(kind, corpus):
    recipe = shrink(RECIPES[kind], objective=[{"kind": kind}])
    batches = make_batches(recipe, PretrainingModel(recipe, corpus.tokenizer.size), corpus, seed=0)
    targets = sum(len(part.targets[kind][1]) for part in batches.whole())
    documents = len(corpus.train.documents) - 1
    assert targets == pytest.approx(len(corpus.train.tokens) + documents, abs=documents)


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_charts_and_refusals_have_words_for_every_objective(kind):
    config = OBJECTIVES[kind]
    assert config.title.endswith(f"({kind})")
    assert {*config.refused} <= {*TRAITS}
    assert len({*TRAITS} - {*config.refused}) > 1
