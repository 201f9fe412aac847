"""The common part of recurrent mixers: torch's networks, run over each document as a sequence of its own."""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence
from torch.utils._pytree import tree_map

from bakeoff.errors import UserError
from bakeoff.machine.transfer import sent
from bakeoff.models.context import BuildContext, Context
from bakeoff.models.layer import UNCOMPILED
from bakeoff.models.part import Part, State
from bakeoff.ops.cpu.linear import multiplies_by_onednn
from bakeoff.row import Row
from bakeoff.spans import spans_of


class Recurrent(Part):
    """One layer of a recurrent network; B batch, T length, D width.

    Causal models have one direction, bidirectional ones two of half the width each, side by side. A subclass names
    torch's network and the form of its state.
    """

    skips_padding = True
    network: ClassVar[type[nn.LSTM | nn.GRU]]
    gates: ClassVar[int]
    """Number of linear layers of input and state in each step."""

    def __init__(self, context: BuildContext, units: int | None = None) -> None:
        """One layer, whose cells have `units` units; by default as many as it has outputs.

        Raises:
            UserError: the width is odd where two directions share it, or the units are too few to be projected.
        """
        super().__init__()
        if not context.causal and context.width % 2:
            raise UserError(f"mixer: two directions cannot share the odd width {context.width}; make the width even")
        self.causal = context.causal
        outputs = context.width if context.causal else context.width // 2
        if units is not None and units <= outputs:
            raise UserError(
                f"mixer.units: {units} units cannot be projected down to {outputs} outputs; give more, or leave it out"
            )
        projection = {} if units is None else {"proj_size": outputs}  # torch's GRU refuses the argument
        self.cells = self.network(
            context.width,
            units or outputs,
            batch_first=True,
            bidirectional=not context.causal,
            bias=context.bias,
            **projection,
        )

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D); the state is that of the cells."""
        if x.device.type == "cpu" and torch.is_autocast_enabled("cpu") and not multiplies_by_onednn():
            # oneDNN then has no LSTM in bfloat16, and torch no other that autocast would take
            with torch.autocast("cpu", enabled=False):
                begun = None if state is None else tree_map(torch.Tensor.float, state)
                return self._run(x.float(), context, begun)
        return self._run(x, context, state)

    def _run(self, x: Tensor, context: Context, state: State) -> tuple[Tensor, State]:
        """`forward` in the precision of `x`."""
        if state is not None:
            return (
                self.go_on(x, state)
                if context.row.padding_mask is None
                else self._after_padding(x, context.row.padding_mask, state)
            )
        if context.row.owners is None:
            return self.cells(x)[0], None
        return self._by_document(x, context.row), None

    def go_on(self, x: Any, state: State) -> tuple[Any, State]:
        """The outputs for (B, T, D) or a packed sequence that continues from a state, and the state after them."""
        raise NotImplementedError

    def _after_padding(self, x: Tensor, padding_mask: Tensor, state: State) -> tuple[Tensor, State]:
        """`go_on` for rows whose padding stands before their tokens; padding is not read."""
        length = x.shape[1]
        lengths = padding_mask.sum(1)
        positions = torch.arange(length, device=x.device)
        moved = (positions - lengths[:, None]) % length  # (B, T) with the tokens first
        back = (positions + lengths[:, None]) % length
        packed = pack_padded_sequence(_at(x, moved), lengths.cpu(), batch_first=True, enforce_sorted=False)
        outputs, state = self.go_on(packed, state)
        y, _ = pad_packed_sequence(outputs, batch_first=True, total_length=length)
        return _at(y, back), state

    def _by_document(self, x: Tensor, row: Row[Tensor]) -> Tensor:
        """Outputs for documents run as rows of their own, zeros at padding.

        It is left uncompiled, because the shapes depend on where the documents end. A batch knows this on the CPU;
        without `row.spans` the device is asked, and waited for.
        """
        owners = row.owners
        assert owners is not None
        positions, sizes = (row.spans or spans_of(owners.cpu())).side_by_side()
        positions = sent(positions, x.device)
        states = x.flatten(0, 1)
        outputs = self.cells(PackedSequence(states.index_select(0, positions), sizes))[0].data
        together: Tensor = outputs.new_zeros(len(states), outputs.shape[-1]).index_copy(0, positions, outputs)
        return together.view(x.shape)

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass; the row's length does not matter."""
        directions = 1 if self.causal else 2
        units, projected = self.cells.hidden_size, self.cells.proj_size
        gates = self.gates * units * (self.cells.input_size + (projected or units))
        return 2 * directions * (gates + units * projected)

    def reach(self) -> tuple[float, float]:
        """The whole row on both sides; causal: all tokens before."""
        return float("inf"), 0 if self.causal else float("inf")


def _at(x: Tensor, positions: Tensor) -> Tensor:
    """(B, T, D) states, taken from (B, T) positions of each row."""
    return x.gather(1, positions[..., None].expand_as(x))


UNCOMPILED.append((Recurrent, "_by_document"))
