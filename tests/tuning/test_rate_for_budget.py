"""Rates for longer trainings than those in which they were found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import shrink
from tests.tuning.test_search import RECIPE, search

from bakeoff.errors import UserError
from bakeoff.optimization.budget import Budget
from bakeoff.optimization.rate_transfer import FollowingRate, transferred
from bakeoff.recipe_files import load_recipe
from bakeoff.runs.run import Run
from bakeoff.tuning.ranges import RATE
from bakeoff.tuning.tune import tune

rates = st.floats(1e-6, 1, allow_subnormal=False)
ratios = st.floats(1e-3, 1e3, allow_subnormal=False)
exponents = st.floats(0.01, 1, allow_subnormal=False)


@given(rate=rates, first=ratios, second=ratios, exponent=exponents)
def test_the_rule_is_a_power_of_the_length(rate, first, second, exponent):
    there = transferred(rate, exponent, first).rate
    assert transferred(there, exponent, 1 / first).rate == pytest.approx(rate)
    assert transferred(there, exponent, second).rate == pytest.approx(transferred(rate, exponent, first * second).rate)
    assert transferred(2 * rate, exponent, first).rate == pytest.approx(2 * there)
    assert transferred(rate, exponent, 1).rate == rate
    assert (there < rate) == (first > 1) or there == pytest.approx(rate)
    assert transferred(rate, exponent, 16).rate == pytest.approx(rate / 16**exponent)


@given(rate=rates, ratio=ratios)
def test_an_exponent_of_zero_changes_nothing_and_is_told(rate, ratio):
    assert transferred(rate, 0.0, ratio).rate == rate
    assert transferred(rate, None, ratio).rate == rate
    assert "to the power of 0" in transferred(1e-3, 0.0, 10).rule
    assert "no rule is known" in transferred(1e-3, None, 10).rule


def test_the_recipe_is_for_the_budget_that_is_to_come(tmp_path, planted, monkeypatch):
    monkeypatch.setattr(type(RECIPE.training.optimizer), "length_exponent", 0.5)
    plain = search(tmp_path / "out", planted())
    own = load_recipe(tmp_path / "out" / "recipe.yaml")
    assert own.training.budget == RECIPE.training.budget
    assert own.training.optimizer.lr == FollowingRate(rate=plain.winner.values[RATE], steps=1000)
    again = planted()
    results = search(tmp_path / "out", again, for_budget=Budget(steps=4000))
    assert again.calls == []  # the trials are the same
    assert results.trials == plain.trials
    recipe = load_recipe(tmp_path / "out" / "recipe.yaml")
    rate = plain.winner.values[RATE] / 2
    assert recipe == own.changed({RATE: rate, "training.budget": {"steps": 4000}})
    assert (results.transferred.steps, results.transferred.rate) == (4000, rate)
    said = "is transferred by length to the power of -0.5 to 4 times the length, to"
    assert said in (tmp_path / "out" / "report.html").read_text()
    text = (tmp_path / "out" / "recipe.yaml").read_text()
    assert said in text
    assert f"again: --set {RATE}={plain.winner.values[RATE]} --budget steps=1000 --seed 0" in text


def test_a_rate_that_was_not_searched_stays_where_it_was_put(tmp_path, planted, monkeypatch):
    monkeypatch.setattr(type(RECIPE.training.optimizer), "length_exponent", 0.5)
    over = {RATE: [2e-3], "model.dropout": [0.0, 0.1]}
    results = search(tmp_path / "out", planted(), over=over, for_budget=Budget(steps=4000))
    recipe = load_recipe(tmp_path / "out" / "recipe.yaml")
    assert recipe.training.optimizer.lr == results.transferred.rate == 2e-3
    assert (
        "is transferred unchanged, for it was given and not searched, to"
        in (tmp_path / "out" / "report.html").read_text()
    )


@pytest.mark.parametrize("budget", [Budget(steps=40), Budget(tokens=10_000)])
def test_a_warm_up_in_steps_keeps_its_share_of_them(tmp_path, corpus, budget):
    rising = {"kind": "linear", "warmup": 5}
    planned = {"training.budget": {"steps": 20}, "training.schedule": rising, "training.decay_schedule": rising}
    recipe = shrink("bert-tiny", **planned)
    options = {"trials": 1, "budget": Budget(steps=8), "for_budget": budget, "jobs": 1, "device": "cpu"}
    tune(recipe, corpus.path, tmp_path / "out", **options)
    found = load_recipe(tmp_path / "out" / "recipe.yaml")
    assert found.training.budget == budget
    assert found.training.schedule.warmup == found.training.decay_schedule.warmup == 0.25
    trial = Run.open(tmp_path / "out/trials/000").recipe  # which the comment in recipe.yaml makes again
    assert trial.training.schedule == found.fitted(8).training.schedule


def test_a_budget_that_the_recipe_cannot_have_is_refused_before_anything_is_trained(tmp_path, planted):
    # Of twenty steps a cycle may begin in the step in which the warm-up ends; of an unknown number it may not.
    averaged = {"training.schedule.warmup": 2, "training.average": {"kind": "swa", "share": 0.95}}
    recipe = RECIPE.changed({"training.budget": {"steps": 20}, **averaged})
    with pytest.raises(UserError, match=r"^--for-budget tokens=1000: .*is in the warm-up; give 0.9 or less"):
        tune(recipe, "corpus", tmp_path / "out", engine=planted(), trials=3, for_budget=Budget(tokens=1000))
    assert not (tmp_path / "out").exists()
