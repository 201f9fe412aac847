"""Recipes of others that ask for more memory than their weights have: refused before it is taken."""

import resource
import shutil

import pytest
from tests.untrained_runs import untrained

from bakeoff.cli import run as bakeoff
from bakeoff.errors import UserError
from bakeoff.runs.run import Run
from bakeoff.yaml_files import dump_yaml, read_yaml


@pytest.fixture(scope="module")
def whole(corpus, tmp_path_factory):
    return untrained("gpt-tiny", corpus, tmp_path_factory.mktemp("sizes") / "run").path


def changed(path, **values):
    recipe = read_yaml(path / "recipe.yaml")
    recipe["model"]["decoder"] |= values
    (path / "recipe.yaml").write_text(dump_yaml(recipe), encoding="utf-8")
    (path / "bakeoff.sha256").unlink()


VERBS = [
    "generate {} The --device cpu",
    "embed {} The --device cpu",
    "score {} The --device cpu",
    "export {} --out {}-exported",
    "export {} --out {}-exported --to onnx",
    "check {}",
    "finetune {} --train {}.tsv --text-column text --label-column label --out {}-fitted --device cpu",
]


@pytest.mark.parametrize("values", [{"width": 60_000}, {"width": 2**40}, {"layers": 300}, {"layers": 2**40}], ids=str)
@pytest.mark.parametrize("verb", VERBS)
def test_sizes_that_the_weights_have_not(whole, tmp_path, capsys, values, verb):
    path = shutil.copytree(whole, tmp_path / "run")
    (tmp_path / "run.tsv").write_text("text\tlabel\n" + "".join(f"text {n}\t{'ab'[n % 2]}\n" for n in range(40)))
    changed(path, **values)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status = bakeoff(verb.format(path, path, path).split())
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    told = capsys.readouterr().err
    assert grown < 1 << 20  # kilobytes; one matrix of 60,000 x 60,000 has 14 of them
    assert status == 2 or verb.startswith("check")  # which reads each file by itself
    assert "Traceback" not in told
    assert {each.name for each in tmp_path.iterdir()} == {"run", "run.tsv"}


def test_the_line_says_which_size(whole, tmp_path):
    path = shutil.copytree(whole, tmp_path / "run")
    changed(path, width=60_000)
    with pytest.raises(
        UserError, match=r"model\.safetensors: .* is \(\d+, 32\) there, and \(\d+, 60000\) by the recipe"
    ):
        Run(path).load()
