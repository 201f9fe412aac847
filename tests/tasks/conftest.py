import random

import pytest
import torch
from keyword_task import KEYWORDS, labelled, sentence, write_tsv
from tests.conftest import shrink

from bakeoff.optimization.budget import Budget
from bakeoff.preparation.prepare import prepare
from bakeoff.recipe_files import load_recipe
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.training.pretrain import pretrain

SMALL = {
    "model.encoder.width": 32,
    "model.encoder.layers": 2,
    "model.encoder.block.ffn.width": 64,
    "input.length": 32,
    "training.batch": 8,
    "training.precision": "float32",  # on every machine: what such a small model learns depends on roundings
}


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # matrices are tiny here
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    draw = random.Random(5)
    words = [word for group in KEYWORDS.values() for word in group]
    documents = [" ".join(f"{sentence(draw, draw.choice(words)).capitalize()}." for _ in range(6)) for _ in range(300)]
    (folder / "text.txt").write_text("\n".join(documents) + "\n")
    return prepare(
        folder / "text.txt",
        folder / "corpus",
        tokenizer=TokenizerConfig(kind="word", size=80, lowercase=True),
        document_per_line=True,
        validation=0.1,
        workers=1,
    ).path


@pytest.fixture(scope="session")
def recipe():
    return load_recipe("bert-tiny", SMALL)


@pytest.fixture(scope="session")
def causal_recipe():
    return load_recipe("gpt-tiny", {key.replace("encoder", "decoder"): value for key, value in SMALL.items()})


@pytest.fixture(scope="session")
def convolution_recipe():
    return load_recipe("conv-light-encoder-tiny", SMALL)


@pytest.fixture(scope="session")
def sequence_to_sequence_recipe():
    return shrink("bart-tiny")


@pytest.fixture(scope="session")
def run(corpus, recipe, tmp_path_factory):
    out = tmp_path_factory.mktemp("pretrained") / "run"
    return pretrain(recipe, corpus, out, budget=Budget(steps=20), device="cpu", progress=False)


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("labelled")
    for name, rows, seed in (("train", 240, 1), ("dev", 60, 2), ("test", 90, 3)):
        write_tsv(folder / f"{name}.tsv", labelled(rows, seed))
    return folder


@pytest.fixture(scope="session")
def task(files):
    paths = {name: files / f"{name}.tsv" for name in ("train", "dev", "test")}
    return ClassificationConfig(name="keywords", **paths, text_column="text", label_column="label")


@pytest.fixture(scope="session")
def quick():
    """Enough to learn what a keyword decides."""
    return FinetuneConfig(learning_rate=[3e-3], epochs=20, least_steps=0, patience=4)


@pytest.fixture(scope="session")
def fitted(recipe, task, quick, corpus, tmp_path_factory):
    """A fine-tuned run from scratch: its result."""
    from bakeoff.tasks.finetune import finetune

    out = tmp_path_factory.mktemp("fitted") / "run"
    return finetune(recipe, task, out, config=quick, tokenizer=corpus, device="cpu", progress=False)
