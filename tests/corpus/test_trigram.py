"""The trigram model against one that is counted with dictionaries, and on texts whose loss is known."""

import math
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.corpus import trigram
from bakeoff.corpus.trigram import trigram_loss

VOCABULARY = 5
DOCUMENTS = st.lists(st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=9), min_size=1, max_size=6)


def split(documents):
    tokens = np.array([token for each in documents for token in each], np.uint16)
    return SimpleNamespace(tokens=tokens, documents=np.cumsum([0, *map(len, documents)]))


def stream(documents):
    return [VOCABULARY, VOCABULARY, *(token for each in documents for token in [*each, VOCABULARY])]


def distributions(documents):
    """The probability of each token after two others, from dictionaries, by the definition."""
    words = stream(documents)
    counts = {3: Counter(zip(words, words[1:], words[2:], strict=False))}
    for order in (2, 1):
        counts[order] = Counter(ngram[1:] for ngram in counts[order + 1])
    symbols = VOCABULARY + 1

    def discount(order):
        once, twice = (sum(value == number for value in counts[order].values()) for number in (1, 2))
        return once / (once + 2 * twice) if once and twice else 0.5

    def probability(context, word):
        order = len(context) + 1
        lower = probability(context[1:], word) if context else 1 / symbols
        after = {ngram[-1]: value for ngram, value in counts[order].items() if ngram[:-1] == context}
        total = sum(after.values())
        if not total:
            return lower
        return max(after.get(word, 0) - discount(order), 0) / total + discount(order) * len(after) / total * lower

    return probability


@given(train=DOCUMENTS, held_out=DOCUMENTS)
def test_equals_dictionaries_whose_probabilities_sum_to_one(train, held_out):
    probability = distributions(train)
    words = stream(held_out)
    losses = []
    for first, second, third in zip(words, words[1:], words[2:], strict=False):
        assert sum(probability((first, second), word) for word in range(VOCABULARY + 1)) == pytest.approx(1)
        losses.append(-math.log(probability((first, second), third)))
    assert trigram_loss(split(train), split(held_out), VOCABULARY) == pytest.approx(np.mean(losses))


def test_a_text_that_two_tokens_decide_costs_nothing_and_chance_costs_its_entropy():
    rng = np.random.default_rng(0)
    steady = split([[0, 1, 2, 3] * 500])
    assert trigram_loss(steady, steady, VOCABULARY) < 0.01
    chance = [split([rng.integers(4, size=20_000)]) for _ in range(2)]
    assert trigram_loss(*chance, VOCABULARY) == pytest.approx(math.log(4), abs=0.01)


def test_only_so_much_of_a_long_text_is_counted(monkeypatch):
    monkeypatch.setattr(trigram, "MOST_TOKENS", 7)
    held_out = split([[1, 2, 3]])
    whole = split([[0, 1, 2], [1, 2, 3, 4, 4, 4, 0]])
    assert trigram_loss(whole, held_out, VOCABULARY) != trigram_loss(split([[0, 1, 2]]), held_out, VOCABULARY)
    monkeypatch.setattr(trigram, "MOST_TOKENS", 3)
    assert trigram_loss(whole, held_out, VOCABULARY) == trigram_loss(split([[0, 1, 2]]), held_out, VOCABULARY)


def test_a_loss_is_counted_once_for_all_processes(corpus, other, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(trigram, "KEPT_FROM", 1)
    counts, exact = [], trigram.trigram_loss
    monkeypatch.setattr(trigram, "trigram_loss", lambda *of: counts.append(of) or exact(*of))

    def in_another_process(corpus):
        monkeypatch.setattr(trigram, "_KEPT", {})
        return trigram.trigram_bits(corpus)

    first = in_another_process(corpus)
    assert [in_another_process(corpus), trigram.trigram_bits(corpus), len(counts)] == [first, first, 1]
    assert in_another_process(other) != first
    assert len(counts) == 2
    for file in (tmp_path / "bakeoff" / "trigrams").iterdir():
        file.write_bytes(b'{"loss": nothing')
    assert (in_another_process(corpus), len(counts)) == (first, 3)
    monkeypatch.setattr(trigram, "MOST_TOKENS", 100)
    assert in_another_process(corpus) != first
    monkeypatch.setattr(trigram, "KEPT_FROM", 1 << 60)
    in_another_process(corpus)
    assert len(counts) == 5
