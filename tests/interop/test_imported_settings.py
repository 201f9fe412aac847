"""Settings of a published model that its outputs do not show: dropout, masking, rows beyond its vocabulary."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import bakeoff
from tests.interop import test_decoder_families as decoders
from tests.interop import test_encoders as encoders
from tests.interop import test_modernbert as modernbert
from tests.interop.decoder_models import saved as saved_decoder

transformers = pytest.importorskip("transformers")

OF_HEADS = ("classifier", "summary", "qa", "seq_classif")
"""The first words of the dropout rates of heads for tasks, which are no part of a pre-trained model."""


@pytest.fixture(autouse=True)
def _no_bars():
    transformers.utils.logging.disable_progress_bar()


def write(folder: Path, name: str) -> None:
    """A random model of a family, as transformers saves it."""
    if name in encoders.MODELS:
        encoders.saved(folder, name)
    elif name == "modernbert":
        modernbert.saved(folder, "as published")
    else:
        saved_decoder(folder, *decoders.MODELS[name]())


def leaves(tree: Any) -> Iterator[Any]:
    """All values of a tree of dictionaries and lists."""
    if isinstance(tree, dict | list):
        for each in tree.values() if isinstance(tree, dict) else tree:
            yield from leaves(each)
    else:
        yield tree


@pytest.mark.parametrize(
    "name",
    ["bert", "roberta", "albert", "distilbert", "electra", "modernbert", "gpt2", "openai-gpt", "bart", "t5", "xlnet"],
)
def test_every_rate_of_dropout_is_read_and_written(name, tmp_path):
    write(tmp_path / "theirs", name)
    path = tmp_path / "theirs/config.json"
    config = json.loads(path.read_text())
    rates = [key for key, value in config.items() if "drop" in key and type(value) in (int, float)]
    rates = [key for key in rates if "layerdrop" not in key and not key.startswith(OF_HEADS)]
    given = {key: round(0.0123 * (3 + number), 5) for number, key in enumerate(rates)}
    assert given
    path.write_text(json.dumps(config | given))
    run = bakeoff.import_model(tmp_path / "theirs", tmp_path / "run", head=False)
    assert set(given.values()) <= set(leaves(run.recipe.model.model_dump(mode="json")))
    done = bakeoff.export(run.path, tmp_path / "again")
    again = json.loads((done.path / "config.json").read_text())
    assert {key: again.get(key) for key in given} == given


@pytest.mark.parametrize("name", ["bert", "roberta", "albert", "distilbert", "electra", "gpt2", "openai-gpt", "bart"])
def test_rows_are_as_long_as_the_positions_allow(name, tmp_path):
    """RoBERTa's tables have two rows before the first position; BART's encoder reads `<s>` and `</s>` beside a row."""
    write(tmp_path / "theirs", name)
    config = json.loads((tmp_path / "theirs/config.json").read_text())
    positions = config["n_positions" if "gpt" in name else "max_position_embeddings"]
    assert positions < 512
    run = bakeoff.import_model(tmp_path / "theirs", tmp_path / "run", head=False)
    assert run.recipe.input.length == positions - (2 if name in ("roberta", "bart") else 0)
    assert run.recipe.model.embedding.length == positions - (2 if name == "roberta" else 0)


def test_an_electra_goes_on_with_electras_masking(tmp_path):
    """85 % of the chosen tokens are [MASK] and 15 % stay (the published code), where BERT has 80, 10 and 10."""
    write(tmp_path / "theirs", "electra")
    run = bakeoff.import_model(tmp_path / "theirs", tmp_path / "run", head=False)
    masked, detected = run.recipe.objective
    assert (masked.kind, masked.rate, masked.mask, masked.random) == ("mlm", 0.15, 0.85, 0.0)
    assert (detected.kind, detected.weight) == ("rtd", 50.0)


def test_rows_for_special_tokens_that_a_model_lacks_are_the_mean_of_its_others(tmp_path):
    write(tmp_path / "theirs", "gpt2")
    theirs = load_file(tmp_path / "theirs/model.safetensors")["transformer.wte.weight"]
    run = bakeoff.import_model(tmp_path / "theirs", tmp_path / "run")
    ours = run.load().model.embedding.tokens.weight.detach()
    assert len(ours) > len(theirs)
    assert torch.equal(ours[: len(theirs)], theirs)
    mean = theirs.double().mean(0).to(theirs.dtype)
    assert torch.equal(ours[len(theirs) :], mean.expand(len(ours) - len(theirs), -1))
