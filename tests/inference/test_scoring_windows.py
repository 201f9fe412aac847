from hypothesis import given
from hypothesis import strategies as st

from bakeoff.inference.windows import windows_around, windows_behind

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
