"""Muon: torch's own for linear maps, the singular values that it promises, and what is left to AdamW."""

import numpy as np
import pytest
import torch
from tests.conftest import shrink
from torch import nn

from bakeoff.conformance.narrow import ALIKE, narrow
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.models.matrices import declared_matrices, matrices, own_parameters
from bakeoff.models.stack import Stack
from bakeoff.optimization.optimizers import MuonConfig
from bakeoff.optimization.optimizers.muon import orthogonal
from bakeoff.recipe_files import load_recipe
from bakeoff.trainer.step import optimize
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.stages import make_batches


def muon(**changes):
    return MuonConfig(**{"lr": 0.02, "rest": 0.25, **changes})


def model(name="gpt-tiny", **changes):
    torch.manual_seed(0)
    return PretrainingModel(shrink(name, **changes), 160)


def with_gradients(module, seed):
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def matrices_of(optimizer):
    return {id(parameter) for parameter in optimizer.param_groups[0]["params"]}


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_linear_maps_move_as_by_torchs_own_and_all_else_as_by_adamw(decay):
    module, twin = model(), model()
    mine = muon(weight_decay=decay, momentum=0.9, betas=(0.8, 0.95), epsilon=1e-6).build(module, "bfloat16")
    pairs = list(zip(module.parameters(), twin.parameters(), strict=True))
    chosen = [theirs for own, theirs in pairs if id(own) in matrices_of(mine)]
    others = [theirs for own, theirs in pairs if id(own) not in matrices_of(mine)]
    assert len(chosen) == sum(isinstance(part, nn.Linear) for part in module.model.decoder.modules()) > 0
    torchs = torch.optim.Muon(chosen, lr=0.02, weight_decay=decay, momentum=0.9)
    groups = [
        {"params": [p for p in others if p.dim() >= 2], "weight_decay": decay},
        {"params": [p for p in others if p.dim() < 2], "weight_decay": 0.0},
    ]
    adamw = torch.optim.AdamW(groups, lr=0.005, betas=(0.8, 0.95), eps=1e-6)
    for group in mine.param_groups:
        group["lr"] = 0.02 * group["lr_multiple"]
    for step in range(4):
        with_gradients(module, step)
        with_gradients(twin, step)
        mine.step()
        torchs.step()
        adamw.step()
    for own, theirs in pairs:
        # Products of bfloat16 are added up in another order.
        close = {"rtol": 0, "atol": 2e-3} if id(own) in matrices_of(mine) else {}
        torch.testing.assert_close(own, theirs, **close)


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 16, 40), (2, 40, 16)])
def test_singular_values_come_near_one_and_vectors_stay(shape):
    matrices = torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    found = orthogonal(matrices, 5)
    left, before, right = torch.linalg.svd(matrices, full_matrices=False)
    inside = left.mT @ found @ right.mT
    values = torch.diagonal(inside, dim1=-2, dim2=-1)
    torch.testing.assert_close(inside, torch.diag_embed(values), rtol=0, atol=1e-9)
    large = before > 0.1 * before.max()
    assert values[large].min() > 0.6
    assert values.max() < 1.25
    assert torch.equal(orthogonal(torch.zeros(*shape), 5), torch.zeros(*shape))


