"""Several corpora as one: shares, order, and trainings that read them."""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import shrink, without_dropout
from tests.interrupting import interrupt_at

import bakeoff
from bakeoff.comparison.running.engine import Engine
from bakeoff.corpus.mixture import PERIOD, Interleaving, MixedText, Mixture, apportioned, open_corpus
from bakeoff.errors import Interrupted, UserError
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.preparation.prepare import prepare
from bakeoff.recipe_files import load_recipe
from bakeoff.tokenizer.hidden import HiddenText
from bakeoff.training.pretrain import pretrain
from bakeoff.training.stages import make_batches


def batches_on(corpus, name="gpt-tiny", seed=0, held_out=False, **changes):
    recipe, text = shrink(name, **changes), open_corpus(corpus)
    return make_batches(
        recipe, build_on_meta(recipe, text.tokenizer.size), text, seed, "validation" if held_out else "train"
    )


def rows_of(parts):
    return [tuple(row) for part in parts for row in part.row.ids.tolist()]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(0.001, 10), min_size=1, max_size=5), st.integers(0, 3 * PERIOD), st.integers(1, 2 * PERIOD))
def test_any_stretch_of_the_order_is_a_part_of_the_whole(weights, first, count):
    shares = [weight / sum(weights) for weight in weights]
    if min(round(share * PERIOD) for share in shares) < 1:
        return
    whole = Interleaving.of(shares, 5, 0, 5 * PERIOD)
    part = Interleaving.of(shares, 5, first, count)
    assert np.array_equal(part.corpora, whole.corpora[first : first + count])
    assert part.first == tuple(np.bincount(whole.corpora[:first], minlength=len(shares)))
    for period in range(5):
        own = np.bincount(whole.corpora[period * PERIOD : (period + 1) * PERIOD], minlength=len(shares))
        assert tuple(own) == apportioned(shares, PERIOD)
        assert np.abs(own - np.array(shares) * PERIOD).max() < 1
    assert not np.array_equal(Interleaving.of(shares, 6, 0, PERIOD).corpora, whole.corpora[:PERIOD]) or len(shares) == 1


def test_rows_are_those_of_the_corpora_in_their_shares(corpus, other, mixture):
    mixed = batches_on(mixture)
    seen = [set(rows_of(batches_on(part.path).fixed(10_000))) for part in (corpus, other)]
    rows = [row for step in range(100) for row in rows_of(mixed.step(step))]
    found = Counter(next(number for number, own in enumerate(seen) if row in own) for row in rows)
    assert sum(found.values()) == 800
    assert abs(found[1] - 240) < 5 * np.sqrt(800 * 0.21)
    every = Counter(rows_of(batches_on(other.path).fixed(10_000)))
    counts = Counter(row for row in rows if row in seen[1])
    epochs = found[1] / sum(every.values())
    for row, often in every.items():  # each as often as epochs have passed
        assert often * int(epochs) <= counts[row] <= often * (int(epochs) + 1)


@pytest.mark.parametrize("name", ["gpt-tiny", "bert-tiny", "t5-tiny", "bart-tiny", "elmo-tiny"])
def test_the_parts_of_a_batch_do_not_matter(name, mixture, corpus):
    found = []
    for micro_batch in (8, 3):
        recipe = without_dropout(shrink(name, **{"training.micro_batch": micro_batch}))
        torch.manual_seed(0)
        module = PretrainingModel(recipe, corpus.tokenizer.size).eval()
        parts = make_batches(recipe, module, open_corpus(mixture), 1).step(4)
        assert [len(part.row.ids) for part in parts] == ([8] if micro_batch == 8 else [3, 3, 2])
        losses = [module(part)[0] for part in parts]
        counts = {kind: sum(len(part.targets[kind][0]) for part in parts) for kind in losses[0]}
        found.append(({kind: sum(float(each[kind].detach()) for each in losses) for kind in counts}, counts))
        assert sum(part.tokens for part in parts) > 0
    assert found[0][1] == found[1][1]
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)


def test_a_second_stream_is_joined_too(mixture, corpus):
    rows = {"format": "segment_pair", "length": 32}
    recipe = without_dropout(shrink("xlnet-tiny", input=rows, objective=[{"kind": "mlm"}, {"kind": "permutation"}]))
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).eval()
    whole, parts = (
        make_batches(recipe.changed({"training.micro_batch": size}), module, open_corpus(mixture), 1).step(2)
        for size in (8, 1)
    )
    assert len(parts) == 8
    for kind in ("mlm", "permutation"):
        total = sum(float(module(part)[0][kind].detach()) for part in parts)
        assert float(module(whole[0])[0][kind].detach()) == pytest.approx(total, rel=1e-5)


def test_held_out_rows_are_of_each_corpus(corpus, other, mixture):
    parts = batches_on(mixture, held_out=True).fixed(20)
    own = [rows_of(batches_on(part.path, held_out=True).fixed(count)) for part, count in ((corpus, 14), (other, 6))]
    assert rows_of(parts) == own[0] + own[1]


