"""What shells offer behind Tab, and how fast; through the shells' own protocol."""

import os
import subprocess
import sys

import pytest

from bakeoff.cli.shared.completing import complete_dataset, complete_recipe, complete_run
from bakeoff.recipe_files import recipe_names
from bakeoff.tasks.datasets.dataset import dataset_names


def test_names_of_recipes_and_data_sets_are_all_offered():
    assert complete_recipe("") == recipe_names()
    assert complete_dataset("") == dataset_names()
    assert complete_recipe("bert-b") == ["bert-base"]


def test_folders_are_offered_and_runs_first(tmp_path):
    for name in ("archive", "run", ".hidden"):
        (tmp_path / name).mkdir()
    (tmp_path / "run" / "recipe.yaml").write_text("")
    (tmp_path / "file").write_text("")
    assert complete_run(f"{tmp_path}/") == [f"{tmp_path}/run", f"{tmp_path}/archive/"]
    assert complete_run(f"{tmp_path}/r") == [f"{tmp_path}/run"]
    assert complete_run(f"{tmp_path}/none/x") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_is_answered_and_given_a_script(shell):
    program = "import sys; from bakeoff.cli import run; status = run(sys.argv[1:]); print('torch' in sys.modules)"
    common = {"_TYPER_COMPLETE_ARGS": "bakeoff pretrain laptop-enc", "COMP_WORDS": "bakeoff pretrain laptop-enc"}
    environment = {**os.environ, **common, "COMP_CWORD": "2", "_BAKEOFF_COMPLETE": f"complete_{shell}"}
    environment["_TYPER_COMPLETE_FISH_ACTION"] = "get-args"
    found = subprocess.run(
        [sys.executable, "-c", "import sys; from bakeoff.cli import main; main()"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert "laptop-encoder-tiny" in found.stdout, (program, found)
    assert "bert" not in found.stdout
