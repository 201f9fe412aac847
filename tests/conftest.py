"""Text, corpora and recipes that many tests use; all of it is made here, nothing is downloaded."""

import gc
import os
from itertools import count

import pytest
from hypothesis import HealthCheck, settings

from bakeoff.conformance.corpora import corpus, parallel_corpus, text_folder
from bakeoff.conformance.narrow import SMALL, without_dropout
from bakeoff.conformance.texts import digit_pairs, sentences
from bakeoff.preparation.prepare import prepare
from bakeoff.recipe_files import load_recipe

__all__ = ["SMALL", "corpus", "digit_pairs", "parallel_corpus", "sentences", "text_folder", "without_dropout"]

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")  # a machine that is busy with other work is no fault


def pytest_addoption(parser):
    parser.addoption("--device", default="cpu", help="the device of the tests that are marked `device`")
    parser.addoption("--most-seconds", type=float, default=600.0, help="the time after which these are left out")


gc.disable()  # until all files are imported: nearly all that is made meanwhile stays
TESTS_DONE = count(1)


def pytest_collection_finish():
    keep_what_stays()
    gc.enable()


def pytest_runtest_logfinish():
    if next(TESTS_DONE) % 25 == 1:  # what the first ones have imported
        keep_what_stays()


def keep_what_stays():
    """Garbage is looked for among new objects alone, else every training would look at millions that are imported."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def no_waiting_for_the_disk():
    """Nothing cuts the power of a test: what is written need not be on the disk, which takes milliseconds a file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # which refuses what fsync refuses
        yield


@pytest.fixture(scope="session")
def other(corpus, tmp_path_factory):
    """Another corpus with the same tokenizer."""
    folder = tmp_path_factory.mktemp("other")
    made = sentences(400, seed=9)
    lines = [" ".join(made[start : start + 8]) for start in range(0, len(made), 8)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokenizer = corpus.path / "tokenizer.json"
    return prepare([folder], folder / "corpus", tokenizer=tokenizer, document_per_line=True, workers=0, validation=0.1)


@pytest.fixture(scope="session")
def mixture(corpus, other):
    """Both in one, as a training names it."""
    return f"{corpus.path}:0.7,{other.path}:0.3"


SIZES = {"width": 32, "heads": 2, "layers": 2, "window": 8, "units": 40}
"""What `shrink` makes of a recipe's numbers, wherever they stand in the model; smaller ones stay."""


PLAIN = {"training.optimizer": {"kind": "adamw", "lr": 1e-3}}
"""An optimizer whose rate another length leaves as it is, and which keeps two numbers for each weight."""


def crossed(names, quick):
    """Names as parameters of a test: those of `quick` in every run, the others in the long crossings."""
    return [pytest.param(name, marks=[] if name in quick else pytest.mark.slow) for name in names]


def gathered_of(module, batch, state=None):
    """The (N, D) rows of hidden states and the (N,) labels of each objective, and the state after the batch."""
    return module(batch, state, lambda head, rows, labels, table: (rows, labels))


def shrink(name, **changes):
    """A registered recipe with its own shape of parts, but 32 wide, two layers, and quick to train."""
    values = load_recipe(name).model_dump(mode="json")
    values["model"] = _shrunk(values["model"])
    for side in ("encoder", "decoder"):
        if (stack := values["model"][side]) is not None:
            stack["block"] = _first_and_last(stack["block"])
    for objective in values["objective"]:
        if objective.get("cutoffs"):
            objective["cutoffs"] = [40, 100]
    if values["model"]["embedding"]["width"] is not None:
        values["model"]["embedding"]["width"] = 16
    if "context" in values["input"]:
        values["input"]["context"] = min(values["input"]["context"], 8)
    if "reuse" in values["input"]:
        values["input"]["reuse"] = min(values["input"]["reuse"], 12)
    recipe = type(load_recipe(name)).parse({**values, "name": name}, name)
    return recipe.changed(SMALL | changes)


def _shrunk(node):
    if isinstance(node, list):
        return [_shrunk(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: min(value, SIZES[key]) if key in SIZES and isinstance(value, int) else _shrunk(value)
        for key, value in node.items()
    }


def _first_and_last(block):
    """Of a list of blocks two, each for one layer."""
    alone = {"repeat": 1, "at": None}
    return [{**block[0], **alone}, {**block[-1], **alone}] if isinstance(block, list) else block
