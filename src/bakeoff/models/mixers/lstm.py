"""Long short-term memory, as torch has it."""

import warnings
from typing import Any, ClassVar, Literal, cast

from pydantic import Field
from torch import Tensor, nn

from bakeoff.models.context import BuildContext
from bakeoff.models.layer import UNCOMPILED
from bakeoff.models.mixers.mixer import MixerBaseConfig
from bakeoff.models.mixers.recurrent import Recurrent
from bakeoff.models.part import State


class LstmConfig(MixerBaseConfig):
    """The LSTM of Hochreiter and Schmidhuber 1997, with forget gates and without peepholes."""

    scales_with_width: ClassVar = frozenset({"units"})

    kind: Literal["lstm"] = "lstm"
    """The mixer's name."""
    units: int | None = Field(default=None, gt=0)
    """Number of units of each direction's cells, larger than the number of outputs, to which they are projected;
    absent: as many as outputs.
    """

    def build(self, context: BuildContext) -> "Lstm":
        """The mixer for one layer.

        Raises:
            UserError: the width is odd where two directions share it, or the units are too few to be projected.
        """
        return Lstm(context) if self.units is None else ProjectedLstm(context, self.units)


class Lstm(Recurrent):
    """c[t] = f * c[t-1] + i * g, h[t] = o * tanh(c[t]); i, f, o = sigmoid and g = tanh of W x[t] + U h[t-1] + b.

    Each of i, f, o and g has its own W, U and b.
    """

    network = nn.LSTM
    gates = 4

    def go_on(self, x: Any, state: State) -> tuple[Any, State]:
        """The outputs, and the state, h and c of the last token, (B, D) and (B, units)."""
        hidden, cell = cast(tuple[Tensor, Tensor], state)
        y, (hidden, cell) = self.cells(x, (hidden[None], cell[None]))
        return y, (hidden[0], cell[0])

    def start(self, rows: int, like: Tensor) -> State:
        """The state before the first token: zeros for h and for c."""
        units = self.cells.hidden_size
        return like.new_zeros(rows, self.cells.proj_size or units), like.new_zeros(rows, units)


class Projecting(nn.LSTM):
    """Torch's LSTM with a projection, without its warning that oneDNN has no code for it."""

    def forward(self, *args: Any) -> Any:
        """Outputs and states of `nn.LSTM`, without its warning."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "LSTM with projections is not supported with oneDNN")
            return super().forward(*args)


UNCOMPILED.append((Projecting, "forward"))


class ProjectedLstm(Lstm):
    """An LSTM with h[t] = W_h (o * tanh(c[t])), narrower than c.

    Sak et al. 2014 (arXiv:1402.1128, section 2.2) also have peepholes and a second, non-recurrent projection.
    """

    network = Projecting
