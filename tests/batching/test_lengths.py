"""Padding and order by length, against what they mean for each row by itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.batching.by_length import shuffled_batches, sorted_batches
from bakeoff.lengths import by_length, padded, padded_length

ROWS = st.lists(st.lists(st.integers(1, 50), max_size=9), min_size=1, max_size=6)
LENGTHS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=12)


@given(ROWS, st.integers(1, 4), st.booleans())
def test_a_row_is_what_the_mask_leaves_of_its_padded_row(rows, step, before):
    ids, padding_mask = padded(rows, 99, step=step, before=before)
    longest = max(map(len, rows))
    assert ids.shape == (len(rows), -(-longest // step) * step)
    assert (padding_mask is None) == all(len(row) == ids.shape[1] for row in rows)
    for number, row in enumerate(rows):
        own = ids[number].tolist()
        kept = own if padding_mask is None else ids[number][padding_mask[number]].tolist()
        fill = [99] * (len(own) - len(row))
        assert kept == row
        assert own == ([*fill, *row] if before else [*row, *fill])


def test_no_row_is_padded_beyond_the_most():
    ids, padding_mask = padded([[1, 2, 3], [4]], 0, step=8, most=5)
    assert ids.tolist() == [[1, 2, 3, 0, 0], [4, 0, 0, 0, 0]]
    assert padding_mask.sum(1).tolist() == [3, 1]


@given(LENGTHS, st.booleans())
def test_rows_come_in_the_order_of_their_lengths_and_equal_ones_in_their_own(pairs, longest_first):
    first, second = (np.array(each, np.int64) for each in zip(*pairs, strict=True))
    sign = -1 if longest_first else 1
    expected = sorted(range(len(pairs)), key=lambda row: (sign * pairs[row][0], sign * pairs[row][1], row))
    assert by_length(first, second, longest_first=longest_first).tolist() == expected


@pytest.mark.parametrize(("lengths", "step", "expected"), [([3, 4], 4, 4), ([5], 4, 8), ([], 4, 4), ([0], 1, 1)])
def test_a_padded_length_holds_every_row(lengths, step, expected):
    assert padded_length(np.array(lengths, np.int64), step) == expected


@given(st.lists(st.integers(0, 30), min_size=1, max_size=40), st.integers(1, 60), st.integers(1, 7), st.integers(0, 3))
def test_every_row_is_in_one_batch(lengths, tokens, rows, epoch):
    own = np.array(lengths, np.int64)
    for batches in (sorted_batches(own, tokens, rows), shuffled_batches(own, rows, 5, epoch)):
        assert sorted(np.concatenate(batches).tolist()) == list(range(len(own)))
        assert all(1 <= len(batch) <= rows for batch in batches)
    for batch in sorted_batches(own, tokens):
        assert len(batch) == 1 or len(batch) * own[batch].max() <= tokens
