"""Layers that are applied anew in the backward pass keep less, and change no bit of a gradient."""

import pytest
import torch
from tests.conftest import shrink

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.layer import apply_layer
from bakeoff.resources.memory_need import memory_need
from bakeoff.row import Row
from bakeoff.training.stages import make_batches

CPU = torch.device("cpu")
NAMES = [
    "bert-tiny",
    "albert-tiny",
    "gpt-bert-tiny",
    "t5-tiny",
    "xlnet-tiny",
    "electra-tiny",
    "conv-dynamic-lm-tiny",
    "lstm-lm-tiny",
]


def built(name, **changes):
    recipe = shrink(name, **{"model.dropout": 0.2, **changes})
    torch.manual_seed(0)
    return recipe, PretrainingModel(recipe, 160).train()


MIXED = {"model.encoder.block.mixer.value_residual": True}


@pytest.mark.parametrize(("name", "changes"), [*((name, {}) for name in NAMES), ("bert-tiny", MIXED)])
def test_gradients_have_the_same_bits_and_layers_are_applied_twice(name, changes, corpus, monkeypatch):
    applied, gradients = [], []

    def noted(layer, *arguments):
        applied.append(layer)
        return apply_layer(layer, *arguments)

    monkeypatch.setattr("bakeoff.models.layer.apply_layer", noted)
    for wanted in (False, True):
        recipe, module = built(name, **{"training.activation_checkpointing": wanted, **changes})
        (batch,) = make_batches(recipe, module, corpus, seed=0).step(0)
        state = module.model.start(len(batch.row.ids)) if recipe.input.continues else None
        applied.clear()
        torch.manual_seed(1)
        sum(module(batch, state)[0].values()).backward()
        gradients.append([each.grad for each in module.parameters()])
        count = len(applied)
    layers = sum(
        len(stack.layers) for part in (module.model, module.generator) if part for stack in part.stacks().values()
    )
    assert count >= 2 * layers
    for one, other in zip(*gradients, strict=True):
        assert (one is None and other is None) or torch.equal(one, other)


def test_evaluation_applies_a_layer_once(monkeypatch):
    _, module = built("bert-tiny", **{"training.activation_checkpointing": True})
    monkeypatch.setattr("bakeoff.models.layer.checkpoint", None)
    module.eval()
    row = Row(torch.randint(5, 160, (2, 9)))
    module.model(row)
    with torch.no_grad():
        module.train().model(row)


def test_the_counted_memory_is_that_of_the_layers_inputs_and_of_one_layer():
    recipe = shrink("gpt-tiny", **{"model.decoder.layers": 12, "input.length": 128})
    whole, kept = (
        memory_need(recipe.changed({"training.activation_checkpointing": wanted}), 160, CPU, 8)
        for wanted in (False, True)
    )
    assert kept.weights == whole.weights
    assert kept.activations < 0.35 * whole.activations
    inputs = 12 * 8 * 128 * recipe.model.stack.width * 4
    of_a_layer = (whole.activations - kept.activations) / 12
    assert kept.activations > inputs + 0.9 * of_a_layer
