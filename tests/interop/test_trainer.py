"""Exported runs are fine-tuned with transformers' Trainer, and come back as fine-tuned runs with what was learned."""

import pytest
import torch
from safetensors.torch import load_file

import bakeoff
from bakeoff.interop.export import export
from bakeoff.interop.hugging_face.importing import import_model
from bakeoff.tasks.finetuned_run import FinetunedRun
from tests.interop.fitted_runs import sentences
from tests.untrained_runs import untrained

transformers = pytest.importorskip("transformers")
pytest.importorskip("accelerate")

TEXTS = sentences(24, seed=3)
STEPS = 20
EXPORTED = {
    "bert-tiny": {"bert.encoder.layer.0.attention.self.query.weight", "bert.pooler.dense.bias", "classifier.weight"},
    "conv-light-encoder-tiny": {"model.network.embedding.tokens.weight", "output.weight"},
}
"""Recipes, the one with classes of transformers and the other with its own, and tensors that training changes."""


def trained(folder, out):
    """A folder with what `Trainer` makes of an exported one in some steps, and the model."""
    told = {"trust_remote_code": True}
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    names = {"id2label": {0: "long", 1: "short"}, "label2id": {"long": 0, "short": 1}}
    transformers.set_seed(0)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(folder, **names, **told)
    rows = [{**tokenizer(text), "labels": int(len(text.split()) < 5)} for text in TEXTS]
    arguments = transformers.TrainingArguments(
        str(out / "work"),
        max_steps=STEPS,
        per_device_train_batch_size=8,
        learning_rate=3e-3,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        logging_strategy="no",
    )
    collator = transformers.DataCollatorWithPadding(tokenizer)
    trainer = transformers.Trainer(model, arguments, train_dataset=rows, data_collator=collator)
    done = trainer.train()
    assert done.global_step == STEPS
    trainer.save_model(str(out / "trained"))
    tokenizer.save_pretrained(out / "trained")
    return out / "trained", trainer.model.eval(), tokenizer


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("recipe", ["bert-tiny", pytest.param("conv-light-encoder-tiny", marks=pytest.mark.slow)])
def test_what_the_trainer_has_learned_comes_back(recipe, corpus, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    transformers.utils.logging.disable_progress_bar()
    source = untrained(recipe, corpus, tmp_path / "run")
    export(source.path, tmp_path / "out")
    folder, model, tokenizer = trained(tmp_path / "out", tmp_path)
    run = import_model(folder, tmp_path / "back")
    assert isinstance(run, FinetunedRun)
    assert run.results.classes == ["long", "short"]
    # The weights are those of the Trainer, and not those that went out.
    state, before = model.state_dict(), load_file(tmp_path / "out/model.safetensors")
    again = export(run.path, tmp_path / "again")
    after = load_file(again.path / "model.safetensors")
    for name, tensor in load_file(folder / "model.safetensors").items():
        assert torch.equal(tensor, state[name]), name
        assert torch.equal(tensor, after[name]), name
    assert all(name not in before or not torch.equal(before[name], after[name]) for name in EXPORTED[recipe])
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        shares = model(**batch).logits.softmax(-1)
    for own, row in zip(bakeoff.predict(run.path, TEXTS), shares, strict=True):
        assert own["label"] == ["long", "short"][int(row.argmax())]
        assert own["probability"] == pytest.approx(float(row.max()), abs=1e-5)
    right = [
        own["label"] == ("short" if len(text.split()) < 5 else "long")
        for own, text in zip(bakeoff.predict(run.path, TEXTS), TEXTS, strict=True)
    ]
    assert sum(right) > len(right) / 2
