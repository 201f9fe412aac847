"""Heads turn hidden states into log-probabilities and losses. They see only rows that have a target.

Shapes: N gathered rows, D model width, E embedding width, V vocabulary, C classes.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bakeoff.models.blocks.feed_forward import activate
from bakeoff.models.model import initialise
from bakeoff.ops.cross_entropy import cross_entropy


class Head(nn.Module):
    """What every head offers; a subclass gives `scores`, or the two others in its own way."""

    flops_per_row: int
    """Floating-point operations of one row's forward pass."""

    def scores(self, rows: Tensor, table: Tensor) -> Tensor:
        """Unnormalised log-probabilities.

        Args:
            rows: (N, D) hidden states of the rows that have a target.
            table: (V, E) the embedding's table, for heads that are tied to it.

        Returns:
            (N, V) or (N, C).
        """
        raise NotImplementedError

    def log_probabilities(self, rows: Tensor, table: Tensor) -> Tensor:
        """(N, V) or (N, C) log-probabilities of gathered rows, in float32."""
        return self.scores(rows, table).float().log_softmax(-1)

    def loss(self, rows: Tensor, labels: Tensor, table: Tensor) -> Tensor:
        """The cross-entropy of gathered rows with their (N,) labels, summed, in nats."""
        return cross_entropy(self.scores(rows, table).float(), labels)


class TokenHead(Head):
    """Scores of every token of the vocabulary, with the embedding's table as the last map.

    With `transform` (BERT, section 3.1 and its code): table norm(gelu(W h)) + bias; without it (GPT): table h.
    """

    def __init__(
        self,
        width: int,
        table_width: int,
        vocabulary: int,
        transform: bool,
        activation: str,
        norm_epsilon: float,
    ) -> None:
        super().__init__()
        self.activation = activation
        self.transform = nn.Linear(width, table_width) if transform or width != table_width else None
        self.norm = nn.LayerNorm(table_width, eps=norm_epsilon) if transform else None
        self.bias = nn.Parameter(torch.zeros(vocabulary)) if transform else None
        self.flops_per_row = 2 * table_width * vocabulary + (2 * width * table_width if self.transform else 0)
        initialise(self)

    def scores(self, rows: Tensor, table: Tensor) -> Tensor:
        """(N, D) hidden states and the (V, E) table to (N, V) unnormalised log-probabilities."""
        if self.transform is not None:
            rows = self.transform(rows)
        if self.norm is not None:
            rows = self.norm(activate(rows, self.activation))
        return F.linear(rows, table, self.bias)


class SentenceHead(Head):
    """Scores of classes from one hidden state of each row, through BERT's pooler: W tanh(W_p h)."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.pooler = nn.Linear(width, width)
        self.output = nn.Linear(width, classes)
        self.flops_per_row = 2 * width * width + 2 * width * classes
        initialise(self)

    def scores(self, rows: Tensor, table: Tensor) -> Tensor:
        """(N, D) hidden states to (N, C) unnormalised log-probabilities; the embedding's table is not used."""
        return self.output(self.pooler(rows).tanh())
