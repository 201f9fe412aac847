"""What a training of vectors has in common in all its steps, and its micro-batches.

Shapes: N texts of a batch, B texts of a micro-batch, T length.
"""

from typing import NamedTuple

from torch import Tensor

from bakeoff.contrastive.config import ContrastConfig
from bakeoff.contrastive.texts import ReadTexts
from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.resources.device import Placement
from bakeoff.row import Row
from bakeoff.tasks.rows.inputs import InputFormat


class Setting(NamedTuple):
    """Everything about a training that is decided before its module is built."""

    config: ContrastConfig
    """The settings, with everything decided."""
    format: InputFormat
    """The format of the rows."""
    texts: ReadTexts
    """The texts."""
    steps: int
    """The number of steps."""
    seed: int
    """The seed of order, views and dropout."""
    placement: Placement
    """The device of the module, and the precision of its products."""
    reads_both_sides: bool
    """Whether a decoder reads rows from both sides."""
    title: str
    """The name of what is trained, in lines about it."""
    processes: Processes = ALONE
    """The processes that train the module together."""


class ViewBatch(NamedTuple):
    """A micro-batch: two views of each of B texts."""

    row: Row[Tensor]
    """(2 B, T) the first views, then the second ones."""
    places: Tensor
    """(B,) the places of the texts among the N of the whole batch."""
    same: Tensor
    """(N, N) True where two texts of the whole batch are the same."""
    tokens: int
    """The number of tokens of the views."""
    number: int
    """Its number in the whole batch of a step."""
