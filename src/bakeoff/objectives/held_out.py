"""What the loss of an objective on held-out text depends on, and in which of it objectives differ, in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from bakeoff.objectives.registry import OBJECTIVES

_NO_SETTINGS = {"kind", "weight"}
"""Keys of an objective that say nothing of what its held-out loss is measured on."""


def at_most(name: str) -> str:
    """The words before figures of an objective whose loss is a bound; else none."""
    return "at most " if name in OBJECTIVES and OBJECTIVES[name].bounds else ""


def what_differs(settings: Mapping[str, Any], among: Sequence[Mapping[str, Any]]) -> list[str]:
    """The settings in which objectives of one kind differ, in words: rate 0.3; without map bias.

    Args:
        settings: the settings of one of them.
        among: the settings of all of them, this one's included.
    """
    flat = [_flat(each) for each in among]
    values = _flat(settings)
    keys = dict.fromkeys(key for each in flat for key in each)
    differing = [key for key in keys if any(each.get(key) != flat[0].get(key) for each in flat)]
    return [_in_words(key, values.get(key)) for key in differing]


def _flat(settings: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Settings inside of settings by dotted keys."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat |= _flat(value, f"{above}{key}.") if isinstance(value, Mapping) else {f"{above}{key}": value}
    return flat


def _in_words(key: str, value: Any) -> str:
    name = key.replace("_", " ").replace(".", " ")
    if value is None or value is False:
        return f"without {name}"
    if value is True:
        return f"with {name}"
    return f"{name} {', '.join(map(str, value)) if isinstance(value, list) else value}"


DOCUMENTS = "before each document"
"""The separators of most rows of text."""


def separators_of(rows: Mapping[str, Any]) -> str:
    """The separators that a model which reads forwards predicts beside the text, from the keys of a recipe's input."""
    if rows.get("format") in ("full_sentences", "doc_sentences"):
        and_documents = " and each document" if rows["format"] == "full_sentences" else ""
        return f"before each row of whole sentences{and_documents}"
    share = rows.get("separate_sentences", 0)
    if share:
        return "before each sentence" if share == 1 else f"before each sentence of {100 * share:g} % of the documents"
    return DOCUMENTS


def held_out_settings(recipe: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The settings of a recipe's objective of this name, as far as they say what its held-out loss is measured on.

    Its weight leaves the loss itself unchanged; held-out text is masked at one rate, whatever training's are, with the
    same masks, whether training draws others in every epoch or has some sets of them, and read from both sides, and
    whatever the head is made of, its loss is that of the same targets. Of an objective that predicts each token of the
    text once the settings say nothing, but the separators that it predicts besides do.
    """
    if OBJECTIVES[name].whole_text:
        return {"separators": separators_of(recipe.get("input") or {})}
    without = _NO_SETTINGS | OBJECTIVES[name].of_training | OBJECTIVES[name].of_head
    objectives = recipe.get("objective") or []
    for objective in objectives if isinstance(objectives, list) else [objectives]:
        if objective.get("kind") == name:
            settings = {key: value for key, value in objective.items() if key not in without}
            rate = settings.pop("held_out_rate", None)
            return settings if rate is None else {**settings, "rate": rate}
    return {}
