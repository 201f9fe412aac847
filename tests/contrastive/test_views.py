"""Views are parts of their texts, unlike each other, and functions of seed, epoch and text alone."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.contrastive.config import ContrastConfig
from bakeoff.contrastive.texts import TokenTexts
from bakeoff.contrastive.views import SHORTEST, Views, same_texts
from bakeoff.errors import UserError

ROOM = 40


def texts_of_lengths(lengths):
    """Texts in which no token comes twice."""
    sizes = np.array(lengths, np.int64)
    return TokenTexts(np.arange(sizes.sum(), dtype=np.uint16), np.cumsum(sizes) - sizes, sizes)


def runs_of(view):
    """The view without gaps, as one stretch of following tokens."""
    return len(view) > 0 and (np.diff(view) == 1).all()


LENGTHS = st.lists(st.integers(1, 300), min_size=1, max_size=8)


@given(LENGTHS, st.integers(0, 1 << 30), st.integers(0, 5), st.integers(8, 200))
def test_crops_are_stretches_of_one_span_of_the_text(lengths, seed, epoch, span):
    texts, config = texts_of_lengths(lengths), ContrastConfig(deletion=0.0, span=span, crop=(0.2, 0.6))
    indices = np.arange(texts.count)
    sides = Views(config, ROOM)(texts, indices, np.full_like(indices, epoch), seed)
    for index, (one, other) in enumerate(zip(*sides, strict=True)):
        text, within = texts[index], min(span, lengths[index])
        for view in (one, other):
            assert runs_of(view)
            assert set(view.tolist()) <= set(text.tolist())
            if within > SHORTEST:
                share = (0.2 * within - 1, 0.6 * within + 1)
                assert len(view) == min(ROOM, max(SHORTEST, len(view)))
                assert min(share[0], ROOM) <= len(view) <= max(share[1], SHORTEST)
            else:
                assert len(view) == within
        assert max(one[-1], other[-1]) - min(one[0], other[0]) < span


def test_crops_that_are_cut_to_the_room_lie_anywhere_in_the_span():
    texts, config = texts_of_lengths([100] * 300), ContrastConfig(deletion=0.0, span=10 * ROOM, crop=(0.9, 1.0))
    indices = np.arange(300)
    first, _ = Views(config, ROOM)(texts, indices, np.zeros_like(indices), 1)
    begins = [int(view[0] - texts[index][0]) for index, view in enumerate(first)]
    last = min(100, 10 * ROOM) - ROOM
    assert max(begins) <= last
    assert np.mean(begins) == pytest.approx(last / 2, rel=0.15)


@given(LENGTHS, st.integers(0, 1 << 30))
def test_whole_views_are_the_beginning_of_the_text(lengths, seed):
    texts, config = texts_of_lengths(lengths), ContrastConfig(deletion=0.0, views="whole")
    indices = np.arange(texts.count)
    for side in Views(config, ROOM)(texts, indices, np.zeros_like(indices), seed):
        for index, view in enumerate(side):
            np.testing.assert_array_equal(view, texts[index][:ROOM])


def test_deletion_leaves_out_its_share_in_the_order_of_the_text():
    texts, config = texts_of_lengths([ROOM] * 400), ContrastConfig(deletion=0.3, views="whole")
    indices = np.arange(400)
    first, second = Views(config, ROOM)(texts, indices, np.zeros_like(indices), 1)
    for side in (first, second):
        assert all((np.diff(view) > 0).all() for view in side)
        assert np.mean([len(view) for view in side]) == pytest.approx(0.7 * ROOM, rel=0.02)
    assert sum(np.array_equal(*pair) for pair in zip(first, second, strict=True)) == 0
    gone = Views(ContrastConfig(deletion=0.999, views="whole"), ROOM)(texts, indices, np.zeros_like(indices), 1)
    assert min(len(view) for view in gone[0]) == 1


def test_views_depend_on_seed_epoch_and_text_and_not_on_their_batch():
    texts, views = texts_of_lengths([200] * 20), Views(ContrastConfig(deletion=0.1), ROOM)
    indices, epochs = np.arange(20), np.zeros(20, np.int64)
    whole = views(texts, indices, epochs, 5)
    part = views(texts, indices[[7, 3]], epochs[[7, 3]], 5)
    for side, expected in zip(part, whole, strict=True):
        np.testing.assert_array_equal(side[0], expected[7])
        np.testing.assert_array_equal(side[1], expected[3])
    assert len({view.tobytes() for side in whole for view in side}) == 40
    for other in (views(texts, indices, epochs + 1, 5), views(texts, indices, epochs, 6)):
        assert all(not np.array_equal(*pair) for pair in zip(other[0], whole[0], strict=True))


def test_repeated_texts_and_equal_views_are_the_same():
    a, b, c = (np.array(each) for each in ([1, 2], [3], [4, 5]))
    found = same_texts(np.array([0, 1, 0, 2]), [a, b, c, a], [b, c, a, c])
    #         text 0: views a b; text 1: views b c; text 0 again: views c a; text 2: views a c
    assert found.tolist() == [[True, True, True, True]] * 4
    apart = same_texts(np.array([0, 1]), [a, b], [a, c])
    assert apart.tolist() == [[True, False], [False, True]]


def test_shares_of_crops_that_are_none_are_refused():
    for crop in ((0.0, 0.5), (0.6, 0.4), (0.5, 1.2)):
        with pytest.raises(UserError, match="crop: give two shares of a text"):
            ContrastConfig.parse({"crop": crop}, "--option")
