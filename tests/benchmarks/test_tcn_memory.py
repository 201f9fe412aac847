import runpy
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bakeoff.models.context import Context

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "tcn_memory.py"))
TASKS = SCRIPT["TASKS"]


def test_the_sum_is_that_of_two_different_marked_numbers():
    x, y = TASKS["adding"].rows(500, 7, torch.Generator().manual_seed(0))
    numbers, marks = x.double().unbind(-1)
    assert set(marks.unique().tolist()) == {0, 1}
    assert (marks.sum(1) == 2).all()
    assert (marks.sum(0) > 0).all()
    torch.testing.assert_close((numbers * marks).sum(1), y[:, 0].double())
    assert 0.4 < numbers.mean() < 0.6


def test_the_symbols_are_asked_for_from_the_second_signal_on():
    x, y = TASKS["copy"].rows(50, 30, torch.Generator().manual_seed(0))
    assert x.shape == (50, 50, 1)
    for row, classes in zip(x[..., 0].int().tolist(), y.tolist(), strict=True):
        assert row[10:] == [0] * 29 + [9] * 11
        assert classes == [0] * 40 + row[:10]
        assert set(row[:10]) <= set(range(1, 9))


@pytest.mark.parametrize("length", [1, 2, 600, 613])
def test_leaving_out_positions_changes_nothing_of_the_last_state(length):
    task = TASKS["adding"]
    thinned, _ = task.build()
    full, _ = replace(task, dilation=None).build()
    full.load_state_dict(thinned.state_dict())
    x = torch.randn(2, length, task.inputs)
    torch.testing.assert_close(SCRIPT["last_state"](thinned, x), full(x, Context())[0][:, -1])


@pytest.mark.parametrize(("name", "parameters"), [("adding", "70,369"), ("copy", "12,530")])
def test_three_steps_print_the_parameters_and_the_losses_beside_the_papers(name, parameters, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["tcn_memory.py", name, "--steps", "3", "--every", "2", "--length", "20"])
    SCRIPT["main"]()
    printed = capsys.readouterr().out
    assert parameters in printed
    rows = [line.split(" | ") for line in printed.splitlines() if line[2:3].isdigit()]
    assert [row[0] for row in rows] == ["| 2", "| 3"]
    assert all(0 < float(row[3]) < 10 for row in rows)


def test_a_decaying_rate_starts_as_the_constant_one(monkeypatch, capsys):
    losses = []
    for options in ([], ["--decay"]):
        monkeypatch.setattr("sys.argv", ["", "adding", "--steps", "3", "--every", "1", "--length", "20", *options])
        SCRIPT["main"]()
        printed = capsys.readouterr().out
        losses.append([line.split(" | ")[3] for line in printed.splitlines() if line[2:3].isdigit()])
    constant, decaying = losses
    assert constant[0] == decaying[0]
    assert constant[2] != decaying[2]
