"""Which losses of a comparison's recipes can be compared: of one objective, with one setting, on one text."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bakeoff.comparison.results import CurvePoint, RecipeEntry, Results
from bakeoff.objectives.registry import OBJECTIVES


class ComparableLosses(NamedTuple):
    """Recipes whose losses can be compared: of one objective with the same settings, in one unit."""

    title: str
    unit: str
    entries: list[RecipeEntry]
    objective: str

    def value(self, point: CurvePoint) -> float | None:
        """The loss of one validation in the panel's unit; None: the validation has none."""
        losses = point.bits_per_byte if self.unit == "bits per byte" else point.losses
        return losses.get(self.objective)


def comparable_losses(results: Results) -> list[ComparableLosses]:
    """The groups of recipes whose losses can be compared, one for each objective, its settings and the text.

    Losses of tokens compare on one tokenizer alone, bits per byte on one text.
    """
    grouped: dict[tuple[str, str], list[RecipeEntry]] = defaultdict(list)
    for entry in results.recipes:
        for name in dict.fromkeys(name for run in entry.runs for point in run.curve for name in point.losses):
            grouped[name, json.dumps(_measured_on(results, entry, name), sort_keys=True)].append(entry)
    panels = []
    for (name, settings), entries in grouped.items():
        of_name = [json.loads(other) for objective, other in grouped if objective == name]
        title = ", ".join([OBJECTIVES[name].title, *what_differs(json.loads(settings), of_name)])
        byte = any(name in point.bits_per_byte for run in entries[0].runs for point in run.curve)
        unit = "bits per byte" if OBJECTIVES[name].whole_text and byte else "nats per target"
        panels.append(ComparableLosses(title, unit, entries, name))
    return sorted(panels, key=lambda panel: list(OBJECTIVES).index(panel.objective))


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


def _settings(recipe: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The settings of a recipe's objective of this name, as far as they say what its held-out loss is measured on.

    Its weight leaves the loss itself unchanged, and held-out text is masked at one rate, whatever training's are.
    """
    objectives = recipe.get("objective") or []
    for objective in objectives if isinstance(objectives, list) else [objectives]:
        if objective.get("kind") == name:
            settings = {key: value for key, value in objective.items() if key not in ("kind", "weight", "first_rate")}
            rate = settings.pop("held_out_rate", None)
            return settings if rate is None else {**settings, "rate": rate}
    return {}


def _measured_on(results: Results, entry: RecipeEntry, name: str) -> dict[str, Any]:
    """What the held-out loss of a recipe's objective is measured on, in names for a title.

    Bits a byte compare whatever the settings and the tokenizer; a loss over masked tokens depends on what is masked.
    """
    corpus = entry.corpus or results.corpus
    text = {"text": results.corpus.path if corpus.held_out == results.corpus.held_out else corpus.path}
    if OBJECTIVES[name].whole_text:
        return text
    return {**_settings(entry.recipe, name), "tokenizer": corpus.tokenizer, **text}
