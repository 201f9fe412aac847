"""Warnings on how many examples each label has, in train and in the other splits."""

from collections.abc import Iterator, Mapping, Sequence

from bakeoff.display.wording import counted
from bakeoff.tasks.reading.questions import ANSWERED

MOST = 0.8
"""The share of the most frequent label from which accuracy says little."""
_NAMED = 8  # labels of a warning
NOT_CONSTANT = {"question_answering": ANSWERED}
"""By the kind of a task the label that no model gives every row: each question with an answer has one of its own."""


def most_of_train(counts: Mapping[str, Mapping[str, int]], kind: str) -> Iterator[str]:
    """A warning where one label is most of train.

    Args:
        counts: the number of occurrences of each label, by the name of the split.
        kind: the kind of the task.
    """
    train = counts["train"]
    label = max(train, key=lambda name: train[name], default="")
    if len(train) > 1 and label != NOT_CONSTANT.get(kind) and (share := train[label] / sum(train.values())) >= MOST:
        yield (
            f"{share:.1%} of train are '{label}': a model that answers nothing else is right as often; look at other "
            "scores than accuracy"
        )


def in_one_split(counts: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Warnings on labels that train or a scored split lacks; `counts` as of `most_of_train`."""
    known = counts["train"].keys()
    for name in ("dev", "test"):
        labels = counts.get(name, {}).keys()
        if missing := sorted(known - labels) if labels else []:
            yield f"{counted(len(missing), 'label')} of train missing in {name}: {some_of(missing)}"
        if unseen := sorted(labels - known):
            yield f"{counted(len(unseen), 'label')} of {name} missing in train: {some_of(unseen)}"


def some_of(names: Sequence[str], counts: Mapping[str, int] | None = None) -> str:
    """The first names of labels, in quotation marks where they have a comma, their `counts`, and how many others."""
    shown = [f'"{name}"' if "," in name else name for name in names[:_NAMED]]
    if counts is not None:
        shown = [f"{label} ({counts[name]:,})" for label, name in zip(shown, names, strict=False)]
    return ", ".join(shown) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
