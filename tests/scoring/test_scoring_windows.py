import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.untrained_runs import untrained

from bakeoff.scoring.methods import readings
from bakeoff.scoring.texts import scorer_of
from bakeoff.scoring.token_scores import ScoredText
from bakeoff.scoring.windows import windows_around, windows_behind

ROOMS = st.integers(1, 40).flatmap(lambda room: st.tuples(st.just(room), st.none() | st.integers(1, room)))
"""A row's places, and a stride."""


def scored(windows):
    return [place for window in windows for place in range(window.scored, window.until)]


@given(st.integers(0, 200), ROOMS, st.data())
def test_looking_back_every_place_is_scored_once_with_all_but_a_stride_before_it(length, sizes, data):
    room, stride = sizes
    first = data.draw(st.integers(0, length))
    windows = list(windows_behind(length, room, first, stride))
    stride = stride or max(1, room // 2)
    assert scored(windows) == list(range(first, length))
    for window in windows:
        assert 0 <= window.begin <= window.scored < window.until == window.end
        assert window.end - window.begin <= room
        assert window.begin == 0 or window.scored - window.begin >= room - stride
    assert len(windows) <= 1 + max(0, length - first - 1) // stride


@given(st.integers(0, 200), ROOMS)
def test_looking_around_every_place_is_scored_once_with_half_of_all_but_a_stride_on_either_side(length, sizes):
    room, stride = sizes
    windows = list(windows_around(length, room, stride))
    stride = stride or max(1, room // 2)
    assert scored(windows) == list(range(length))
    for window in windows:
        assert 0 <= window.begin <= window.scored < window.until <= window.end <= length
        assert window.end - window.begin == min(room, length)
        assert window.begin == 0 or window.scored - window.begin >= (room - stride) // 2
        assert window.end == length or window.end - window.until >= (room - stride) // 2
    assert len(windows) <= 1 + -(-max(0, length - room) // stride)


@pytest.mark.parametrize("reading", ["pseudo", "pseudo_words"])
@pytest.mark.parametrize("name", ["bert-tiny", "xlnet-tiny", "gpt-bert-tiny"])
def test_each_window_of_a_long_text_is_scored_like_a_text_of_its_own(name, reading, corpus, tmp_path):
    """Also where words go on after the window's end, whose special tokens are never hidden with them."""
    changes = {"input.length": 16} | ({"input.reuse": 4} if name == "xlnet-tiny" else {})
    run = untrained(name, corpus, tmp_path / "run", **changes)
    ids = np.random.default_rng(0).integers(7, corpus.tokenizer.size, 50)
    starts = np.arange(50) % 11 == 0
    scorer = scorer_of(run, readings(run)[reading], False, "cpu", reading == "pseudo_words", stride=5)
    (whole,) = scorer.score([ScoredText(ids, starts=starts)])
    windows = list(windows_around(50, scorer.rows.room, 5))
    assert len(windows) > 5
    for window in windows:
        own = slice(window.begin, window.end)
        (alone,) = scorer.score([ScoredText(ids[own], starts=starts[own])])
        expected = alone.log_probabilities[window.scored - window.begin : window.until - window.begin]
        assert whole.log_probabilities[window.scored : window.until] == pytest.approx(expected, abs=1e-4)
