"""BART's masking, deletion and rotation, and T5's deshuffling: what is hidden, and how often each place and order."""

import numpy as np
import pytest
from scipy import stats
from tests.conftest import shrink
from tests.objectives.test_rewriting import rewritten

from bakeoff.errors import UserError
from bakeoff.formats.example import Examples
from bakeoff.objectives.denoising import DenoisingConfig
from bakeoff.objectives.deshuffling import DeshufflingConfig
from bakeoff.randomness.draws import Draws
from bakeoff.recipe_files import load_recipe
from bakeoff.row import Row

CHANCE = 1e-6
COUNT = 30_000


def sources_of(config, tokenizer, length, padding_mask=None):
    """(COUNT, U) sources of rows of the numbers 1000, 1001, ..., -1 after their ends."""
    padding_mask = np.full(COUNT, length) if padding_mask is None else padding_mask
    inside = np.arange(length) < padding_mask[:, None]
    text = np.where(inside, 1000 + np.arange(length), tokenizer.pad)
    examples = Examples(Row(text, documents=inside.astype(np.int32)), np.where(inside, np.arange(length), -1))
    objective = config.build(shrink("bart-tiny").model, 200)
    objective.targets(examples, None, tokenizer, Draws(0, np.zeros(COUNT, np.int64), np.arange(COUNT)))
    return np.where(examples.row.source.padding_mask, examples.row.source.ids, -1), objective


def unpermuted(**options):
    return DenoisingConfig(permute=False, **options)


def rotations(source, text):
    """Whether a source is the text begun at any of its tokens."""
    return any(source == text[k:] + text[:k] for k in range(len(text)))


@pytest.mark.parametrize("rate", [0.001, 0.15, 0.3, 0.9])
def test_masking_puts_one_mask_in_the_place_of_each_hidden_token(corpus, rate):
    objective, texts, sources, labels = rewritten(corpus, unpermuted(noise="masking", rate=rate))
    mask, end = corpus.tokenizer.mask, corpus.tokenizer.separator
    for text, source, label in zip(texts, sources, labels, strict=True):
        assert label == [*text, end]
        assert len(source) == len(text) + 1
        assert source.pop() == end
        assert all(read in (token, mask) for read, token in zip(source, text, strict=True))
        assert source.count(mask) == round(rate * len(text))
    assert objective.lengths(48) == (49, 49)


@pytest.mark.parametrize("rate", [0.001, 0.15, 0.3, 0.9])
def test_deletion_leaves_nothing_in_the_place_of_a_token(corpus, rate):
    objective, texts, sources, labels = rewritten(corpus, unpermuted(noise="deletion", rate=rate))
    for text, source, label in zip(texts, sources, labels, strict=True):
        assert label == [*text, corpus.tokenizer.separator]
        assert source.pop() == corpus.tokenizer.separator
        assert len(source) == len(text) - round(rate * len(text))
        rest = iter(text)
        assert all(token in rest for token in source)  # in the same order
    assert objective.lengths(48) == (48 - round(rate * 48) + 1, 49)


@pytest.mark.parametrize("noise", ["none", "masking", "deletion", "infilling"])
def test_rotation_begins_the_source_at_any_of_its_tokens(corpus, noise):
    """What is rotated is what the noise has left, so that no span reaches over the text's end to its beginning."""
    _, texts, still, _ = rewritten(corpus, unpermuted(noise=noise, rotate=noise == "none"))
    _, _, sources, labels = rewritten(corpus, unpermuted(noise=noise, rotate=True))
    moved = 0
    for text, before, source, label in zip(texts, still, sources, labels, strict=True):
        assert label == [*text, corpus.tokenizer.separator]
        assert source.pop() == before.pop() == corpus.tokenizer.separator
        assert rotations(source, text if noise == "none" else before)
        moved += source != (text if noise == "none" else before)
    assert moved > 0.9 * len(texts)


def test_masking_hides_whole_sentences_in_disorder_too(corpus):
    """With permutation the masked text is the one that permutation alone gives."""
    _, _, plain, _ = rewritten(corpus, DenoisingConfig(noise="none"))
    _, texts, sources, _ = rewritten(corpus, DenoisingConfig(noise="masking"))
    mask = corpus.tokenizer.mask
    for one, other in zip(plain, sources, strict=True):
        assert all(read in (token, mask) for read, token in zip(other, one, strict=True))
    assert sum(one[:-1] != text for one, text in zip(plain, texts, strict=True)) > len(texts) / 2
    assert all(sorted(one[:-1]) == sorted(text) for one, text in zip(plain, texts, strict=True))


