from itertools import chain
from types import SimpleNamespace

import numpy as np
import pytest
from tests.conftest import shrink

from bakeoff.errors import UserError
from bakeoff.formats.blocks import BlocksConfig
from bakeoff.formats.pairs import SegmentPairConfig
from bakeoff.formats.relation import TwoSegments
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.objectives.clm import CausalLanguageModelConfig
from bakeoff.objectives.segment_relation import NextSentenceConfig, SentenceOrderConfig, SentenceStructureConfig
from bakeoff.preparation.prepare import prepare
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.training.row_use import row_use_of
from bakeoff.training.stages import make_batches


def draws_for(count, epoch=0):
    return Draws(0, np.full(count, epoch), np.arange(count))


def stream(corpus):
    """The text as the blocks see it: a separator before every document."""
    split, parts = corpus.train, []
    for start, stop in zip(split.documents[:-1], split.documents[1:], strict=True):
        parts += [corpus.tokenizer.separator, *split.tokens[start:stop].tolist()]
    return parts


def test_running_blocks_hold_the_whole_text_once_and_every_token_is_a_target(corpus):
    format = BlocksConfig(length=32).build(corpus.train, corpus.tokenizer, marks="documents")
    examples = format.examples(np.arange(format.size), draws_for(format.size))
    padding_mask = examples.row.documents > 0
    text = stream(corpus)
    assert examples.row.ids[padding_mask].tolist() == text
    assert examples.following[padding_mask].tolist() == [*text[1:], corpus.tokenizer.separator]
    assert padding_mask[:-1].all()
    assert format.tokens_per_example * format.size == padding_mask.sum()


@pytest.mark.parametrize("context", [1, 12, 31])
def test_what_is_only_read_was_a_target_in_the_row_before(corpus, context):
    format = BlocksConfig(length=32, context=context).build(corpus.train, corpus.tokenizer, marks="documents")
    indices = np.arange(format.size)
    examples = format.examples(indices, draws_for(format.size))
    padding_mask = examples.row.documents > 0
    assert np.array_equal(examples.row.ids[1:, :context], examples.row.ids[:-1, -context:])
    objective = CausalLanguageModelConfig().build(shrink("gpt-tiny").model, corpus.tokenizer.size)
    targets = objective.targets(examples, corpus.train, corpus.tokenizer, draws_for(format.size))
    text = stream(corpus)
    assert targets.labels.tolist() == [*text[1:], corpus.tokenizer.separator]  # each token once
    places = targets.rows % 32
    assert (places[targets.rows >= 32] >= context).all()
    assert format.tokens_per_example * format.size == padding_mask.sum()


def test_blocks_tell_documents_apart(corpus):
    format = BlocksConfig(length=32).build(corpus.train, corpus.tokenizer, marks="documents")
    examples = format.examples(np.arange(format.size), draws_for(format.size))
    begins = (examples.row.ids == corpus.tokenizer.separator) & (examples.row.documents > 0)
    begins[:, 0] = False
    changes = np.diff(examples.row.documents, axis=1, prepend=examples.row.documents[:, :1]) == 1
    assert np.array_equal(begins, changes)
    joined = BlocksConfig(length=32, isolate=False).build(corpus.train, corpus.tokenizer, marks="documents")
    assert set(np.unique(joined.examples(np.arange(joined.size), draws_for(joined.size)).row.documents)) <= {0, 1}


def test_wrapped_blocks_stand_between_start_and_separator(corpus):
    format = BlocksConfig(length=32).build(corpus.train, corpus.tokenizer, marks="ends")
    examples = format.examples(np.arange(format.size), draws_for(format.size))
    assert (examples.row.ids[:, 0] == corpus.tokenizer.start).all()
    last = (examples.row.documents > 0).sum(1) - 1
    assert (examples.row.ids[np.arange(format.size), last] == corpus.tokenizer.separator).all()
    inner = [row[1:end].tolist() for row, end in zip(examples.row.ids, last, strict=True)]
    assert list(chain.from_iterable(inner)) == stream(corpus)
    ordinary = examples.sources >= 0
    assert np.array_equal(corpus.train.tokens[examples.sources[ordinary]], examples.row.ids[ordinary])


RELATIONS = {
    "nsp": NextSentenceConfig(),
    "sop": SentenceOrderConfig(),
    "sentence_structure": SentenceStructureConfig(),
}


