"""Objectives that make a source and a target of a text: what was taken out comes back, in the published proportions."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import shrink

from bakeoff.errors import UserError
from bakeoff.formats.blocks import BlocksConfig
from bakeoff.objectives.denoising import DenoisingConfig
from bakeoff.objectives.prefix_lm import PrefixLanguageModelConfig
from bakeoff.objectives.span_corruption import SpanCorruptionConfig, cut
from bakeoff.randomness.draws import Draws
from bakeoff.recipe_files import load_recipe


def rewritten(corpus, config, length=48, seed=0):
    """Every row of the corpus, before and after: texts, sources and targets as lists without padding."""
    model = shrink("t5-tiny").model
    objective = config.build(model, corpus.tokenizer.size + config.extra_tokens)
    blocks = BlocksConfig(length=length, isolate=False).build(corpus.train, corpus.tokenizer, marks="none")
    indices = np.arange(blocks.size)
    draws = Draws(seed, np.zeros(len(indices), np.int64), indices)
    examples = blocks.examples(indices, draws)
    texts = [row[owner > 0].tolist() for row, owner in zip(examples.row.ids, examples.row.documents, strict=True)]
    targets = objective.targets(examples, corpus.train, corpus.tokenizer, draws)
    assert np.array_equal(targets.rows, np.flatnonzero(examples.row.documents > 0))
    written = np.full(examples.row.ids.size, -1)
    written[targets.rows] = targets.labels
    sources = [
        row[padding_mask].tolist()
        for row, padding_mask in zip(examples.row.source.ids, examples.row.source.padding_mask, strict=True)
    ]
    labels = [row[row >= 0].tolist() for row in written.reshape(examples.row.ids.shape)]
    for row, label in zip(examples.row.ids, labels, strict=True):  # the decoder reads what it has written
        assert row[: len(label)].tolist() == [corpus.tokenizer.start, *label[:-1]]
    return objective, texts, sources, labels


@pytest.mark.parametrize(("rate", "span"), [(0.15, 3.0), (0.5, 2.0), (0.9, 1.0), (0.02, 10.0)])
def test_span_corruption_can_be_undone(corpus, rate, span):
    config = SpanCorruptionConfig(rate=rate, span=span)
    _, texts, sources, labels = rewritten(corpus, config)
    first_mark, end = corpus.tokenizer.size, corpus.tokenizer.separator
    for text, source, label in zip(texts, sources, labels, strict=True):
        assert source[-1] == label[-1] == end
        spans, current = {}, None
        for token in label[:-1]:
            if token >= first_mark:
                assert token == first_mark + len(spans)  # marks rise, none twice
                current = spans[token] = []
            else:
                current.append(token)
        assert all(spans.values())
        restored = [part for token in source[:-1] for part in (spans.pop(token) if token >= first_mark else [token])]
        assert restored == text
        assert not spans


@pytest.mark.parametrize("kind", [SpanCorruptionConfig, DenoisingConfig, PrefixLanguageModelConfig])
def test_the_decoder_and_the_source_begin_with_what_is_asked_for(corpus, kind):
    """As BART's do; targets are the same, and each is predicted where what is before it has been read."""
    tokenizer, plain = corpus.tokenizer, kind()
    other = kind(decoder_begins=["separator", "start"], source_start=True)
    model = shrink("t5-tiny").model
    made = []
    for config in (plain, other):
        objective = config.build(model, tokenizer.size + config.extra_tokens)
        blocks = BlocksConfig(length=48, isolate=False).build(corpus.train, tokenizer, marks="none")
        indices = np.arange(blocks.size)
        draws = Draws(0, np.zeros(len(indices), np.int64), indices)
        examples = blocks.examples(indices, draws)
        made.append((examples, objective.targets(examples, corpus.train, tokenizer, draws), objective.lengths(48)))
    (before, expected, lengths), (after, found, longer) = made
    assert longer == (lengths[0] + 1, lengths[1] + 1)
    assert np.array_equal(found.labels, expected.labels)
    assert (after.row.ids[:, 0] == tokenizer.separator).all()
    assert np.array_equal(after.row.ids[:, 1:], before.row.ids)
    assert np.array_equal(after.row.ids.ravel()[found.rows], before.row.ids.ravel()[expected.rows])
    assert (after.row.source.ids[:, 0] == tokenizer.start).all()
    assert np.array_equal(after.row.source.ids[:, 1:], before.row.source.ids)
    assert after.row.source.padding_mask[:, 0].all()


