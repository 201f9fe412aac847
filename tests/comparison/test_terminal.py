from pathlib import Path

from bakeoff.comparison.reporting.terminal import print_results


def test_the_terminal_shows_every_recipe_and_floor_within_eighty_columns(results, capsys, monkeypatch):
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
