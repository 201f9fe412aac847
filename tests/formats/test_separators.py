"""Texts that begin after a separator: documents, their sentences, rows of whole sentences; and what is counted then."""

import math

import numpy as np
import pytest
import torch
from tests.conftest import crossed, shrink
from tests.formats.test_cut_anew import rows_of
from tests.training.test_pretrain import train

import bakeoff
from bakeoff.corpus.mixture import open_corpus
from bakeoff.errors import UserError
from bakeoff.formats.blocks import BlocksConfig
from bakeoff.formats.cut_anew import Epoch, document_order
from bakeoff.formats.packed_sentences import DocSentencesConfig, FullSentencesConfig
from bakeoff.formats.stream import separated_texts
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.objectives.held_out import separators_of
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.training.stages import make_batches


def sentences_of(split):
    return [split.tokens[a:b].tolist() for a, b in zip(split.sentences[:-1], split.sentences[1:], strict=True)]


@pytest.mark.parametrize("share", [1.0, 0.4])
@pytest.mark.parametrize("epoch", [0, 3])
def test_every_sentence_begins_after_a_separator(corpus, share, epoch):
    """The stream of a loop: a separator before each sentence of the chosen documents, and before all documents."""
    split, separator = corpus.train, corpus.tokenizer.separator
    format = BlocksConfig(length=32, separate_sentences=share, cut_anew=True).build(
        split, corpus.tokenizer, "documents"
    )
    begins = set(separated_texts(split, share).tolist())
    assert set(split.documents.tolist()) <= begins <= set(split.sentences.tolist())
    chosen = [
        len(begins & set(range(a + 1, b))) > 0 for a, b in zip(split.documents[:-1], split.documents[1:], strict=True)
    ]
    assert all(chosen) if share == 1 else abs(np.mean(chosen) - share) < 0.25
    count = len(split.documents) - 1
    order = range(count) if epoch == 0 else document_order(count, Epoch(5, epoch))
    stream = []
    for document in order:
        for token in range(split.documents[document], split.documents[document + 1]):
            stream += [separator] * (token in begins) + [int(split.tokens[token])]
    begin = format.streams.of(Epoch(5, epoch)).begin
    stream = stream[begin:] + stream[:begin]
    found = rows_of(format, epoch)
    inside = found.row.documents > 0
    assert found.row.ids[inside].tolist() == stream
    assert found.following[inside].tolist() == [*stream[1:], separator]
    assert format.separators == len(begins) - 1 == stream.count(separator)
    starts = (found.row.ids == separator) & inside
    changed = np.diff(found.row.documents, axis=1, prepend=found.row.documents[:, :1]) == 1
    assert np.array_equal(starts[:, 1:], changed[:, 1:])  # each is read like a document by itself


@pytest.mark.parametrize("config", [FullSentencesConfig, DocSentencesConfig])
@pytest.mark.parametrize("epoch", [0, 2])
def test_a_causal_row_of_whole_sentences_begins_and_ends_with_a_separator(corpus, config, epoch):
    split, separator = corpus.train, corpus.tokenizer.separator
    format = config(length=32, cut_anew=True).build(split, corpus.tokenizer, "documents", None)
    found = rows_of(format, epoch)
    whole = sentences_of(split)
    read, predicted = [], 0
    for ids, following, owners in zip(found.row.ids, found.following, found.row.documents, strict=True):
        length = int((owners > 0).sum())
        assert ids[0] == separator
        assert following[: length - 1].tolist() == ids[1:length].tolist()
        assert following[length - 1] == separator
        predicted += int((following[:length] == separator).sum())
        read += [token for token in ids[:length].tolist() if token != separator]
        assert (ids[length:] == corpus.tokenizer.pad).all()
    if epoch == 0:
        assert read == [token for sentence in whole for token in sentence]
        assert predicted == format.separators
    starts = {tuple(sentence) for sentence in whole}
    assert all(any(tuple(ids[1 : 1 + n]) in starts for n in range(1, 32)) for ids in found.row.ids.tolist())
    assert format.tokens_per_example * format.size == pytest.approx(
        (found.row.documents > 0).sum(), rel=0.1 if epoch else 1e-9
    )


WAYS = {
    "documents": {},
    "sentences": {"input.separate_sentences": 1.0},
    "some sentences": {"input.separate_sentences": 0.5},
    "whole sentences": {"input": {"format": "full_sentences", "length": 32}},
    "within documents": {"input": {"format": "doc_sentences", "length": 32}},
}


