"""A checkpoint in the place of a run, by its path and by `--checkpoint`, for every verb that reads weights."""

import shutil

import pytest
from safetensors.torch import load_file
from tests.conftest import PLAIN, shrink
from typer.testing import CliRunner

import bakeoff
from bakeoff.cli import run as command_line
from bakeoff.cli.app import app
from bakeoff.errors import UserError
from bakeoff.optimization.save_points import SavePoints
from bakeoff.runs.finding import find_checkpoint
from bakeoff.runs.run import Run
from bakeoff.training.pretrain import pretrain


@pytest.fixture(scope="module")
def stopped(corpus, tmp_path_factory):
    """A training that waits after step 6 of 9, with a checkpoint of step 4, too, and kept weights of step 2."""
    out = tmp_path_factory.mktemp("runs") / "run"
    recipe = shrink("gpt-tiny", **PLAIN, **{"training.budget": {"steps": 9}})
    options = {"save_at": SavePoints(steps=[2]), "progress": False, "device": "cpu"}
    pretrain(recipe, corpus.path, out, until=4, **options)
    pretrain(recipe, corpus.path, out, until=6, resume=True, **options)
    return out


def verbs(run, corpus, folder):
    texts = folder / "texts.txt"
    texts.write_text("A text of few words.\nAnother one.\n", encoding="utf-8")
    rows = folder / "rows.tsv"
    rows.write_text("text\tlabel\n" + "".join(f"word {i}\t{'ab'[i % 2]}\n" for i in range(40)), encoding="utf-8")
    columns = ["--text-column", "text", "--label-column", "label"]
    return {
        "evaluate": [run, "--corpus", corpus],
        "score": [run, "--texts", texts],
        "generate": [run, "A text", "--tokens", "2"],
        "embed": [run, "--texts", texts, "--out", folder / "vectors.npy"],
        "inspect": [run, "--corpus", corpus, "--examples", "2"],
        "export": [run, "--out", folder / "exported"],
        "finetune": [run, "--train", rows, *columns, "--option", "epochs=1", "--out", folder / "tuned"],
    }


@pytest.mark.parametrize(
    "verb",
    ["evaluate", "score", "generate", "embed", "inspect", pytest.param("export", marks=pytest.mark.slow), "finetune"],
)
def test_every_verb_takes_a_checkpoint(verb, stopped, corpus, tmp_path):
    """The same by its path and by the option, and another one than the newest."""
    found = {}
    for name, which in (("path", stopped / "checkpoints" / "step-00000004"), ("option", stopped), ("kept", stopped)):
        (tmp_path / name).mkdir()
        arguments = list(map(str, verbs(which, corpus.path, tmp_path / name)[verb]))
        option = {"path": [], "option": ["--checkpoint", "4"], "kept": ["--checkpoint", "steps=2"]}[name]
        done = CliRunner().invoke(app, [verb, *arguments, *option, *(["--json"] if verb != "embed" else [])])
        assert done.exit_code == 0, done.output + str(done.exception)
        found[name] = done.stdout
        if verb in ("export", "finetune"):
            (file,) = (tmp_path / name).glob("*/model.safetensors")
            found[name] = {key: each.tolist() for key, each in load_file(file).items()}
        elif verb == "embed":
            found[name] = (tmp_path / name / "vectors.npy").read_bytes()
        else:
            found[name] = found[name].replace(str(tmp_path / name), "")
    shutil.rmtree(stopped / "inspect", ignore_errors=True)
    assert found["path"] == found["option"]
    assert verb == "generate" or found["path"] != found["kept"]


def test_a_checkpoint_is_loaded_and_trained_further_from_python(stopped, corpus, tmp_path):
    path = find_checkpoint(stopped, "4")
    assert path == stopped / "checkpoints" / "step-00000004"
    assert bakeoff.load(path, device="cpu").tokenizer.size == Run(stopped).tokenizer.size
    assert (Run(path).step(), Run(path).home) == (4, stopped)
    start = bakeoff.Start(run=path)
    run = pretrain(None, corpus.path, tmp_path / "more", start=start, until=1, progress=False, device="cpu")
    taken = run.environment["initial_weights"]
    assert taken["tensors"] == taken["of"]


def test_what_is_not_there_is_told_with_what_is(stopped):
    with pytest.raises(
        UserError,
        match=r"--checkpoint 5: no such checkpoint; its checkpoints are those of steps "
        r"2 \(saved/steps-2\), 4 \(checkpoints/step-00000004\), 6",
    ):
        find_checkpoint(stopped, "5")
    assert find_checkpoint(stopped, "steps-2") == stopped / "saved" / "steps-2"
    assert find_checkpoint(stopped, 4) == stopped / "checkpoints" / "step-00000004"
    for which, told in (("word=5", "unknown unit 'word'"), ("shares=5%", "shares: '5%' is not")):
        with pytest.raises(UserError, match=f"^--checkpoint.*{told}"):
            find_checkpoint(stopped, which)


def test_a_checkpoint_is_no_place_to_train_in(stopped, capfd):
    path = stopped / "checkpoints" / "step-00000004"
    assert command_line(["pretrain", "--out", str(path), "--resume"]) == 2
    assert "\n" not in capfd.readouterr().err.strip()
