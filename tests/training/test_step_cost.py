"""A remark where a step is far larger than the budget or the machine allows for."""

import pytest
from tests.conftest import PLAIN, shrink

from bakeoff.optimization.budget import Budget
from bakeoff.recipe_files import load_recipe
from bakeoff.training.pretrain import pretrain
from bakeoff.training.remarks import step_cost


def told(name, budget, steps, tokens, flops, device="cpu", **changes):
    recipe = load_recipe(name).changed({"training.budget": {"steps": steps}, **changes})
    return list(step_cost(recipe, budget, tokens, flops, device))


def test_an_imported_berts_step_is_told_with_what_makes_it_fit():
    """32 rows of 512 tokens of the base model, ten minutes of a laptop: 10 steps of a minute each."""
    changes = {"training.batch": 32, "input.length": 512}
    (line,) = told("bert-base", Budget(minutes=10), 10, 16_384, 1.1e13, **changes)
    assert "a step reads 32 rows of up to 512 tokens and costs 11.0 TFLOPs, 60 s on this machine" in line
    assert "the budget has 10 steps" in line
    assert "input.length=128 and training.batch=8 " in line
    assert "make steps of about 1,024 tokens, and about 160 steps of the budget" in line
    (line,) = told("bert-base", Budget(steps=1000), 1000, 16_384, 1.1e13, **changes)
    assert "some 110 s of a core; the budget has 1,000 steps" in line


@pytest.mark.parametrize(
    ("budget", "steps", "tokens", "flops", "device"),
    [
        (Budget(steps=50), 50, 16_384, 1e11, "cpu"),  # so many steps were asked for, and they are cheap
        (Budget(tokens=10**6), 950, 1_024, 1e11, "cpu"),  # a laptop's
        (Budget(tokens=10**5), 95, 1_024, 1e11, "cpu"),  # small already
        (Budget(steps=10**6), 10**6, 131_072, 1e14, "cuda"),  # as published, where it is published for
    ],
)
def test_steps_that_fit_are_not_remarked_on(budget, steps, tokens, flops, device):
    assert not told("bert-base", budget, steps, tokens, flops, device)


def test_the_remark_comes_before_the_training(corpus, tmp_path):
    recipe = shrink("bert-tiny", **{**PLAIN, "training.batch": 200, "training.micro_batch": 200})
    notes = []
    budget = Budget(tokens=12_000)
    pretrain(recipe, corpus.path, tmp_path / "run", budget=budget, device="cpu", progress=notes.append)
    lines = [note["line"] for note in notes if "line" in note]
    assert sum("a step reads 200 rows" in line and "training.batch=8" in line for line in lines) == 1
