"""Two processes train as one does, to rounding: every family, dropout included, in one pair of processes."""

import json
import os
import socket
import subprocess
import sys

import pytest
from tests.conftest import shrink

from bakeoff.recipe_files import recipe_names

TINY = [name for name in recipe_names() if name.endswith("-tiny")]
PLAIN = {
    "training.optimizer": {"kind": "sgd", "lr": 0.05},
    "training.schedule": {"kind": "constant"},
    "training.batch": 6,
    "training.micro_batch": 2,
    "training.precision": "float32",
}


def environments(size):
    """The variables by which torchrun's processes find each other, for each of them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    found = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size), "OMP_NUM_THREADS": "1"}
    return [os.environ | found | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(size)]


@pytest.fixture(scope="module")
def pair(corpus, parallel_corpus, tmp_path_factory):
    """What the two processes have found about each recipe, by its name."""
    folder = tmp_path_factory.mktemp("pair")
    plan = {}
    for name in TINY:
        recipe = shrink(name, **PLAIN)
        text = parallel_corpus if recipe.input.parallel else corpus
        plan[name] = recipe.model_dump(mode="json"), str(text.path)
    (folder / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    command = [sys.executable, "-m", "tests.distributed.pair", str(folder)]
    started = [subprocess.Popen(command, env=each, stderr=subprocess.PIPE, text=True) for each in environments(2)]
    complaints = [process.communicate(timeout=120)[1] for process in started]
    assert [process.returncode for process in started] == [0, 0], "\n".join(complaints)
    results = [json.loads((folder / f"{rank}.json").read_text(encoding="utf-8")) for rank in range(2)]
    assert results[0] == results[1]
    return results[0]


@pytest.mark.parametrize("name", TINY)
def test_two_processes_train_as_one(name, pair):
    result = pair[name]
    assert result["tokens"][0] == result["tokens"][1]
    assert not result["missing"]
    assert result["loss"] < 2e-6
    assert max(result["gradient"].values()) < 1e-5
    assert max(result["state"].values()) < 1e-5
