"""Task heads that transformers' classes share with Bakeoff."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.links import Link, linear, same
from bakeoff.tasks.task_config import HeadClass

SEQUENCE: HeadClass = "SequenceClassification"
TOKENS: HeadClass = "TokenClassification"
ANSWERS: HeadClass = "QuestionAnswering"
CHOICES: HeadClass = "MultipleChoice"
PURPOSES: dict[HeadClass, str] = {
    SEQUENCE: "text-classification",
    TOKENS: "token-classification",
    ANSWERS: "question-answering",
    CHOICES: "multiple-choice",
}
"""transformers' names of what the models of each class are for."""


class NotSaid(Exception):
    """A family cannot express a recipe or a head; the text is the reason, for the user."""


class HeadForm(NamedTuple):
    """The form of a fine-tuned run's head."""

    ending: HeadClass
    """The end of the name of transformers' class for the kind of task."""
    of_rows: bool
    """Whether the head gives logits for a row; false: for each token."""
    pooling: str
    """How the hidden states of a row become one vector, see `FinetuneConfig.pooling`."""
    layers: int | str = 1
    """The layers whose states the head reads, see `FinetuneConfig.layers`."""
    pooler: str = "tanh"
    """Activation of the pooler of the pooling cls, see `FinetuneConfig.pooler`."""
    transform: bool = False
    """Whether a linear layer, an activation and a norm stand before the last linear layer, see
    `FinetuneConfig.transform`."""


class TaskHead(NamedTuple):
    """A class of transformers with a task head, and the links of the head."""

    architecture: str
    """The name of the class."""
    links: list[Link]
    """Links between `pooler.` and `output.` of a fine-tuned run and their tensors."""
    config: dict[str, Any] = {}  # noqa: RUF012 nobody changes it
    """Keys of config.json that describe the head."""
    bias_in: str = ""
    """Our tensor that takes over the head's bias where their last linear layer has none: the bias of the norm before
    it. Empty: their layer has a bias."""
    pads_before: bool = False
    """Whether padding must stand before the tokens, because the class reads the last position of a row."""


def require_summary(config: ConfigReader, wanted: Mapping[str, Any]) -> None:
    """Refuse a class that pools rows in another way.

    Raises:
        NotSaid: a `summary_...` key has another value than the wanted one, which is also its default.
    """
    for key, value in wanted.items():
        if (there := config.values.get(key, value)) != value:
            raise NotSaid(f"{key} is {there!r:.50} there, and {value!r} alone has a counterpart here")


def row_head(family: str, form: HeadForm, pooler: str, output: str, activation: str = "tanh") -> TaskHead:
    """A head of rows: W a(W_p h) with the hidden state h of the first position and the pooler's activation a.

    Raises:
        NotSaid: rows are pooled in another way, or the pooler has another activation.
    """
    if form.pooling != "cls":
        raise NotSaid(f"its rows are pooled by {form.pooling}, and {family}'s by their first position")
    if form.pooler != activation:
        raise NotSaid(f"its layer over the first position ends with {form.pooler}, and {family}'s with {activation}")
    return TaskHead(f"{family}For{form.ending}", [*linear("pooler", pooler), *linear("output", output)])


def token_head(family: str, form: HeadForm) -> TaskHead:
    """A head of tokens: W h with the hidden state h of each token."""
    output = "qa_outputs" if form.ending == ANSWERS else "classifier"
    return TaskHead(f"{family}For{form.ending}", linear("output", output))


def last_token_head(family: str, form: HeadForm, norm: str) -> TaskHead:
    """A head of rows: W h with the hidden state h of the last token, without a bias.

    Args:
        family: the beginning of the class's name.
        form: the head.
        norm: the bias of the norm before the head, see `TaskHead.bias_in`.

    Raises:
        NotSaid: rows are pooled in another way, or the family has no such class.
    """
    if form.ending == CHOICES:
        raise NotSaid(f"{family} has no class for choices that gives each one number alone")
    if form.pooling != "last":
        raise NotSaid(f"its rows are pooled by {form.pooling}, and {family}'s by their last token")
    return TaskHead(f"{family}For{form.ending}", [same("output.weight", "score.weight")], bias_in=norm)
