"""What is said first of a training is where and how it is trained."""

import pytest
from tests.conftest import shrink

from bakeoff.display.progress import Remarked
from bakeoff.training.pretrain import pretrain


@pytest.mark.parametrize("before", [(), ("a remark of the command line",)])
def test_the_first_line_names_device_precision_and_attention(before, corpus, tmp_path, capsys):
    recipe = shrink("gpt-tiny", **{"training.budget": {"steps": 2}})
    pretrain(recipe, corpus.path, tmp_path / "run", device="cpu", progress=Remarked(before))
    first, *rest = capsys.readouterr().err.splitlines()
    assert first.startswith("gpt-tiny: on cpu (")
    assert "attention" in first
    assert [line for line in rest if line in before] == list(before)


def test_it_is_said_to_a_function_that_gets_the_notes_and_to_nobody_in_silence(corpus, tmp_path, capsys):
    recipe, notes = shrink("gpt-tiny", **{"training.budget": {"steps": 2}}), []
    pretrain(recipe, corpus.path, tmp_path / "run", device="cpu", progress=notes.append)
    assert notes[0]["line"].startswith("gpt-tiny: on cpu (")
    assert notes[0]["remark"]
    pretrain(recipe, corpus.path, tmp_path / "silent", device="cpu", progress=False)
    assert capsys.readouterr().err == ""
