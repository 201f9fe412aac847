"""Comparisons and searches on a Ray cluster of two machines, here two groups of processes, of which one is killed."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings

import pytest
from small_plans import NAMES, write_plan

from bakeoff.comparison.execution import compare
from bakeoff.comparison.results import Results

pytestmark = pytest.mark.slow

MEASURED = {"created", "seconds", "work_seconds", "tokens_per_second", "peak_memory_bytes", "training_memory_bytes"}
"""Keys of results.json that tell when and where something was trained, and how quickly."""


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray", reason='needs ray: pip install -e ".[ray]"')
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args=head)
        cluster.workers = [cluster.add_node(num_cpus=1) for _ in range(2)]
    yield cluster
    cluster.shutdown()


@pytest.fixture
def plan(corpus, tmp_path):
    return write_plan(tmp_path, corpus, 60, 2, budget="steps=1600", seeds=1)


def without_times(value):
    """Values without those that are measured by a clock."""
    if isinstance(value, dict):
        return {key: without_times(each) for key, each in value.items() if key not in MEASURED}
    return [without_times(each) for each in value] if isinstance(value, list) else value


def started(*arguments, folder):
    """The command in a process of its own, with relative paths, so that signals and warnings of Ray's are its own."""
    command = [sys.executable, "-m", "bakeoff", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder)


def steps_of(out, name):
    log = out / f"runs/{name}/seed-0/pretrain/metrics.jsonl"
    return log.read_text().count("\n") if log.is_file() else 0


def until(condition, process):
    began = time.monotonic()
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() - began < 120
        time.sleep(0.1)


def test_a_machine_is_killed_and_the_command_is_and_the_results_are_those_of_one_process(cluster, plan, tmp_path):
    def on_ray(out):
        return started("compare", "plan.yaml", "--out", out, "--ray", cluster.address, "--json", folder=tmp_path)

    first = on_ray("out")
    until(lambda: all(steps_of(tmp_path / "out", name) > 3 for name in NAMES), first)
    first.send_signal(signal.SIGUSR1)
    _, said = first.communicate(timeout=100)
    assert first.returncode == 128 + signal.SIGUSR1
    assert said.splitlines()[-1] == "bakeoff: out: interrupted; what is done is kept, and the same command goes on"
    for name in NAMES:
        assert list((tmp_path / f"out/runs/{name}/seed-0/pretrain/checkpoints").glob("step-*"))
    shutil.move(tmp_path / "out", tmp_path / "moved")
    second = on_ray("moved")
    before = {name: steps_of(tmp_path / "moved", name) for name in NAMES}
    until(lambda: any(steps_of(tmp_path / "moved", name) > before[name] for name in NAMES), second)
    cluster.remove_node(cluster.workers.pop(), allow_graceful=False)
    time.sleep(2)
    os.kill(second.pid, signal.SIGKILL)
    second.communicate()
    cluster.workers.append(cluster.add_node(num_cpus=1))
    before = {name: steps_of(tmp_path / "moved", name) for name in NAMES}
    third = on_ray("moved")
    until(lambda: any(steps_of(tmp_path / "moved", name) > before[name] for name in NAMES), third)
    cluster.remove_node(cluster.workers.pop(0), allow_graceful=False)
    cluster.workers.append(cluster.add_node(num_cpus=1))
    printed, said = third.communicate(timeout=170)
    assert third.returncode == 0, said
    assert "its machine was lost; it goes on on" in said
    assert "raylet" not in printed + said
    whole = compare(plan, tmp_path / "whole", jobs=1, report=lambda results, path: None)
    results = Results.read(tmp_path / "moved/results.json")
    assert json.loads(printed) == results.model_dump(mode="json")
    assert without_times(results.model_dump(mode="json")) == without_times(whole.model_dump(mode="json"))
    for path in (tmp_path / "whole").rglob("*.safetensors"):
        assert (tmp_path / "moved" / path.relative_to(tmp_path / "whole")).read_bytes() == path.read_bytes()
    assert not list((tmp_path / "moved").glob(".bakeoff-shared*"))


def test_a_search_is_the_same(cluster, plan, corpus, tmp_path):
    command = ["tune", "gpt-tiny.yaml", "--corpus", corpus.path, "--budget", "steps=60", "--trials", "4", "--device"]
    command += ["cpu", "--json", "--out"]
    here, there = (
        json.loads(started(*command, *more, folder=tmp_path).communicate(timeout=170)[0])
        for more in (["here", "--jobs", "1"], ["there", "--ray", cluster.address])
    )
    assert without_times(here) == without_times(there)


def test_without_a_cluster_there_is_one_line(cluster, plan, tmp_path):
    process = started("compare", "plan.yaml", "--out", "out", "--ray", "127.0.0.1:9", folder=tmp_path)
    _, said = process.communicate(timeout=100)
    assert process.returncode == 2
    (line,) = said.splitlines()
    assert "bakeoff: --ray 127.0.0.1:9: no cluster answers" in line
    assert not (tmp_path / "out").exists()
