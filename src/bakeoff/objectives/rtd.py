"""Replaced-token detection: the model tells which tokens a small generator has written (ELECTRA)."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from bakeoff.config import Config
from bakeoff.corpus.split import Split
from bakeoff.errors import UserError
from bakeoff.formats.example import Examples
from bakeoff.models.blocks.feed_forward import activate
from bakeoff.models.initialisation import initialise
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.heads import Head
from bakeoff.objectives.objective import ObjectiveConfig, Targets
from bakeoff.objectives.refusals import sees_both_sides, starts_anew
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer


class ReplacedTokenDetectionConfig(ObjectiveConfig):
    """ELECTRA's objective (Clark et al. 2020, arXiv:2003.10555, section 2): was each token of the row replaced?

    A generator, which is a narrow copy of the model's encoder over the same tables, learns `mlm` in the model's place.
    The tokens that `mlm` has hidden are replaced by tokens drawn from the generator's distribution, without a gradient
    through the draw. The model predicts for each token of the row, special ones included, whether it is the original:

    sum_t -log p(x~[t] = x[t] or not | x~), beside the generator's sum over hidden t of -log p(x[t] | masked x)
    """

    kind: Literal["rtd"] = "rtd"
    """The objective's name."""
    weight: float = Field(default=50.0, gt=0)
    """Factor of this objective's mean loss in the sum; the paper's lambda is 50."""
    title: ClassVar[str] = "Replaced tokens (rtd)"
    refused: ClassVar[Mapping[str, str]] = sees_both_sides("rtd") | starts_anew("rtd")
    classes: ClassVar[Sequence[str] | None] = ("original", "replaced")
    generator_learns: ClassVar[str | None] = "mlm"
    generator: float = Field(default=0.25, gt=0, le=1)
    """Widths and heads of the generator, and all else that parts declare (`scales_with_width`), as a share of the
    encoder's; the number of layers is the encoder's. Between a quarter and a half worked best (section 3.2).
    """
    activation: Literal["relu", "gelu", "gelu_tanh"] = "gelu"
    """Activation in the head."""

    @property
    def head_activation(self) -> str | None:
        """The activation between the two linear layers of the head."""
        return self.activation

    def generator_model(self, model: ModelConfig) -> ModelConfig:
        """The generator's config: a narrower encoder that reads the model's vectors through a linear layer."""
        values = model.model_dump(mode="json")
        values["encoder"] = _narrowed(model.encoder, self.generator)
        settings = {"positions": "none", "segments": 0, "norm": False, "dropout": 0.0, "initial": None}
        values["embedding"] |= {"width": model.embedding_width, **settings}
        return ModelConfig.parse(values, "model")

    def build(self, model: ModelConfig, vocabulary: int) -> "ReplacedTokenDetection":
        """The objective with a fresh generator and a fresh head.

        Raises:
            UserError: the encoder cannot be narrowed by this factor.
        """
        return ReplacedTokenDetection(self, model)


def _narrowed(node: Any, share: float) -> Any:
    """A config as plain values, with a share of the numbers that its parts declare to be `scales_with_width`."""
    if isinstance(node, list | tuple):
        return [_narrowed(each, share) for each in node]
    if not isinstance(node, Config):
        return node
    values = node.model_dump(mode="json")
    for key in type(node).model_fields:
        value = getattr(node, key)
        if key in node.scales_with_width and isinstance(value, int):
            values[key] = max(1, round(share * value))
        elif isinstance(value, Config | list | tuple):
            values[key] = _narrowed(value, share)
    return values


class ReplacedTokenDetection:
    """Replaces hidden tokens; B rows, T length, D width, V vocabulary, n hidden tokens, N real ones."""

    name = "rtd"
    learns = "mlm"
    targets_per_token = 1.0

    def __init__(self, config: ReplacedTokenDetectionConfig, model: ModelConfig) -> None:
        share = config.generator
        try:
            self.generator = config.generator_model(model).build(None)
        except UserError as error:
            raise UserError(
                f"rtd: generator: {share:g} of the model's widths and heads gives no valid generator: {error}"
            ) from None
        self.head: Head = DetectionHead(model.stack.output_width, config.activation)

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """All positions but padding; the labels are random numbers for drawing the generator's tokens."""
        positions = np.flatnonzero(examples.padding_mask)
        return Targets(
            positions, draws.words("generator", examples.row.ids.shape[1]).ravel()[positions].astype(np.int64)
        )

    @torch.no_grad()
    def replace(
        self, ids: Tensor, hidden: tuple[Tensor, Tensor], log_probabilities: Tensor, drawn: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """Replace hidden tokens by tokens drawn from the generator.

        Args:
            ids: (B, T) the rows, with tokens hidden.
            hidden: (n,) positions of hidden tokens, counted over the flattened (B * T), and (n,) their original ids.
            log_probabilities: (n, V) the generator's log-probabilities at these positions.
            drawn: (N,) the positions of `targets`, in rising order, and (N,) their random numbers below 2^32.

        Returns:
            (B, T) the filled rows, and (N,) labels: 0 for original tokens, 1 for replaced ones.
        """
        positions, originals = hidden
        at = torch.searchsorted(drawn[0], positions)
        # The first token up to which the probabilities add up to a share of their sum that is uniform in (0, 1).
        below = log_probabilities.exp().cumsum(-1)
        share = (drawn[1][at].double() + 0.5) / 2**32
        tokens = torch.searchsorted(below, (share * below[:, -1].double()).to(below.dtype)[:, None])[:, 0]
        labels = torch.zeros_like(drawn[1])
        labels[at] = (tokens != originals).long()
        return ids.flatten().index_copy(0, positions, tokens).view_as(ids), labels


class DetectionHead(Head):
    """Scores of two classes, original (0) and replaced (1), for each token: w activation(W h + b) + c."""

    def __init__(self, width: int, activation: str) -> None:
        super().__init__()
        self.activation = activation
        self.transform = nn.Linear(width, width)
        self.output = nn.Linear(width, 1)
        self.flops_per_row = 2 * width * width + 2 * width
        initialise(self)
        nn.init.xavier_uniform_(self.output.weight)  # TensorFlow's default, where ELECTRA's code says nothing

    def scores(self, rows: Tensor, embedding_weight: Tensor) -> Tensor:
        """(N, D) hidden states to (N, 2) unnormalised log-probabilities; the embedding's table is not used."""
        replaced = self.output(activate(self.transform(rows), self.activation))
        return torch.cat([torch.zeros_like(replaced), replaced], dim=-1)
