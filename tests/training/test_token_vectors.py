"""A table of tokens that begins with vectors by what stands beside each token in the text."""

import numpy as np
import pytest
import torch
from tests.conftest import shrink
from tests.interrupting import interrupt_at
from tests.training.test_pretrain import train, weights

import bakeoff
from bakeoff.corpus.mixture import open_corpus
from bakeoff.corpus.neighbours import neighbour_vectors
from bakeoff.errors import Interrupted, UserError
from bakeoff.recipe_files import load_recipe
from bakeoff.training.initial_weights import Start

STEPS = {"training.budget": {"steps": 4}}
VECTORS = {"training.token_vectors": {"window": 3, "scale": 0.2}}
STILL = {"training.optimizer": {"kind": "sgd", "lr": 1e-30}, "training.budget": {"steps": 1}}


def table(run):
    return weights(run)["model.embedding.tokens.weight"]


@pytest.mark.parametrize("name", ["laptop-encoder-tiny", "albert-tiny", "gpt-tiny", "transformer-tiny"])
def test_the_table_begins_with_them_and_nothing_else_changes(name, corpus, tmp_path):
    recipe = shrink(name, **STILL)
    plain = train(recipe, corpus, tmp_path / "plain")
    begun = train(recipe.changed(VECTORS), corpus, tmp_path / "begun")
    one, other = table(plain), table(begun)
    width, vocabulary = one.shape[1], corpus.tokenizer.size
    found = neighbour_vectors([(corpus.train, 1.0)], vocabulary, width, 3, 0)
    known = torch.from_numpy(found.any(axis=1))
    assert 10 < known.sum() < len(one)  # no text has [MASK]
    assert other[:vocabulary][known].numpy() == pytest.approx(0.2 * width**0.5 * found[known.numpy()], abs=1e-5)
    assert float(other[:vocabulary][known].square().mean().sqrt()) == pytest.approx(0.2, rel=1e-3)
    known = torch.cat([known, torch.zeros(len(one) - vocabulary, dtype=torch.bool)])
    assert torch.equal(one[~known], other[~known])
    states = [weights(run) for run in (plain, begun)]
    different = {key for key in states[0] if not torch.allclose(states[0][key], states[1][key], atol=1e-12)}
    assert different == {"model.embedding.tokens.weight"}


def test_an_interrupted_training_goes_on_to_the_same_bits(corpus, tmp_path, monkeypatch):
    recipe = shrink("laptop-encoder-tiny", **STEPS, **VECTORS)
    whole = train(recipe, corpus, tmp_path / "whole")
    with monkeypatch.context() as patch:
        interrupt_at(patch, 2)
        with pytest.raises(Interrupted):
            train(recipe, corpus, tmp_path / "again", resume=True)
    again = train(recipe, corpus, tmp_path / "again", resume=True)
    assert (whole.path / "model.safetensors").read_bytes() == (again.path / "model.safetensors").read_bytes()


def test_weights_of_a_run_stay_what_they_are(corpus, tmp_path):
    first = train(shrink("laptop-encoder-tiny", **STEPS), corpus, tmp_path / "first")
    runs = [
        train(first.recipe.changed({**STILL, **more}), corpus, tmp_path / name, start=Start(run=first.path))
        for name, more in (("plain", {}), ("with", VECTORS))
    ]
    assert torch.equal(table(runs[0]), table(runs[1]))


def test_a_mixture_has_its_shares(corpus, tmp_path):
    recipe, mixed = shrink("laptop-encoder-tiny", **STILL, **VECTORS), f"{corpus.path}:0.7,{corpus.path}:0.3"
    run = bakeoff.pretrain(recipe, mixed, tmp_path / "mixed", progress=False)
    alone = train(recipe, corpus, tmp_path / "alone")
    one, other = (each / each.norm(dim=1, keepdim=True) for each in (table(run), table(alone)))
    known = torch.from_numpy(neighbour_vectors([(corpus.train, 1.0)], len(one), one.shape[1], 3, 0).any(axis=1))
    # The sign of a singular vector is rounding's, and no cosine is.
    np.testing.assert_allclose(one[known] @ one[known].T, other[known] @ other[known].T, atol=1e-4)
    assert len(open_corpus(mixed).shares) == 2


def test_what_takes_long_is_said_and_what_has_no_effect_too(corpus, tmp_path, capsys):
    recipe = shrink("laptop-encoder-tiny", **STEPS, **VECTORS)
    first = bakeoff.pretrain(recipe, corpus.path, tmp_path / "first", device="cpu")
    line = f"laptop-encoder-tiny: vectors of tokens by their neighbours in {len(corpus.train.tokens):,} tokens\n"
    assert line in capsys.readouterr().err
    bakeoff.pretrain(recipe, corpus.path, tmp_path / "second", device="cpu", start=Start(run=first.path))
    said = capsys.readouterr().err
    assert f"training.token_vectors has no effect: the table of tokens begins from {first.path}\n" in said
    assert "by their neighbours" not in said


@pytest.mark.parametrize("wrong", [{"window": 0}, {"scale": 0}, {"scale": 1e30}, {"width": 3}])
def test_what_makes_no_vectors_is_refused(wrong):
    with pytest.raises(UserError, match=r"training\.token_vectors"):
        load_recipe("laptop-encoder-tiny").changed({"training.token_vectors": wrong})
