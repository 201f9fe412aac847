"""genCNN: a convolutional network over the last words, fed with a recursive summary of all words before them."""

import math
from typing import ClassVar, Literal, cast

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.models.blocks.block import BlockBaseConfig
from bakeoff.models.blocks.gated_convolution import Gate, WindowConfig
from bakeoff.models.context import BuildContext, Context
from bakeoff.models.part import Part, State
from bakeoff.ops.dropout import dropout
from bakeoff.ops.windows import document_ages, last_tokens


class GenCnnBlockConfig(BlockBaseConfig):
    """The whole network of Wang et al. 2015 (arXiv:1503.05034) as one block."""

    scales_with_width: ClassVar = frozenset({"width"})

    kind: Literal["gen_cnn"] = "gen_cnn"
    """The block's name."""
    width: int = Field(gt=0)
    """Width of alpha's fully connected layer, which is the block's output."""
    kernel: int = Field(default=3, gt=0)
    """Kernel size of all convolutions."""
    gate: Gate = "shared"
    """Weights of the gates: the same at all positions of a layer, or each position's own."""
    alpha: WindowConfig
    """The network over the last words."""
    beta: WindowConfig
    """The network that summarises the words before them; the paper gives it time-flow maps alone."""

    def output_width(self, width: int, layer: int) -> int:
        """The width of alpha's fully connected layer."""
        return self.width

    def build(self, context: BuildContext) -> dict[str, Part]:
        """The two networks as one part.

        Raises:
            UserError: a window is too short for its convolutions, or the model is not causal.
        """
        if not context.causal or context.source is not None:
            raise UserError("block: gen_cnn predicts the next token from those before; use 'decoder' without 'encoder'")
        for name, config in (("alpha", self.alpha), ("beta", self.beta)):
            slots = config.window + 1
            for _ in config.time_flow:
                slots = -(-(slots - self.kernel + 1) // 2)
            if slots < 1:
                raise UserError(
                    f"block.{name}.window: {config.window} words are too few for {len(config.time_flow)} convolutions "
                    f"of kernel size {self.kernel}; make it longer"
                )
        return {"mixer": GenCnn(self, context)}


class GenCnn(Part):
    """y[t] = alpha(h[t - A], x[t - A + 1], ..., x[t]) with A words for alpha and B for beta (figure 1, section 3.3).

    h[s] = beta(h[s - B], x[s - B + 1], ..., x[s]) sums up all words of the document up to s. It depends on s alone,
    because windows are cut backwards from their last word, so that alpha and beta at all positions share the summaries.
    One pass therefore computes the summaries of B neighbouring positions at a time, each from the one B positions
    before it, in T / B steps. A summary of no words is zero, the paper's switch; words before the document are zero.

    Shapes: B batch (in shapes alone), T length, D width, M positions that are summed up.
    """

    skips_padding = True
    counts_tokens: ClassVar[bool] = True

    def __init__(self, config: GenCnnBlockConfig, context: BuildContext) -> None:
        super().__init__()
        self.alpha = config.alpha.build(context.width, config.kernel, config.gate, config.width)
        self.beta = config.beta.build(context.width, config.kernel, config.gate, context.width)
        self.width = context.width
        self.dropout = context.dropout

    def forward(self, x: Tensor, context: Context, state: State = None) -> tuple[Tensor, State]:
        """(B, T, D) to (B, T, D'); the state is the words of both windows and the last B summaries."""
        recent, older, length = self.alpha.window, self.beta.window, x.shape[1]
        documents = context.row.owners
        if documents is None:
            ages = torch.arange(context.start, context.start + length, device=x.device)[None]
            ages = ages if context.gaps is None else ages - context.gaps[:, None]
        else:
            ages = document_ages(documents)
        after: State = None
        if state is None:
            left = None
            count = max(1, length - recent)  # one, where none is called for, spares a special case
            words = last_tokens(x[:, :count], older, ages[:, :count])
            summaries = self._summaries(words, ages[:, :count], self._no_summaries(x.shape[0], x))
            history = F.pad(summaries[:, older:], (0, 0, length - count, 0))
        else:
            remembered, previous = cast(tuple[Tensor, Tensor], state)
            if context.row.padding_mask is not None:
                x = (
                    x * context.row.padding_mask[..., None]
                )  # what is remembered of padding is what stands before the first token
            seen = torch.cat([remembered, x], dim=1)
            left = seen[:, older : older + recent - 1]
            words = last_tokens(seen[:, older - 1 : older - 1 + length], older, left=seen[:, : older - 1])
            summaries = self._summaries(words, ages - recent, previous)
            history = summaries[:, older:]
            after = (seen[:, length:], summaries[:, length:])
        history = torch.where((ages >= recent)[..., None], history, 0.0)
        y = self.alpha(history.flatten(0, 1), last_tokens(x, recent, ages, left).flatten(1, 2))
        return dropout(y, self.dropout, self.training).unflatten(0, x.shape[:2]), after

    def _summaries(self, words: Tensor, ages: Tensor, previous: Tensor) -> Tensor:
        """The summaries `previous`, followed by the summaries of the next M positions.

        Args:
            words: (S, B, M, D) the windows of the M positions.
            ages: (B, M) number of tokens of its own document before each position; (1, M) where all rows have the same.
            previous: (B, S, D) the summaries of the S positions before the M.

        Returns:
            (B, S + M, D).
        """
        size, rows, count = words.shape[:3]
        summaries = [previous]
        for begin in range(0, count, size):
            now = slice(begin, min(begin + size, count))
            before = summaries[-1][:, : now.stop - now.start]
            before = torch.where((ages[:, now] >= size)[..., None], before, 0.0)
            summary = self.beta(before.flatten(0, 1), words[:, :, now].flatten(1, 2))
            summaries.append(summary.unflatten(0, (rows, -1)))
        return torch.cat([each.to(summaries[-1].dtype) for each in summaries], dim=1)

    def _no_summaries(self, rows: int, like: Tensor) -> Tensor:
        return like.new_zeros(rows, self.beta.window, self.width)

    def start(self, rows: int, like: Tensor) -> State:
        """Zeros for the words; the summaries before the first token are never used."""
        words = like.new_zeros(rows, self.alpha.window + self.beta.window - 1, self.width)
        return words, self._no_summaries(rows, like)

    def flops_per_token(self, length: int) -> int:
        """Floating-point operations of one token's forward pass in a row of `length` tokens.

        Only summaries that some later position uses are counted.
        """
        summaries = self.beta.flops_per_window() * max(0, length - self.alpha.window) / length
        return self.alpha.flops_per_window() + round(summaries)

    def reach(self) -> tuple[float, float]:
        """All tokens of the document before the output, and none after it."""
        return math.inf, 0
