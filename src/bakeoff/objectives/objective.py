"""The interface of objectives: targets for a batch, and a head that turns hidden states into a loss."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from bakeoff.config import PartConfig
from bakeoff.corpus.split import Split
from bakeoff.formats.example import Examples
from bakeoff.formats.input_config import RowMarks
from bakeoff.models.model import Model, ModelConfig
from bakeoff.objectives.heads import Head
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer

Scoring = Literal["forwards", "masked", "query", "target"]
"""The way in which a text gets its log-probability: each token is predicted from those before it (forwards), from all
others with [MASK] at its own position (masked), or from all others by a row of the second stream (query); or a target
is predicted from its source (target).
"""


@dataclass(frozen=True)
class Targets:
    """The positions of a batch at which an objective predicts something."""

    rows: NDArray[np.int64]
    """(n,) positions in the batch's hidden states flattened to (N * T * directions, D), in rising order. Rows of a
    second stream count towards T only for the objective that adds them.
    """
    labels: NDArray[np.int64]
    """(n,) the label to predict at each position. For an objective with a generator it is 32 random bits, from which
    the label follows in the step.
    """
    directions: int = 1
    """Number of hidden states of each position: 2 where the model reads in two directions."""
    length: int | None = None
    """The T with which `rows` are counted; None: the T of the examples' ids."""
    weights: NDArray[np.float32] | None = None
    """(n,) the weight of each target's loss; None: all count alike."""
    counted: NDArray[np.int64] | None = None
    """(N,) the number by which each row counts in the divisor of the summed loss; None: the number of its targets."""

    def in_rows_of(self, width: int, length: int) -> "Targets":
        """The targets with their positions counted with another T, `length`; the examples' ids have T = `width`."""
        counted = self.length or width
        if counted == length:
            return self
        example, position = np.divmod(self.rows, counted * self.directions)
        return replace(self, rows=example * length * self.directions + position, length=length)


def no_targets() -> Targets:
    """Empty targets, for an objective that is not trained at present."""
    return Targets(np.zeros(0, np.int64), np.zeros(0, np.int64))


class ObjectiveConfig(PartConfig):
    """The common fields of all objectives."""

    kind: str
    """The objective's name."""
    title: ClassVar[str]
    """The prediction in a few words, for charts."""
    refused: ClassVar[Mapping[str, str]]
    """The reasons why the objective cannot train some models or read some rows, each under the trait
    (`legality.TRAITS`) that it refuses.
    """
    weight: float = Field(default=1.0, ge=0)
    """Factor of this objective's mean loss in the sum of losses; 0: it is trained in stages of a curriculum alone that
    give it a weight."""
    relates_segments: ClassVar[bool] = False
    """The objective arranges the segments of a pair and labels them."""
    row_marks: ClassVar[RowMarks] = "ends"
    """The special tokens in rows of this objective; rows of running text have none at their ends."""
    rewrites: ClassVar[bool] = False
    """The objective makes a source and a target of the text, for a model with an encoder and a decoder."""
    classes: ClassVar[Sequence[str] | None] = None
    """The meaning of each label, where labels are classes; None: labels are tokens."""
    bounded_by_frequencies: ClassVar[bool] = False
    """The targets are tokens of the text as it is, so that a prediction from token frequencies alone has the unigram
    entropy as its loss.
    """
    bounds: ClassVar[bool] = False
    """The loss is no likelihood but a bound: the text costs at most so much, in nats a token. It compares with no other
    objective's.
    """
    of_training: ClassVar[frozenset[str]] = frozenset()
    """The fields that matter in training alone, of its rows and its loss; what is measured on held-out text, and what a
    text scores, are the same measure with any value.
    """
    of_head: ClassVar[frozenset[str]] = frozenset(("head", "cutoffs", "bias", "activation", "map_bias"))
    """The fields that say how the head makes its predictions, and not what is predicted: with any value the held-out
    loss is the same measure.
    """
    whole_text: ClassVar[bool] = False
    """Each token of the text is predicted once, from those before it, so that losses can be compared between settings,
    and in bits per byte also between tokenizers.
    """
    peek_note: ClassVar[str | None] = None
    """The note of `peek` on how the objective predicts the next token x; None: x is predicted from all tokens before
    it.
    """
    targets_together: ClassVar[int] = 1
    """Number of neighbouring targets that are tokens in another order than the text's; 1: none are moved."""
    generates: ClassVar[bool] = False
    """A trained model can continue a text, or write one for a source."""
    continues_source: ClassVar[bool] = False
    """The text that is written for a source continues it."""
    scoring: ClassVar[Scoring | None] = None
    """The way in which a trained model gives a text its log-probability; None: it cannot."""
    reads_prefix: ClassVar[bool] = False
    """The objective predicts nothing in the beginning of a row, which a model that is causal otherwise sees from both
    sides.
    """
    reads_rows: ClassVar[bool] = False
    """A model that is causal otherwise sees whole rows from both sides."""
    rows_left_for: ClassVar[str | None] = None
    """The objective that is trained on the other rows, if this one takes only some of them; None: it takes all."""
    from_before: ClassVar[bool] = False
    """Hidden tokens are predicted at the position before their own."""
    moves: ClassVar[bool] = False
    """The objective moves tokens. It chooses them after all other objectives, from those that are not hidden."""
    head_of: ClassVar[str | None] = None
    """The name of the objective whose head this one shares, where both are trained."""
    set_by_stage: ClassVar[frozenset[str]] = frozenset()
    """The settings that a stage of a curriculum may change: those that leave the head, and so its weights, alone."""

    generator_learns: ClassVar[str | None] = None
    """The name of the objective that this one's generator, a smaller model, learns in the model's place. In each step
    the generator fills the tokens that it has hidden, and the labels of this objective are made from them.
    """

    @property
    def head_activation(self) -> str | None:
        """The activation within the head; None: there is none."""
        return None

    def build(self, model: ModelConfig, vocabulary: int) -> "Objective":
        """The objective with a fresh head.

        Args:
            model: the model that it trains.
            vocabulary: V, the number of its tokens, including tokens that objectives add.
        """
        raise NotImplementedError

    def generator_model(self, model: ModelConfig) -> ModelConfig | None:
        """The config of the generator beside a model; None: the objective has no generator."""
        return None

    @property
    def versions(self) -> int | None:
        """The number of versions of an example, its arrangement included; None: another version in every epoch."""
        return None

    @property
    def about_source(self) -> str | None:
        """The difference of a source from its text, in words; None: the marks in the source show it."""
        return None

    @property
    def rows_left(self) -> float:
        """Share of the rows that the objective leaves to the one named by `rows_left_for`."""
        return 0.0

    @property
    def extra_tokens(self) -> int:
        """Number of tokens that the objective adds to the tokenizer's; their ids follow the tokenizer's."""
        return 0

    @property
    def token_targets(self) -> bool:
        """The objective predicts tokens, so that its loss can be read as bits per byte."""
        return self.classes is None

    @property
    def gap_marks(self) -> int:
        """Number of tokens that mark gaps in a source, one token a gap; 0: there are none."""
        return 0

    def mark_ids(self, tokenizer: Tokenizer) -> list[int]:
        """The ids of the tokens that mark gaps, in their order.

        Raises:
            UserError: the tokenizer lacks tokens that the objective takes from it.
        """
        return []

    def prompt(self, tokenizer: Tokenizer) -> list[int]:
        """The ids that a decoder after an encoder reads before a target."""
        return [tokenizer.start]

    def before_source(self, tokenizer: Tokenizer) -> list[int]:
        """The ids at the beginning of a source, before its text."""
        return []