def test_marks_that_the_tokenizer_has_not_are_refused(corpus):
    config = SpanCorruptionConfig(mark_names="<extra_id_{}>")
    with pytest.raises(UserError, match=r"the tokenizer has no <extra_id_0>"):
        rewritten(corpus, config)


def test_a_text_is_its_prefix_and_what_follows(corpus):
    _, texts, sources, labels = rewritten(corpus, PrefixLanguageModelConfig())
    cuts = []
    for text, source, label in zip(texts, sources, labels, strict=True):
        assert source[-1] == label[-1] == corpus.tokenizer.separator
        assert source[:-1] + label[:-1] == text
        assert len(source) > 1
        assert len(label) > 1
        cuts.append(len(source) - 1)
    full = np.array(cuts[:-1])  # the last row may be shorter
    assert full.mean() == pytest.approx(24, abs=5 * np.sqrt(48**2 / 12 / len(full)))
    assert np.unique(full).size > 30


def test_a_row_begins_with_what_stays_and_ends_with_what_goes(corpus):
    """As in T5's code; between the ends no place is preferred."""
    objective = SpanCorruptionConfig().build(shrink("t5-tiny").model, 200)
    count = 20_000
    draws = Draws(0, np.zeros(count, np.int64), np.arange(count))
    spans = objective.spans(np.full(count, 100), 100, draws)
    share = (spans >= 0).mean(0)
    assert share[0] == 0
    assert share[-1] == 1
    assert share.mean() == pytest.approx(0.15)
    assert share[20:80] == pytest.approx(share[20:80].mean(), abs=5 * np.sqrt(0.15 * 0.85 / count))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=8), st.integers(0, 1000))
def test_pieces_add_up(rows, seed):
    total = np.array([max(row) for row in rows])
    pieces = np.array([min(row) for row in rows])
    words = np.random.default_rng(seed).integers(0, 2**32, (len(rows), 40), dtype=np.uint32)
    lengths = cut(total, pieces, int(pieces.max()), words)
    assert np.array_equal(lengths.sum(1), total)
    assert np.array_equal((lengths > 0).sum(1), pieces)
    assert all((row[:count] > 0).all() for row, count in zip(lengths, pieces, strict=True))


def test_all_ways_to_cut_are_equally_likely():
    count = 30_000
    words = np.random.default_rng(0).integers(0, 2**32, (count, 5), dtype=np.uint32)
    lengths = cut(np.full(count, 5), np.full(count, 3), 3, words)
    ways, frequency = np.unique(lengths, axis=0, return_counts=True)
    assert len(ways) == 6  # two of four gaps
    assert frequency / count == pytest.approx(1 / 6, abs=5 * np.sqrt(5 / 36 / count))


@pytest.mark.parametrize("rate", [0.001, 0.3, 0.9])
@pytest.mark.parametrize("permute", [False, True])
def test_denoising_hides_tokens_of_whole_sentences_in_disorder(corpus, rate, permute):
    """The sentences come back into order, and what is in the source is the text but for what its masks stand for."""
    objective, texts, sources, labels = rewritten(corpus, DenoisingConfig(rate=rate, permute=permute), length=64)
    mask, end = corpus.tokenizer.mask, corpus.tokenizer.separator
    starts = set(corpus.train.sentences.tolist())
    moved = 0
    for text, places, order, source, label in zip(texts, *shuffles(corpus, objective), sources, labels, strict=True):
        assert label == [*text, end]
        assert source.pop() == end
        sentences = [[]]
        for here, place in enumerate(places):
            if place in starts and sentences[-1]:
                sentences.append([])
            sentences[-1].append(here)
        found = [order.index(sentence[0]) for sentence in sentences]
        for sentence, first in zip(sentences, found, strict=True):
            assert order[first : first + len(sentence)] == sentence
        moved += found != sorted(found)
        shuffled = [text[here] for here in (order if permute else range(len(text)))]
        rest = iter(shuffled)
        kept = [token for token in source if token != mask]
        assert all(token in rest for token in kept)  # in the same order
        assert len(text) - len(kept) == round(rate * len(text))
        if rate == 0.001:
            assert kept == shuffled
        for before, after in pairwise(source):  # what stands side by side there does so here, unless it was cut
            assert mask in (before, after) or (before, after) in set(pairwise(shuffled))
    assert moved > len(texts) / 2


