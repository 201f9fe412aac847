"""Causal language modelling: each token is predicted from those before it."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from typing_extensions import override

from bakeoff.corpus.split import Split
from bakeoff.formats.example import Examples
from bakeoff.formats.input_config import RowMarks
from bakeoff.models.model import ModelConfig
from bakeoff.objectives.heads import AdaptiveTokenHead, Head, UntiedTokenHead, tied_head
from bakeoff.objectives.objective import Scoring, Targets, TokenObjectiveConfig
from bakeoff.objectives.refusals import GENERATES_FOR_A_SOURCE, reads_in_order
from bakeoff.randomness.draws import Draws
from bakeoff.tokenizer.tokenizer import Tokenizer


class LanguageModelConfig(TokenObjectiveConfig):
    """The common fields of objectives that predict a token from the tokens on one side of it."""

    head: Literal["tied", "untied", "adaptive"] = "tied"
    """The last layer: the embedding's table (tied), a table of its own (untied), or an adaptive softmax."""
    cutoffs: list[int] | None = Field(default=None, min_length=1)
    """The rising ids at which the clusters of an adaptive softmax begin. Cutoffs beyond the vocabulary are left out; a
    head that is left without any cutoff is an untied one.
    """
    bias: bool = False
    """Each token has a bias in its score; with an adaptive softmax only the tokens below the first cutoff have one."""
    row_marks: ClassVar[RowMarks] = "documents"
    scoring: ClassVar[Scoring | None] = "forwards"

    @model_validator(mode="after")
    def _cutoffs_of_an_adaptive_softmax(self) -> Self:
        if self.head == "adaptive" and self.cutoffs is None:
            raise ValueError("head: adaptive needs 'cutoffs', such as [2000, 10000]")
        if self.head != "adaptive" and self.cutoffs is not None:
            raise ValueError(f"'cutoffs' belong to head: adaptive, and head is {self.head}")
        if self.cutoffs is not None and [0, *self.cutoffs] != sorted({0, *self.cutoffs}):
            raise ValueError(f"cutoffs: {self.cutoffs} are not positive and rising")
        if self.head == "adaptive" and self.z_loss:
            raise ValueError("z_loss: an adaptive softmax has a normaliser a cluster; set head to tied or untied")
        return self

    def _head(self, model: ModelConfig, vocabulary: int) -> Head:
        width = model.stack.output_width
        if self.head == "tied":
            return tied_head(model, vocabulary, self.bias)
        if reached := [cutoff for cutoff in self.cutoffs or [] if cutoff < vocabulary]:
            return AdaptiveTokenHead(width, vocabulary, reached, self.bias)
        return UntiedTokenHead(width, vocabulary, self.bias)


class CausalLanguageModelConfig(LanguageModelConfig):
    """Next-token prediction at every position (Radford et al. 2018).

    Beside `mntp` it reads the rows that `mntp` leaves and uses the head of `mntp`; its own settings of a head have no
    effect then.
    """

    kind: Literal["clm"] = "clm"
    """The objective's name."""
    title: ClassVar[str] = "Next token (clm)"
    refused: ClassVar[Mapping[str, str]] = {
        "encoder": "clm predicts the next token, which a model with 'encoder' can see; use 'decoder'",
        "decoder with directions: 2": "clm reads in one direction, and the model has 'directions: 2'; use bilm, or set "
        "it to 1",
        "encoder and decoder": f"clm leaves the encoder without anything to read; use {GENERATES_FOR_A_SOURCE}",
        **reads_in_order("clm"),
    }
    noise: float = Field(default=0.0, ge=0, lt=1)
    """Share of the tokens that are hidden from the input in training, others in every epoch, while all are predicted
    (Gao et al. 2025, arXiv:2510.04071; Ni et al. 2025, arXiv:2511.03276). Held-out text is read as it is.
    """
    noise_by: Literal["mask", "skip"] = "mask"
    """The form of hidden tokens: [MASK] in their place, or none, so that the row is shorter."""
    bounded_by_frequencies: ClassVar[bool] = True
    of_training: ClassVar[frozenset[str]] = LanguageModelConfig.of_training | {"noise", "noise_by"}
    set_by_stage: ClassVar[frozenset[str]] = frozenset(("noise", "noise_by"))
    whole_text: ClassVar[bool] = True
    generates: ClassVar[bool] = True
    head_of: ClassVar[str | None] = "mntp"

    @override
    def build(self, model: ModelConfig, vocabulary: int) -> "CausalLanguageModel":
        return CausalLanguageModel(self, self._head(model, vocabulary))


class CausalLanguageModel:
    """Every token of the text is a target; N examples, T length."""

    name = "clm"

    def __init__(self, config: CausalLanguageModelConfig, head: Head) -> None:
        self.config = config
        self.head: Head = head
        self.kept_share = 1 - config.noise if config.noise_by == "skip" else 1.0
        self.targets_per_token = 1.0

    def targets(self, examples: Examples, split: Split, tokenizer: Tokenizer, draws: Draws) -> Targets:
        """The next tokens, at all positions but padding, tokens that are only read, and rows seen from both sides."""
        assert examples.following is not None
        predicted = examples.padding_mask
        if examples.context is not None:
            predicted &= np.arange(predicted.shape[1]) >= examples.context[:, None]
        if examples.row.prefix is not None:
            predicted &= examples.row.prefix[:, None] == 0
        if tokenizer.end_of_line is not None:  # after the last line there is nothing
            predicted &= examples.sources < len(split.tokens) - 1
        following = examples.following
        if self.config.noise and not examples.measured:
            hidden = predicted & (examples.sources >= 0)
            hidden &= draws.uniform("noise", hidden.shape[1]) < self.config.noise
            if self.config.noise_by == "mask":
                examples.row.ids[hidden] = tokenizer.mask
            else:
                predicted, following = self._skipped(examples, hidden, predicted, following, tokenizer)
        rows = np.flatnonzero(predicted)
        return Targets(rows, following.ravel()[rows])

    def _skipped(
        self,
        examples: Examples,
        hidden: NDArray[np.bool_],
        predicted: NDArray[np.bool_],
        following: NDArray[np.int64],
        tokenizer: Tokenizer,
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Take (N, T) hidden tokens out of the rows, whose rest moves up; what each position predicts moves with it."""
        order = np.argsort(hidden, axis=1, kind="stable")  # those that stay first, in their order
        stays = np.take_along_axis(~hidden, order, 1)

        def moved(values: NDArray[Any], fill: int) -> NDArray[Any]:
            return np.where(stays, np.take_along_axis(values, order, 1), fill)

        row = examples.row
        documents = None if row.documents is None else moved(row.documents, 0)
        examples.row = row._replace(ids=moved(row.ids, tokenizer.pad), documents=documents)
        examples.sources = moved(examples.sources, -1)
        return moved(predicted, 0).astype(np.bool_), moved(following, -1)
