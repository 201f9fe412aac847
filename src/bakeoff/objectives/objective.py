"""What every objective is: targets for a batch, and a head that turns hidden states into a loss."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
"""How a text gets its log-probability: each token from those before it; each from all others, where [MASK] stands for
it, or where a row of the second stream asks for it; a target from its source."""


@dataclass(frozen=True)
class Targets:
    """The places of a batch at which an objective predicts something."""

    rows: NDArray[np.int64]
    """(n,) places in the batch's hidden states flattened to (N * T * directions, D), in rising order; rows of a second
    stream count to T for the objective that adds them, and not for others."""
    labels: NDArray[np.int64]
    """(n,) what is to be predicted at each; an objective with a generator has 32 random bits here, from which the label
    follows in the step."""
    directions: int = 1
    """Hidden states of each position: 2 where the model reads in two directions."""
    length: int | None = None
    """T that `rows` are counted with; None: that of the examples' ids."""

    def in_rows_of(self, own: int, length: int) -> "Targets":
        """The targets with their places counted for another T; the examples' ids have T = `own`."""
        counted = self.length or own
        if counted == length:
            return self
        example, place = np.divmod(self.rows, counted * self.directions)
        return Targets(example * length * self.directions + place, self.labels, self.directions, length)


def no_targets() -> Targets:
    """The targets of an objective that is not trained for now: none at all."""
    return Targets(np.zeros(0, np.int64), np.zeros(0, np.int64))


class ObjectiveConfig(PartConfig):
    """The common fields of all objectives."""

    kind: str
    """The objective's name."""
    title: ClassVar[str]
    """What is predicted, in a few words, for charts."""
    refused: ClassVar[Mapping[str, str]]
    """Why the objective cannot train models, or on rows, that have a trait (`legality.TRAITS`): a reason by trait."""
    weight: float = Field(default=1.0, gt=0)
    """Factor of this objective's mean loss in the sum."""
    relates_segments: ClassVar[bool] = False
    """The objective arranges the segments of a pair and labels them."""
    row_marks: ClassVar[RowMarks] = "ends"
    """The special tokens that the objective's rows have; running text has none at a row's ends."""
    rewrites: ClassVar[bool] = False
    """The objective makes a source and a target of the text, for a model with an encoder and a decoder."""
    classes: ClassVar[Sequence[str] | None] = None
    """What each label means, where labels are classes; None: they are tokens."""
    bounded_by_frequencies: ClassVar[bool] = False
    """The targets are tokens as the text has them, so that whoever knows how frequent each is has the unigram entropy
    as loss."""
    whole_text: ClassVar[bool] = False
    """Each token of the text is predicted once, from those before it, so that losses can be compared whatever the
    settings, and in bits per byte whatever the tokenizer."""
    peek_note: ClassVar[str | None] = None
    """What `peek` says of a next token x that the objective predicts; None: that all before x predict it."""
    targets_together: ClassVar[int] = 1
    """How many targets in a row are tokens that the model reads in another order; 1: none."""
    writes: ClassVar[bool] = False
    """A model that has learnt the objective can go on with a text, or write one for a source."""
    continues_source: ClassVar[bool] = False
    """What is written for a source goes on with it."""
    scoring: ClassVar[Scoring | None] = None
    """How a model that has learnt the objective gives a text its log-probability; None: it cannot."""
    reads_prefix: ClassVar[bool] = False
    """The beginning of a row, which is not predicted, is seen from both sides by a model that is causal behind it."""
    reads_rows: ClassVar[bool] = False
    """Rows are seen whole from both sides by a model that is causal otherwise."""
    rows_left_for: ClassVar[str | None] = None
    """The objective that is trained on the rows which this one leaves, where it reads rows."""
    from_before: ClassVar[bool] = False
    """Tokens that are hidden are predicted at the place before theirs."""
    moves: ClassVar[bool] = False
    """The objective moves tokens. It chooses them after all other objectives, from those that are not hidden."""
    head_of: ClassVar[str | None] = None
    """The objective whose head this one scores with, where both are trained."""

    generator_learns: ClassVar[str | None] = None
    """The objective that a smaller model, this one's generator, learns in the model's place. In each step the generator
    fills what that objective has hidden; the labels of this one are made then."""

    @property
    def head_activation(self) -> str | None:
        """The activation within its head; None: there is none."""
        return None

    def build(self, model: ModelConfig, vocabulary: int) -> "Objective":
        """The objective with a fresh head.

        Args:
            model: what it trains.
            vocabulary: V, the number of its tokens, the objectives' own among them.
        """
        raise NotImplementedError

    def generator_model(self, model: ModelConfig) -> ModelConfig | None:
        """The config of the generator beside a model that the objective can train; None: there is none."""
        return None

    @property
    def versions(self) -> int | None:
        """How many versions of an example there are, its arrangement and all; None: another one in every epoch."""
        return None

    @property
    def about_source(self) -> str | None:
        """What was done to a source that cannot be seen from its marks, in words; None: nothing."""
        return None

    @property
    def rows_left(self) -> float:
        """Share of the rows that the objective leaves to the one named by `rows_left_for`."""
        return 0.0

    @property
    def extra_tokens(self) -> int:
        """Tokens that the objective needs beside the tokenizer's; their ids follow its own."""
        return 0

    @property
    def token_targets(self) -> bool:
        """The objective predicts tokens, so that its loss can be read as bits per byte."""
        return self.classes is None

    @property
    def gap_marks(self) -> int:
        """Number of tokens that stand for gaps of a source, one token a gap; 0: there are none."""
        return 0

    def mark_ids(self, tokenizer: Tokenizer) -> list[int]:
        """The ids of the tokens that stand for gaps, in their order.

        Raises:
            UserError: the tokenizer lacks tokens that the objective takes from it.
        """
        return []

    def prompt(self, tokenizer: Tokenizer) -> list[int]:
        """The ids that a decoder behind an encoder reads before a target."""
        return [tokenizer.start]

    def before_source(self, tokenizer: Tokenizer) -> list[int]:
        """The ids that a source begins with, before its text."""
        return []


