"""Budgets until a held-out loss is reached."""

import numpy as np
import pytest
from scipy import stats
from small_plans import write_plan
from synthetic_results import make_results

from bakeoff.comparison.execution import compare
from bakeoff.comparison.planning.asking import Asking
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.reporting.cautions import cautions
from bakeoff.comparison.reporting.findings import findings
from bakeoff.comparison.reporting.until_loss import until_section, until_sentences
from bakeoff.comparison.statistics.noise import CAUTION
from bakeoff.comparison.statistics.time_to_loss import time_to_loss
from bakeoff.comparison.until_loss import times_to_loss
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
    with pytest.raises(UserError, match="give patience, or a target"):
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


@pytest.mark.parametrize("there", [0, 1, 6])
def test_that_losses_say_where_trainings_stopped_is_said_of_those_that_reached_the_loss(there):
    results = make_results(names=["bert-mini", "gpt-tiny"], tasks=("T",))
    entries, left = [], there
    for entry in results.recipes:
        runs = []
        for run in entry.runs:
            runs.append(run.model_copy(update={"validation_loss": 2.0 if left > 0 else 3.0}))
            left -= 1
        entries.append(entry.model_copy(update={"runs": runs}))
    tasks = [task.model_copy(update={"kind": "held_out_text"}) for task in results.tasks]
    changed = {"recipes": entries, "tasks": tasks, "until_loss": 2.5, "until_unit": "nats"}
    said = [each for each in cautions(results.model_copy(update=changed)) if "ended where they reached" in each]
    assert [each.partition(" ended")[0] for each in said] == {0: [], 1: ["1 of 6 pre-trainings"], 6: ["Pre-trainings"]}[
        there
    ]


@pytest.mark.slow
def test_a_loss_in_bits_per_byte_ends_models_of_any_tokenizer_and_refuses_those_that_have_none(
    tmp_path, corpus, monkeypatch
):
    monkeypatch.setattr(pretraining, "FEWEST_STEPS_BETWEEN_VALIDATIONS", 5)

    def run(bits, name, recipe="gpt-tiny"):
        budget = {"bits_per_byte": bits, "at_most": "steps=30"}
        plan = write_plan(tmp_path, corpus, 20, 1, recipes=[f"{recipe}.yaml"], budget=budget, seeds=1)
        return compare(plan, tmp_path / name, jobs=1, report=lambda results, path: None)

    (alone,) = run(50.0, "easy").recipes[0].runs
    bits = [*alone.curve[-1].bits_per_byte.values()]
    assert alone.steps < 30
    assert bits[0] <= 50
    hard = run(bits[0] / 100, "hard")
    assert hard.recipes[0].runs[0].steps == 30
    assert "did not reach a held-out loss of" in findings(hard).details[-1]
    assert " bits per byte in any of 1 seed" in findings(hard).details[-1]
    with pytest.raises(
        UserError, match=r"recipe laptop-conv-tiny: .*mlm does not predict every token, and has no bits"
    ):
        run(1.0, "none", "laptop-conv-tiny")


def test_losses_of_several_objectives_are_several_measures():
    several = make_results().model_copy(update={"until_loss": 4.0})
    assert any("is not the same for all recipes" in each for each in cautions(several))


def runs(tokens, gap=1_000):
    """Pre-trainings that took so many tokens, and were measured every `gap` of them."""
    (entry, *_) = make_results().recipes
    first = entry.runs[0]
    made = []
    for seed, count in enumerate(tokens):
        curve = [first.curve[-1].model_copy(update={"tokens": each}) for each in (count - gap, count)]
        update = {"seed": seed, "tokens": count, "validation_loss": 3.0, "curve": curve}
        made.append(first.model_copy(update=update))
    return made


def test_the_ratio_of_two_recipes_has_the_noise_of_their_seeds():
    """Two recipes, whose variances nothing moderates: Welch's t of the logarithms, with the freedom of one recipe."""
    taken = {"quick": [50_000, 52_000, 49_000, 51_000], "slow": [80_000, 78_000, 83_000, 76_000]}
    (pair,) = time_to_loss({label: runs(tokens) for label, tokens in taken.items()}, "tokens", Asking()).pairs
    quick, slow = (np.log(taken[label]) for label in ("quick", "slow"))
    welch = stats.ttest_ind(quick, slow, equal_var=False)
    assert (pair.first, pair.second) == ("quick", "slow")
    assert pair.difference == pytest.approx(quick.mean() - slow.mean())
    assert pair.p == pytest.approx(CAUTION * 2 * stats.t.sf(abs(welch.statistic), 3))
    assert pair.real


def test_seeds_that_end_at_the_same_measurement_are_no_certainty():
    (wide,), (fine,) = (
        time_to_loss({"a": runs([90_000] * 3, gap), "b": runs([100_000] * 3, gap)}, "tokens", Asking()).pairs
        for gap in (30_000, 100)
    )
    assert not wide.real
    assert fine.real
    assert np.ptp(wide.interval) > 100 * np.ptp(fine.interval)


def test_a_report_says_how_many_times_as_much_a_recipe_took():
    base = make_results()
    (first, *_) = base.recipes
    entries = [
        first.model_copy(update={"label": label, "runs": runs(tokens)})
        for label, tokens in {"quick": [50_000, 51_000, 50_500], "slow": [99_000, 102_000, 101_000]}.items()
    ]
    missed = [each.model_copy(update={"validation_loss": 5.0}) for each in runs([1_000] * 3)]
    late = first.model_copy(update={"label": "late", "runs": missed})
    results = base.model_copy(update={"until_loss": 4.0, "recipes": [*entries, late]})
    results = results.model_copy(update={"to_loss": times_to_loss(results)})
    assert [each.spent for each in results.to_loss] == ["tokens", "seconds"]
    assert {frozenset((p.first, p.second)) for each in results.to_loss for p in each.pairs} == {
        frozenset(("quick", "slow"))
    }
    sentences = [*until_sentences(results)]
    said = "“slow” took 1.99 times as many tokens to a held-out loss of 4 as “quick”, beyond the noise"
    assert any(said in each for each in sentences)
    unknown = "has been shown to take less time to a held-out loss of 4 than another."
    assert f"No recipe of those that reached it with every seed {unknown}" in sentences
    both = results.model_copy(update={"recipes": entries})
    assert f"No recipe {unknown}" in [*until_sentences(both)]
    section = until_section(results)
    assert "How many times as much as the second of two recipes the first took" in section
    assert "1.99" in section[section.index("slow : quick") :]
    assert not any("not the same for all recipes" in each for each in cautions(results))


@pytest.mark.parametrize(
    "budget",
    [
        {"held_out": 3.0, "bits_per_byte": 1.0, "at_most": "steps=5"},
        {"held_out": 3.0},
        {"at_most": "steps=5"},
        {"held_out": 3.0, "at_most": "5"},
    ],
)
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