def shuffles(corpus, objective):
    """Of each row of `rewritten` the places in the text, and the order of the row's places that was drawn."""
    blocks = BlocksConfig(length=64, isolate=False).build(corpus.train, corpus.tokenizer, marks="none")
    indices = np.arange(blocks.size)
    draws = Draws(0, np.zeros_like(indices), indices)
    examples = blocks.examples(indices, draws)
    padding_mask = examples.row.documents > 0
    orders = objective.order(examples.sources, padding_mask, corpus.train, draws)
    places = [row[own].tolist() for row, own in zip(examples.sources, padding_mask, strict=True)]
    return places, [row[: len(own)].tolist() for row, own in zip(orders, places, strict=True)]


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("bert-tiny", {"objective": [{"kind": "span_corruption"}]}, "give the model both 'encoder' and 'decoder'"),
        ("t5-tiny", {"objective": [{"kind": "mlm"}]}, "leaves the decoder without anything to write"),
        ("t5-tiny", {"objective": [{"kind": "clm"}]}, "leaves the encoder without anything to read"),
        ("t5-tiny", {"input.isolate": True}, "reads rows as one text; set input.isolate to false"),
        ("t5-tiny", {"objective": [{"kind": "span_corruption"}, {"kind": "denoising"}]}, "it stands alone"),
        ("t5-tiny", {"model.decoder.block.cross": None}, "a decoder after an encoder needs it"),
    ],
)
def test_what_makes_no_sense_is_refused(name, changes, reason):
    from bakeoff.learner.pretraining_model import build_on_meta

    with pytest.raises(UserError, match=reason):
        build_on_meta(load_recipe(name, changes), 100)


@pytest.mark.parametrize("config", [SpanCorruptionConfig(), DenoisingConfig(), PrefixLanguageModelConfig()])
def test_nothing_but_text_is_read_and_written(corpus, config):
    """No separator between documents, which would be hidden like a word, and written where the text does not end."""
    _, texts, sources, labels = rewritten(corpus, config)
    assert np.array_equal(np.concatenate(texts), corpus.train.tokens)
    assert len(corpus.train.documents) > 2
    for part in (*sources, *labels):
        assert part[-1] == corpus.tokenizer.separator
        assert corpus.tokenizer.separator not in part[:-1]


def test_the_first_and_the_last_mask_stand_for_nothing_equally_often(corpus):
    """Of masks with text on both sides, so that it is seen what is missing."""
    objective = DenoisingConfig().build(shrink("bart-tiny").model, 200)
    count, length, mask = 20_000, 60, 7
    text = np.broadcast_to(1000 + np.arange(length), (count, length))
    draws = Draws(0, np.zeros(count, np.int64), np.arange(count))
    source, padding_mask = objective.infill(text, np.full(count, length), mask, draws)
    missing = {"first": [], "last": []}
    for row, own in zip(source, padding_mask, strict=True):
        row = row[own]
        (masks,) = np.nonzero(row == mask)
        inside = masks[(masks > 0) & (masks < len(row) - 1)]
        alone = inside[(row[inside - 1] != mask) & (row[inside + 1] != mask)]
        if len(alone) >= 2:
            for name, place in (("first", alone[0]), ("last", alone[-1])):
                missing[name].append(row[place + 1] - row[place - 1] - 1)
    first, last = (np.array(missing[name]) for name in ("first", "last"))
    assert len(first) > count / 2
    share = (first == 0).mean()
    assert (last == 0).mean() == pytest.approx(share, abs=5 * np.sqrt(2 * share / len(first)))
    assert first.mean() == pytest.approx(last.mean(), abs=5 * np.sqrt(2 * first.var() / len(first)))
