"""Heads turn hidden states into log-probabilities and losses. They see only rows that have a target.

Shapes: N gathered rows, D model width, E embedding width, V vocabulary, C classes.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.models.blocks.feed_forward import activate
from bakeoff.models.initialisation import initialise
from bakeoff.models.model import ModelConfig
from bakeoff.ops.cross_entropy import cross_entropy
from bakeoff.ops.linear_cross_entropy import linear_cross_entropy, rows_at_once


class Head(nn.Module):
    """The interface of every head; a subclass gives `scores`, or overrides `log_probabilities` and `loss`."""

    flops_per_row: int
    """Floating-point operations of one row's forward pass."""
    z_loss: float = 0.0
    """z, the weight of z Z^2 in the loss of each row, where Z is the logarithm of the normaliser."""

    def scores(self, rows: Tensor, embedding_weight: Tensor) -> Tensor:
        """Unnormalised log-probabilities.

        Args:
            rows: (N, D) hidden states of the rows that have a target.
            embedding_weight: (V, E) the embedding's table, for heads that are tied to it.

        Returns:
            (N, V) or (N, C).
        """
        raise NotImplementedError

    def log_probabilities(self, rows: Tensor, embedding_weight: Tensor) -> Tensor:
        """(N, V) or (N, C) log-probabilities of gathered rows, in float32."""
        return self.scores(rows, embedding_weight).float().log_softmax(-1)

    def loss(self, rows: Tensor, labels: Tensor, embedding_weight: Tensor) -> Tensor:
        """The cross-entropy of gathered rows with their (N,) labels, summed, in nats."""
        return cross_entropy(self.scores(rows, embedding_weight).float(), labels, z_loss=self.z_loss)

    def parts(self, labels: Tensor) -> tuple[Tensor, ...]:
        """For a head that treats rows by their labels: the indices of the rows of each kind; else empty.

        The labels are on the CPU, and so are the indices: where a device had to find them, it would be waited for.
        """
        return ()

    def loss_of_parts(
        self, rows: Tensor, labels: Tensor, embedding_weight: Tensor, parts: tuple[Tensor, ...]
    ) -> Tensor:
        """`loss` where the `parts` of the labels are known."""
        raise NotImplementedError

    def usual_loss(self, rows: Tensor, embedding_weight: Tensor) -> Tensor:
        """The loss of rows with unknown labels, for an estimate of the memory that it takes."""
        return self.loss(rows, torch.zeros(len(rows), dtype=torch.int64, device=rows.device), embedding_weight)


Score = Callable[..., Any]
"""A function of a head, (N, D) rows, their (N,) labels, the (V, E) table of the embedding, and (N,) weights if any."""


def summed_loss(head: Head, rows: Tensor, labels: Tensor, table: Tensor, weights: Tensor | None = None) -> Tensor:
    """() the loss that a training makes smaller, summed over the rows, in nats."""
    if weights is None:
        return head.loss(rows, labels, table)
    size, total = rows_at_once(len(table)), torch.zeros((), device=rows.device)
    for some, right, weight in zip(*(each.split(size) for each in (rows, labels, weights)), strict=True):
        scores = head.scores(some, table).float()
        losses = F.cross_entropy(scores, right, reduction="none") + head.z_loss * scores.logsumexp(-1).square()
        total = total + (losses * weight).sum()
    return total


def token_losses(head: Head, rows: Tensor, labels: Tensor, embedding_weight: Tensor) -> Tensor:
    """(N,) the loss of each target in nats, without smoothing or other terms."""
    return F.nll_loss(head.log_probabilities(rows, embedding_weight), labels, reduction="none")


def logits(head: Head, rows: Tensor, labels: Tensor, embedding_weight: Tensor) -> Tensor:
    """(N, V) or (N, C) unnormalised log-probabilities, whatever the labels."""
    return head.scores(rows, embedding_weight)


class HeadTransform(NamedTuple):
    """The settings of the transform of BERT's head, norm(activation(W h + b)), whose output the table scores."""

    activation: str
    """The name of the activation, such as gelu."""
    norm_epsilon: float
    """Epsilon of the norm, added to the variance."""
    norm_affine: bool = True
    """The norm has a gain."""
    norm_bias: bool = True
    """The norm has a shift, too."""
    map_bias: bool = True
    """The linear layer has a bias b; ModernBERT's has none."""


