from pathlib import Path

from synthetic_results import as_errors

from bakeoff.comparison.reporting.terminal import print_results


def test_the_terminal_shows_every_recipe_and_baseline_within_eighty_columns(results, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    print_results(results, Path("out"))
    printed = capsys.readouterr().out
    assert all(len(line) <= 80 for line in printed.splitlines())
    assert "…" not in printed
    for analysis in results.analyses:
        for label, spread in analysis.pretrained.items():
            assert label in printed
            assert f"{100 * spread.mean:.1f}" in printed
    assert "most frequent class" in printed
    assert "out/report.html" in printed


def test_errors_are_shown_on_their_own_scale(results, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    print_results(as_errors(results, "TREC"), Path("out"))
    printed = capsys.readouterr().out
    assert all(len(line) <= 80 for line in printed.splitlines())
    assert "…" not in printed
    assert "SST-2: test accuracy, %; mean ± deviation over 3 seeds" in printed
    assert "TREC: test mean absolute error (less is better); mean ± deviation over 3 seeds" in printed
    (simplest,) = (line for line in printed.splitlines() if "mean of train" in line)
    assert simplest.split()[-1] == "0.735"
