"""Exports with code of their own come back as runs."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file

from bakeoff.errors import UserError
from bakeoff.interop.hugging_face.importing import import_model
from bakeoff.interop.remote_code.export import written
from bakeoff.runs.run import Run
from tests.untrained_runs import untrained

NAMES = [
    "conv-light-encoder-tiny",
    "conv-dynamic-tiny",
    *(pytest.param(each, marks=pytest.mark.slow) for each in ("laptop-decoder-tiny", "gpt-bert-tiny", "xlnet-tiny")),
]


def exported(name, corpus, folder):
    """A run, and where it is written for transformers."""
    run = untrained(name, corpus, folder / "run")
    (folder / "out").mkdir()
    written(run.path, folder / "out")
    return run, folder / "out"


@pytest.fixture(scope="module")
def light(corpus, tmp_path_factory):
    """One of them, for all that want no other; nobody changes it."""
    return exported(NAMES[0], corpus, tmp_path_factory.mktemp("light"))


@pytest.mark.parametrize("name", NAMES)
def test_an_export_comes_back_to_the_last_bit(name, corpus, light, tmp_path):
    run, out = light if name == NAMES[0] else exported(name, corpus, tmp_path)
    back = import_model(out, tmp_path / "back")
    before, after = (load_file(path / "model.safetensors") for path in (run.path, back.path))
    assert before.keys() == after.keys()
    # XLNet's head predicts over a second stream, which transformers' classes do not have.
    there = [key for key in before if name != "xlnet-tiny" or not key.startswith("heads.")]
    assert all(torch.equal(before[key], after[key]) for key in there)
    recipe = json.loads((out / "config.json").read_text())["recipe"]
    assert back.recipe.model == run.recipe.model
    assert [part.kind for part in back.recipe.objective] == [part["kind"] for part in recipe["objective"]]
    texts = ["one two three", "The river 12!"]
    ids = [[own.tolist() for own, _ in Run(path).tokenizer.encode(texts)] for path in (run.path, back.path)]
    assert ids[0] == ids[1]
    if name != "conv-dynamic-tiny":  # whose marks of gaps are tokens of the export's vocabulary
        back.require_tokenizer_of(corpus)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"recipe": None}, "recipe: is missing"),
        ({"recipe": {"model": 3}}, "config.json: recipe"),
        ({"trained_head": "sop"}, "'sop' is no objective of its recipe"),
        ({"vocab_size": 9}, r"tokens, but the model's table has 9: this is another model's tokenizer"),
    ],
)
def test_a_config_that_says_something_else_is_one_line(change, message, light, tmp_path):
    out = tmp_path / "out"
    shutil.copytree(light[1], out)
    config = json.loads((out / "config.json").read_text())
    (out / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(UserError, match=message):
        import_model(out, tmp_path / "back")
    assert not (tmp_path / "back").exists()
