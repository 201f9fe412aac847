"""Masked next-token prediction: one stack and one head learn to fill gaps and to go on with a text (GPT-BERT)."""

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
from bakeoff.objectives.refusals import predicts_all, reads_running_text, starts_anew
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer


class MaskedNextTokenConfig(MaskingConfig):
    """Rows that a causal stack reads from both sides; what is hidden at k + 1 is predicted at k.

    Charpentier and Samuel 2024 (arXiv:2410.24159, section 2.1). Since k is also where a causal model predicts k + 1,
    one head serves both: `clm` beside this objective reads the rows that are left to it causally, with this head. Each
    of the two has its own sum, divided once by its own number of targets, and its own `weight`. As published, processes
    of either kind average the means of their losses, so that each mean counts with its share of the rows: with
    `causal: 0.0625` the weights are 0.9375 here and 0.0625 for `clm`.
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
        **reads_running_text("mntp"),
        **predicts_all("mntp"),
        **starts_anew("mntp"),
    }
    bounded_by_frequencies: ClassVar[bool] = True
    causal: float = Field(default=0.0, ge=0, lt=1)
    """Share of the rows that are left to `clm`, each row being drawn by itself; the paper's is 1/16."""
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
    """Draws the rows that are read from both sides, and hides tokens of them; N examples, T length."""

    name = "mntp"

    def __init__(self, config: MaskedNextTokenConfig, model: ModelConfig, vocabulary: int) -> None:
        super().__init__(config, model, vocabulary)
        self.rows_left = config.causal
        self.targets_per_token = config.mean_rate * (1 - config.causal)

    def pairs_ahead(self, length: int) -> float:
        """How many pairs of tokens of which the first sees the second, behind it, a row has on average."""
        return (1 - self.rows_left) * length * (length - 1) / 2

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """Hide tokens of the rows that are read from both sides; each is predicted at the place before it.

        A row's first token has no such place; a document's has that of its separator.
        """
        own = draws if self.config.versions is None else draws.static(self.config.versions)
        both_sides = own.uniform("reading", 1)[:, 0] >= self.rows_left
        examples.prefix = np.where(both_sides, (examples.documents > 0).sum(1), 0)
        allowed = np.repeat(both_sides[:, None], examples.ids.shape[1], axis=1)
        allowed[:, 0] = False
        places, labels = self.hide(examples, split, tokenizer, draws, allowed)
        return Targets(places - 1, labels)
