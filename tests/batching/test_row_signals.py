"""Every signal of a row, whatever it is, arrives as it was made: the same for one that is declared tomorrow."""

from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.batching.batches import batches_of
from bakeoff.batching.rows import RowsWithTargets, joined, trim
from bakeoff.formats.example import Examples
from bakeoff.row import Queries, Row, Source, mapped, signals, turned

PAD = 99


def drawn(of, sizes, rows, rng):
    """Values of all signals of a class, with (rows, axes ...) shapes; none is a fill."""
    whole = {**sizes, "S": sizes["T"] + sizes["N"], "M": 2, "E": 3}
    return {
        name: rng.integers(1, 90, (rows, *(whole[letter] for letter in signal.axes))).astype(np.int64)
        for name, signal in signals(of).items()
    }


def made(sizes, rows, rng):
    row = Row(
        **drawn(Row, sizes, rows, rng),
        source=Source(**drawn(Source, {**sizes, "T": sizes["U"]}, rows, rng)),
        queries=Queries(**drawn(Queries, sizes, rows, rng)),
    )
    row = row._replace(padding_mask=None, vectors=None, wanted=None, documents=np.ones_like(row.ids))
    return RowsWithTargets(Examples(row, **drawn(Examples, sizes, rows, rng)), {})


def leaves(value, path=()):
    """The arrays within a row or examples, by the names that lead to them, with their layouts."""
    names = value._fields if isinstance(value, tuple) else [field.name for field in fields(value)]
    for name in names:
        inner = getattr(value, name)
        if isinstance(inner, np.ndarray | torch.Tensor):
            yield (*path, name), np.asarray(inner), signals(type(value))[name]
        elif isinstance(inner, tuple):
            yield from leaves(inner, (*path, name))


SIZES = st.fixed_dictionaries({"T": st.integers(1, 9), "N": st.integers(1, 4), "U": st.integers(1, 6)})


@given(SIZES, SIZES, st.integers(1, 3), st.integers(1, 3), st.integers(0, 99))
def test_rows_of_two_texts_keep_their_signals_where_they_are_joined(one, other, few, more, seed):
    rng = np.random.default_rng(seed)
    parts = [made(one, few, rng), made(other, more, rng)]
    order = rng.permutation(few + more)
    places = [np.sort(order[:few]), np.sort(order[few:])]
    whole = {path: (array, layout) for path, array, layout in leaves(joined(parts, places, PAD).examples)}
    most = {letter: max(one[letter], other[letter]) for letter in one}
    for part, own, sizes in zip(parts, places, (one, other), strict=True):
        for path, array, layout in leaves(part.examples):
            together, _ = whole[path]
            inside = dict(sizes, T=sizes["U"]) if "source" in path else sizes
            outside = dict(most, T=most["U"]) if "source" in path else most
            seen = np.zeros(together.shape[1:], bool)
            index = [
                np.r_[: inside["T"], outside["T"] : outside["T"] + inside["N"]]
                if letter == "S"
                else np.arange(inside[letter])
                for letter in layout.axes
            ]
            seen[np.ix_(*index) if index else ...] = True
            assert np.array_equal(together[own][:, seen].ravel(), array.reshape(len(array), -1).ravel()), path
            assert (together[own][:, ~seen] == (PAD if layout.fill is None else layout.fill)).all(), path


def test_rows_are_cut_to_their_longest_and_into_batches_with_all_their_signals():
    rows = made({"T": 9, "N": 2, "U": 3}, 4, np.random.default_rng(0))
    row = rows.examples.row
    rows.examples.row = row._replace(documents=(np.arange(9) < 5).astype(np.int64) * np.ones((4, 1), np.int64))
    before = {path: array for path, array, _ in leaves(rows.examples)}
    trim(rows.examples)
    for path, array, layout in leaves(rows.examples):
        cut = before[path][:, :8] if layout.axes == "T" and "source" not in path else before[path]
        assert np.array_equal(array, cut), path
    rows.examples.row = rows.examples.row._replace(queries=None)
    rows.examples.row.source.padding_mask[0] = 0
    for batch, some in zip(batches_of(rows, [(0, 1), (1, 4)], None), (slice(1), slice(1, 4)), strict=True):
        found = {path: array for path, array, _ in leaves(batch.row)}
        for path, array, _ in leaves(rows.examples.row):
            # The mask is made of the documents, and what all rows are alike is said of all at once.
            if path[-1] not in ("documents", "padding_mask", "causal"):
                assert np.array_equal(found[path], array[some]), path
        assert np.array_equal(found[("padding_mask",)], rows.examples.row.documents[some] > 0)


def test_a_row_that_is_turned_round_twice_is_the_row():
    row = mapped(made({"T": 5, "N": 1, "U": 2}, 3, np.random.default_rng(0)).examples.row, torch.from_numpy)
    row = row._replace(queries=None, source=None, wanted=torch.tensor([[0, 4], [1, 1], [3, 2]]))
    once = turned(row)
    assert once.wanted.tolist() == [[4, 0], [3, 3], [1, 2]]
    for path, array, layout in leaves(row):
        assert np.array_equal({each[0]: each[1] for each in leaves(turned(once))}[path], array), path
        if layout.axes == "T":
            assert np.array_equal({each[0]: each[1] for each in leaves(once)}[path], array[:, ::-1]), path


@pytest.mark.parametrize("of", [Row, Source, Queries, Examples])
def test_every_array_is_declared_with_its_layout(of):
    """A signal without one would be taken for a fact of the format, and lost where texts are mixed."""
    plain = {"source", "queries", "behind", "forwards", "spans", "row", "reuse", "measured"}
    names = of._fields if hasattr(of, "_fields") else [field.name for field in fields(of)]
    assert set(names) - set(signals(of)) <= plain
