"""A run as transformers is to have it: settings, classes, weights, tokenizer, and what ours computes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from bakeoff.interop.tokenizer_files import TokenizerSettings
from bakeoff.recipe import Recipe
from bakeoff.tasks.rows.batches import InputBatch
from bakeoff.tokenizer.tokenizer import Tokenizer

TASK_CLASSES = {
    "AutoModelForSequenceClassification": "BakeoffForSequenceClassification",
    "AutoModelForTokenClassification": "BakeoffForTokenClassification",
    "AutoModelForQuestionAnswering": "BakeoffForQuestionAnswering",
    "AutoModelForMultipleChoice": "BakeoffForMultipleChoice",
}
"""What a pre-trained model can be fine-tuned as."""


@dataclass
class Described:
    """What is to be written."""

    recipe: Recipe
    """The model's recipe."""
    tokenizer: Tokenizer
    """Its tokenizer."""
    config: dict[str, Any]
    """What config.json holds beside the classes."""
    tensors: dict[str, Tensor]
    """The weights."""
    classes: dict[str, str]
    """For each class of transformers ours."""
    main: str
    """The first of them to be named to a user."""
    purpose: str | None
    """transformers' name for what it is for."""
    frame: TokenizerSettings
    """How texts become rows."""
    computed: Callable[[InputBatch], dict[str, Tensor]]
    """What ours computes of a batch, by class of transformers; what is for padding stands where it stands."""
    generation: dict[str, Any] | None = None
    """How it writes."""
    heads: list[str] = field(default_factory=list)
    """The kind of the head that scores tokens, where there is one."""
    remarks: list[str] = field(default_factory=list)
    """What does not go along."""
