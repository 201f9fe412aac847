"""Rules by which a recipe that has not changed is trained, and its runs are read, otherwise than before."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

RULES = 1
"""Every run records it; it rises with each further change of the rules, which then comes into one of the lists."""

Values = Mapping[str, Any]


class Change(NamedTuple):
    """A change of the rules."""

    rules: int
    """The first number with which runs are made by the new rule."""
    what: str
    """What has changed, behind `before`."""
    concerns: Callable[[Values], bool]
    """Whether it changes anything for a run with that complete recipe. Runs that are older than the numbers have the
    number 0 whether they are older than the change or not: there it is told by keys that came with the change."""


def changes_since(recipe: Values, environment: Values, changes: tuple[Change, ...]) -> Iterator[str]:
    """What of the changes a run does not know yet.

    Args:
        recipe: the content of the run's recipe.yaml, as it stands there.
        environment: the content of its environment.json.
        changes: `OF_TRAINING` or `OF_FINETUNED_RUNS`.
    """
    made_by = environment.get("rules", 0)
    for change in changes:
        if made_by < change.rules and change.concerns(recipe):
            yield change.what


def _lamb(recipe: Values) -> bool:
    optimizer = recipe["training"]["optimizer"]
    return optimizer["kind"] == "lamb" and "bias_correction" not in optimizer


def _dropout_of_distances(recipe: Values) -> bool:
    """Whether distances were dropped at a rate of the mixer's own, which became the model's."""
    own = recipe["model"].get("dropout")
    mixers = (part for part in _parts(recipe["model"]) if part.get("kind") == "relative_attention")
    return any(part.get("dropout") not in (None, own) and "key_width" not in part for part in mixers)


def _sources_with_start(recipe: Values) -> bool:
    model = recipe["model"]
    both = model.get("encoder") is not None and model.get("decoder") is not None
    return both and "output_dropout" not in model


def _parts(node: Any) -> Iterator[Values]:
    """All mappings of a tree, itself among them."""
    if isinstance(node, Mapping):
        yield node
    for child in node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ():
        yield from _parts(child)


OF_TRAINING = (
    Change(1, "LAMB left norms and biases out of its adaptation", _lamb),
    Change(1, "relative attention dropped its distances at the model's rate", _dropout_of_distances),
)
"""Changes that a resumed pre-training goes on by."""

OF_FINETUNED_RUNS = (Change(1, "fine-tuned models read sources without [CLS]", _sources_with_start),)
"""Changes that make a fine-tuned run read other rows than it was fine-tuned on."""
