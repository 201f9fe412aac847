from hypothesis import given
from hypothesis import strategies as st

from bakeoff.inference.windows import windows_around, windows_behind


def scored(windows):
    return [place for window in windows for place in range(window.scored, window.until)]


@given(st.integers(0, 200), st.integers(1, 40), st.data())
def test_looking_back_every_place_is_scored_once_with_half_a_row_before_it(length, room, data):
    first = data.draw(st.integers(0, length))
    windows = list(windows_behind(length, room, first))
    assert scored(windows) == list(range(first, length))
    for window in windows:
        assert 0 <= window.begin <= window.scored < window.until == window.end
        assert window.end - window.begin <= room
        assert window.begin == 0 or window.scored - window.begin >= room // 2
    assert len(windows) <= 1 + max(0, length - first - 1) // max(1, room // 2)


@given(st.integers(0, 200), st.integers(1, 40))
def test_looking_around_every_place_is_scored_once_with_a_quarter_of_a_row_on_either_side(length, room):
    windows = list(windows_around(length, room))
    assert scored(windows) == list(range(length))
    for window in windows:
        assert 0 <= window.begin <= window.scored < window.until <= window.end <= length
        assert window.end - window.begin == min(room, length)
        assert window.begin == 0 or window.scored - window.begin >= room // 4
        assert window.end == length or window.end - window.until >= room // 4
    assert len(windows) <= 1 + -(-max(0, length - room) // max(1, room // 2))
