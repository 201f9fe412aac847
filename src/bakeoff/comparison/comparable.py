"""Which losses of a comparison's recipes can be compared: of one objective, with one setting, on one text."""

import json
from collections import defaultdict
from typing import Any, NamedTuple

from bakeoff.comparison.pretraining_run import CurvePoint
from bakeoff.comparison.results import RecipeEntry, Results
from bakeoff.objectives.held_out import held_out_settings, what_differs
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

    def trigram(self, results: Results) -> float | None:
        """The loss of the best model that counts three tokens; None: it is in another unit, or not known."""
        if self.unit != "bits per byte":
            return None
        known = [(entry.corpus or results.corpus).trigram_bits_per_byte for entry in self.entries]
        return min((each for each in known if each is not None), default=None)


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
        if OBJECTIVES[name].bounds:  # in a panel of its own, like every objective: ranked with no likelihood
            unit = "nats per token, at most"
        panels.append(ComparableLosses(title, unit, entries, name))
    return sorted(panels, key=lambda panel: list(OBJECTIVES).index(panel.objective))


def _measured_on(results: Results, entry: RecipeEntry, name: str) -> dict[str, Any]:
    """What the held-out loss of a recipe's objective is measured on, in names for a title.

    Bits a byte compare whatever the settings and the tokenizer, but for the separators that are predicted, too; a loss
    over masked tokens depends on what is masked.
    """
    corpus = entry.corpus or results.corpus
    text = {"text": results.corpus.path if corpus.held_out == results.corpus.held_out else corpus.path}
    settings = held_out_settings(entry.recipe, name)
    if OBJECTIVES[name].whole_text:
        return settings | text
    return {**settings, "tokenizer": corpus.tokenizer, **text}