@pytest.mark.parametrize("way", WAYS)
def test_losses_are_counted_over_what_is_predicted(way, corpus, tmp_path):
    """Bits per byte and perplexity per word by hand, from the loss of every target, the separators among them."""
    recipe = shrink("gpt-tiny", **{"training.budget": {"steps": 2}, "training.precision": "float32"}, **WAYS[way])
    run = train(recipe, corpus, tmp_path / "run")
    found = bakeoff.evaluate(run.path, corpus=corpus.path, device="cpu")
    module = run.load(torch.device("cpu")).eval()
    total, targets = 0.0, 0
    for batch in make_batches(recipe, module, corpus, 0, split="validation").whole():
        with torch.no_grad():
            total += float(module(batch)[0]["clm"])
        targets += len(batch.targets["clm"][1])
    split = corpus.validation
    texts = {"documents": split.documents, "sentences": split.sentences}.get(way)
    if texts is not None:
        assert targets == len(split.tokens) + len(texts) - 1
    assert found["targets"]["clm"] == targets
    assert found["losses"]["clm"] == pytest.approx(total / targets, rel=1e-5)
    assert found["bits_per_byte"]["clm"] == pytest.approx(total / math.log(2) / split.bytes, rel=1e-5)
    assert found["perplexity_per_word"]["clm"] == pytest.approx(math.exp(total / split.counts.words), rel=1e-4)
    assert found["separators"] == separators_of(recipe.input.model_dump())
    assert run.summary["validation"]["bits_per_byte"]["clm"] == pytest.approx(found["bits_per_byte"]["clm"], rel=0.05)


def test_bits_per_byte_of_a_mixture_count_its_separators(mixture):
    recipe, text = shrink("gpt-tiny", **WAYS["sentences"]), open_corpus(mixture)
    batches = make_batches(recipe, build_on_meta(recipe, text.tokenizer.size), text, 0, split="validation")
    each = [
        (len(part.validation.tokens) + len(part.validation.sentences) - 1) / part.validation.bytes
        for part in text.corpora
    ]
    expected = 1 / sum(share / tokens for share, tokens in zip(text.shares, each, strict=True))
    assert batches.targets_per_byte("clm") == pytest.approx(expected)


def test_separators_are_named_and_not_ranked_together():
    said = [separators_of(shrink("gpt-tiny", **way).input.model_dump()) for way in WAYS.values()]
    assert len(set(said)) == len(said)
    assert said[:2] == ["before each document", "before each sentence"]
    assert said[2] == "before each sentence of 50 % of the documents"


CAUSAL = [
    name
    for name in recipe_names()
    if load_recipe(name).objective[0].kind in ("clm", "mntp", "prefix_clm") and not load_recipe(name).input.continues
]


@pytest.mark.parametrize("name", crossed(CAUSAL, ("gpt-tiny", "gpt-bert-tiny", "prefix-lm-tiny", "tcn-tiny")))
@pytest.mark.parametrize("way", ["sentences", "whole sentences", "within documents"])
def test_every_causal_recipe_reads_them(name, way, corpus):
    """A gradient reaches all its weights, and no label stands at padding."""
    if load_recipe(name).input.context_tokens and way != "sentences":
        pytest.skip("rows of whole sentences have no context")
    recipe = shrink(name, **WAYS[way])
    torch.manual_seed(0)
    module = PretrainingModel(recipe, corpus.tokenizer.size).train()
    (batch, *_) = make_batches(recipe, module, corpus, 0).step(0)
    losses = module(batch)[0]
    sum(losses.values()).backward()
    assert all(torch.isfinite(loss) for loss in losses.values())
    owners = batch.row.owners
    for rows, _ in batch.targets.values():
        assert owners is None or bool((owners.flatten()[rows] > 0).all())


def test_what_has_no_separators_is_refused():
    with pytest.raises(UserError, match="separate_sentences: rows of span_corruption have no separators"):
        load_recipe("t5-tiny", {"input.separate_sentences": 0.5})
    with pytest.raises(UserError, match="separate_sentences: input should be less than or equal to 1"):
        load_recipe("gpt-tiny", {"input.separate_sentences": 2})
    with pytest.raises(UserError, match="unknown key 'separate_sentences'"):
        load_recipe("bert-tiny", {"input.separate_sentences": 1})