class TokenObjectiveConfig(ObjectiveConfig):
    """The common fields of objectives that predict tokens of the vocabulary."""

    z_loss: float = Field(default=0.0, ge=0)
    """z, with which z Z^2 is added to the loss of each target in training, Z being the logarithm of the sum over all
    tokens of exp(score); 1e-4 in PaLM (Chowdhery et al. 2022, arXiv:2204.02311, section 5) and GPT-BERT. Held-out
    losses are without it."""
    retired: ClassVar[Mapping[str, Any]] = {"logit_cap": None}


class Objective(Protocol):
    """The part of a config that works: `ObjectiveConfig.build` makes it."""

    @property
    def name(self) -> str:
        """The config's kind, under which losses are reported."""
        ...

    head: Head
    """The module that scores gathered rows; trained with the model."""

    @property
    def targets_per_token(self) -> float:
        """Expected number of targets for each token of a row, for counting FLOPs; on average over a training."""
        ...

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Choose targets, corrupting the examples' ids in place where the objective does so."""
        ...


@runtime_checkable
class Rewriting(Protocol):
    """An objective that makes a source and a target of a row of text."""

    def lengths(self, length: int) -> tuple[int, int]:
        """Tokens of the source and of the target that `length` tokens of text become, about."""
        ...


def row_lengths(objectives: Sequence[Objective], length: int) -> tuple[int, int]:
    """Tokens of the source, 0 where there is none, and of the row that the model reads of `length` tokens of text."""
    rewriting = next((each for each in objectives if isinstance(each, Rewriting)), None)
    return (0, length) if rewriting is None else rewriting.lengths(length)


@runtime_checkable
class Sharing(Protocol):
    """An objective that takes some rows for itself, and leaves the others to those beside it."""

    rows_left: float
    """The share of the rows that the objective leaves to others."""


@runtime_checkable
class Prefixed(Protocol):
    """An objective that has the tokens at the beginning of a row seen from both sides."""

    def pairs_ahead(self, length: int) -> float:
        """Expected number of pairs of tokens of a row of which the first sees the second, for counting FLOPs."""
        ...


@runtime_checkable
class TwoStream(Protocol):
    """An objective that adds rows to the model's second stream."""

    @property
    def queries_per_token(self) -> float:
        """Expected number of these rows for each token of a row, for counting FLOPs."""
        ...


@runtime_checkable
class Generating(Protocol):
    """An objective with a model of its own, which learns another objective and fills what that one has hidden."""

    generator: Model
    """The generator. It has no tables of its own, and reads those of the model."""
    learns: str
    """The name of the objective that the generator learns."""

    def replace(
        self, ids: Tensor, hidden: tuple[Tensor, Tensor], log_probabilities: Tensor, drawn: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """The filled rows, and the labels of this objective's targets."""
        ...
