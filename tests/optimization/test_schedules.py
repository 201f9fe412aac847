"""Schedules: their papers' formulas, and torch's own where it has one."""

import random

import pytest
import torch
from tests.conftest import shrink

from bakeoff.errors import UserError
from bakeoff.optimization.schedules import (
    ConstantConfig,
    CosineConfig,
    InverseSqrtConfig,
    LinearConfig,
    PlateauConfig,
    TrapezoidConfig,
)
from bakeoff.recipe_files import load_recipe


def test_schedules_rise_and_fall():
    linear = LinearConfig(warmup=10)
    assert linear.factor(0, 110) == 0.1
    assert linear.factor(9, 110) == 1.0
    assert linear.factor(60, 110) == 0.5
    cosine = CosineConfig(warmup=0, final=0.1)
    assert cosine.factor(0, 100) == 1.0
    assert abs(cosine.factor(50, 100) - 0.55) < 1e-12
    assert abs(cosine.factor(100, 100) - 0.1) < 1e-12
    constant = ConstantConfig(warmup=4)
    assert [constant.factor(step, 100) for step in (0, 1, 3, 4, 99)] == [0.25, 0.5, 1.0, 1.0, 1.0]


def test_a_cosine_may_end_with_a_fall_to_zero():
    """Of the whole training's last steps, from `final`; the wave before it goes on as if there were none."""
    schedule, plain = CosineConfig(warmup=10, final=0.2, cooldown=0.1), CosineConfig(warmup=10, final=0.2)
    assert all(schedule.factor(step, 200) == plain.factor(step, 200) for step in range(180))
    found = [schedule.factor(step, 200) for step in (180, 185, 190, 199, 200)]
    assert found == pytest.approx([0.2, 0.15, 0.1, 0.01, 0.0])
    assert CosineConfig(warmup=195, final=0.2, cooldown=0.1).factor(190, 200) == pytest.approx(191 / 195)
    with pytest.raises(UserError, match="cooldown: it is a fall from `final`, which is 0"):
        CosineConfig.parse({"kind": "cosine", "cooldown": 0.1}, "test")


def test_a_linear_decay_may_begin_with_the_first_step():
    """BERT's and ALBERT's code: polynomial_decay of all steps, replaced by the rise as long as that lasts."""
    schedule = LinearConfig(warmup=10, decay_from_start=True)
    assert [schedule.factor(step, 100) for step in (0, 4, 9)] == [0.1, 0.5, 1.0]
    assert [schedule.factor(step, 100) for step in (10, 55, 99)] == pytest.approx([0.9, 0.45, 0.01])
    assert schedule.fitted(1000, 100).factor(100, 1000) == pytest.approx(0.9)


def test_a_trapezoid_stays_up_and_falls_to_zero_at_the_end():
    schedule = TrapezoidConfig(warmup=10, cooldown=0.25)
    assert [schedule.factor(step, 110) for step in (0, 9, 10, 50, 84)] == [0.1, 1, 1, 1, 1]
    assert [schedule.factor(step, 110) for step in (85, 90, 100, 110)] == pytest.approx([1, 0.8, 0.4, 0])
    root = schedule.model_copy(update={"shape": "root"})
    assert [root.factor(step, 110) for step in (85, 91.25, 110)] == pytest.approx([1, 0.5, 0])
    whole = TrapezoidConfig(warmup=10, cooldown=1.0)
    assert all(whole.factor(s, 110) == pytest.approx(LinearConfig(warmup=10).factor(s, 110)) for s in range(111))


def test_inverse_sqrt_is_the_transformers_formula():
    width, warmup = 512, 4000
    peak = (width * warmup) ** -0.5
    schedule = InverseSqrtConfig(warmup=warmup)
    for s in (1, 2, 1000, 3999, 4000, 4001, 16000, 100_000):
        published = width**-0.5 * min(s**-0.5, s * warmup**-1.5)
        assert peak * schedule.factor(s - 1, 100_000) == pytest.approx(published, rel=1e-12)
    assert schedule.factor(warmup - 1, 100_000) == 1.0


def test_without_the_rise_it_is_that_of_t5():
    schedule = InverseSqrtConfig(warmup=10_000, rise=False)
    for s in (1, 5000, 10_000, 10_001, 524_288):
        assert 0.01 * schedule.factor(s - 1, 524_288) == pytest.approx(max(s, 10_000) ** -0.5, rel=1e-12)


def test_under_another_budget_the_warm_up_keeps_its_share_and_the_curve_its_form():
    recipe = load_recipe("conv-light-encoder-base").changed(
        {"training.schedule": {"kind": "inverse_sqrt", "warmup": 10_000, "rise": False}}
    )
    fitted = recipe.fitted(524).training.schedule
    assert (fitted.kind, fitted.warmup, fitted.rise) == ("inverse_sqrt", 10, False)
    assert fitted.factor(523, 524) == pytest.approx(recipe.training.schedule.factor(523_999, 524_000))
    assert InverseSqrtConfig(warmup=0.01).fitted(20, None).factor(19, 20) == 20**-0.5  # no step of warm-up is left
    for values in ({"kind": "constant", "warmup": 0.1}, {"kind": "plateau", "patience": 2}):
        assert shrink("bert-tiny", **{"training.schedule": values}).fitted(30).training.schedule.kind == values["kind"]


@pytest.mark.parametrize("seed", range(20))
def test_plateau_is_the_rule_of_torch(seed):
    draw = random.Random(seed)
    shrink, patience = draw.choice([0.5, 0.25]), draw.randrange(4)
    threshold = draw.choice([0.0, 1e-4, 0.05])
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    reference = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=shrink, patience=patience, threshold=threshold, eps=0.0
    )
    schedule = PlateauConfig(shrink=shrink, patience=patience, threshold=threshold)
    losses = [draw.choice([draw.uniform(1, 4), 3 - 0.02 * i, 2.0]) for i in range(40)]
    found = [schedule.factor(0, 100, losses[:n]) for n in range(41)]
    expected = [1.0]
    for loss in losses:
        reference.step(loss)
        expected.append(optimizer.param_groups[0]["lr"])
    assert found == expected
    assert found[-1] < 1


def test_plateau_rises_first():
    schedule = PlateauConfig(warmup=4)
    assert schedule.factor(1, 100, [3.0, 3.0]) == 0.25
    assert schedule.factor(50, 100, [3.0, 3.0, 3.0, 2.0]) == 0.25
