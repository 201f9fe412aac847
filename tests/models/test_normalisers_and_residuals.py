"""Kernels with another normaliser than the softmax, and blocks without residual connections."""

import numpy as np
import pytest
import torch
from tests.conftest import shrink

from bakeoff.errors import UserError
from bakeoff.models.mixers.short_convolution import normalised
from bakeoff.models.model import Model
from bakeoff.row import Row

EQUATIONS = {
    "softmax": lambda w: np.exp(w) / np.exp(w).sum(-1, keepdims=True),
    "none": lambda w: w,
    "sigmoid": lambda w: 1 / (1 + np.exp(-w)),
    "tanh": np.tanh,
    "square": lambda w: w**2,
    "abs": np.abs,
    "l1": lambda w: w / np.abs(w).sum(-1, keepdims=True),
    "l2": lambda w: w / np.sqrt((w**2).sum(-1, keepdims=True)),
    "abs_l2": lambda w: np.abs(w) / np.sqrt((w**2).sum(-1, keepdims=True)),
}


@pytest.mark.parametrize("normaliser", EQUATIONS)
def test_each_normaliser_is_its_equation(normaliser):
    taps = np.random.default_rng(0).normal(size=(3, 2, 5))
    made = normalised(torch.tensor(taps), normaliser).numpy()
    np.testing.assert_allclose(made, EQUATIONS[normaliser](taps), rtol=1e-10)


@pytest.mark.parametrize("name", ["conv-light-encoder-tiny", "conv-dynamic-encoder-tiny"])
def test_the_normaliser_of_a_recipe_is_what_its_kernels_have(name):
    key = "model.encoder.block.mixer.normaliser"
    recipe = shrink(name)
    made = {}
    for normaliser in ("softmax", "none"):
        torch.manual_seed(0)
        mixer = Model(recipe.changed({key: normaliser}).model, 50).eval().encoder.parts["mixer"][0].function
        made[normaliser] = mixer.weight(torch.ones(1, 2, mixer.output.in_features))
    torch.testing.assert_close(made["none"].softmax(-1), made["softmax"])
    with pytest.raises(UserError, match="normaliser: input should be 'softmax', 'none', 'sigmoid'"):
        recipe.changed({key: "relu"})


@pytest.mark.parametrize("norm", ["post", "pre", "branch"])
def test_without_a_residual_a_block_is_its_function_alone(norm):
    block = {"model.encoder.layers": 1, "model.encoder.block.norm": norm, "model.dropout": 0.0}
    config = shrink("bert-tiny").changed({**block, "model.encoder.block.residual": False}).model
    torch.manual_seed(0)
    model = Model(config, 50).eval()
    parts = model.encoder.parts
    for name in ("mixer", "ffn"):
        torch.nn.init.zeros_(parts[name][0].function.output.weight)
        torch.nn.init.zeros_(parts[name][0].function.output.bias)
    ids = torch.arange(6)[None] + 5
    states = [model(Row(each)) for each in (ids, ids + 9)]
    states = [each[0] if isinstance(each, tuple) else each for each in states]
    torch.testing.assert_close(*states)  # nothing of the tokens comes past functions that are zero


def test_what_scales_branches_needs_residuals():
    with pytest.raises(UserError, match="scaled_residuals: blocks without residual connections do not have it"):
        shrink("bert-tiny").changed({"model.scaled_residuals": True, "model.encoder.block.residual": False})
