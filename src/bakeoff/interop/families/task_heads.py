"""Heads of tasks, as far as transformers' classes have the same ones."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from bakeoff.interop.config_reader import ConfigReader
from bakeoff.interop.links import Link, linear, same

CLASSES = {
    "classification": "SequenceClassification",
    "multilabel": "SequenceClassification",
    "regression": "SequenceClassification",
    "choice": "MultipleChoice",
    "tagging": "TokenClassification",
    "question_answering": "QuestionAnswering",
}
"""How transformers' classes for a kind of task end."""
OF_ROWS = ("classification", "multilabel", "regression", "choice")
"""Kinds whose head gives numbers for each row; those of others for each token."""


class NotSaid(Exception):
    """A family has no way to say what a recipe or a head is; the text is the reason, in words."""


class HeadForm(NamedTuple):
    """What a head of a fine-tuned run is."""

    kind: str
    """The kind of the task."""
    of_rows: bool
    """It gives numbers for each row; false: for each token."""
    pooling: str
    """How a row becomes one vector."""
    layers: int | str = 1
    """What it reads, see `FinetuneConfig.layers`."""
    pooler: str = "tanh"
    """What the layer of the pooling cls ends with, see `FinetuneConfig.pooler`."""


class TaskHead(NamedTuple):
    """A class of transformers, and the links of its head."""

    architecture: str
    """The class."""
    links: list[Link]
    """`pooler.` and `output.` of a fine-tuned run, and theirs."""
    config: dict[str, Any] = {}  # noqa: RUF012 nobody changes it
    """What config.json says of it."""
    bias_in: str = ""
    """The last map has no bias there: the tensor of ours that takes it over, the bias of the norm before the map."""
    pads_before: bool = False
    """The class reads the last place of a row, so that padding has to stand before the tokens."""


def require_summary(config: ConfigReader, wanted: Mapping[str, Any]) -> None:
    """Refuse a class whose vector of a row is made in another way.

    Raises:
        NotSaid: a key of `summary_...` has another value than is wanted, which is what it has where it is absent.
    """
    for key, value in wanted.items():
        if (there := config.values.get(key, value)) != value:
            raise NotSaid(f"{key} is {there!r:.50} there, and {value!r} alone has a counterpart here")


def row_head(family: str, form: HeadForm, pooler: str, output: str, activation: str = "tanh") -> TaskHead:
    """W a(W_p h) of the first position.

    Raises:
        NotSaid: rows are pooled in another way.
    """
    if form.pooling != "cls":
        raise NotSaid(f"its rows are pooled by {form.pooling}, and {family}'s by their first position")
    if form.pooler != activation:
        raise NotSaid(f"its layer over the first position ends with {form.pooler}, and {family}'s with {activation}")
    return TaskHead(f"{family}For{CLASSES[form.kind]}", [*linear("pooler", pooler), *linear("output", output)])


def token_head(family: str, form: HeadForm) -> TaskHead:
    """W h of each token."""
    output = "qa_outputs" if form.kind == "question_answering" else "classifier"
    return TaskHead(f"{family}For{CLASSES[form.kind]}", linear("output", output))


def last_token_head(family: str, form: HeadForm, norm: str) -> TaskHead:
    """W h of the last token of a row, without a bias.

    Args:
        family: how the class's name begins.
        form: the head.
        norm: the bias of the norm whose output the map reads, see `TaskHead.bias_in`.

    Raises:
        NotSaid: rows are pooled in another way, or there is no such class.
    """
    if form.kind == "choice":
        raise NotSaid(f"{family} has no class for choices that gives each one number alone")
    if form.pooling != "last":
        raise NotSaid(f"its rows are pooled by {form.pooling}, and {family}'s by their last token")
    return TaskHead(f"{family}For{CLASSES[form.kind]}", [same("output.weight", "score.weight")], bias_in=norm)
