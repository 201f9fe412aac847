"""`evaluate --set`: a run under a changed recipe whose weights still fit."""

import pytest
import torch
from tests.untrained_runs import untrained
from typer.testing import CliRunner

import bakeoff
from bakeoff.cli.app import app
from bakeoff.errors import UserError
from bakeoff.preparation.prepare import prepare
from bakeoff.row import Row
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.training.stages import make_batches

MEMORY = "model.decoder.block.mixer.memory"


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    words = ("river", "stone", "house", "garden", "winter", "engine")
    lines = [" ".join(words[(i * j + i // 3) % 6] for j in range(30)) + "." for i in range(80)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = TokenizerConfig(size=60)
    options = {"document_per_line": True, "validation": 0.3, "workers": 0}
    return prepare(folder / "text.txt", folder / "corpus", tokenizer=config, **options)


@pytest.fixture(scope="module")
def run(text, tmp_path_factory):
    changes = {"input.length": 16, MEMORY: 4, "training.precision": "float32"}
    return untrained("transformer-xl-tiny", text, tmp_path_factory.mktemp("runs") / "xl", **changes)


@torch.no_grad()
def in_one_pass(run, text, length, memory):
    """The mean loss of held-out rows that continue each other, read at once under a mask of row and memory."""
    module = run.load().double()
    recipe = run.recipe.changed({"input.length": length})
    parts = make_batches(recipe, module, text, 0, split="validation").fixed(recipe.training.validation_examples)
    ids = torch.cat([part.row.ids for part in parts], dim=1)
    labels = torch.cat([part.targets["clm"][1].view(len(part.row.ids), -1) for part in parts], dim=1)
    place = torch.arange(ids.shape[1])
    seen = (place >= (place // length * length - memory)[:, None]) & (place <= place[:, None])
    x, context = module.model.stack_inputs(Row(ids))
    hidden = module.model.stack(x, context._replace(attention_mask=seen[None, None]))[0]
    scores = module.heads["clm"].scores(hidden.flatten(0, 1), module.model.embedding.weight)
    return float(torch.nn.functional.cross_entropy(scores, labels.flatten()))


def test_a_longer_memory_than_in_training_is_read(run, text):
    losses = {}
    for length, memory in ((16, 4), (16, 40), (8, 40)):
        found = bakeoff.evaluate(
            run.path,
            corpus=text.path,
            examples=16,
            overrides={MEMORY: memory, "input.length": length},
            device="cpu",
        )
        assert found["losses"]["clm"] == pytest.approx(in_one_pass(run, text, length, memory), abs=2e-5)
        assert found["set"] == {MEMORY: memory, "input.length": length}
        losses[length, memory] = found["losses"]["clm"]
    plain = bakeoff.evaluate(run.path, corpus=text.path, examples=16, device="cpu")
    assert "set" not in plain
    assert plain["losses"]["clm"] == losses[16, 4]
    assert len({round(loss, 4) for loss in losses.values()}) == 3


def test_texts_are_scored_under_the_changed_recipe(run, tmp_path):
    (tmp_path / "texts.txt").write_text("river stone house garden " * 12 + "\n", encoding="utf-8")
    found = [
        bakeoff.evaluate(run.path, texts=tmp_path / "texts.txt", overrides=[f"{MEMORY}={size}"], device="cpu")
        for size in (4, 20, 200, 400)
    ]
    short, longer, whole, again = (figures["log_probability"] for figures in found)
    assert len({round(short, 3), round(longer, 3), round(whole, 3)}) == 3
    assert again == whole
    assert found[1]["set"] == {MEMORY: 20}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["model.decoder.block.mixer.memry=4"], "unknown key 'memry'; did you mean 'memory'"),
        (
            ["input.length=8", "model.decoder.width=16"],
            r"--set model.decoder.width: the run's weights do not fit: model\.",
        ),
        (["model.decoder.layers=3"], r"is absent there, and \("),
        (["model.decoder.layers=1"], r"there, and absent with this"),
        (["objective.0.head=untied"], "heads.clm.output.weight is absent there"),
        (["input.length"], "expected KEY=VALUE"),
        (["input.length=-1"], "input.length"),
    ],
)
def test_what_does_not_fit_is_one_line(overrides, message, run, text):
    with pytest.raises(UserError, match=message) as caught:
        bakeoff.evaluate(run.path, corpus=text.path, overrides=overrides, device="cpu")
    assert "\n" not in str(caught.value)


def test_the_command_says_what_was_set(run, text):
    arguments = ["evaluate", str(run.path), "--corpus", str(text.path), "--set", f"{MEMORY}=40", "--device", "cpu"]
    printed = CliRunner().invoke(app, arguments)
    assert f"{MEMORY}=40" in printed.output.splitlines()[-1]
    assert '"set": {' in CliRunner().invoke(app, [*arguments, "--json"]).output
