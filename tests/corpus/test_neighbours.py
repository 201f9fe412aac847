"""Vectors of tokens by their neighbours, against counts in dictionaries and a dense decomposition."""

import math
from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.corpus import neighbours
from bakeoff.corpus.neighbours import neighbour_vectors

VOCABULARY = 7
DOCUMENTS = st.lists(st.lists(st.integers(0, VOCABULARY - 2), min_size=1, max_size=12), min_size=1, max_size=6)


def split(documents, pairs=False):
    """A split of documents; of pairs each document is one side, and two are a pair."""
    bounds = np.cumsum([0, *map(len, documents)])
    tokens = np.array([token for each in documents for token in each], np.uint16)
    return SimpleNamespace(tokens=tokens, documents=bounds[:: 2 if pairs else 1], sentences=bounds, pairs=pairs)


def cosines(vectors):
    """What no rotation changes."""
    return vectors.astype(float) @ vectors.astype(float).T


def by_dictionaries(texts, vocabulary, width, window):
    """The cosines of the vectors, by the definition."""
    follows = defaultdict(float)
    for documents, share in texts:
        for each in documents:
            for place, first in enumerate(each):
                for distance in range(1, min(window, len(each) - 1 - place) + 1):
                    follows[first, each[place + distance]] += share / sum(map(len, documents)) / distance
    information = np.zeros((vocabulary, 2 * vocabulary))
    for side in range(2):
        counts = {pair[::-1] if side else pair: count for pair, count in follows.items()}
        rows, contexts = defaultdict(float), defaultdict(float)
        for (first, second), count in counts.items():
            rows[first] += count
            contexts[second] += count
        smoothed = {token: count**0.75 for token, count in contexts.items()}
        for (first, second), count in counts.items():
            chance = rows[first] * smoothed[second] / sum(smoothed.values())
            information[first, side * vocabulary + second] = (
                math.log(count / chance) if count > chance * (1 + 1e-9) else 0.0
            )
    left, values, _ = np.linalg.svd(information, full_matrices=False)
    return information, (left * np.sqrt(values))[:, :width]


@given(documents=DOCUMENTS, window=st.integers(1, 4), chunk=st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_equals_dictionaries_in_chunks_of_any_size(documents, window, chunk):
    information, found = by_dictionaries([(documents, 1.0)], VOCABULARY, 99, window)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(neighbours, "_CHUNK", chunk)
        vectors = neighbour_vectors([(split(documents), 1.0)], VOCABULARY, 99, window, seed=0)
    assert vectors.shape == (VOCABULARY, 99)
    unknown = ~information.any(axis=1)
    assert not vectors[unknown].any()
    assert np.isfinite(vectors).all()
    known = found[~unknown]
    centred = known - known.mean(axis=0) if len(known) else known
    lengths = np.linalg.norm(centred, axis=1)
    assert np.linalg.norm(vectors[~unknown], axis=1) == pytest.approx(np.where(lengths > 1e-6, 1, lengths), abs=1e-3)
    if len(known) and lengths.min() > 1e-6:
        expected = centred / lengths[:, None]
        assert cosines(vectors[~unknown]) == pytest.approx(expected @ expected.T, abs=1e-5)


def text(seed, vocabulary, length=6000):
    """Tokens of which each is followed by one of two."""
    random = np.random.default_rng(seed)
    after = random.integers(0, vocabulary, (vocabulary, 2))
    tokens = [0]
    while len(tokens) < length:
        tokens.append(int(random.integers(vocabulary) if random.random() < 0.3 else random.choice(after[tokens[-1]])))
    return tokens


def test_of_a_large_vocabulary_the_largest_singular_values_are_kept(monkeypatch):
    tokens = text(0, 60)
    whole = neighbour_vectors([(split([tokens]), 1.0)], 60, 8, 2, seed=3)
    monkeypatch.setattr(neighbours, "_DENSE", 0)
    few = neighbour_vectors([(split([tokens]), 1.0)], 60, 8, 2, seed=3)
    monkeypatch.setattr(neighbours, "_ITERATIONS", 30)
    sharpened = neighbour_vectors([(split([tokens]), 1.0)], 60, 8, 2, seed=3)
    assert np.corrcoef(cosines(few).ravel(), cosines(whole).ravel())[0, 1] > 0.8
    assert np.corrcoef(cosines(sharpened).ravel(), cosines(whole).ravel())[0, 1] > 0.99


def test_tokens_that_the_text_lacks_change_nothing():
    tokens = text(4, 30)
    few = neighbour_vectors([(split([tokens]), 1.0)], 30, 8, 2, seed=0)
    among_many = neighbour_vectors([(split([tokens]), 1.0)], 4000, 8, 2, seed=0)
    assert cosines(among_many[:30]) == pytest.approx(cosines(few), abs=1e-5)
    assert not among_many[30:].any()


def test_a_seed_turns_the_vectors_and_no_cosine():
    texts = [(split([text(1, 30)]), 1.0)]
    one, again, other = (neighbour_vectors(texts, 30, 12, 2, seed) for seed in (0, 0, 1))
    assert (one == again).all()
    assert np.abs(one - other).max() > 0.1
    assert cosines(one) == pytest.approx(cosines(other), abs=1e-5)


def test_sides_of_a_pair_are_no_neighbours():
    sides = [[0, 1, 2, 0, 1], [3, 4, 5, 3, 4], [2, 0, 1, 2], [5, 3, 4, 5]]
    apart = neighbour_vectors([(split(sides, pairs=True), 1.0)], VOCABULARY, 6, 3, seed=0)
    assert cosines(apart) == pytest.approx(cosines(neighbour_vectors([(split(sides), 1.0)], VOCABULARY, 6, 3, seed=0)))


def test_texts_count_by_their_shares_and_not_by_their_lengths():
    one, other = text(2, 20, 3000), text(3, 20, 900)
    mixed = neighbour_vectors([(split([one]), 0.5), (split([other]), 0.5)], 20, 8, 2, seed=0)
    repeated = neighbour_vectors([(split([one]), 0.5), (split([other, other]), 0.5)], 20, 8, 2, seed=0)
    assert cosines(mixed) == pytest.approx(cosines(repeated), abs=1e-5)
    less = neighbour_vectors([(split([one]), 0.9), (split([other]), 0.1)], 20, 8, 2, seed=0)
    assert np.abs(cosines(mixed) - cosines(less)).max() > 0.05


def test_of_words_in_the_same_places_the_vectors_are_alike():
    """Cats and dogs, 1 and 2, stand where the other might stand; 7 and 8 elsewhere."""
    random = np.random.default_rng(0)
    sentences = []
    for _ in range(800):
        animal, thing = int(random.integers(1, 3)), int(random.integers(7, 9))
        sentences += [[3, animal, 4, int(random.integers(5, 7))], [9, thing, 10, int(random.integers(11, 13))]]
    near = cosines(neighbour_vectors([(split(sentences), 1.0)], 14, 8, 2, seed=0))
    assert near[1, 2] > 0.8
    assert near[7, 8] > 0.8
    assert near[1, 7] < 0.3
