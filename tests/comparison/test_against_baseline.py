"""Recipes against counting words: what each test row contributes to both is paired."""

import numpy as np
import pytest
from synthetic_results import TFIDF, as_errors, make_results
from test_execution import FakeEngine, folder, go  # noqa: F401

from bakeoff.comparison.reporting.baseline_findings import BaselineStanding, worthless
from bakeoff.comparison.reporting.report import write_report
from bakeoff.comparison.statistics.against_baseline import against_baseline
from bakeoff.comparison.statistics.groups import Group
from bakeoff.json_files import read_json_lines

ROWS = 1000


def recipe(right):
    """A recipe whose seeds get these rows right: (S, n) truth values."""
    return Group.of({seed: [(float(row.mean()), row.astype(float))] for seed, row in enumerate(np.asarray(right))})


def compared(groups, baseline):
    return against_baseline(groups, "TF-IDF", float(baseline.mean()), baseline.astype(float), None, 1.0)


def draw(*shares, seeds=3, kept=0.9):
    """Rows that are right with each probability; of each seed most are those of the first."""
    random = np.random.default_rng(7)
    made = []
    for share in shares:
        first = random.random(ROWS) < share
        made.append([np.where(random.random(ROWS) < kept, first, random.random(ROWS) < share) for _ in range(seeds)])
    return made


def test_a_recipe_that_says_what_the_baseline_says_is_not_better():
    (right,) = draw(0.7, seeds=1)
    found = compared({"same": recipe(right * 3)}, right[0])["same"]
    assert (found.first, found.second, found.difference, found.real) == ("same", "TF-IDF", 0.0, False)
    low, high = found.interval
    assert low < 0 < high


def test_rows_are_paired():
    """Errors on the very rows of the baseline say more than as many errors elsewhere."""
    random = np.random.default_rng(3)
    baseline = random.random(ROWS) < 0.7
    mended = np.flatnonzero(~baseline)[:30]
    paired = baseline.copy()
    paired[mended] = True
    elsewhere = random.permutation(paired)
    found = compared({"paired": recipe([paired] * 3), "elsewhere": recipe([elsewhere] * 3)}, baseline)
    assert found["paired"].difference == pytest.approx(found["elsewhere"].difference) == pytest.approx(0.03)
    width = {label: each.interval[1] - each.interval[0] for label, each in found.items()}
    assert width["paired"] < 0.6 * width["elsewhere"]
    assert found["paired"].real
    assert not found["elsewhere"].real


def test_recipes_that_are_compared_with_it_are_a_family():
    better, equal, worse = draw(0.85, 0.7, 0.55)
    baseline = draw(0.7, seeds=1)[0][0]
    alone = compared({"better": recipe(better)}, baseline)["better"]
    found = compared({"better": recipe(better), "equal": recipe(equal), "worse": recipe(worse)}, baseline)
    assert [(label, each.real) for label, each in found.items()] == [
        ("better", True),
        ("equal", False),
        ("worse", True),
    ]
    assert alone.adjusted_p == pytest.approx(alone.p, abs=0)
    surest = min(found.values(), key=lambda each: each.p)
    assert surest.adjusted_p == pytest.approx(3 * surest.p, abs=0)
    assert found["better"].difference > 0 > found["worse"].difference


@pytest.mark.parametrize("seeds", [1, 2])
def test_few_seeds_allow_no_claim(seeds):
    (right,) = draw(0.9, seeds=seeds)
    found = compared({"one": recipe(right)}, draw(0.5, seeds=1)[0][0])["one"]
    assert (found.real, found.interval, found.p) == (None, None, None)


def test_a_comparison_keeps_what_the_baseline_predicts_and_tests_every_recipe(folder):  # noqa: F811
    results = go(folder, FakeEngine())
    (learned,) = [each for each in results.baselines if each.kind == "learned"]
    lines = read_json_lines(folder / "out" / learned.predictions)
    assert [line["label"] for line in lines] == ["0", "1"] * 20
    right = np.mean([line["label"] == line["prediction"] for line in lines])
    assert learned.test["accuracy"] == pytest.approx(right)
    (analysis,) = results.analyses
    for label, each in analysis.against_baseline.items():
        assert (each.first, each.second) == (label, learned.name)
        assert each.difference == pytest.approx(analysis.pretrained[label].mean - right)
        assert each.real is not None


def test_comparisons_from_before_predictions_were_kept_measure_the_baseline_anew(folder):  # noqa: F811
    first = go(folder, FakeEngine())
    (path,) = (folder / "out/baselines").glob("*.json")
    path.write_text(path.read_text().replace('"circumstances"', '"older"'))
    (folder / "out/baselines/bakeoff.sha256").unlink()
    again = FakeEngine()
    second = go(folder, again)
    assert again.calls == [("read", "mood")]
    assert second.analyses == first.analyses


@pytest.mark.parametrize("turned", [False, True])
def test_the_report_says_of_the_best_recipe_what_the_paired_test_says(turned, tmp_path):
    results = make_results(tasks=("T",), baseline=0.875)
    results = as_errors(results, "T") if turned else results
    name = results.baselines[1].name
    (analysis,) = results.analyses
    sign = -1.5 if turned else 1
    pair = analysis.pairs[0].model_copy(
        update={"first": "conv-light-encoder-tiny", "second": name, "interval": sorted([sign * 0.001, sign * 0.02])}
    )
    made = {"conv-light-encoder-tiny": pair.model_copy(update={"real": True, "difference": sign * 0.01})}
    results = results.model_copy(update={"analyses": [analysis.model_copy(update={"against_baseline": made})]})
    standing = BaselineStanding.of(results, results.analyses[0])
    assert standing.real
    assert standing.interval == pytest.approx((-abs(sign) * 0.02, -abs(sign) * 0.001))
    assert worthless([standing]) == []
    unknown = results.model_copy(update={"analyses": [analysis]})
    assert worthless([BaselineStanding.of(unknown, analysis)])  # by the interval of the recipe alone
    write_report(results, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Difference from what needs no neural network" in page
    assert f"conv-light-encoder-tiny − {name}" in page
    assert turned or name == TFIDF
