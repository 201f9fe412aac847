"""Totals of scores against their definition, over any texts, hidden characters among them."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.scoring.texts import TextScore
from bakeoff.scoring.totals import Totals
from bakeoff.tokenizer.hidden import MOST_HIDDEN, HiddenText

WORDS = st.lists(st.sampled_from(["river", "é", "字字", "a\u3000b", "x"]), max_size=6)


@st.composite
def scores(draw, last_words):
    """The score of a text, some of whose characters no token stands for."""
    text = " ".join(draw(WORDS))
    places = [place for place, character in enumerate(text) if not character.isspace()]
    lost = draw(st.sampled_from([0, 0, 1, len(places)]))
    hidden = "".join(text[place] for place in places[:lost])
    tokens = draw(st.integers(1, 9)) if places else 0
    if lost == len(places):
        tokens = draw(st.sampled_from([0, tokens]))  # signs that a tokenizer leaves out have none
    unknown = tokens if lost == len(places) else min(lost, tokens - 1)
    counts = HiddenText(
        tokens=tokens, unknown=unknown, characters=len(places), hidden=len(hidden), hidden_bytes=len(hidden.encode())
    )
    value = None if tokens and unknown == tokens else -draw(st.floats(0.1, 50)) * tokens
    likeliest = draw(st.booleans()) if last_words and tokens else None
    return TextScore(text, value, tokens, unknown, counts, likeliest if value is not None else likeliest and False)


def totals_of(every, last_words):
    totals = Totals(last_words)
    for score in every:
        totals.add(score)
    return totals.figures()


@settings(max_examples=150, deadline=None)
@given(every=st.lists(scores(False), max_size=8), plain=st.integers(0, 3))
def test_totals_of_texts_are_sums_and_their_ratios(every, plain):
    text = "river " * 60  # of which one hidden character is less than the share that may be hidden
    of_plain = HiddenText(tokens=60, characters=300)
    every = [*every, *[TextScore(text.strip(), -99.0, 60, 0, of_plain, None)] * plain]
    found, scored = totals_of(every, False), [each for each in every if each.log_probability is not None]
    total = math.fsum(each.log_probability for each in scored)
    tokens, words = sum(each.tokens for each in scored), sum(len(each.text.split()) for each in scored)
    characters = sum(len("".join(each.text.split())) for each in every)
    lost = sum(each.hidden.hidden for each in every)
    size = sum(len(each.text.encode()) for each in scored)
    seen = size - sum(each.hidden.hidden_bytes for each in scored)
    assert found["texts"] == len(every)
    assert found["blank"] == sum(not each.text for each in every)
    assert found["no_number"] == len(every) - len(scored)
    assert (found["tokens"], found["words"], found["bytes"]) == (tokens, words, size)
    assert found["unknown"] == sum(each.unknown for each in scored)
    assert found["hidden_characters"] == lost
    if every and not scored:
        assert found["log_probability"] is None
    else:
        assert found["log_probability"] == pytest.approx(total)
    for name, count in (("perplexity", tokens), ("word_perplexity", words)):
        assert found[name] == (pytest.approx(math.exp(min(-total / count, 700))) if count else None)
    if seen and lost <= MOST_HIDDEN * characters:
        assert found["bits_per_byte"] == pytest.approx(-total / math.log(2) / seen)
    else:
        assert found["bits_per_byte"] is None
    assert "accuracy" not in found


@settings(max_examples=60, deadline=None)
@given(every=st.lists(scores(True), max_size=8))
def test_a_last_word_without_a_number_is_asked_for_and_never_right(every):
    found, scored = totals_of(every, True), [each for each in every if each.log_probability is not None]
    asked, right = sum(each.tokens > 0 for each in every), sum(each.likeliest is True for each in scored)
    assert found["words"] == sum(each.tokens > 0 for each in scored)
    assert found["accuracy"] == (pytest.approx(right / asked) if asked else None)
    assert found["no_number"] == len(every) - len(scored)
    words = found["words"]
    total = math.fsum(each.log_probability for each in scored)
    assert found["word_perplexity"] == (pytest.approx(math.exp(min(-total / words, 700))) if words else None)
    assert not {"perplexity", "bits_per_byte", "bytes"} & found.keys()


def test_bits_are_those_of_the_bytes_that_tokens_stand_for():
    """One character of 2 bytes in 200 is hidden: its bytes had no chance to cost anything."""
    hidden = HiddenText(tokens=100, unknown=1, characters=200, hidden=1, hidden_bytes=2)
    text = "é" * 2 + "a" * 198
    found = totals_of([TextScore(text, -200 * math.log(2), 100, 1, hidden, None)], False)
    assert found["bytes"] == 202
    assert found["bits_per_byte"] == pytest.approx(1.0)


def test_texts_of_unknown_tokens_alone_have_no_sum():
    """Nor is 0, the best log-probability, the sum of any of them; no text at all has the sum 0."""
    hidden = HiddenText(tokens=1, unknown=1, characters=2, hidden=2, hidden_bytes=4)
    unknown = TextScore("éé", None, 1, 1, hidden, None)
    for every in ([unknown], [unknown] * 3):
        found = totals_of(every, False)
        assert (found["log_probability"], found["perplexity"], found["bits_per_byte"]) == (None, None, None)
        assert found["hidden_characters"] == 2 * len(every)
    assert totals_of([], False)["log_probability"] == 0.0
    last = totals_of([unknown._replace(likeliest=False)], True)
    assert (last["accuracy"], last["words"]) == (0.0, 0)