def pairs(corpus, relation, epoch=0, length=32):
    objective = RELATIONS[relation].build(shrink("bert-tiny").model, corpus.tokenizer.size)
    format = SegmentPairConfig(length=length).build(corpus.train, corpus.tokenizer, False, objective)
    return format, format.examples(np.arange(format.size), draws_for(format.size, epoch))


def segment_sources(examples):
    """Of each row the places in the text of its first and of its second segment."""
    for sources, segments in zip(examples.sources, examples.row.segments, strict=True):
        yield sources[(segments == 0) & (sources >= 0)], sources[(segments == 1) & (sources >= 0)]


@pytest.mark.parametrize("relation", list(RELATIONS))
def test_pairs_are_laid_out_as_published(corpus, relation):
    _, examples = pairs(corpus, relation)
    for ids, documents, sources, segments in zip(
        examples.row.ids, examples.row.documents, examples.sources, examples.row.segments, strict=True
    ):
        padding_mask = int((documents > 0).sum())
        assert ids[0] == corpus.tokenizer.start
        separators = np.flatnonzero(ids == corpus.tokenizer.separator)
        assert len(separators) == 2
        assert separators[1] == padding_mask - 1
        assert (ids[padding_mask:] == corpus.tokenizer.pad).all()
        assert (segments[: separators[0] + 1] == 0).all()
        assert (segments[separators[0] + 1 : padding_mask] == 1).all()
        assert sorted(np.flatnonzero(sources[:padding_mask] < 0)) == [0, *separators]


def test_a_negative_never_comes_from_another_stretch_of_its_own_document(tmp_path):
    for letter in "abcde":  # of one letter each, so that a segment tells its document
        lines = [" ".join(letter * (2 + (i + j) % 5) for j in range(6)) + ". " + letter * 4 + "." for i in range(80)]
        (tmp_path / f"{letter}.txt").write_text("\n\n".join(lines), encoding="utf-8")
    tokenizer = TokenizerConfig(kind="character", size=30)
    corpus = prepare(tmp_path, tmp_path / "corpus", tokenizer=tokenizer, validation=0.1)
    assert len(corpus.train.documents) - 1 > 5  # cut into stretches
    for split in (corpus.train, corpus.validation):
        objective = NextSentenceConfig().build(shrink("bert-tiny").model, corpus.tokenizer.size)
        format = SegmentPairConfig(length=96).build(split, corpus.tokenizer, False, objective)
        labels = []
        for epoch in range(10):
            examples = format.examples(np.arange(format.size), draws_for(format.size, epoch))
            for label, segments in zip(examples.relation, segment_sources(examples), strict=True):
                first, second = (
                    set(corpus.tokenizer.decode(split.tokens[s].tolist())) & set("abcde") for s in segments
                )
                assert len(first) == len(second) == 1
                assert (first != second) == (label == 1)
                labels.append(label)
        assert np.mean(labels) == pytest.approx(0.5, abs=5 * np.sqrt(0.25 / len(labels)))


def test_the_length_does_not_tell_whether_a_sentence_follows(corpus):
    lengths = {0: [], 1: []}
    for epoch in range(40):
        _, examples = pairs(corpus, "nsp", epoch, length=64)
        for label, length in zip(examples.relation, (examples.row.documents > 0).sum(1), strict=True):
            lengths[int(label)].append(length)
    means = {label: np.mean(own) for label, own in lengths.items()}
    assert means[1] == pytest.approx(means[0], abs=1.0)


@pytest.mark.parametrize(
    "objective", [NextSentenceConfig(), SentenceStructureConfig()], ids=["nsp", "sentence_structure"]
)
def test_no_segment_is_longer_where_it_follows_than_a_replacement_could_be(objective):
    """Other documents are far shorter than the long second segments of this one, which are cut like replacements."""
    sentences = np.arange(0, 402, 2)  # of two tokens each
    documents = np.array([0, 300, *range(306, 402, 6)])  # a long document, and some of three sentences
    split = SimpleNamespace(sentences=sentences, documents=documents, originals=np.arange(len(documents) - 1))
    starts = np.arange(0, 240, 2).repeat(4)
    goals = np.tile([2, 6, 20, 40], 120)
    pairs = TwoSegments(starts, np.full(480, 10), starts + 10, goals)
    found, labels = objective.build(shrink("bert-tiny").model, 120).arrange(pairs, split, 60, draws_for(480))
    assert set(labels) == set(range(len(objective.classes)))
    both = found.first_length + found.second_length
    assert (both == 10 + np.minimum(goals, 6)).all()


