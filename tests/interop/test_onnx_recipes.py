"""Every tiny recipe as ONNX: the numbers of torch."""

import random

import pytest

from bakeoff.interop.export import export
from bakeoff.recipe_files import recipe_names
from tests.conftest import shrink
from tests.untrained_runs import untrained

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig

TINY = [name for name in recipe_names() if name.endswith("-tiny")]
TUNED = [
    *("bart-tiny", "t5-tiny", "conv-dynamic-tiny", "lstm-lm-tiny", "gcnn-tiny", "tcn-tiny"),
    *("average-encoder-tiny", "electra-tiny", "conv-dilated-encoder-tiny", "cnn-lm-tiny", "gpt2-tiny"),
    *("gencnn-tiny", "elmo-tiny", "transformer-xl-tiny"),
]
"""One of each kind of layer that `test_onnx_tasks` does not have."""


@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_a_pre_trained_run_of_every_recipe_goes(name, corpus, tmp_path):
    run = untrained(name, corpus, tmp_path / "run")
    assert export(run.path, tmp_path / "out", to="onnx").largest_difference < 1e-5


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
