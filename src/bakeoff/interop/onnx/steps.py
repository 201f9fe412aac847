"""Sequential computations as one `scan` operation, so that a graph is valid for rows of any length.

Without it the exporter would unroll the steps of one length. Shapes: B batch, T length, D width, U units of a cell,
S summaries of a step, K steps.
"""

from functools import partial
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan

from bakeoff.models.blocks.gen_cnn import GenCnn
from bakeoff.models.context import Context
from bakeoff.models.mixers.lstm import Projecting
from bakeoff.models.part import State

Cells = tuple[Tensor, Tensor]
"""h and c of an LSTM, (1, B, D) and (1, B, U)."""


def with_steps(module: nn.Module) -> None:
    """Replace sequential computations inside a module by scans; outputs stay the same."""
    for part in module.modules():
        if isinstance(part, Projecting) and not part.bidirectional:
            object.__setattr__(part, "forward", partial(_projected, part))
        elif isinstance(part, GenCnn):
            object.__setattr__(part, "forward", partial(_gen_cnn, part))
            object.__setattr__(part, "_summaries", partial(_summaries, part))


def at_least_two_steps(module: nn.Module) -> int:
    """A length of rows that takes at least two steps, without which the exporter would not see a free axis."""
    return max([5, *(2 * part.beta.window + 3 for part in module.modules() if isinstance(part, GenCnn))])


def forget_dispatch() -> None:
    """Clear torch's cache of the kernels for LSTM and GRU.

    The exporter replaces these kernels by loops while it works, but torch caches the kernels that it found first. In
    torch 2.13 a second export in one process would unroll the steps of one length, and computations after an export
    would run the slow loops.
    """
    for operation in (torch.ops.aten.lstm.input, torch.ops.aten.gru.input):
        getattr(operation, "_dispatch_cache", {}).clear()


def _projected(cells: nn.LSTM, x: Tensor, before: Cells | None = None) -> tuple[Tensor, Cells]:
    """Outputs and last state of a unidirectional LSTM with projected outputs, which ONNX's LSTM lacks."""
    read, recurrent, projection = (cast(Tensor, getattr(cells, f"weight_{name}_l0")) for name in ("ih", "hh", "hr"))
    gates = F.linear(x, read)
    if cells.bias:
        gates = gates + cast(Tensor, cells.bias_ih_l0) + cast(Tensor, cells.bias_hh_l0)

    def step(carried: Cells, gate: Tensor) -> tuple[Cells, Tensor]:
        hidden, cell = carried
        write, keep, new, give = (gate + F.linear(hidden, recurrent)).chunk(4, -1)
        cell = keep.sigmoid() * cell + write.sigmoid() * new.tanh()
        hidden = F.linear(give.sigmoid() * cell.tanh(), projection)
        return (hidden, cell), hidden.clone()

    if before is None:
        begun = x.new_zeros(x.shape[0], cells.proj_size), x.new_zeros(x.shape[0], cells.hidden_size)
    else:
        begun = before[0][0], before[1][0]
    (hidden, cell), outputs = scan(step, begun, gates.transpose(0, 1), dim=0)
    return outputs.transpose(0, 1), (hidden[None], cell[None])


def _gen_cnn(part: GenCnn, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
    """Output and state of the network; a row without a state begins with an empty one, and its padding comes last."""
    if state is not None:
        return GenCnn.forward(part, x, context, state)
    begins = context._replace(row=context.row._replace(padding_mask=None, documents=None), start=0)
    return GenCnn.forward(part, x, begins, part.start(x.shape[0], x))[0], None


def _summaries(part: GenCnn, words: Tensor, ages: Tensor, previous: Tensor) -> Tensor:
    """`GenCnn._summaries` as a scan; positions of the last step beyond the row are left out."""
    size, rows, count = words.shape[:3]
    steps = (count + size - 1) // size
    positions = torch.arange(steps * size, device=words.device).clamp(max=count - 1)
    windows = words.index_select(2, positions).unflatten(2, (steps, size)).permute(2, 0, 1, 3, 4)  # (K, S, B, S, D)
    window_ages = ages.index_select(1, positions).unflatten(1, (steps, size)).transpose(0, 1)  # (K, B or 1, S)

    def step(before: Tensor, inputs: Any) -> tuple[Tensor, Tensor]:
        window, age = inputs
        before = torch.where((age >= size)[..., None], before, 0.0)
        summary = part.beta(before.flatten(0, 1), window.flatten(1, 2)).unflatten(0, (rows, size))
        return summary, summary.clone()

    _, summaries = scan(step, previous, (windows, window_ages), dim=0)
    return torch.cat([previous, summaries.transpose(0, 1).flatten(1, 2)[:, :count]], dim=1)
