"""Heads of tasks, as far as transformers' classes have the same ones."""

from typing import NamedTuple

from bakeoff.interop.links import Link, linear

CLASSES = {
    "classification": "SequenceClassification",
    "multilabel": "SequenceClassification",
    "regression": "SequenceClassification",
    "choice": "MultipleChoice",
    "tagging": "TokenClassification",
    "question_answering": "QuestionAnswering",
}
"""How transformers' classes for a kind of task end."""


class NotSaid(Exception):
    """A family has no way to say what a recipe or a head is; the text is the reason, in words."""


class TaskPart(NamedTuple):
    """What a head of a fine-tuned run is."""

    kind: str
    """The kind of the task."""
    of_rows: bool
    """It gives numbers for each row; false: for each token."""
    pooling: str
    """How a row becomes one vector."""


class TaskHead(NamedTuple):
    """A class of transformers, and the links of its head."""

    architecture: str
    """The class."""
    links: list[Link]
    """`pooler.` and `output.` of a fine-tuned run, and theirs."""


def row_head(family: str, part: TaskPart, pooler: str, output: str) -> TaskHead:
    """W tanh(W_p h) of the first position.

    Raises:
        NotSaid: rows are pooled in another way.
    """
    if part.pooling != "cls":
        raise NotSaid(f"its rows are pooled by {part.pooling}, and {family}'s by their first position")
    return TaskHead(f"{family}For{CLASSES[part.kind]}", [*linear("pooler", pooler), *linear("output", output)])


def token_head(family: str, part: TaskPart) -> TaskHead:
    """W h of each token."""
    output = "qa_outputs" if part.kind == "question_answering" else "classifier"
    return TaskHead(f"{family}For{CLASSES[part.kind]}", linear("output", output))