@pytest.mark.parametrize(("rows", "columns"), [(40, 40), (24, 60), (60, 24)])
def test_small_singular_values_grow_485_times_and_large_ones_come_near_one(rows, columns):
    """From 0 and a millionth of the norm up: each goes through the polynomial by itself, and vectors stay."""
    count = min(rows, columns)
    values = np.concatenate([np.zeros(count // 2), np.geomspace(1e-6, 1, count - count // 2)])
    values = values / np.linalg.norm(values)
    random = np.random.default_rng(0)
    left, right = (np.linalg.qr(random.normal(size=(size, count)))[0] for size in (rows, columns))
    found = orthogonal(torch.from_numpy(100 * (left * values) @ right.T)[None], 5)[0].numpy()
    expected = values
    for _ in range(5):
        expected = 3.4445 * expected - 4.7750 * expected**3 + 2.0315 * expected**5
    np.testing.assert_allclose(found, (left * expected) @ right.T, rtol=0, atol=1e-9)
    large = values >= 0.0016
    assert large.any()
    assert 0.68 <= expected[large].min() <= expected.max() <= 1.21
    assert (expected <= 485 * values).all()
    assert np.linalg.matrix_rank(found, tol=1e-9) == count - count // 2  # of a matrix of half the rank


def iterated(matrix, iterations):
    """The iterations by their definition, in float64."""
    x = matrix.double() / torch.linalg.matrix_norm(matrix.double())
    for _ in range(iterations):
        x = 3.4445 * x - 4.7750 * x @ x.mT @ x + 2.0315 * x @ x.mT @ x @ x.mT @ x
    return x


SPECTRA = {
    "alike": torch.linspace(1, 0.5, 128),
    "falling": torch.logspace(0, -4, 128),
    "one large": torch.tensor([1.0] + 127 * [1e-3]),
    "low rank": torch.tensor(10 * [1.0] + 118 * [0.0]),
}


@pytest.mark.parametrize("spectrum", SPECTRA)
def test_iterations_taken_together_in_bfloat16_are_nearly_as_exact_as_one_by_one(spectrum, monkeypatch):
    monkeypatch.setattr("bakeoff.optimization.optimizers.muon.LEAST_SHORTER", 128)
    generator = torch.Generator().manual_seed(0)
    long, short = (torch.linalg.qr(torch.randn(size, 128, generator=generator))[0] for size in (256, 128))
    tall = ((long * SPECTRA[spectrum]) @ short.mT).bfloat16()
    for matrix in (tall, tall.mT.contiguous()):
        for iterations in (1, 3, 5):
            expected, found = iterated(matrix, iterations), {}
            for together in (3, 1):
                monkeypatch.setattr("bakeoff.optimization.optimizers.muon.TOGETHER", together)
                found[together] = orthogonal(matrix[None], iterations)[0]
            assert iterations == 1 or not torch.equal(found[3], found[1])
            wrong, usual = ((found[each] - expected).norm() / expected.norm() for each in (3, 1))
            assert wrong < 1.5 * usual + 0.06
    zeros = torch.zeros(1, 256, 128).bfloat16()
    assert torch.equal(orthogonal(zeros, 5), zeros)


def test_a_tall_matrix_moves_further_than_a_wide_one_as_in_the_published_code():
    for name, ratio in (("input", 2.0), ("output", 1.0)):  # (4 D, D) and (D, 4 D)
        module = model(**{"model.decoder.block.ffn.width": 128})
        weight = getattr(module.model.decoder.parts["ffn"][0].function, name).weight
        before = weight.detach().clone()
        optimizer = muon(lr=0.1).build(module)
        with_gradients(module, 0)
        optimizer.step()
        length = torch.linalg.matrix_norm(weight.detach() - before) / 32**0.5  # of an orthogonal matrix of 32 rows: 1
        assert length / (0.1 * ratio) == pytest.approx(1, abs=0.2)


def test_convolutions_and_recurrent_cells_are_matrices_and_few_taps_tables_and_heads_are_not():
    for name, kinds in (("gcnn-tiny", ["direction"]), ("lstm-lm-tiny", ["weight_ih_l0", "weight_hh_l0"])):
        module = build_on_meta(load_recipe(name), 300)
        chosen = matrices_of(muon().build(module))
        names = {name.rpartition(".")[2] for name, parameter in module.named_parameters() if id(parameter) in chosen}
        assert set(kinds) <= names
    module = build_on_meta(load_recipe("conv-light-encoder-tiny"), 300)
    chosen = matrices_of(muon().build(module))
    (stack,) = [part for part in module.modules() if isinstance(part, Stack)]
    linear = {id(part.weight) for part in stack.modules() if isinstance(part, nn.Linear)}
    assert chosen == linear
    kernels = [parameter for name, parameter in stack.named_parameters() if parameter.dim() == 2 and "kernel" in name]
    assert all(id(parameter) not in chosen for parameter in kernels)


TORCHS = (nn.Linear, nn.RNNBase, nn.Embedding)
"""Classes of torch in which all parameters of two dimensions are matrices, or tables."""


@pytest.mark.parametrize("name", ALIKE)
def test_every_part_says_of_each_parameter_with_several_dimensions_whether_it_is_a_matrix(name):
    with torch.device("meta"):
        module = PretrainingModel(narrow(name), 160)
    for part in (part for stack in module.modules() if isinstance(stack, Stack) for part in stack.modules()):
        several = [name for name, parameter in own_parameters(part) if parameter.dim() >= 2]
        known = isinstance(part, TORCHS) or declared_matrices(part) is not None
        assert known or not several or isinstance(part, nn.ParameterList), (type(part), several)


class Unknown(nn.Module):
    """A module that may declare its parameters, or not."""

    def __init__(self):
        super().__init__()
        self.map, self.kernel = nn.Parameter(torch.ones(4, 4)), nn.Parameter(torch.ones(4, 3, 4))
        self.scale, self.maps = nn.Parameter(torch.ones(4)), nn.ParameterList([torch.ones(2, 4), torch.ones(2)])
        self.table = nn.Embedding(5, 4)


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ({}, ["map", "maps.0"]),
        ({"matrices": None}, ["map", "maps.0"]),
        ({"matrices": ()}, []),
        ({"matrices": ("kernel",)}, ["kernel"]),
    ],
)
def test_of_a_module_that_declares_nothing_parameters_of_two_dimensions_are_matrices(declared, expected):
    module = nn.Sequential(type("Declaring", (Unknown,), declared)(), nn.Linear(4, 4))
    chosen = {id(matrix) for matrix in matrices(module)}
    found = [name for name, parameter in module.named_parameters() if id(parameter) in chosen]
    assert found == [*(f"0.{name}" for name in expected), "1.weight"]


def test_every_parameter_is_trained_once_and_shared_ones_too():
    module = model("albert-tiny")
    optimizer = muon().build(module)
    trained = [id(parameter) for group in optimizer.param_groups for parameter in group["params"]]
    assert sorted(trained) == sorted(id(parameter) for parameter in module.parameters())


def test_the_rates_of_both_follow_the_schedule(corpus):
    schedule = {"kind": "linear", "warmup": 4}
    recipe = shrink("gpt-tiny", **{"training.optimizer": muon().model_dump(), "training.schedule": schedule})
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    optimizer = recipe.training.optimizer.build(module)
    batch = make_batches(recipe, module, corpus, seed=0).step(0)
    optimize(Pretraining(recipe, module, optimizer=optimizer), batch, 1)
    assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.01, 0.0025, 0.0025])