class TokenHead(Head):
    """Scores of every token of the vocabulary, with the embedding's table as the last linear layer.

    With a transform (BERT): table transform(h) + bias; without one (GPT): table h, or table (W h + b) where the model's
    last width is not the table's. With `bias` each token has a bias. With `scaled` h is first divided by the root of
    its width (T5's code). With `label_smoothing` the labels spread this share of their probability evenly over all
    tokens.
    """

    def __init__(
        self,
        width: int,
        embedding_width: int,
        vocabulary: int,
        transform: HeadTransform | None = None,
        bias: bool = False,
        label_smoothing: float = 0.0,
        scaled: bool = False,
    ) -> None:
        super().__init__()
        self.label_smoothing = label_smoothing
        self.scale = width**-0.5 if scaled else None
        self.activation: str | None = None
        self.transform: nn.Linear | None = None
        self.norm: nn.LayerNorm | None = None
        if transform is not None:
            self.activation = transform.activation
            self.transform = nn.Linear(width, embedding_width, transform.map_bias)
            self.norm = nn.LayerNorm(
                embedding_width, transform.norm_epsilon, transform.norm_affine, transform.norm_bias
            )
        elif width != embedding_width:
            self.transform = nn.Linear(width, embedding_width)
        self.bias = nn.Parameter(torch.zeros(vocabulary)) if transform is not None or bias else None
        self.flops_per_row = 2 * embedding_width * vocabulary + (2 * width * embedding_width if self.transform else 0)
        initialise(self)

    def scores(self, rows: Tensor, embedding_weight: Tensor) -> Tensor:
        """(N, D) hidden states and the (V, E) table to (N, V) unnormalised log-probabilities."""
        return F.linear(self.vectors(rows), embedding_weight, self.bias)

    def vectors(self, rows: Tensor) -> Tensor:
        """(N, E) the vectors whose products with the table are the scores of (N, D) hidden states."""
        if self.scale is not None:
            rows = rows * self.scale
        if self.transform is not None:
            rows = self.transform(rows)
        if self.norm is not None and self.activation is not None:
            rows = self.norm(activate(rows, self.activation))
        return rows

    def loss(self, rows: Tensor, labels: Tensor, embedding_weight: Tensor) -> Tensor:
        """The summed cross-entropy of gathered rows with their (N,) labels, smoothed or not, in nats."""
        vectors = self.vectors(rows)
        return linear_cross_entropy(vectors, embedding_weight, self.bias, labels, self.label_smoothing, self.z_loss)


def tied_head(
    model: ModelConfig, vocabulary: int, bias: bool = False, label_smoothing: float = 0.0, scaled: bool = False
) -> TokenHead:
    """A head without a transform: the embedding's table, after a linear layer where the two widths differ."""
    width = model.stack.output_width
    return TokenHead(width, model.embedding_width, vocabulary, None, bias, label_smoothing, scaled)


def transformed_head(model: ModelConfig, vocabulary: int, activation: str, map_bias: bool = True) -> TokenHead:
    """BERT's head: a linear layer, the activation and a norm in front of the embedding's table."""
    transform = head_transform(model, activation, map_bias)
    return TokenHead(model.stack.output_width, model.embedding_width, vocabulary, transform)


def head_transform(model: ModelConfig, activation: str, map_bias: bool = True) -> HeadTransform:
    """The settings of BERT's transform for a model: this activation, and a norm like the model's other norms."""
    return HeadTransform(activation, model.norm_epsilon, model.norm_affine, model.norm_bias, map_bias)


class UntiedTokenHead(Head):
    """Scores of every token of the vocabulary, W h + b, from a table of the head's own; labels may be smoothed."""

    def __init__(self, width: int, vocabulary: int, bias: bool, label_smoothing: float = 0.0) -> None:
        super().__init__()
        self.label_smoothing = label_smoothing
        self.output = nn.Linear(width, vocabulary, bias=bias)
        self.flops_per_row = 2 * width * vocabulary
        initialise(self)

    def scores(self, rows: Tensor, embedding_weight: Tensor) -> Tensor:
        """(N, D) hidden states to (N, V) unnormalised log-probabilities; the embedding's table is not used."""
        return cast(Tensor, self.output(rows))

    def loss(self, rows: Tensor, labels: Tensor, embedding_weight: Tensor) -> Tensor:
        """The summed cross-entropy of gathered rows with their (N,) labels, smoothed or not, in nats."""
        output = self.output
        return linear_cross_entropy(rows, output.weight, output.bias, labels, self.label_smoothing, self.z_loss)


