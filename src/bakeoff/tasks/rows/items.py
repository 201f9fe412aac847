"""Examples as rows of token ids, in the units that stand in a batch together.

Shapes: N examples, R rows of token ids, I items, B rows of a batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bakeoff.tasks.rows.inputs import EncodedRows


@dataclass(frozen=True)
class Items:
    """Examples as rows of token ids, in the units that stand in a batch together.

    An item has one row, or several that are compared with each other; an example has one item, or several windows.
    """

    encoded: EncodedRows
    """(R,) the rows of the items; those of an item stand one after the other."""
    bounds: NDArray[np.int64]
    """(I + 1,) the bounds of items: item i has the rows from bounds[i] up to bounds[i + 1]."""
    owners: NDArray[np.int64]
    """(I,) the index of the example of each item, in rising order."""
    targets: Sequence[Any]
    """The target of each item, of which the loss of its kind is made; None where the file does not say the label."""
    notes: Sequence[str] = ()
    """Notes to readers of the results on examples that were cut or could not be learned."""

    @classmethod
    def one_each(cls, encoded: EncodedRows, targets: Sequence[Any]) -> "Items":
        """The items of examples with a row each, or with a row for each window; all windows have the same target."""
        count = len(encoded.ids)
        owners = np.arange(count) if encoded.owners is None else encoded.owners
        return cls(encoded, np.arange(count + 1), owners, [targets[owner] for owner in owners])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """(I,) the number of tokens of each item, over all of its rows."""
        return np.diff(np.concatenate([[0], np.cumsum(self.encoded.lengths)])[self.bounds])

    def mean_by_example(self, outputs: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """(N, ...) the mean of the outputs of the items of each of N examples."""
        stacked = np.stack(outputs)
        begins = np.flatnonzero(np.diff(self.owners, prepend=-1))
        counts = np.diff([*begins, len(self.owners)]).reshape(-1, *[1] * (stacked.ndim - 1))
        return (np.add.reduceat(stacked, begins) / counts).astype(np.float32)

    def rows(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """(B,) the indices of the rows of some items; those of an item stand one after the other."""
        return np.concatenate([np.arange(self.bounds[item], self.bounds[item + 1]) for item in chosen])
