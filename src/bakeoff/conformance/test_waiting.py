"""A contract of every recipe: in a training step on a GPU the processor waits for nothing, and nothing stands aside."""

import pytest
import torch

from bakeoff.conformance.device_spy import META, spying
from bakeoff.conformance.narrow import ALIKE, EVERY_CHOICE, PLUGINS, narrow
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.model import Model
from bakeoff.resources.device import Placement
from bakeoff.trainer.step import optimize
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.stages import Stages


@pytest.fixture
def unit(name, corpus, parallel_corpus):
    return on_meta(narrow(name), corpus, parallel_corpus)


def on_meta(recipe, corpus, parallel_corpus, dtype=torch.float32):
    """The training of a recipe on meta tensors."""
    text = parallel_corpus if recipe.input.parallel else corpus
    module = PretrainingModel(recipe, text.tokenizer.size).to(META, dtype)
    return Pretraining(recipe, module, Placement(META, "float32"), stages=Stages(recipe, module, text, seed=0))


def never_waits(unit):
    """Take a step without waiting for the device, and one of the optimizer after its state has come from the CPU."""
    batches = unit.batches(0)
    unit.begin()
    with spying():
        figures = optimize(unit, batches, 0)
    assert all(figure.device == META for figure in figures.values())
    loaded_again(unit.optimizer)
    for parameter in unit.module.parameters():
        parameter.grad = torch.empty_like(parameter)
    with spying():
        unit.optimizer.step()


def loaded_again(optimizer):
    """Load the state of an optimizer as a checkpoint has it, on the CPU."""
    state = optimizer.state_dict()["state"]
    kept = {
        index: {key: torch.zeros(value.shape, dtype=value.dtype) for key, value in values.items()}
        for index, values in state.items()
    }
    optimizer.load_state_dict({"state": kept, "param_groups": optimizer.state_dict()["param_groups"]})


@pytest.mark.parametrize(
    "name", [each if each in EVERY_CHOICE else pytest.param(each, marks=pytest.mark.slow) for each in ALIKE]
)
def test_a_step_waits_for_nothing_and_mixes_no_devices(unit):
    """It holds before a checkpoint and after it, when the optimizer has its state from the CPU."""
    never_waits(unit)


QUICK = (
    "bert-base",
    "gpt2-base",
    "modernbert-base",
    "laptop-encoder-mini",
    "laptop-hybrid-mini",
    "gpt2-base with a window",
)
"""Recipes whose attention is looked at whenever tests are run; the others, which have the same kinds, are crossings."""


@pytest.mark.parametrize(
    "name", [each if PLUGINS or each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in ALIKE]
)
def test_a_step_in_bfloat16_attends_without_a_mask(name, corpus, parallel_corpus, monkeypatch):
    """Where no layer needs one, packed and padded rows and windows go through torch's kernel for documents."""
    unit = on_meta(narrow(name), corpus, parallel_corpus, torch.bfloat16)
    model, batch = unit.module.model, unit.batches(0)[0]
    attention = [stack.attention_needs for stack in model.stacks().values()]
    row = batch.row
    if not any(each.attends for each in attention) or any(each.mask_reason for each in attention):
        pytest.skip("no layer attends, or one needs a mask")
    if row.queries is not None or row.prefix is not None or unit.memory is not None:
        pytest.skip("its rows need a mask")
    masks, whole = [], Model._mask
    monkeypatch.setattr(Model, "_mask", lambda self, *told: masks.append(whole(self, *told)))
    unit.begin()
    with spying():
        optimize(unit, [batch], 0)
    assert all(mask is None for mask in masks)  # whole rows
