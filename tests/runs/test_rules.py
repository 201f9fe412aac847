"""Runs that were begun by older rules say so where they are gone on with or used; runs of today say nothing."""

import json

import pytest
import yaml
from tests.conftest import PLAIN, shrink
from tests.interrupting import interrupt_at

from bakeoff.errors import Interrupted, UserError
from bakeoff.runs.rules import RULES
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.predict import predict
from bakeoff.training.pretrain import pretrain


def forget(run, *paths):
    """Make a run's files those of a version that knew neither these keys of a recipe nor the number of the rules."""
    recipe = yaml.safe_load((run / "recipe.yaml").read_text())
    environment = json.loads((run / "environment.json").read_text())
    assert environment.pop("rules") == RULES
    for values in filter(None, (recipe, environment.get("recipe"))):
        for path in paths:
            *parents, last = path.split(".")
            node = values
            for parent in parents:
                node = node[parent]
            del node[last]
    (run / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    (run / "environment.json").write_text(json.dumps(environment))
    (run / "bakeoff.sha256").unlink(missing_ok=True)  # there were none then


def interrupted(recipe, corpus, out, monkeypatch):
    with monkeypatch.context() as patch:
        interrupt_at(patch, 0)
        with pytest.raises(Interrupted):
            pretrain(recipe, corpus.path, out, device="cpu", progress=False)


MIXER = {"kind": "relative_attention", "heads": 2, "memory": 8}
CASES = {
    "lamb": ("albert-tiny", {"training.optimizer": {"kind": "lamb", "lr": 1e-3}}, "LAMB left norms and biases out"),
    "distances": ("transformer-xl-tiny", {"model.decoder.block.mixer": {**MIXER, "dropout": 0.3}}, "dropped its dist"),
}
KEYS = {"lamb": ["training.optimizer.bias_correction"], "distances": ["model.decoder.block.mixer.key_width"]}


@pytest.mark.parametrize("case", CASES)
def test_a_run_of_older_rules_says_so_when_it_is_resumed(case, corpus, tmp_path, monkeypatch, capsys):
    name, changes, what = CASES[case]
    recipe = shrink(name, **changes)
    for old in (False, True):
        out = tmp_path / str(old)
        interrupted(recipe, corpus, out, monkeypatch)
        if old:
            forget(out, *KEYS[case])
        capsys.readouterr()
        pretrain(recipe, corpus.path, out, device="cpu", resume=True)
        lines = [line for line in capsys.readouterr().err.splitlines() if "ATTENTION" in line]
        assert len(lines) == old
        assert all(f"begun before {what}" in line or what in line for line in lines)


def test_another_optimizer_and_the_models_own_dropout_were_not_changed(corpus, tmp_path, monkeypatch, capsys):
    recipe = shrink("transformer-xl-tiny", **PLAIN, **{"model.decoder.block.mixer": {**MIXER, "dropout": None}})
    interrupted(recipe, corpus, tmp_path / "run", monkeypatch)
    forget(tmp_path / "run", "model.decoder.block.mixer.key_width", "training.optimizer.bias_correction")
    pretrain(recipe, corpus.path, tmp_path / "run", device="cpu", resume=True)
    assert "ATTENTION" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["bert-tiny", "bart-tiny"])
def test_a_finetuned_run_that_learnt_from_other_rows_is_refused(name, corpus, tmp_path):
    rows = [
        f"{'water' if i % 2 else 'land'}\tThe {'river' if i % 2 else 'stone'} number {i} is old.\n" for i in range(60)
    ]
    (tmp_path / "rows.tsv").write_text("label\ttext\n" + "".join(rows))
    task = ClassificationConfig(train=tmp_path / "rows.tsv", text_column="text", label_column="label")
    config = FinetuneConfig(epochs=1, least_steps=1)
    finetune(shrink(name), task, tmp_path / "run", config=config, tokenizer=corpus.path, device="cpu", progress=False)
    assert len(predict(tmp_path / "run", ["The river."])) == 1
    forget(tmp_path / "run", "model.output_dropout")
    if name == "bert-tiny":
        assert len(predict(tmp_path / "run", ["The river."])) == 1
        return
    with pytest.raises(
        UserError, match=r"run: from before fine-tuned models read sources without \[CLS\].*; fine-tune"
    ):
        predict(tmp_path / "run", ["The river."])