def test_a_training_ends_with_the_same_bits_behind_an_interruption(mixture, tmp_path, monkeypatch):
    recipe = shrink("bert-tiny")
    whole = pretrain(recipe, mixture, tmp_path / "whole", progress=False)
    with monkeypatch.context() as patch:
        interrupt_at(patch, 5)
        with pytest.raises(Interrupted):
            pretrain(recipe, mixture, tmp_path / "again", progress=False)
    again = pretrain(recipe, mixture, tmp_path / "again", progress=False, resume=True)
    assert (whole.path / "model.safetensors").read_bytes() == (again.path / "model.safetensors").read_bytes()
    figures = bakeoff.evaluate(whole.path, corpus=mixture)
    last = json.loads((whole.path / "summary.json").read_text())["validation"]
    assert figures["loss"] == pytest.approx(last["loss"], rel=1e-5)
    assert figures["bits_per_byte"]["mlm"] > 0
    with pytest.raises(UserError, match=r"begun with corpus .*, not .*; --resume goes on"):
        pretrain(recipe, mixture.replace("0.7", "0.6"), tmp_path / "again", progress=False, resume=True)
    assert len(bakeoff.peek(recipe, mixture).rows) == 3


def test_a_comparison_knows_what_is_mixed(corpus, other, mixture):
    facts = Engine().corpus(Path(mixture), {"bert": load_recipe("bert-tiny")}, "cpu")
    assert facts.fingerprint == open_corpus(mixture).fingerprint
    assert facts.tokens == sum(len(part.train.tokens) for part in (corpus, other))
    assert facts.documents == sum(part.summary()["documents"] for part in (corpus, other))


def test_one_corpus_of_weight_1_is_itself_in_another_order(corpus):
    alone = Mixture([corpus], [3.0], "alone")
    assert alone.train.tokens_per_byte == pytest.approx(corpus.train.tokens_per_byte)
    assert alone.validation.unigram_entropy() == pytest.approx(corpus.validation.unigram_entropy())


def test_bytes_of_a_mixture_are_those_of_each_corpus_s_share_of_the_tokens(corpus, tmp_path):
    (tmp_path / "other.txt").write_text("Xylophones quiz zebras.\n" * 200, encoding="utf-8")  # many tokens a byte
    same = {"tokenizer": corpus.path / "tokenizer.json", "document_per_line": True, "workers": 0}
    other = prepare([tmp_path / "other.txt"], tmp_path / "other", validation=0.1, **same)
    mixed = Mixture([corpus, other], [3.0, 1.0], "mixed").train
    each = [split.tokens_per_byte for split in (corpus.train, other.train)]
    assert each[1] > 1.2 * each[0]
    tokens = 1000
    assert tokens / mixed.tokens_per_byte == pytest.approx(0.75 * tokens / each[0] + 0.25 * tokens / each[1])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{one}:0.7,{two}:0", "above 0"),
        ("{one}:0.7,{two}:x", "a positive number"),
        ("{one},{two}", "a positive number"),
        ("{one}:1,{two}:0.00001", "less than a row in 10,000"),
        ("{one}:2000,{two}:0.05", "less than a row in 10,000"),
        ("{one}:0.7,{two}x:0.3", "no such corpus"),
        ("{one}:0.7,{two}:0.3.1", "no number"),
        ("{one}:0.7,{third}:0.3", "prepared with another tokenizer than"),
    ],
)
def test_what_cannot_be_mixed_is_refused(text, message, corpus, other, text_folder, tmp_path):
    third = tmp_path / "third"
    if "third" in text:
        prepare([text_folder], third, document_per_line=True, workers=0)
    with pytest.raises(UserError, match=message):
        open_corpus(text.format(one=corpus.path, two=other.path, third=third))


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("transformer-xl-tiny", {}, "give a single corpus"),
        (
            "roberta-tiny",
            {"input": {"format": "doc_sentences", "length": 32}, "training.batch": {"tokens": 200}},
            "as a number of rows",
        ),
    ],
)
def test_rows_that_cannot_be_mixed_are_refused(name, changes, message, mixture):
    with pytest.raises(UserError, match=message):
        batches_on(mixture, name, **changes)


def test_what_one_corpus_has_not_counted_is_not_known_of_the_mixture():
    """Corpora of older versions did not count what their tokenizer hides."""
    counted, other = HiddenText(tokens=5, unknown=1), HiddenText(tokens=7, unknown=2, characters=9)
    for splits, expected in (
        ([counted, other], HiddenText(tokens=12, unknown=3, characters=9)),
        ([counted, None], None),
        ([None], None),
    ):
        text = MixedText([SimpleNamespace(hidden=each) for each in splits], [1 / len(splits)] * len(splits))
        assert text.hidden == expected
