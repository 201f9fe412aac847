"""The answer without a model, against every stretch of the context."""

from hypothesis import given
from hypothesis import strategies as st

from bakeoff.tasks.baselines.overlap import NEAR, overlapping_answer

WORDS = st.lists(st.sampled_from("abcdefghijklmnop"), min_size=1, max_size=16, unique=True)
"""Each of which stands once, so that a stretch tells its place."""


@given(st.lists(st.sampled_from("abcdefgh"), max_size=4), WORDS, st.integers(1, 4))
def test_it_is_the_first_of_the_best_stretches(question, context, words):
    length = min(words, len(context))

    def value(first):
        last = first + length - 1
        around = [place for place, word in enumerate(context) if word in question and not first <= place <= last]
        distances = [first - place if place < first else place - last for place in around]
        asked = sum(word in question for word in context[first : last + 1])
        return -asked, round(sum(1 / distance for distance in distances if distance <= NEAR), 9)

    best = max(range(len(context) - length + 1), key=value)
    found = overlapping_answer(" ".join(question), " ".join(context), words)
    assert found == " ".join(context[best : best + length])
