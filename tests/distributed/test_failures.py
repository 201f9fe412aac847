"""What ends one of several processes ends all, within seconds, with one line and a checkpoint to go on from."""

import os
import resource
import signal
import subprocess
import sys
import time

import pytest
from tests.conftest import shrink
from tests.distributed.test_pairs import PLAIN, environments

from bakeoff.cli import run as command_line
from bakeoff.runs.checkpoint import list_checkpoints
from bakeoff.yaml_files import dump_yaml

pytestmark = pytest.mark.slow
ENDLESS = {**PLAIN, "training.checkpoint_minutes": 0.01}
SECONDS = 15
"""More than the processes have to end within, on a machine that does much else."""


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "recipe.yaml"
    values = shrink("gpt-tiny", **ENDLESS).model_dump(mode="json")
    path.write_text(dump_yaml({key: value for key, value in values.items() if value is not None}), encoding="utf-8")
    return path


def command_of(recipe, corpus, out, *options):
    where = ["--corpus", str(corpus.path), "--out", str(out), "--budget", "steps=200000", "--device", "cpu", "--quiet"]
    return ["-m", "bakeoff", "pretrain", str(recipe), *where, *options]


def started(arguments, *limits, special=((), ())):
    """Two processes; `limits` bound the sizes of files of each, `special` are further options of each."""
    processes = []
    for environment, limit, more in zip(environments(2), limits or (None, None), special, strict=True):

        def bound(limit=limit):
            if limit is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        command = [sys.executable, *arguments, *more]
        processes.append(
            subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, preexec_fn=bound)
        )
    return processes


def until(happened, processes, seconds=90):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end
        if any(process.poll() is not None for process in processes):
            pytest.fail("".join(process.communicate()[1] for process in processes))
        time.sleep(0.05)


def ended(processes):
    """The exit statuses of the processes, and their lines about errors together."""
    complaints = [process.communicate(timeout=SECONDS)[1] for process in processes]
    lines = [line for text in complaints for line in text.splitlines() if line.startswith("bakeoff: ")]
    assert not any("Traceback" in text for text in complaints), complaints
    return [process.returncode for process in processes], lines


def goes_on(out):
    """The run goes on from its checkpoint, in a single process."""
    before = list_checkpoints(out / "checkpoints")
    assert before
    assert not [each for each in (out / "checkpoints").iterdir() if each.name.startswith(".")]
    assert command_line(["pretrain", "--out", str(out), "--finish-now", "--quiet"]) == 0


@pytest.mark.parametrize("rank", [0, 1])
def test_a_signal_to_one_saves_and_ends_all(rank, recipe, corpus, tmp_path):
    out = tmp_path / "run"
    processes = started(command_of(recipe, corpus, out))
    until(lambda: list_checkpoints(out / "checkpoints"), processes)
    processes[rank].send_signal(signal.SIGTERM)
    statuses, lines = ended(processes)
    assert statuses == [128 + signal.SIGTERM] * 2
    assert len(lines) == 1
    assert "stopped at step" in lines[0]
    goes_on(out)


@pytest.mark.parametrize("rank", [0, 1])
def test_one_that_is_killed_ends_all(rank, recipe, corpus, tmp_path):
    out = tmp_path / "run"
    processes = started(command_of(recipe, corpus, out))
    until(lambda: list_checkpoints(out / "checkpoints"), processes)
    processes[rank].kill()
    statuses, lines = ended(processes)
    assert statuses[rank] == -signal.SIGKILL
    assert statuses[1 - rank] == 2
    (line,) = lines
    assert "another process of this training has ended without a word; the checkpoint of step" in line
    assert "--resume" in line


def test_a_full_disk_of_the_one_that_writes_ends_all(recipe, corpus, tmp_path):
    out = tmp_path / "run"
    processes = started(command_of(recipe, corpus, out), 60_000, None)
    wait(processes)
    statuses, lines = ended(processes)
    assert statuses == [2, 2]
    (line,) = lines
    assert "cannot be written" in line


def wait(processes):
    """Until one of them has ended."""
    end = time.monotonic() + 90
    while all(process.poll() is None for process in processes) and time.monotonic() < end:
        time.sleep(0.05)


def test_a_mistake_of_one_ends_all_before_anything_is_written(recipe, corpus, tmp_path):
    out = tmp_path / "run"
    processes = started(command_of(recipe, corpus, out), special=((), ("--seed", "7", "--device", "nonsense")))
    wait(processes)
    statuses, lines = ended(processes)
    assert statuses == [2, 2]
    (line,) = lines
    assert "nonsense" in line
    assert not out.exists()


def test_torchrun_starts_a_killed_one_again_and_it_goes_on(recipe, corpus, tmp_path):
    out, log = tmp_path / "run", tmp_path / "log"
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--max-restarts", "1"]
    arguments = command_of(recipe, corpus, out)
    arguments[arguments.index("steps=200000")] = "steps=400"
    arguments.remove("--quiet")
    with open(log, "w", encoding="utf-8") as file:
        agent = subprocess.Popen([sys.executable, *launch, *arguments], stderr=file, stdout=file, env=os.environ)
        until(lambda: list_checkpoints(out / "checkpoints"), [agent])
        children = subprocess.run(["pgrep", "-P", str(agent.pid)], capture_output=True, text=True, check=True).stdout
        os.kill(int(children.split()[-1]), signal.SIGKILL)
        assert agent.wait(timeout=120) == 0, log.read_text(encoding="utf-8")
    assert "resumed at step" in log.read_text(encoding="utf-8")
    assert (out / "summary.json").is_file()