def test_pairs_are_cut_anew_in_each_epoch(corpus):
    format, first = pairs(corpus, "sop", epoch=0, length=64)
    _, second = pairs(corpus, "sop", epoch=1, length=64)
    assert not np.array_equal(first.row.ids, second.row.ids)
    assert format.tokens_per_example == pytest.approx((first.row.documents > 0).sum(1).mean())


def test_next_sentence_prediction_refuses_a_single_document(tmp_path):
    text = "\n\n".join(f"One sentence number {i} here. And another one follows it." for i in range(400))
    (tmp_path / "one.txt").write_text(text, encoding="utf-8")
    corpus = prepare(tmp_path / "one.txt", tmp_path / "corpus", tokenizer=TokenizerConfig(size=120), validation=0.2)
    objective = NextSentenceConfig().build(shrink("bert-tiny").model, corpus.tokenizer.size)
    format = SegmentPairConfig(length=32).build(corpus.train, corpus.tokenizer, False, objective)
    with pytest.raises(UserError, match="nsp takes text from other documents"):
        format.examples(np.arange(4), draws_for(4))


def test_full_rows_are_cut_where_a_sentence_starts_else_a_word(corpus):
    format = SegmentPairConfig(length=24).build(corpus.train, corpus.tokenizer, "ends", None)
    examples = format.examples(np.arange(format.size), draws_for(format.size))
    assert examples.relation is None
    assert (examples.row.documents > 0).sum(1).max() == 24
    starts = corpus.train.sentences
    for first, second in segment_sources(examples):
        inside = ((starts > first[0]) & (starts <= second[-1])).any()
        assert (second[0] in starts) if inside else corpus.train.starts_word(second[:1])[0]


@pytest.mark.parametrize(
    ("rows", "kinds"),
    [
        ({"format": "segment_pair", "length": 24}, ["mlm"]),
        ({"format": "segment_pair", "length": 24}, ["mlm", "sop"]),
        ({"format": "sentence_pair", "length": 32}, ["mlm"]),
        ({"format": "full_sentences", "length": 24}, ["mlm"]),
        ({"format": "blocks", "length": 24, "isolate": True}, ["mlm"]),
    ],
)
def test_how_much_of_the_text_is_read_is_known(corpus, rows, kinds):
    recipe = shrink("bert-tiny", input=rows, objective=[{"kind": kind} for kind in kinds])
    module = PretrainingModel(recipe, corpus.tokenizer.size)
    batches = make_batches(recipe, module, corpus, seed=0)
    indices = np.arange(batches.texts[0].format.size)
    sources = batches.texts[0].format.examples(indices, Draws(0, np.zeros_like(indices), indices)).sources
    read = len(np.unique(sources[sources >= 0])) / len(corpus.train.tokens)
    assert row_use_of(recipe, module, corpus, 0, held_out=False).read == read
    assert (read < 0.95) == (rows["format"] == "sentence_pair" or kinds == ["mlm", "sop"])


def test_text_of_the_only_other_document_is_cut_to_half_where_it_fits_nowhere():
    """And the pairs that stay are cut alike, so that their length tells nothing."""
    lengths = np.array([4, 9, 5, 8, 6, 7] * 10)
    sentences = np.cumsum([0, *lengths, 300])  # the second document is one long sentence
    split = SimpleNamespace(sentences=sentences, documents=sentences[[0, -2, -1]], originals=np.array([0, 1]))
    pairs = TwoSegments(sentences[:59], lengths[:59], sentences[1:60], lengths[1:])
    objective = NextSentenceConfig().build(shrink("bert-tiny").model, 120)
    found, labels = objective.arrange(pairs, split, 20, draws_for(59))
    assert set(labels) == {0, 1}
    assert ((found.second >= split.documents[1]) == (labels == 1)).all()
    assert (found.second_length == (pairs.second_length + 1) // 2).all()
    alone = SimpleNamespace(sentences=sentences[:-1], documents=split.documents[:2], originals=np.array([0]))
    with pytest.raises(UserError, match="is a single one"):
        objective.arrange(pairs, alone, 20, draws_for(59))
