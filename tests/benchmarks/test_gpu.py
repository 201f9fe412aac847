"""The measurement of a GPU: its table of peaks, its formula, and that all of it runs."""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from tests.device.checks import Check

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def gpu():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import gpu

        yield gpu
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H100 80GB HBM3", 989),
        ("NVIDIA H100 PCIe", 756),
        ("NVIDIA H100 NVL", 835),
        ("NVIDIA H200", 989),
        ("NVIDIA A100-SXM4-80GB", 312),
        ("NVIDIA A100 80GB PCIe", 312),
        ("NVIDIA L40S", 362),
        ("NVIDIA L4", 121),
        ("NVIDIA GeForce RTX 4090", 165.2),
        ("NVIDIA GeForce RTX 3090", 71),
        ("Tesla V100-SXM2-16GB", None),
        ("NVIDIA L40", None),
    ],
)
def test_a_devices_peak_is_that_of_its_data_sheet(gpu, name, peak):
    assert gpu.peak_of(name) == (None if peak is None else peak * 1e12)


def test_the_share_of_the_peak_is_that_of_the_stated_goals(gpu):
    """850,000 tokens a second of bert-base at 128 are 47 % of an H100, by 545 MFLOP a token, and so on."""
    from gpu_peaks import share_of_peak

    for rate, flops, percent in ((850_000, 545e6, 47), (780_000, 588e6, 46), (550_000, 857e6, 48)):
        assert round(100 * share_of_peak(rate, flops, gpu.peak_of("NVIDIA H100 80GB HBM3"))) == percent


def test_every_measured_training_is_of_whole_rows_without_dropout(gpu):
    from gpu_speed import recipe_of

    tokens = {}
    for name in gpu.TRAININGS:
        recipe = recipe_of(name, smoke=False)
        tokens[name] = recipe.training.rows_at_once(recipe.input.length) * recipe.input.length
        assert (recipe.model.dropout, recipe.input.isolates, recipe.training.curriculum) == (0.0, False, [])
    assert set(tokens.values()) == {65_536}
    assert gpu.GOALS.keys() <= gpu.TRAININGS.keys()


def test_a_measured_training_takes_steps(gpu):
    """In the median of them, so that one in which torch compiles anew does not count."""
    from gpu_speed import timed

    found = gpu.training("laptop-hybrid-small", torch.device("cpu"), 0.01, True, None)
    assert found["tokens/s"] > 0
    began, slow = time.monotonic(), []

    def step(number):
        if number == 3:  # the first pair after the warm-up
            slow.append(number)
            time.sleep(0.5)

    each, count = timed(step, torch.device("cpu"), 1.5, warm=2)
    assert slow
    assert time.monotonic() - began >= 0.5
    assert count > 4
    assert each < 0.1


def test_a_measurement_that_fails_or_has_no_time_does_not_end_the_others(gpu, tmp_path, capsys):
    out = tmp_path / "gpu.json"
    call = gpu.Call(100, out)
    call.measure("right", 1, lambda: {"wrong": []})
    call.measure("wrong", 1, lambda: {"wrong": ["bert"]})
    call.measure("broken", 1, lambda: 1 / 0)
    call.measure("late", 101, lambda: {})
    assert call.failed == ["wrong", "broken", "late"]
    found = json.loads(out.read_text())
    assert found["broken"] == "failed: ZeroDivisionError: division by zero"
    assert found["late"] == "left out: no time was left"
    assert "right (0.0 s)" in capsys.readouterr().out


def test_all_parts_together_take_nine_minutes_at_most(gpu):
    """With what a process needs to start, and with half a minute for the parts that end by themselves."""
    counts = {"a training": len(gpu.TRAININGS), "transformers": len(gpu.GOALS), "a length": 5}
    total = sum(seconds * counts.get(part, 1) for part, seconds in gpu.SECONDS.items())
    stated = re.findall(r"= (\d+)", (BENCHMARKS / "gpu.py").read_text(encoding="utf-8"))
    assert str(total) in stated
    assert total + 30 < 540


def test_without_pytest_the_checks_are_called_by_themselves(gpu, monkeypatch):
    done = []

    def fails(name, device, corpora):
        done.append(name)
        if name == "two":
            raise AssertionError("2 is not 1")

    monkeypatch.setattr(gpu, "CHECKS", [Check(fails, [], ["one", "two"])])
    monkeypatch.setattr(gpu.importlib.util, "find_spec", lambda name: None)
    found = gpu.tests(torch.device("cpu"))
    assert (found["passed"], found["wrong"]) == (1, {"fails-two": "AssertionError: 2 is not 1"})
    assert done == ["one", "two"]


@pytest.mark.slow
def test_all_of_it_runs_on_a_cpu(tmp_path):
    out = tmp_path / "gpu.json"
    words = [sys.executable, str(BENCHMARKS / "gpu.py"), "--smoke", "--out", str(out)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    results = json.loads(out.read_text())
    failed = [name for name, result in results.items() if isinstance(result, str)]
    assert (done.returncode, failed) == (0, []), done.stdout
    assert results["bert-base at 128"]["tokens/s"] > 0
    assert results["tests"]["passed"] > 5
    assert not any(results[part]["wrong"] for part in ("tests", "waits", "graphs"))
