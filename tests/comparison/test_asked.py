"""What a plan asks beyond the pairs, a margin, one recipe against the others, orders: in report, terminal, results."""

import json

import pytest
from synthetic_results import make_results
from tests.comparison.test_execution import FakeEngine, folder, plan

from bakeoff.comparison.execution import compare
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.reporting.against_findings import headline_against
from bakeoff.comparison.reporting.family_findings import over_tasks_section
from bakeoff.comparison.reporting.findings import findings
from bakeoff.comparison.reporting.report import write_report
from bakeoff.comparison.reporting.terminal import print_results
from bakeoff.comparison.results import Results
from bakeoff.errors import UserError

__all__ = ["folder"]


def go(folder, report=lambda results, path: None, **values):
    two = {name: folder / f"{name}.tsv" for name in ("train", "dev", "test")}
    tasks = [{"name": name, "text_column": "a", "label_column": "b", **two} for name in ("mood", "tone")]
    settings = {"recipes": ["one", "two", "three"], "seeds": 3, "tasks": tasks, **values}
    return compare(plan(folder, **settings), folder / "out", engine=FakeEngine(), report=report)


def test_each_answer_stands_in_report_terminal_and_results(folder, capsys, monkeypatch):
    results = go(folder, write_report, margin={"mood": 90.0, "tone": 0.1}, trends={"size": ["one", "two", "three"]})
    verdicts = {each.task: {pair.verdict for pair in each.pairs} for each in results.analyses}
    assert verdicts["mood"] == {"equivalent"}
    assert verdicts["tone"] == {"undecided"}
    written = json.loads((folder / "out" / "results.json").read_text())
    assert {pair["verdict"] for pair in written["analyses"][0]["pairs"]} == {"equivalent"}
    assert Results.read(folder / "out" / "results.json") == results
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert "equivalent within 90.0 points" in page
    assert page.count("would have been found in half of all cases") > 3
    assert "Rise along an order" in page
    assert "Over all tasks" in page
    assert "\\n" not in page.split("<body")[1].split("<script")[0]
    assert "Difference of recipes from scratch" in page
    assert "Difference of gains from pre-training" in page
    monkeypatch.setenv("COLUMNS", "250")
    print_results(results, folder / "out")
    printed = " ".join(capsys.readouterr().out.split())
    assert "equivalent within 90.0 points" in printed
    assert "undecided: within the noise" in printed
    assert "would find 0.1 points" in printed
    assert any("Along size" in line or "Along “size”" in line for line in findings(results).details)


def test_one_recipe_against_the_others(folder):
    results = go(folder, write_report, baseline="two")
    for analysis in [*results.analyses, results.over_tasks]:
        for pairs in (analysis.pairs, analysis.scratch_pairs, analysis.gain_pairs):
            assert len(pairs) == 2
            assert all("two" in (pair.first, pair.second) for pair in pairs)
    assert findings(results).headline.startswith("No recipe has been shown to be better or worse than “two”.")
    better = [
        pair.model_copy(update={"real": True, "verdict": "better", "difference": 0.1})
        for pair in results.analyses[0].pairs
    ]
    first = results.analyses[0].model_copy(update={"pairs": better})
    told = findings(results.model_copy(update={"analyses": [first, results.analyses[1]]}))
    assert told.headline.startswith("Compared with “two”, ")
    assert "the difference is real" in told.headline


def test_below_three_seeds_nobody_is_said_to_lead_against_the_baseline(folder):
    results = go(folder, baseline="two", seeds=2)
    assert "Nothing can be claimed yet: 2 seeds" in findings(results).headline
    lines = [line for line in findings(results).details if "against “two” with" in line]
    assert len(lines) == 2
    for line in lines:
        assert "“one” " in line
        assert "“three” " in line
        assert line.endswith("that may be chance.")
    assert not any("highest mean" in line for line in findings(results).details)


def test_names_of_tasks_together_are_escaped_once():
    names = ("A & B", "C < D")
    results = make_results(tasks=names)
    section = over_tasks_section(results.model_copy(update={"over_tasks": results.analyses[0], "averaged": [*names]}))
    assert "“A &amp; B” and “C &lt; D”" in section
    assert "&amp;amp;" not in section


def test_an_equivalent_leader_is_no_winner(folder):
    results = go(folder, margin=95)
    found = findings(results)
    assert found.headline.startswith("“one”, “two” and “three” are equivalent, within the plan's margin.")
    assert any("equivalent to it within 95.0 points" in line for line in found.details)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"baseline": "twoo"}, "baseline: the plan has no recipe 'twoo'; did you mean 'two'"),
        ({"trends": {"size": ["one", "two"]}}, "trends.size: an order takes three different recipes or more"),
        ({"trends": {"size": ["one", "two", "two"]}}, "trends.size: an order takes three different recipes or more"),
        ({"trends": {"size": ["one", "two", "four"]}}, "trends.size: the plan has no recipe 'four'"),
        ({"trends": {" ": ["one", "two", "three"]}}, "trends: an order without a name"),
        ({"margin": 0}, "margin"),
        ({"margin": {"moood": 1}}, "margin: the plan has no task 'moood'; did you mean 'mood'"),
        ({"recipes": ["one"], "baseline": "one"}, "baseline: would have no effect"),
    ],
)
def test_questions_on_what_is_not_there_are_refused(values, message, tmp_path):
    task = {"name": "mood", "text_column": "a", "label_column": "b", "train": "train.tsv"}
    settings = {"corpus": "c", "recipes": ["one", "two", "three"], "budget": "steps=5", "tasks": [task]}
    with pytest.raises(UserError, match=message):
        Plan.parse({**settings, **values}, "plan")


def test_the_headline_says_nothing_of_the_baseline_where_it_has_no_score():
    results = make_results(rows=2000)
    best = max(results.analyses[0].pretrained, key=lambda label: results.analyses[0].pretrained[label].mean)
    with_it, without_it = (
        analysis.model_copy(
            update={
                "pairs": [pair for pair in analysis.pairs if (best in (pair.first, pair.second)) == kept],
                "pretrained": {label: each for label, each in analysis.pretrained.items() if kept or label != best},
            }
        )
        for analysis, kept in zip(results.analyses, (True, False), strict=True)
    )
    assert any(pair.better for pair in with_it.pairs)
    assert any(pair.better for pair in without_it.pairs)
    results = results.model_copy(update={"analyses": [with_it, without_it], "baseline": best})
    headline = headline_against(results, best)
    assert with_it.task in headline
    assert without_it.task not in headline
