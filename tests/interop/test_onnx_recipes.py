"""Every tiny recipe as ONNX: the numbers of torch, or one line that says why not."""

import os
import random

import pytest

from bakeoff.errors import UserError
from bakeoff.interop.export import export
from bakeoff.recipe_files import load_recipe, recipe_names
from tests.conftest import shrink
from tests.inference.untrained_runs import untrained

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.fitting.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig

TINY = [name for name in recipe_names() if name.endswith("-tiny")]
STEPS = "depends on the length of its rows, step by step"
REFUSED = {"gencnn-tiny": STEPS, "elmo-tiny": STEPS, "transformer-xl-tiny": "a window that grows up to a limit"}
"""Those that are refused for a reason of their own; encoders with a decoder are before they are fine-tuned."""
TUNED = [
    *("bart-tiny", "t5-tiny", "conv-dynamic-tiny", "lstm-lm-tiny", "gcnn-tiny", "tcn-tiny"),
    *("average-encoder-tiny", "electra-tiny", "conv-dilated-encoder-tiny", "cnn-lm-tiny", "gpt2-tiny"),
]
"""One of each kind of layer that `test_onnx_tasks` does not have."""


@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_a_pre_trained_run_of_every_recipe_goes_or_says_why_not(name, corpus, tmp_path):
    run = untrained(name, corpus, tmp_path / "run")
    reason = REFUSED.get(name)
    if load_recipe(name).model.sequence_to_sequence:
        reason = "an encoder with a decoder is not written as ONNX before"
    if reason is None:
        assert export(run.path, tmp_path / "out", to="onnx").largest_difference < 1e-5
        return
    with pytest.raises(UserError, match=reason) as refused:
        export(run.path, tmp_path / "out", to="onnx")
    assert "\n" not in str(refused.value)
    assert os.listdir(tmp_path) == ["run"]


@pytest.mark.slow
@pytest.mark.parametrize("name", TUNED)
def test_a_classifier_of_each_kind_of_layer_gives_the_same_numbers(name, corpus, tmp_path):
    draw, file = random.Random(0), tmp_path / "rows.tsv"
    texts = [" ".join(draw.choices(["one", "two", "river", "stone"], k=draw.randint(3, 7))) for _ in range(24)]
    file.write_text("t\ty\n" + "".join(f"{text}\t{'ab'[number % 2]}\n" for number, text in enumerate(texts)))
    task = ClassificationConfig(train=file, dev=file, test=file, text_column="t", label_column="y")
    config = FinetuneConfig(learning_rate=[1e-3], epochs=1, least_steps=0, evaluations=1, length=16)
    run = tmp_path / "run"
    finetune(shrink(name), task, run, config=config, tokenizer=corpus.path, device="cpu", progress=False)
    assert export(run, tmp_path / "out", to="onnx").largest_difference < 1e-5
