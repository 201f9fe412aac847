"""Gated recurrent units, as torch has them."""

from typing import Any, Literal, cast

from torch import Tensor, nn
from typing_extensions import override

from bakeoff.models.context import BuildContext
from bakeoff.models.mixers.mixer import MixerBaseConfig
from bakeoff.models.mixers.recurrent import Recurrent
from bakeoff.models.part import State


class GruConfig(MixerBaseConfig):
    """The GRU of Cho et al. 2014 (arXiv:1406.1078), as in torch with the reset gate after the state's linear layer."""

    kind: Literal["gru"] = "gru"
    """The mixer's name."""

    @override
    def build(self, context: BuildContext) -> "Gru":
        return Gru(context)


class Gru(Recurrent):
    """h[t] = (1 - z) * n + z * h[t-1], n = tanh(W x[t] + r * U h[t-1]); z, r = sigmoid(W x[t] + U h[t-1]).

    Each of n, z and r has its own W and U, and biases are left out here.
    """

    network = nn.GRU
    gates = 3

    def go_on(self, x: Any, state: State) -> tuple[Any, State]:
        """The outputs, and the state, h of the last token, (B, D)."""
        y, hidden = self.cells(x, cast(Tensor, state)[None])
        return y, hidden[0]

    def start(self, rows: int, like: Tensor) -> State:
        """The state before the first token: zeros (rows, D)."""
        return like.new_zeros(rows, self.cells.hidden_size)