@pytest.mark.parametrize("noise", ["masking", "deletion"])
def test_every_place_is_hidden_equally_often_and_pairs_of_places_too(corpus, noise):
    length, hidden = 10, 3
    source, _ = sources_of(unpermuted(noise=noise), corpus.tokenizer, length)
    places = (source[:, :, None] == 1000 + np.arange(length)).any(1)  # (N, L) what is still there
    assert ((~places).sum(1) == hidden).all()
    together = (~places).astype(int).T @ (~places).astype(int)
    pairs = together[np.triu_indices(length, 1)]  # each has 3 of 10 times 2 of 9
    deviation = np.sqrt(COUNT * (1 / 15) * (14 / 15))
    assert np.abs(pairs - COUNT / 15).max() <= 5 * deviation
    assert np.abs(np.diag(together) - 0.3 * COUNT).max() <= 5 * np.sqrt(COUNT * 0.3 * 0.7)


def test_every_token_begins_a_rotated_row_equally_often(corpus):
    padding_mask = np.where(np.arange(COUNT) % 2 == 0, 7, 12)  # rows of padding after their text too
    source, _ = sources_of(unpermuted(noise="none", rotate=True), corpus.tokenizer, 12, padding_mask)
    for length in (7, 12):
        own = source[padding_mask == length]
        assert np.array_equal(own[:, :length], 1000 + (own[:, :1] - 1000 + np.arange(length)) % length)
        assert (own[:, length] == corpus.tokenizer.separator).all()
        assert (own[:, length + 1 :] == -1).all()
        assert stats.chisquare(np.bincount(own[:, 0] - 1000, minlength=length)).pvalue > CHANCE


def test_every_order_of_deshuffled_tokens_is_equally_likely(corpus):
    source, objective = sources_of(DeshufflingConfig(), corpus.tokenizer, 4)
    assert (source[:, 4] == corpus.tokenizer.separator).all()
    orders, counts = np.unique(source[:, :4], axis=0, return_counts=True)
    assert len(orders) == 24
    assert np.array_equal(np.sort(orders, 1), np.broadcast_to(1000 + np.arange(4), orders.shape))
    assert stats.chisquare(counts).pvalue > CHANCE
    assert objective.lengths(4) == (5, 5)


def test_deshuffling_moves_all_tokens_and_takes_none(corpus):
    _, texts, sources, labels = rewritten(corpus, DeshufflingConfig())
    end = corpus.tokenizer.separator
    for text, source, label in zip(texts, sources, labels, strict=True):
        assert label == [*text, end]
        assert source.pop() == end
        assert sorted(source) == sorted(text)
    assert sum(source != text for source, text in zip(sources, texts, strict=True)) > 0.9 * len(texts)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"noise": "none", "permute": False}, "the source is the target; set one"),
        ({"rotate": True}, "rotate: of sentences in disorder it would but cut one in two; set permute to false"),
        ({"noise": "none", "rate": 0.2}, r"rate: 0\.2 of the tokens cannot be hidden where noise is none"),
        ({"noise": "masking", "span": 2.0}, "span: noise masking hides single tokens or none; leave it out"),
        ({"noise": "deletion", "span": 2.0}, "span: noise deletion hides single tokens or none; leave it out"),
        ({"noise": "swapping"}, "infilling"),
    ],
)
def test_what_changes_nothing_is_refused(options, reason):
    with pytest.raises(UserError, match=reason):
        load_recipe("bart-tiny", {"objective": [{"kind": "denoising", **options}]})


@pytest.mark.parametrize(
    "options",
    [
        {"noise": "masking"},
        {"noise": "deletion", "permute": True},
        {"noise": "none", "permute": False, "rotate": True},
        {"noise": "infilling", "permute": False, "rotate": True},
    ],
)
def test_a_recipe_is_read_back_as_it_was_written(options):
    recipe = load_recipe("bart-tiny", {f"objective.0.{key}": value for key, value in options.items()})
    assert type(recipe).parse(recipe.model_dump(mode="json"), "again") == recipe
