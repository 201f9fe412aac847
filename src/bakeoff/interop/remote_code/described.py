"""A run, described for its export with code: settings, classes, weights, tokenizer, and outputs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from bakeoff.interop.tokenizer_files import TokenizerSettings
from bakeoff.recipe import Recipe
from bakeoff.row import Row
from bakeoff.tokenizer.tokenizer import Tokenizer

TASK_CLASSES = {
    "AutoModelForSequenceClassification": "BakeoffForSequenceClassification",
    "AutoModelForTokenClassification": "BakeoffForTokenClassification",
    "AutoModelForQuestionAnswering": "BakeoffForQuestionAnswering",
    "AutoModelForMultipleChoice": "BakeoffForMultipleChoice",
}
"""Our class for each class of transformers with a task head."""


@dataclass
class Described:
    """The content of an export with code."""

    recipe: Recipe
    """The model's recipe."""
    tokenizer: Tokenizer
    """The model's tokenizer."""
    config: dict[str, Any]
    """Keys of config.json, classes aside."""
    tensors: dict[str, Tensor]
    """The weights by name."""
    classes: dict[str, str]
    """Our class for each class of transformers."""
    main: str
    """The class of transformers that users are told to load."""
    purpose: str | None
    """transformers' name of the model's pipeline; None: there is none."""
    frame: TokenizerSettings
    """Settings of the tokenizer."""
    computed: Callable[[Row[Tensor]], dict[str, Tensor]]
    """A function from a batch to the run's outputs by class of transformers, for all positions of the batch."""
    generation: dict[str, Any] | None = None
    """Keys of generation_config.json; None: the model does not generate text."""
    heads: list[str] = field(default_factory=list)
    """Kinds of heads that predict tokens: one, or none."""
    remarks: list[str] = field(default_factory=list)
    """Sentences for the user about what the export leaves out."""
