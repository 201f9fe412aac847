"""Budgets until a held-out loss is reached."""

import pytest
from small_plans import write_plan
from synthetic_results import make_results

from bakeoff.comparison.execution import compare
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.reporting.cautions import cautions
from bakeoff.comparison.reporting.findings import findings
from bakeoff.comparison.reporting.until_loss import until_section
from bakeoff.errors import UserError
from bakeoff.optimization.early_stopping import EarlyStopping
from bakeoff.training import pretraining


def test_a_target_ends_a_training_at_the_first_loss_that_is_no_higher():
    stopping = EarlyStopping(target=3.0)
    assert [stopping.stops([5.0, 4.0, 3.0][:count]) for count in range(4)] == [False, False, False, True]
    assert not stopping.stops([2.0, 3.1])
    both = EarlyStopping(target=3.0, patience=1)
    assert both.stops([4.0, 4.1])
    assert both.stops([2.9])
    with pytest.raises(ValueError, match="give patience, or a target"):
        EarlyStopping(keep_best=True)


def test_pre_trainings_end_where_the_loss_is_reached_and_those_that_do_not_say_so(tmp_path, corpus, monkeypatch):
    monkeypatch.setattr(pretraining, "FEWEST_STEPS_BETWEEN_VALIDATIONS", 5)

    def run(loss, name):
        budget = {"held_out": loss, "at_most": "steps=30"}
        plan = write_plan(tmp_path, corpus, 20, 1, recipes=["gpt-tiny.yaml"], budget=budget, seeds=1)
        return compare(plan, tmp_path / name, jobs=1, report=lambda results, path: None)

    easy, hard = run(50.0, "easy"), run(0.01, "hard")
    (early,), (late,) = easy.recipes[0].runs, hard.recipes[0].runs
    assert early.steps < late.steps == 30
    assert early.validation_loss <= 50
    assert any("gpt-tiny reached a held-out loss of 50 in " in each for each in findings(easy).details)
    assert (
        "gpt-tiny did not reach a held-out loss of 0.01 in any of 1 seed, within the budget." in findings(hard).details
    )
    assert "1 of 1" in until_section(easy)
    assert "0 of 1" in until_section(hard)
    assert not any("not spent as planned" in each for each in cautions(easy))


def test_losses_of_several_objectives_are_several_measures():
    several = make_results().model_copy(update={"until_loss": 4.0})
    assert any("is not the same for all recipes" in each for each in cautions(several))


@pytest.mark.parametrize("budget", [{"held_out": 3.0}, {"at_most": "steps=5"}, {"held_out": 3.0, "at_most": "5"}])
def test_what_is_no_such_budget(budget):
    task = {"name": "a", "train": "a.tsv", "text_column": "text", "label_column": "label"}
    with pytest.raises(UserError, match=r"^plan.yaml: budget: "):
        Plan.parse({"corpus": "c", "budget": budget, "recipes": ["gpt-tiny"], "tasks": [task]}, "plan.yaml")


@pytest.mark.parametrize(
    ("key", "value"),
    [*(("held_out", each) for each in (0, -1.5, "low", True, None)), *(("at_most", each) for each in (5, None, {}))],
)
def test_a_wrong_value_of_such_a_budget_is_named_by_its_key_and_alone(key, value):
    budget = {"held_out": 3.0, "at_most": "steps=5", key: value}
    with pytest.raises(UserError) as refused:
        Plan.parse({"corpus": "c", "budget": budget, "recipes": ["gpt-tiny"]}, "plan.yaml")
    assert str(refused.value).startswith(f"plan.yaml: budget.{key}: ")
    assert str(refused.value).endswith(f", not {value!r}")
