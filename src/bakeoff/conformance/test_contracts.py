"""Contracts of training and of weights that every recipe keeps, whatever its parts; dropout is off.

Recipes that are the same once they are narrow are run once (`narrow.ALIKE`).
"""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from bakeoff.batching.batch import asked_everywhere
from bakeoff.conformance.built_models import (
    ROWS,
    VOCABULARY,
    fresh,
    random_ids,
    read,
)
from bakeoff.conformance.narrow import ALIKE, REGISTRY, narrow, without_dropout
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.matrices import declared_matrices, own_parameters
from bakeoff.objectives.heads import logits
from bakeoff.resources.costs import costs_of
from bakeoff.row import Row, Source
from bakeoff.trainer.step import optimize
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.stages import make_batches


@pytest.fixture
def corpus(recipe, corpus, parallel_corpus):
    """The corpus for the recipe: of pairs, or of text."""
    return parallel_corpus if recipe.input.parallel else corpus


def test_shape_and_type(recipe, module, length):
    hidden = read(module, random_ids(length))
    assert hidden.shape == (ROWS, length, recipe.model.output_width)
    assert hidden.dtype == torch.float32
    assert hidden.isfinite().all()


def test_every_parameter_gets_a_finite_gradient(recipe, module, corpus):
    batch = make_batches(recipe, module, corpus, seed=0).step(0)[0]
    sum(module(batch)[0].values()).backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
        assert parameter.grad.abs().sum() > 0, name


def test_parameters_are_counted_as_the_model_has_them(recipe, module):
    costs = costs_of(recipe, VOCABULARY)
    assert costs.parameters == sum(parameter.numel() for parameter in module.parameters())
    assert costs.parameters == sum(costs.parts.values())


def test_declared_matrices_are_parameters_of_two_dimensions_or_more(module):
    for part in module.modules():
        dimensions = {name: parameter.dim() for name, parameter in own_parameters(part)}
        assert all(dimensions.get(name, 0) >= 2 for name in declared_matrices(part) or ()), type(part)


def test_saving_and_loading_keeps_the_scores(recipe, module, length, tmp_path):
    save_file(module.state_dict(), tmp_path / "model.safetensors")
    loaded = PretrainingModel(recipe, VOCABULARY).eval()
    loaded.load_state_dict(load_file(tmp_path / "model.safetensors"))
    ids = random_ids(length)
    for name in module.heads:
        before, after = (scores_of(each, name, ids) for each in (module, loaded))
        assert torch.equal(after, before)


def scores_of(module, name, ids):
    """The scores of a head at every place, from the model's hidden states or its generator's."""
    source = Source(random_ids(13, 9, len(ids))) if module.model.config.sequence_to_sequence else None
    return module(asked_everywhere(Row(ids, source=source), name), score=logits)[0][name]


def what_is_accumulated(recipe):
    """The parts that accumulation depends on: input, objectives, and kinds of mixers (or of blocks without one)."""
    blocks = [block for stack in recipe.model.stacks().values() for block in stack.distinct()]
    kinds = {block.mixer_config.kind for block in blocks}
    return json.dumps([recipe.model_dump(mode="json")[key] for key in ("input", "objective")]), *sorted(kinds)


@pytest.mark.parametrize("name", {what_is_accumulated(narrow(name)): name for name in ALIKE}.values())
def test_accumulation_changes_nothing(recipe, corpus):
    """One step with the whole batch equals one in micro-batches with different numbers of targets."""
    recipe = without_dropout(recipe).changed({"training.clip": None})
    results = []
    for micro_batch in (8, 3):
        torch.manual_seed(0)
        cut = recipe.changed({"training.micro_batch": micro_batch})
        module = PretrainingModel(cut, corpus.tokenizer.size).train()
        if not module.model.independent_rows:
            pytest.skip("the recipe declares that rows depend on each other in training")
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        micro_batches = make_batches(cut, module, corpus, seed=0).step(0)
        assert len(micro_batches) == -(-8 // micro_batch)
        means = optimize(Pretraining(cut, module, optimizer=optimizer), micro_batches, 0)
        results.append((means, module.state_dict()))
    (whole, weights), (cut_means, cut_weights) = results
    for name, value in whole.items():
        torch.testing.assert_close(cut_means[name], value, atol=1e-5, rtol=1e-5)
    for name, value in weights.items():
        torch.testing.assert_close(cut_weights[name], value, atol=1e-6, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The .grad attribute")  # the compiler looks at it on a factorised embedding's output
@pytest.mark.filterwarnings("ignore:.*should not be instantiated")  # the compiler does so with autograd functions
def test_compiled_equals_eager(recipe, name, corpus):
    module = fresh(name)
    batch = make_batches(recipe, module, corpus, seed=0).step(0)[0]
    expected = module(batch)[0]
    torch.compiler.reset()  # the limit of variants is one of a process, which trains few recipes and not all
    module.model.compile_layers()
    for objective, total in module(batch)[0].items():
        torch.testing.assert_close(total, expected[objective], atol=1e-4, rtol=1e-5)


PUBLISHED = {name: recipe.published for name, recipe in REGISTRY.items() if recipe.published}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_match_the_papers(name):
    counted = costs_of(REGISTRY[name], PUBLISHED[name].vocabulary).parameters
    alike = counted == pytest.approx(PUBLISHED[name].parameters, rel=0.015)
    assert alike == (not PUBLISHED[name].differs)
