"""Contracts of optimizers and schedules: going on exactly, memory as it is counted, rates.

They hold in each setting that recipes have of these parts, in the recipe with the fewest layers that has it.
"""

import json
import math

import pytest
import torch
from safetensors.torch import load_file

from bakeoff.conformance.built_models import fresh
from bakeoff.conformance.narrow import PLUGINS, REGISTRY, narrow
from bakeoff.training.pretrain import pretrain
from bakeoff.training.stages import make_batches

STEPS, STOP = 6, 3
LOSSES = [5.0, 4.0, 4.0, 4.1, 3.0, 3.5, 3.6, 3.7]
"""Held-out losses, for schedules that look at them."""


def layers_of(name):
    """The number of a recipe's layers, in all its stacks."""
    return sum(stack.layers for stack in REGISTRY[name].model.stacks().values())


def smallest_with_each(part):
    """The name of the smallest recipe with each setting of an optimizer or a schedule, whatever its learning rate."""
    named = {}
    for name in sorted(REGISTRY, key=layers_of):
        recipe = REGISTRY[name]
        values = getattr(recipe.training, part).model_dump(mode="json")
        named.setdefault(json.dumps({**values, "lr": None}, sort_keys=True), name)
    return list(named.values())


def smallest_of_each_kind(part):
    """The name of the smallest recipe with each kind of optimizer or schedule."""
    kinds = {}
    for name in smallest_with_each(part):
        kinds.setdefault(getattr(REGISTRY[name].training, part).kind, name)
    return list(kinds.values())


QUICK = {"optimizer": 3, "schedule": 2}
"""As many kinds of each part, those of the smallest recipes, are stopped in every run; the others are crossings."""
TRAININGS = [
    pytest.param(
        name,
        part,
        id=f"{name}: {getattr(REGISTRY[name].training, part).kind}",
        marks=[pytest.mark.slow] * (not PLUGINS and number >= QUICK[part]),
    )
    for part in ("optimizer", "schedule")
    for number, name in enumerate(smallest_of_each_kind(part))
]


@pytest.mark.parametrize(("name", "part"), TRAININGS)
def test_a_stopped_training_goes_on_exactly(name, part, recipe, corpus, parallel_corpus, tmp_path):
    """Its weights and its learning rates are those of a training that was not stopped."""
    settings = getattr(REGISTRY[name].training, part).model_dump(mode="json")
    recipe = recipe.changed({"training.budget": {"steps": STEPS}, f"training.{part}": settings})
    text = parallel_corpus if recipe.input.parallel else corpus
    options = {"progress": False, "device": "cpu"}
    whole = pretrain(recipe, text.path, tmp_path / "whole", **options)
    pretrain(recipe, text.path, tmp_path / "stopped", until=STOP, **options)
    stopped = pretrain(recipe, text.path, tmp_path / "stopped", resume=True, **options)
    expected, found = (load_file(run.weights_file()) for run in (whole, stopped))
    assert all(torch.equal(found[key], value) for key, value in expected.items())
    rates = [[line["learning_rate"] for line in run.metrics() if line["kind"] == "train"] for run in (whole, stopped)]
    assert rates[0] == rates[1]


@pytest.fixture
def stepped(name, corpus, parallel_corpus):
    """A model with the gradient of a batch, and its optimizer."""
    module = fresh(name).train()
    recipe = narrow(name)
    text = parallel_corpus if recipe.input.parallel else corpus
    batch = make_batches(recipe, module, text, seed=0).step(0)[0]
    sum(module(batch)[0].values()).backward()
    return module, REGISTRY[name].training.optimizer.build(module)


@pytest.mark.parametrize("name", smallest_with_each("optimizer"))
def test_an_optimizer_keeps_as_many_numbers_as_it_counts(name, stepped):
    """All that it keeps is tensors, of which checkpoints consist; rows and columns of matrices need not be counted."""
    module, optimizer = stepped
    optimizer.step()
    states = optimizer.state_dict()["state"].values()
    assert all(isinstance(value, torch.Tensor) for state in states for value in state.values())
    kept = sum(value.numel() for state in states for value in state.values())
    parameters = sum(parameter.numel() for parameter in module.parameters())
    assert REGISTRY[name].training.optimizer.kept(module) == pytest.approx(kept, abs=0.25 * parameters)


@pytest.mark.parametrize("name", smallest_with_each("optimizer"))
def test_an_optimizer_moves_every_parameter_by_its_rate(name, stepped):
    """With a rate of zero none is moved, and with its own rate every one that has a gradient."""
    module, optimizer = stepped
    before = {key: tensor.detach().clone() for key, tensor in module.named_parameters()}
    rates = [group["lr"] for group in optimizer.param_groups]
    for factor, moved in ((0.0, False), (1.0, True)):
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = factor * rate
        optimizer.step()
        for key, parameter in module.named_parameters():
            assert torch.equal(parameter, before[key]) != moved, key
            assert parameter.isfinite().all(), key


@pytest.mark.parametrize("name", smallest_with_each("schedule"))
def test_a_schedule_has_a_factor_in_every_step_of_any_training(name):
    """It is a number of at least 0 and the same whenever it is asked for, as it is after an interruption."""
    training = REGISTRY[name].training
    for steps in (1, 2, 9, 100):
        fitted = training.schedule.fitted(steps, training.budget.steps)
        assert fitted.fitted(steps, steps) == fitted
        for losses in ([], LOSSES):
            factors = [fitted.factor(step, steps, losses) for step in range(steps)]
            assert all(math.isfinite(factor) and factor >= 0 for factor in factors)
            assert factors[::-1] == [fitted.factor(step, steps, losses) for step in reversed(range(steps))]
