"""One optimizer step through its public function: what is clipped, and which masks of dropout it has."""

from dataclasses import replace

import pytest
import torch
from tests.conftest import shrink

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.trainer.step import optimize
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.stages import make_batches

RATE = 0.5


def made(corpus, **changes):
    """A recipe whose learning rate never changes, its model, and the parts of its first batch."""
    schedule = {"training.schedule": {"kind": "constant"}, "training.optimizer.lr": RATE}
    recipe = shrink("bert-tiny", **schedule, **changes)
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).train()
    return recipe, module, make_batches(recipe, module, corpus, seed=0).step(0)


def one_step(recipe, module, parts, lr=RATE, seed=0, step=0):
    """The means that a step of plain gradient descent returns, and how far the weights went, in learning rates."""
    before = [parameter.detach().clone() for parameter in module.parameters()]
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    recipe = recipe.changed({"training.optimizer.lr": lr})
    means = optimize(Pretraining(recipe, module, seed=seed, optimizer=optimizer), parts, step)
    moved = [parameter.detach() - old for parameter, old in zip(module.parameters(), before, strict=True)]
    return means, float(torch.stack([each.square().sum() for each in moved]).sum().sqrt()) / lr


@pytest.mark.parametrize("clip", [0.01, 1e3, None])
def test_a_gradient_longer_than_the_recipe_allows_is_cut_to_that_length(corpus, clip):
    means, moved = one_step(*made(corpus, **{"training.clip": clip}))
    norm = float(means["gradient_norm"])
    assert 0.1 < norm < 100
    assert moved == pytest.approx(0.01 if clip == 0.01 else norm, rel=1e-3)


def test_every_step_and_every_part_of_it_has_masks_of_its_own(corpus):
    """The same batch again and again; the weights hardly move."""
    recipe, module, (part,) = made(corpus, **{"model.dropout": 0.3})

    def loss(parts, **place):
        return float(one_step(recipe, module, parts, lr=1e-12, **place)[0]["mlm"])

    assert loss([part]) == pytest.approx(loss([part]), abs=1e-6)
    assert loss([part], step=1) != pytest.approx(loss([part]), abs=1e-4)
    assert loss([part], seed=1) != pytest.approx(loss([part]), abs=1e-4)
    assert loss([part, replace(part, number=1)]) != pytest.approx(loss([part]), abs=1e-4)


def test_gradients_have_the_multiple_of_their_group_also_where_a_group_has_none(corpus):
    recipe, module, parts = made(corpus, **{"training.clip": None})
    unused = torch.nn.Parameter(torch.ones(3))
    halved, *others = module.parameters()
    groups = [{"params": [halved], "gradient_factor": 0.5}, {"params": others}]
    groups.append({"params": [unused], "gradient_factor": 0.25})
    optimizer = torch.optim.SGD(groups, lr=1.0)
    before = [parameter.detach().clone() for parameter in (halved, *others)]
    means = optimize(Pretraining(recipe, module, seed=0, optimizer=optimizer), parts, 0)
    moved = [(new.detach() - old) / RATE for new, old in zip((halved, *others), before, strict=True)]
    squares = [float(each.square().sum()) for each in moved]
    assert 4 * squares[0] + sum(squares[1:]) == pytest.approx(float(means["gradient_norm"]) ** 2, rel=1e-3)
    assert unused.eq(1).all()
