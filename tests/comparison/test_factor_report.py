"""Factors in report and on the terminal."""

import csv
import itertools

import pytest
from report_pages import HOSTILE, charts_of, page_of
from synthetic_results import make_results

from bakeoff.comparison.planning.asking import Asking
from bakeoff.comparison.planning.grid import GridFacts
from bakeoff.comparison.reporting.findings import findings
from bakeoff.comparison.reporting.terminal import print_results
from bakeoff.comparison.results import Results
from bakeoff.comparison.results_csv import write_csv
from bakeoff.comparison.statistics.factors import factor_analyses
from bakeoff.display.text import visible

LABELS = ["bert-mini", "albert-tiny", "conv-light-encoder-tiny", "gpt-tiny"]


def grid(one, other, labels=LABELS, name="grid"):
    """Two factors with two levels each, whose cells are the four recipes."""
    (first, levels), (second, places) = one, other
    cells = [{first: level, second: place} for level in levels for place in places]
    return GridFacts(name=name, factors={first: levels, second: places}, cells=dict(zip(labels, cells, strict=True)))


def test_sentences_say_what_each_factor_does():
    facts = grid(("share", ["none", "all"]), ("width", ["64", "128"]))
    details = findings(make_results(grids=[facts])).details
    assert any(
        each.startswith("On SST-2, “share all” is ")
        and " points better than “share none”, over all levels of “width”, beyond the noise (95 % interval +" in each
        for each in details
    )
    assert any("what “share” does depends on “width”: share none − all at width 64 is " in each for each in details)
    two = findings(make_results(seeds=2, grids=[facts]))
    assert not any("beyond the noise" in each or "exceeds" in each for each in two.details)


def test_a_report_has_means_effects_and_charts_as_text(tmp_path, capsys):
    facts = grid((HOSTILE[0], [HOSTILE[1], HOSTILE[2]]), (HOSTILE[3], ["a", "b"]), name=HOSTILE[2])
    results = make_results(grids=[facts], rows=300)
    results.write_json(tmp_path / "results.json")
    assert Results.read(tmp_path / "results.json") == results
    page = page_of(results, tmp_path)
    assert "What each factor does" in page.text
    assert page.tags.count("script") == 3
    assert page.tags.count("b") == page.html.split("<script")[0].count("<b>")
    for name in HOSTILE:
        assert visible(name) in visible(page.text)
    drawn = charts_of(page)
    assert sum(name.startswith("factors-1-") for name in drawn) == 2
    assert len(list((tmp_path / "figures").glob("factors-*.svg"))) == 2
    print_results(results, tmp_path)
    assert "mean accuracy, % at each level" in " ".join(capsys.readouterr().out.split())


def test_results_csv_has_a_column_for_each_factor(tmp_path):
    facts = grid(("share", ["none", "all"]), ("model width", ["64", "128"]))
    write_csv(make_results(grids=[facts]), tmp_path / "results.csv")
    rows = [*csv.DictReader((tmp_path / "results.csv").read_text(encoding="utf-8").splitlines())]
    assert {
        row["recipe"]: {"share": row["factor: share"], "model width": row["factor: model width"]} for row in rows
    } == (facts.cells)


def test_a_task_on_which_a_grid_has_no_score_has_no_table_of_its_levels(tmp_path, capsys):
    facts = grid(("share", ["none", "all"]), ("width", ["64", "128"]))
    results = make_results(grids=[facts])
    without, other = results.analyses
    without = without.model_copy(update={"factors": factor_analyses([facts], {}, False, Asking())})
    results = results.model_copy(update={"analyses": [without, other]})
    text = page_of(results, tmp_path).text
    means = text[text.index("Mean at each level") :].split("share none")[0]
    assert other.task in means
    assert without.task not in means
    print_results(results, tmp_path)
    printed = " ".join(capsys.readouterr().out.split())
    assert f"{other.task}: mean" in printed
    assert f"{without.task}: mean" not in printed


@pytest.mark.slow
def test_interactions_of_three_have_a_table_of_their_own(tmp_path):
    factors = {"share": ["none", "all"], "width": ["64", "128"], "norm": ["pre", "post"]}
    labels = [f"recipe {number}" for number in range(8)]
    cells = [dict(zip(factors, levels, strict=True)) for levels in itertools.product(*factors.values())]
    facts = GridFacts(name="grid", factors=factors, cells=dict(zip(labels, cells, strict=True)))
    results = make_results(names=labels, rows=100, scratch=False, grids=[facts])
    results.write_json(tmp_path / "results.json")
    assert Results.read(tmp_path / "results.json") == results
    text = page_of(results, tmp_path).text
    assert "SST-2: interaction of three factors" in text
    assert "share none − all at width 64 less that at 128, at norm pre − at norm post" in text
    two = page_of(make_results(grids=[grid(("share", ["none", "all"]), ("width", ["64", "128"]))]), tmp_path).text
    assert "interaction of three factors" not in two
