"""Learning rates that follow the length of a training."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import shrink
from tests.optimization.refusing import check_refusal

from bakeoff.errors import UserError
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.training.initial_weights import Start
from bakeoff.training.pretrain import pretrain
from bakeoff.tuning.ranges import RATE, parse_ranges

LAPTOP = load_recipe("laptop-encoder-tiny")
steps = st.integers(1, 10**7)


@given(rate=st.floats(1e-6, 1), found=steps, length=steps)
def test_the_rate_falls_with_the_root_of_the_length(rate, found, length):
    recipe = LAPTOP.changed({RATE: {"rate": rate, "steps": found}})
    fitted = recipe.fitted(length)
    assert fitted.training.optimizer.lr == pytest.approx(rate * min(2, (found / length) ** 0.5))
    assert fitted.fitted(length) == fitted
    assert fitted.fitted(2 * length).training.optimizer.lr == fitted.training.optimizer.lr  # a number stays
    assert recipe.fitted(found).training.optimizer.lr == rate
    assert Recipe.parse(recipe.model_dump(mode="json"), "the same") == recipe


def test_the_laptop_recipes_have_the_rates_that_were_measured():
    """docs/learning.md: 0.04, 0.02 and 0.01 are best at 0.25, 1 and 4 M tokens; in steps of 1,024 tokens, to 2 %."""
    for name in recipe_names():
        if name.startswith("laptop"):
            recipe = load_recipe(name)
            assert recipe.training.batch * recipe.input.length == 1024
            for tokens, best in ((250_000, 0.04), (1_000_000, 0.02), (4_000_000, 0.01)):
                assert recipe.fitted(tokens // 1024).training.optimizer.lr == pytest.approx(best, rel=0.02)


def test_a_training_has_the_rate_of_its_own_length(corpus, tmp_path):
    recipe = shrink("laptop-encoder-tiny").changed(
        {RATE: {"rate": 0.02, "steps": 20}, "training.schedule": {"kind": "constant"}}
    )
    options = {"budget": Budget(steps=10), "progress": False, "device": "cpu", "resume": True}
    pretrain(recipe, corpus.path, tmp_path / "run", until=4, **options)
    run = pretrain(recipe, corpus.path, tmp_path / "run", **options)
    rates = {line["learning_rate"] for line in run.metrics() if line["kind"] == "train"}
    assert rates == {run.recipe.training.optimizer.lr}
    assert rates.pop() == pytest.approx(0.02 * 2**0.5)


def test_a_number_takes_its_place(tmp_path):
    assert load_recipe("laptop-conv-mini", [f"{RATE}=0.003"]).fitted(10).training.optimizer.lr == 0.003
    (tmp_path / "mine.yaml").write_text("extends: laptop-conv-mini\ntraining: {optimizer: {lr: 0.003}}\n")
    assert load_recipe(tmp_path / "mine.yaml").fitted(10).training.optimizer.lr == 0.003
    back = load_recipe(tmp_path / "mine.yaml", [f"{RATE}={{rate: 0.003, steps: 1000}}"])
    assert back.fitted(250).training.optimizer.lr == pytest.approx(0.006)


def test_a_search_is_around_the_number():
    (found,) = parse_ranges((), LAPTOP, trials=5)
    assert found.own == 0.02
    (found,) = parse_ranges([f"{RATE}=1e-3..1e-1"], LAPTOP, trials=5)
    assert (found.own, found.has_own) == (0.02, True)
    with pytest.raises(UserError, match="give numbers"):
        parse_ranges([f"{RATE}={{rate: 0.01, steps: 1000}},{{rate: 0.02, steps: 1000}}"], LAPTOP, trials=5)


@pytest.mark.parametrize("name", ["bert-base", "albert-base", "t5-base", "gcnn-14"])
def test_optimizers_without_a_rule_have_a_number(name):
    message = r": lr: no rule is known by which the rate of \w+ follows the length"
    check_refusal(name, f"{RATE}={{rate: 0.003, steps: 1000}}", message)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("null", "lr: input should be a valid number, not null$"),
        ("abc", "lr: input should be a valid number"),
        ("true", "lr: a number is wanted, not true"),
        ("-1", "lr: input should be greater than 0, not -1"),
        ("0.0", "lr: input should be greater than 0, not 0.0"),
        ("[1]", r"lr: input should be a valid number, not \[1\]"),
        ("{rate: 0.1}", "lr.steps: this key is required"),
        ("{rate: 0.1, stps: 3}", "lr: unknown key 'stps'; did you mean 'steps'"),
        ("{rate: 0, steps: 3}", "lr.rate: input should be greater than 0"),
        ("{rate: 0.1, steps: 0}", "lr.steps: input should be greater than 0"),
        ("{rate: 0.1, steps: 1.5}", "lr.steps: input should be a valid integer"),
    ],
)
def test_what_is_wrong_is_told_once(value, message):
    check_refusal("laptop-conv-tiny", f"{RATE}={value}", f"[.:] ?{message}")


def test_further_training_has_the_rate_of_the_whole_length(corpus, tmp_path):
    """That of the run's steps and its own together, also after a second start, and where it is gone on with."""
    recipe = shrink("laptop-encoder-tiny").changed(
        {RATE: {"rate": 0.02, "steps": 8}, "training.optimizer.weight_decay": {"passes": 3}}
    )
    options = {"progress": False, "device": "cpu", "resume": True}
    first = pretrain(recipe, corpus.path, tmp_path / "first", budget=Budget(steps=6), **options)
    for name, named in (("by its recipe", None), ("by a named one", recipe)):
        start = Start(run=first.path)
        out = tmp_path / name
        pretrain(named, corpus.path, out, start=start, budget=Budget(steps=2), until=1, **options)
        run = pretrain(named, corpus.path, out, start=start, budget=Budget(steps=2), **options)
        optimizer, before = run.recipe.training.optimizer, first.recipe.training.optimizer
        assert optimizer.lr == pytest.approx(0.02)
        assert optimizer.lr * optimizer.weight_decay == pytest.approx(before.lr * before.weight_decay)  # as many passes
    third = pretrain(
        None, corpus.path, tmp_path / "third", start=Start(run=run.path), budget=Budget(steps=24), **options
    )
    assert third.recipe.training.optimizer.lr == pytest.approx(0.01)
    assert third.recipe.training.budget.steps == 24


def test_a_number_stays_in_further_training(corpus, tmp_path):
    recipe = shrink("laptop-encoder-tiny").changed({RATE: 0.003})
    options = {"progress": False, "device": "cpu"}
    first = pretrain(recipe, corpus.path, tmp_path / "first", **options)
    run = pretrain(None, corpus.path, tmp_path / "run", start=Start(run=first.path), budget=Budget(steps=9), **options)
    assert run.recipe.training.optimizer.lr == 0.003
