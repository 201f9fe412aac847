"""Long short-term memory, torch's own."""

from typing import Literal, cast

from torch import Tensor, nn

from bakeoff.config import Config
from bakeoff.models.context import Place
from bakeoff.models.mixers.recurrent import Recurrent
from bakeoff.models.part import State


class LstmConfig(Config):
    """Hochreiter and Schmidhuber 1997, with forget gates and without peepholes."""

    kind: Literal["lstm"] = "lstm"
    """The mixer's name."""

    def build(self, place: Place) -> "Lstm":
        """The mixer for one layer."""
        return Lstm(place)


class Lstm(Recurrent):
    """c[t] = f * c[t-1] + i * g, h[t] = o * tanh(c[t]); i, f, o = sigmoid, g = tanh of maps of x[t] and h[t-1]."""

    network = nn.LSTM
    gates = 4

    def go_on(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """The state is h and c of the last token, (B, D) each."""
        hidden, cell = cast(tuple[Tensor, Tensor], state)
        y, (hidden, cell) = self.cells(x, (hidden[None], cell[None]))
        return y, (hidden[0], cell[0])

    def start(self, rows: int, like: Tensor) -> State:
        """Zeros."""
        zeros = like.new_zeros(rows, self.cells.hidden_size)
        return zeros, zeros
