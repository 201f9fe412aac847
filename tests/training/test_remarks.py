"""What is said of settings that a training of so many steps cannot have as they were given."""

import pytest
from tests.conftest import shrink

from bakeoff.optimization.budget import Budget
from bakeoff.training.pretrain import pretrain
from bakeoff.training.remarks import changed_settings

ALL = "the warm-up takes all 50 steps, so that the learning rate arrives at 0.001 at the very end"
SHARE = "warm-up of 5 of the 50 steps, the share that 100 have of the recipe's own budget"
FEWER = "the held-out loss is measured 2 times and not 12: 25 steps lie between two measurements at least"
CYCLES = "the average is of 2 cycles and not 40, of a step each, for training.average begins so late"


@pytest.mark.parametrize(
    ("changes", "budget", "expected"),
    [
        ({"training.schedule.warmup": 0.1, "training.budget": {"steps": 1000}}, 50, []),
        ({"training.schedule.warmup": 10, "training.budget": {"steps": 50}}, None, []),
        ({"training.schedule.warmup": 100, "training.budget": {"steps": 1000}}, 50, [SHARE]),
        ({"training.schedule.warmup": 100, "training.budget": {"steps": 50}}, None, [ALL]),
        ({"training.schedule.warmup": 50, "training.budget": {"steps": 50}}, None, [ALL]),
        ({"training.validations": 12, "training.budget": {"steps": 50}}, None, [FEWER]),
        ({"training.validations": 2, "training.budget": {"steps": 50}}, None, []),
        ({"training.validations": 20, "training.budget": {"steps": 50}}, None, []),
        (
            {"training.average": {"kind": "swa", "share": 0.05, "cycles": 40}, "training.budget": {"steps": 50}},
            None,
            [CYCLES],
        ),
        ({"training.average": {"kind": "swa"}, "training.budget": {"steps": 50}}, None, []),
    ],
)
def test_what_a_budget_changes_is_said(changes, budget, expected):
    plain = {"training.schedule": {"kind": "linear", "warmup": 0}, "training.optimizer.lr": 1e-3}
    wanted = shrink("gpt-tiny").changed({**plain, **changes})
    steps = budget or wanted.training.budget.steps
    told = list(changed_settings(wanted, wanted.fitted(steps)))
    assert [line.partition(";")[0] for line in told] == expected


def test_the_remark_comes_before_the_training(corpus, tmp_path, capsys):
    wanted = shrink("gpt-tiny").changed({"training.schedule": {"kind": "linear", "warmup": 9}})
    pretrain(wanted, corpus.path, tmp_path / "run", budget=Budget(steps=2), device="cpu")
    assert "warm-up" in capsys.readouterr().err
