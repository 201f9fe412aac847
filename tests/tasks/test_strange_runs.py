"""Files of a stranger's run with values of other types and sizes: the run is used, or refused in one line."""

import json
import random
import shutil
from itertools import product

import pytest
from tests.attacks.strange_values import VALUES, changed, places

import bakeoff
from bakeoff.cli import run as command
from bakeoff.errors import UserError
from bakeoff.yaml_files import read_yaml

IN_HASTE = 6
"""Cases of each file that every run of the tests tries, always the same."""
FILES = {
    "run": ["recipe.yaml", "environment.json", "summary.json", "metrics.jsonl", "tokenizer.json"],
    "fitted": ["task.yaml", "labels.json", "results.json", "environment.json", "metrics.jsonl", "asked.json"],
}


@pytest.fixture
def copied(request, tmp_path):
    """The folder of a run, whose checksums nobody knows."""
    path = shutil.copytree(request.getfixturevalue(request.param).path, tmp_path / "run")
    (path / "bakeoff.sha256").unlink()
    return path


def cases(path):
    """What stands before the last value of a file, this value, and every key of it with every other value."""
    text = path.read_text()
    before, last = "", text
    if path.suffix == ".jsonl":
        *first, last = text.splitlines()
        before = "".join(f"{line}\n" for line in first)
    values = read_yaml(path) if path.suffix == ".yaml" else json.loads(last)
    keys = [(), *(key for key in places(values) if path.name != "tokenizer.json" or len(key) < 3)]
    return before, values, list(product(keys, VALUES))


def attack(path, file, text, capsys):
    (path / file).write_text(text)
    message = ""
    try:
        repr(bakeoff.load(path, device="cpu"))
    except UserError as error:
        message = str(error)
    assert "\n" not in message
    message.encode()
    for words in (["runs", str(path.parent)], ["check", str(path)]):
        assert command(words) in (0, 1, 2)
        assert "Traceback" not in capsys.readouterr().err


def attack_all(path, file, count, capsys):
    before, values, tried = cases(path / file)
    for key, value in random.Random(1).sample(tried, min(len(tried), count)):
        attack(path, file, before + json.dumps(changed(values, key, value)), capsys)  # YAML has all of JSON


EACH = [pytest.param(kind, file, id=f"{kind} {file}") for kind, files in FILES.items() for file in files]


@pytest.mark.parametrize(("copied", "file"), EACH, indirect=["copied"])
def test_strange_values_are_used_or_refused(copied, file, capsys):
    attack_all(copied, file, IN_HASTE, capsys)


@pytest.mark.slow
@pytest.mark.parametrize(("copied", "file"), EACH, indirect=["copied"])
def test_many_strange_values_are_used_or_refused(copied, file, capsys):
    attack_all(copied, file, 400, capsys)
