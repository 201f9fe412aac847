"""Masked next-token prediction: one stack and one head learn to fill gaps and to continue a text (GPT-BERT)."""

from collections.abc import Mapping
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field
from typing_extensions import override

from bakeoff.corpus.split import Split
from bakeoff.formats.example import Examples
from bakeoff.formats.input_config import RowMarks
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.masking import Masking, MaskingConfig
from bakeoff.objectives.objective import Targets
from bakeoff.objectives.refusals import predicts_all, reads_in_order, starts_anew
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer


class MaskedNextTokenConfig(MaskingConfig):
    """Reads rows from both sides with a causal stack, and predicts the hidden token at k + 1 from position k.

    Charpentier and Samuel 2024 (arXiv:2410.24159, section 2.1). A causal model predicts the token at k + 1 from
    position k as well, so that one head serves both: `clm` beside this objective reads the other rows causally, with
    this head. Each of the two has a sum, divided once by its number of targets, and a `weight`. In the
    published code each process trains one of the two, and the means of their losses are averaged over the processes, so
    that each mean counts with its share of the rows: with `causal: 0.0625` the weights are 0.9375 here and 0.0625 for
    `clm`.
    """

    kind: Literal["mntp"] = "mntp"
    """The objective's name."""
    title: ClassVar[str] = "Masked tokens, each from the place before it (mntp)"
    refused: ClassVar[Mapping[str, str]] = {
        "encoder": "mntp predicts a hidden token at the place before it, as a model with 'decoder' predicts the next "
        "one; use 'decoder', or mlm",
        "decoder with directions: 2": "mntp needs layers that see both sides, and 'directions: 2' has two that never "
        "meet; use bilm, or set it to 1",
        "encoder and decoder": "mntp leaves the encoder without anything to read; leave it out, or use denoising",
        "mixers that do not attend": "mntp shows tokens of a row what is ahead of them: attention of any kind can "
        "look there, no other mixer",
        "t5 positions of one side": "mntp shows tokens what is ahead of them, where this decoder's t5 positions tell "
        "no distances; set two_sided of its mixers to true",
        **reads_in_order("mntp"),
        **predicts_all("mntp"),
        **starts_anew("mntp"),
    }
    bounded_by_frequencies: ClassVar[bool] = True
    causal: float = Field(default=0.0, ge=0, lt=1)
    """Share of the rows that are left to `clm`, drawn independently for each row; the paper's is 1/16."""
    set_by_stage: ClassVar[frozenset[str]] = MaskingConfig.set_by_stage | {"causal"}
    row_marks: ClassVar[RowMarks] = "documents"
    reads_rows: ClassVar[bool] = True
    rows_left_for: ClassVar[str | None] = "clm"
    from_before: ClassVar[bool] = True

    @property
    @override
    def rows_left(self) -> float:
        return self.causal

    @override
    def build(self, model: ModelConfig, vocabulary: int) -> "MaskedNextTokenPrediction":
        return MaskedNextTokenPrediction(self, model, vocabulary)


class MaskedNextTokenPrediction(Masking):
    """Draws the rows that are read from both sides, and hides some of their tokens; N examples, T length."""

    name = "mntp"

    def __init__(self, config: MaskedNextTokenConfig, model: ModelConfig, vocabulary: int) -> None:
        super().__init__(config, model, vocabulary)
        self.rows_left = config.causal
        self.targets_per_token = config.mean_rate * (1 - config.causal)

    def pairs_ahead(self, length: int) -> float:
        """Expected number of pairs of tokens in a row of which the first sees the second, which stands after it."""
        return (1 - self.rows_left) * length * (length - 1) / 2

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Hide tokens of the rows that are read from both sides; each is predicted at the position before it.

        The first token of a row has no position before it; the first token of a document is predicted at its separator.
        """
        both_sides = draws.static(self.config.versions).uniform("reading", 1)[:, 0] >= self.rows_left
        examples.row = examples.row._replace(prefix=np.where(both_sides, examples.padding_mask.sum(1), 0))
        allowed = np.repeat(both_sides[:, None], examples.row.ids.shape[1], axis=1)
        allowed[:, 0] = False
        positions, labels = self.hide(examples, split, tokenizer, draws, allowed)
        return Targets(positions - 1, labels)