class TokenObjectiveConfig(ObjectiveConfig):
    """The common fields of objectives that predict tokens of the vocabulary."""

    z_loss: float = Field(default=0.0, ge=0)
    """z, the weight of z Z^2 in the training loss of each target, where Z is the logarithm of the sum over all tokens
    of exp(score); 1e-4 in PaLM (Chowdhery et al. 2022, arXiv:2204.02311, section 5) and GPT-BERT. Held-out losses are
    without it.
    """
    of_training: ClassVar[frozenset[str]] = frozenset(("z_loss",))
    retired: ClassVar[Mapping[str, Any]] = {"logit_cap": None}


class Objective(Protocol):
    """An objective at work, built by `ObjectiveConfig.build`."""

    @property
    def name(self) -> str:
        """The config's kind, under which losses are reported."""
        ...

    head: Head
    """The module that scores gathered rows; trained with the model."""

    @property
    def targets_per_token(self) -> float:
        """Expected number of targets for each token of a row, a mean over the training, for counting FLOPs."""
        ...

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Choose targets; objectives that corrupt their input change the examples' ids in place."""
        ...


@runtime_checkable
class Rewriting(Protocol):
    """An objective that makes a source and a target of a row of text."""

    def lengths(self, length: int) -> tuple[int, int]:
        """Approximate number of tokens of the source and of the target made from `length` tokens of text."""
        ...


def row_lengths(objectives: Sequence[Objective], length: int) -> tuple[int, int]:
    """Numbers of tokens of the source, 0 without one, and of the model's row, for `length` tokens of text."""
    rewriting = next((each for each in objectives if isinstance(each, Rewriting)), None)
    return (0, length) if rewriting is None else rewriting.lengths(length)


@runtime_checkable
class Sharing(Protocol):
    """An objective that takes some rows and leaves the others to the objectives beside it."""

    rows_left: float
    """The share of the rows that the objective leaves to others."""


@runtime_checkable
class Shortening(Protocol):
    """An objective that takes tokens out of rows in training."""

    kept_share: float
    """The share of a row's tokens that stay."""


@runtime_checkable
class Prefixed(Protocol):
    """An objective that lets the beginning of a row be seen from both sides."""

    def pairs_ahead(self, length: int) -> float:
        """Expected number of pairs of a token and a later one that it sees in a row, for counting FLOPs."""
        ...


@runtime_checkable
class TwoStream(Protocol):
    """An objective that adds rows to the model's second stream."""

    @property
    def queries_per_token(self) -> float:
        """Expected number of the added rows for each token of a row, for counting FLOPs."""
        ...


@runtime_checkable
class Generating(Protocol):
    """An objective whose own model, the generator, learns another objective and fills the tokens that it has hidden."""

    generator: Model
    """The generator. It has no tables of its own, but reads the model's."""
    learns: str
    """The name of the objective that the generator learns."""

    def replace(
        self, ids: Tensor, hidden: tuple[Tensor, Tensor], log_probabilities: Tensor, drawn: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """The filled rows, and the labels of this objective's targets."""
        ...
