"""Options of vectors and of their comparison, each declared here alone; without torch, for the command line."""

from typing import Literal, Self

from pydantic import model_validator

from bakeoff.config import Config
from bakeoff.tasks.pooling import Pooling


class VectorConfig(Config):
    """How a text becomes one vector."""

    pooling: Pooling | None = None
    """How token vectors become one vector: mean or max over all tokens of the row, special ones included, as in
    Sentence-BERT (Reimers and Gurevych 2019, arXiv:1908.10084, section 3); cls for the state at [CLS]; last for the
    state at the row's last token; None: that for which `bakeoff contrast` has taught the run, with the linear layer
    that it has made, else mean."""
    layers: tuple[int, ...] | None = None
    """The layers whose outputs are pooled, averaged if several: 0 for the input of the first layer, 1 for its output,
    -1 for the output of the last layer with the final norm. 1,-1 averages the first and the last layer (Li et al.
    2020, arXiv:2011.05864, section 4); None: those that `bakeoff contrast` has taught the run, else -1."""
    length: int | None = None
    """Largest length of a row in tokens; longer texts are cut; None: as in pre-training, or in fine-tuning."""


class SimilarityOptions(VectorConfig):
    """The columns of a file to compare, how texts become vectors, and what is measured."""

    text_column: str
    """The column with the first text."""
    pair_column: str
    """The column with the second text."""
    label_column: str | None = None
    """The column with the score, a number that is higher for more similar texts; None: every row is a text with its
    partner, and retrieval is measured."""
    least_score: float | None = None
    """With scores: rows with at least this score are texts with their partners, and retrieval is measured, too; None:
    correlations alone are measured."""
    at: tuple[int, ...] = (1, 5, 10)
    """The numbers k of recall@k."""
    whiten: bool = False
    """Whiten the vectors, so that over all different texts of the file their elements have mean 0 and variance 1 and
    are not correlated. Scores are not used."""
    errors: Literal["strict", "replace"] = "strict"
    """Whether invalid UTF-8 is an error, or replaced by U+FFFD."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.least_score is not None and self.label_column is None:
            raise ValueError("--least-score is a number, and needs --label-column with the scores")
        if not self.at or min(self.at) < 1:
            raise ValueError("--at: recall is measured at numbers from 1 on, such as 1,5,10")
        return self