class AdaptiveTokenHead(Head):
    """Adaptive softmax (Grave et al. 2017, arXiv:1609.04309): frequent tokens first, clusters of rare ones after them.

    Ids have to be sorted by falling frequency, as a tokenizer's roughly are. Each token below the first cutoff has a
    score, and so has each cluster; the scores within cluster i come from D / 4^i channels.
    """

    def __init__(self, width: int, vocabulary: int, cutoffs: Sequence[int], bias: bool) -> None:
        """The head for cutoffs below the vocabulary's size.

        `bias` adds a bias to the scores of frequent tokens and of clusters; torch's module has none within clusters.

        Raises:
            UserError: the width leaves no channel for the last cluster.
        """
        super().__init__()
        if width < NARROWING ** len(cutoffs):
            raise UserError(
                f"objective.cutoffs: a width of {width} leaves no channel to the last of {len(cutoffs)} clusters; "
                "give fewer cutoffs"
            )
        self.softmax = nn.AdaptiveLogSoftmaxWithLoss(width, vocabulary, cutoffs, div_value=NARROWING, head_bias=bias)
        self.clusters = list(pairwise([*cutoffs, vocabulary]))
        # The FLOPs of training: a row goes through its label's cluster alone, and the label's rank follows Zipf's law.
        self.shares = [(_harmonic(high) - _harmonic(low)) / _harmonic(vocabulary) for low, high in self.clusters]
        flops = 2.0 * width * (cutoffs[0] + len(cutoffs))
        for i, ((low, high), share) in enumerate(zip(self.clusters, self.shares, strict=True), start=1):
            flops += share * 2 * (width // NARROWING**i) * (width + high - low)
        self.flops_per_row = round(flops)
        initialise(self)

    def scores(self, rows: Tensor, embedding_weight: Tensor) -> Tensor:
        """(N, D) hidden states to (N, V) log-probabilities; the embedding's table is not used."""
        return self.softmax.log_prob(rows.float())

    def log_probabilities(self, rows: Tensor, embedding_weight: Tensor) -> Tensor:
        """(N, V) log-probabilities of gathered rows, in float32."""
        return self.scores(rows, embedding_weight)

    def loss(self, rows: Tensor, labels: Tensor, embedding_weight: Tensor) -> Tensor:
        """The summed cross-entropy in nats; torch's module gives the same, but not under autocast, and more slowly."""
        parts = tuple(each.to(labels.device) for each in self.parts(labels.cpu()))
        return self.loss_of_parts(rows, labels, embedding_weight, parts)

    @override
    def parts(self, labels: Tensor) -> tuple[Tensor, ...]:
        return tuple(((labels >= low) & (labels < high)).nonzero()[:, 0] for low, high in self.clusters)

    @override
    def loss_of_parts(
        self, rows: Tensor, labels: Tensor, embedding_weight: Tensor, parts: tuple[Tensor, ...]
    ) -> Tensor:
        first, total = labels, torch.zeros((), device=rows.device)
        for i, ((low, high), inside) in enumerate(zip(self.clusters, parts, strict=True)):
            # The cluster, among the frequent tokens.
            first = torch.where((labels >= low) & (labels < high), self.clusters[0][0] + i, first)
            within = self.softmax.tail[i](rows.index_select(0, inside))
            total = total + cross_entropy(within.float(), labels.index_select(0, inside) - low)
        return total + cross_entropy(self.softmax.head(rows).float(), first)

    def usual_loss(self, rows: Tensor, embedding_weight: Tensor) -> Tensor:
        """The loss of rows that are spread over the clusters in their usual shares."""
        labels = torch.zeros(len(rows), dtype=torch.int64, device=rows.device)
        total = cross_entropy(self.softmax.head(rows).float(), labels)
        for tail, share in zip(self.softmax.tail, self.shares, strict=True):
            count = round(share * len(rows))
            index = torch.arange(count, device=rows.device)
            total = total + cross_entropy(tail(rows.index_select(0, index)).float(), labels[:count])
        return total


NARROWING = 4
"""Factor by which the number of channels shrinks from one cluster of the adaptive softmax to the next."""


def _harmonic(n: int) -> float:
    """1 + 1/2 + ... + 1/n, with an error of about 1 / (12 n^2)."""
    return math.log(n) + 0.5772156649 + 1 / (2 * n)


class SentenceHead(Head):
    """Scores of classes from one hidden state of each row, through BERT's pooler: W tanh(W_p h)."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.pooler = nn.Linear(width, width)
        self.output = nn.Linear(width, classes)
        self.flops_per_row = 2 * width * width + 2 * width * classes
        initialise(self)

    def scores(self, rows: Tensor, embedding_weight: Tensor) -> Tensor:
        """(N, D) hidden states to (N, C) unnormalised log-probabilities; the embedding's table is not used."""
        return cast(Tensor, self.output(self.pooler(rows).tanh()))
