"""What is said of a recipe's export before its training: whether transformers has a class for it, and what would do."""

import re

import pytest

from bakeoff.cli import run as command_line
from bakeoff.interop.hugging_face.membership import membership
from bakeoff.recipe_files import load_recipe, recipe_names


@pytest.mark.parametrize("name", ["bert-mini", "gpt2-tiny", "albert-tiny", "t5-tiny", "xlnet-tiny", "modernbert-base"])
def test_a_family_says_nothing(name):
    assert membership(load_recipe(name)).told() is None


def test_convolutions_need_code_of_their_own():
    assert "trust_remote_code=True" in membership(load_recipe("laptop-conv-tiny")).told()
    assert "would be" not in membership(load_recipe("laptop-conv-tiny")).told()


def test_it_is_said_once_as_a_training_begins_and_not_beside_an_error(corpus, tmp_path, capfd):
    command = ["pretrain", "laptop-conv-tiny", "--corpus", str(corpus.path), "--budget", "steps=1", "--device", "cpu"]
    command += ["--set", "model.encoder.layers=1", "--out", str(tmp_path / "run")]
    assert command_line(command) == 0
    assert capfd.readouterr().err.count("trust_remote_code=True") == 1
    assert command_line([*command, "--resume"]) == 0
    assert command_line(command) == 2  # it is there already
    assert "trust_remote_code" not in capfd.readouterr().err


def test_the_keys_that_are_named_make_it_a_member():
    """Of every recipe that a few keys keep out of a family; they are typed as they are told."""
    named = 0
    for name in recipe_names():
        told = membership(load_recipe(name)).told()
        if told is None or (found := re.search(r"With (.*) \(--set\) it would be in the family (\S+)$", told)) is None:
            continue
        named += 1
        assert membership(load_recipe(name, found[1].split(", "))).family == found[2], name
    assert named >= 3
