import itertools

import numpy as np
import pytest
from tests.conftest import shrink

from bakeoff.errors import UserError
from bakeoff.formats.example import Examples
from bakeoff.objectives.mlm import MaskedLanguageModelConfig
from bakeoff.randomness.draws import Draws
from bakeoff.row import Row

ROWS, LENGTH = 2000, 64


def draw(corpus, seed=0, epoch=0, **options):
    """Masks over rows of ordinary tokens with a special token at both ends; ids before and after, targets."""
    config = MaskedLanguageModelConfig(**options)
    objective = config.build(shrink("bert-tiny").model, corpus.tokenizer.size)
    generator = np.random.default_rng(0)
    starts = generator.integers(0, len(corpus.train.tokens) - LENGTH, ROWS)
    sources = starts[:, None] + np.arange(LENGTH)
    sources[:, [0, -1]] = -1
    ids = np.where(sources >= 0, corpus.train.tokens[np.maximum(sources, 0)], corpus.tokenizer.start).astype(np.int64)
    before = ids.copy()
    examples = Examples(Row(ids, documents=np.ones_like(ids, np.int32)), sources=sources)
    draws = Draws(seed, np.full(ROWS, epoch), np.arange(ROWS))
    targets = objective.targets(examples, corpus.train, corpus.tokenizer, draws)
    chosen = np.zeros(ids.size, bool)
    chosen[targets.rows] = True
    return before, examples.row.ids, chosen.reshape(ids.shape), targets, sources


def test_the_replacements_are_adjustable(corpus):
    before, after, chosen, _, _ = draw(corpus, mask=0.0, random=1.0)
    assert not (after == corpus.tokenizer.mask).any()
    assert (after[chosen] != before[chosen]).mean() > 0.95
    assert not np.isin(after[chosen], corpus.tokenizer.special_ids).any()
    with pytest.raises(UserError, match="more than 1"):
        MaskedLanguageModelConfig(mask=0.9, random=0.2)


def test_words_are_hidden_whole(corpus):
    _, _, chosen, _, sources = draw(corpus, whole_word=True)
    starts = corpus.train.starts_word(np.maximum(sources, 0))
    continues = ~starts[:, 2:-1] & (sources[:, 2:-1] >= 0)  # a token that belongs to the word of the one before
    assert continues.any()
    assert np.array_equal(chosen[:, 2:-1][continues], chosen[:, 1:-2][continues])


def test_dynamic_masks_differ_between_epochs_and_static_ones_do_not(corpus):
    first, second = (draw(corpus, epoch=epoch)[2] for epoch in (0, 1))
    assert not np.array_equal(first, second)
    first, second = (draw(corpus, epoch=epoch, masking="static") for epoch in (0, 1))
    assert np.array_equal(first[2], second[2])
    assert np.array_equal(first[1], second[1])
    masks = [draw(corpus, epoch=epoch, masking="static", copies=3)[2] for epoch in range(6)]
    for earlier, later in itertools.combinations(range(6), 2):
        assert np.array_equal(masks[earlier], masks[later]) == ((later - earlier) % 3 == 0)
    with pytest.raises(UserError, match="copies: 3 are of static masks"):
        MaskedLanguageModelConfig(copies=3)


def test_a_row_of_one_token_still_has_a_target(corpus):
    for options in ({}, {"ngram": 3}):
        objective = MaskedLanguageModelConfig(**options).build(shrink("bert-tiny").model, corpus.tokenizer.size)
        sources = np.array([[-1, 5, -1], [-1, -1, -1]])
        chosen = objective.choice.choose(sources, corpus.train, Draws(0, np.zeros(2, np.int64), np.arange(2)))
        assert chosen.tolist() == [[False, True, False], [False, False, False]]


def test_what_the_tokenizer_does_not_know_is_never_chosen(corpus):
    objective = MaskedLanguageModelConfig(rate=0.9).build(shrink("bert-tiny").model, corpus.tokenizer.size)
    ids = np.full((50, 20), 30)
    ids[:, ::2] = corpus.tokenizer.unknown
    examples = Examples(Row(ids, documents=np.ones_like(ids, np.int32)), sources=np.tile(np.arange(20), (50, 1)))
    draws = Draws(0, np.zeros(50, np.int64), np.arange(50))
    targets = objective.targets(examples, corpus.train, corpus.tokenizer, draws)
    assert (targets.rows % 2 == 1).all()
    assert (targets.labels == 30).all()
