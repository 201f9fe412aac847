"""LTG-BERT has two published codes, training/ (the paper's) and babylm/: how they differ, in numpy."""

import math

import numpy as np
import pytest
import torch
from tests.models.test_ltg_bert import VOCABULARY, built, published_bucket

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.models.context import Context
from bakeoff.optimization.optimizers.lamb import LambConfig
from bakeoff.recipe_files import load_recipe


@torch.no_grad()
@pytest.mark.parametrize("slices", ["map", "heads"])
def test_distances_are_cut_as_by_either_published_code(slices):
    """babylm/train/model.py halves the projection, then views heads; training/model.py views heads, then halves."""
    mixer, vectors = built(buckets=6, distance=30, distance_slices=slices)
    x = torch.randn(1, 40, 48, dtype=torch.float64)
    found = mixer(x, Context(distances=vectors))[0][0].numpy()
    weights = {name: each.numpy() for name, each in mixer.state_dict().items()}

    def linear(name, y):
        return y @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    tokens, far = linear("query_key", x[0].numpy()), linear("query_key", vectors.numpy())
    value, mixed = linear("value", x[0].numpy()), np.zeros((40, 48))
    at = np.array([[published_bucket(i - j, 6, 30) + 5 for j in range(40)] for i in range(40)])
    for head in range(3):
        own = slice(16 * head, 16 * head + 16)
        first = 16 * head if slices == "map" else 32 * head
        second = 48 + 16 * head if slices == "map" else 32 * head + 16
        query, key = tokens[:, :48][:, own], tokens[:, 48:][:, own]
        far_query, far_key = far[:, first : first + 16], far[:, second : second + 16]
        scores = query @ key.T + np.take_along_axis(query @ far_key.T, at, 1)
        scores = (scores + np.take_along_axis(key @ far_query.T, at.T, 1).T) / math.sqrt(3 * 16)
        shares = np.exp(scores - scores.max(1, keepdims=True))
        mixed[:, own] = shares / shares.sum(1, keepdims=True) @ value[:, own]
    np.testing.assert_allclose(found, linear("output", mixed), rtol=0, atol=1e-10)


def test_lamb_leaves_tables_to_adam_where_it_shall():
    """Neither decay nor trust ratio for what embeds, as for norms and biases; for matrices both."""
    torch.manual_seed(0)
    module = torch.nn.ModuleDict({"table": torch.nn.Embedding(7, 5), "map": torch.nn.Linear(5, 4)}).double()
    before = {name: parameter.detach().clone() for name, parameter in module.named_parameters()}
    for parameter in module.parameters():
        parameter.grad = torch.randn_like(parameter)
    LambConfig(lr=0.01, weight_decay=0.1, epsilon=1e-12, adapted_tables=False).build(module).step()
    for name in ("table.weight", "map.bias"):  # Adam's first step: the gradient's sign
        parameter = module.get_parameter(name)
        torch.testing.assert_close(parameter.detach(), before[name] - 0.01 * parameter.grad.sign(), atol=1e-9, rtol=0)
    weight = before["map.weight"]
    update = module["map"].weight.grad.sign() + 0.1 * weight
    expected = weight - 0.01 * weight.norm() / update.norm() * update
    torch.testing.assert_close(module["map"].weight.detach(), expected, atol=1e-9, rtol=0)


def numpy_lamb(weight, gradients, adapted):
    """training/lamb.py and babylm/train/lamb.py, which are the same: decay and ratio where there is a decay."""
    first, second = np.zeros_like(weight), np.zeros_like(weight)
    for step, gradient in enumerate(gradients, 1):
        first, second = 0.9 * first + 0.1 * gradient, 0.98 * second + 0.02 * gradient**2
        update = first / (1 - 0.9**step) / (np.sqrt(second / (1 - 0.98**step)) + 1e-6)
        ratio = 1.0
        if adapted:
            update = update + 0.1 * weight
            ratio = np.linalg.norm(weight) / np.linalg.norm(update)
        weight = weight - 0.01 * ratio * update
    return weight


@pytest.mark.parametrize(
    ("tables", "adapted"),
    [
        ("tokens", {"tokens"}),  # training/train.py: the head's matrices, the table among them; no other "embedding"
        (False, set()),  # babylm/train/train.py: nothing that is named "embedding"
        (True, {"tokens", "distances"}),  # ltgoslo/gpt-bert, pretraining/train_10m.py
    ],
)
def test_tables_are_decayed_and_adapted_as_in_each_published_code(tables, adapted):
    module = PretrainingModel(load_recipe("ltg-bert-xs", ["model.encoder.layers=1"]), VOCABULARY).double()
    optimizer = load_recipe("ltg-bert-xs").training.optimizer.model_copy(update={"adapted_tables": tables})
    optimizer = optimizer.build(module)
    named = {"tokens": module.model.embedding.weight, "distances": module.model.encoder.distances.table.weight}
    rest = {name: each for name, each in module.named_parameters() if all(each is not one for one in named.values())}
    names = adapted | {name for name, each in rest.items() if each.dim() >= 2}
    generator = torch.Generator().manual_seed(0)
    parameters = {**named, **rest}
    with torch.no_grad():
        for each in parameters.values():
            each.normal_(generator=generator)
    before = {name: each.detach().numpy().copy() for name, each in parameters.items()}
    gradients = {name: [] for name in parameters}
    for _ in range(3):
        for name, each in parameters.items():
            each.grad = torch.randn(each.shape, generator=generator, dtype=torch.float64)
            gradients[name].append(each.grad.numpy().copy())
        optimizer.step()
    for name, each in parameters.items():
        expected = numpy_lamb(before[name], gradients[name], name in names)
        np.testing.assert_allclose(each.detach().numpy(), expected, rtol=1e-9, atol=1e-11, err_msg=name)
