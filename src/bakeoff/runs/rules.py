"""Changes of how a given recipe is trained, and of how its runs are read, between versions of Bakeoff."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

RULES = 2
"""The number of the current rules, which every run records. A change of the rules raises it and enters a list below, or
has a name here, by which older runs are read as they were."""
MARKS_BEGIN_WORDS = 2
"""The first rules by which a word is tagged at the mark of its beginning where that is a token by itself."""

Values = Mapping[str, Any]


class Change(NamedTuple):
    """A change of the rules."""

    rules: int
    """The first number of rules with the change."""
    what: str
    """The old behaviour, as the end of a sentence: before, LAMB left out ..."""
    concerns: Callable[[Values], bool]
    """Whether the change affects a run with this complete recipe. Runs from before rules were numbered have the number
    0,
    whether they are older than the change or not; keys that came with the change tell them apart."""


def changes_since(recipe: Values, environment: Values, changes: tuple[Change, ...]) -> Iterator[str]:
    """The changes, in words, that affect a run and came after it.

    Args:
        recipe: the content of the run's recipe.yaml.
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
    """Whether relative attention has a dropout of its own, which once did not apply to distances."""
    dropout = recipe["model"].get("dropout")
    mixers = (part for part in _parts(recipe["model"]) if part.get("kind") == "relative_attention")
    return any(part.get("dropout") not in (None, dropout) and "key_width" not in part for part in mixers)


def _sources_with_start(recipe: Values) -> bool:
    model = recipe["model"]
    both = model.get("encoder") is not None and model.get("decoder") is not None
    return both and "output_dropout" not in model


def _parts(node: Any) -> Iterator[Values]:
    """All mappings in a tree, including the tree itself."""
    if isinstance(node, Mapping):
        yield node
    for child in node.values() if isinstance(node, Mapping) else node if isinstance(node, list) else ():
        yield from _parts(child)


OF_TRAINING = (
    Change(1, "LAMB left norms and biases out of its adaptation", _lamb),
    Change(1, "relative attention dropped its distances at the model's rate", _dropout_of_distances),
)
"""Changes that affect a resumed pre-training."""

OF_FINETUNED_RUNS = (Change(1, "fine-tuned models read sources without [CLS]", _sources_with_start),)
"""Changes by which a fine-tuned run would read other rows than it was fine-tuned on."""
