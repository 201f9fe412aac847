"""Minimal pairs as a measure: how often a run finds the acceptable sentence likelier (BLiMP), by paradigm."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from typing_extensions import override

from bakeoff.display.wording import listed, quoted
from bakeoff.errors import UserError
from bakeoff.recipe import Recipe
from bakeoff.runs.run import Run
from bakeoff.scoring.completions import Completions
from bakeoff.scoring.methods import readings_of
from bakeoff.scoring.minimal_pairs import credits_of
from bakeoff.scoring.options import Reading
from bakeoff.tasks.language import pairs_of, reading_of
from bakeoff.tasks.measures.expected import UntrainedRun, seconds_of_rows
from bakeoff.tasks.measures.measure import Anchor, MeasureConfig, Measured, Measurement, Panel
from bakeoff.tasks.task_config import Metric
from bakeoff.tokenizer.tokenizer import Tokenizer

CHANCE = Anchor("chance", 0.5, counts=False)
"""The accuracy of guessing."""


class MinimalPairsConfig(MeasureConfig):
    """Pairs of sentences, of which the acceptable one should be likelier (BLiMP, Warstadt et al. 2020), zero-shot."""

    in_words: ClassVar[str] = "minimal pairs"

    kind: Literal["minimal_pairs"] = "minimal_pairs"
    """Pairs of an acceptable and an unacceptable sentence."""
    test: Path
    """A .jsonl, .csv or .tsv, also .gz or .zst, with the columns sentence_good and sentence_bad, and UID for the
    paradigm: accuracies are means over paradigms, which are the clusters of the pairs."""
    reading: Reading | None = None
    """How sentences are read; absent: forwards where a run can, else pseudo. Runs that cannot are left out."""
    metric: Literal["accuracy"] = "accuracy"
    """The mean accuracy over paradigms; a tie counts half."""

    @override
    def refused(self, recipe: Recipe) -> str | None:
        known = readings_of(recipe.trained if self.reading is None else recipe.trained_first)
        if not known:
            return "gives sentences no probability"
        if self.reading is not None and self.reading not in known:
            return f"cannot read {self.reading}"
        return None

    @override
    def check(self) -> None:
        pairs_of(self.test)

    @override
    def measure(self, run: Run, text: str | None, device: str) -> Measured:
        chosen, pairs = reading_of(run, self.reading), pairs_of(self.test)
        right = credits_of(run, pairs, chosen, device=device)
        lines = [{"group": pair.group, "right": float(each)} for pair, each in zip(pairs, right, strict=True)]
        return Measured({"accuracy": float(right @ _weights(lines))}, lines, {"reading": chosen})

    @override
    def expected_seconds(self, recipe: Recipe, tokenizer: Tokenizer, text: str | None, device: str) -> float:
        run, pairs = UntrainedRun(recipe, tokenizer), pairs_of(self.test)
        scores = Completions(run, reading_of(run, self.reading), device=device)

        def read(count: int) -> None:
            chosen = [pairs[index * len(pairs) // count] for index in range(count)]
            scores.score([sentence for pair in chosen for sentence in (pair.good, pair.bad)])

        return seconds_of_rows(read, len(pairs))

    @override
    def panels(self, measurements: Sequence[Measurement], recipes: Mapping[str, Any], text: str) -> list[Panel]:
        if not measurements:
            return []
        rows: dict[str, list[Any]] = {}
        for each in measurements:
            values = np.array([line["right"] for line in each.lines])
            rows.setdefault(each.label, []).append(values * _weights(each.lines) * len(values))
        groups = [line["group"] for line in measurements[0].lines]
        if any([line["group"] for line in each.lines] != groups for each in measurements):
            raise UserError(f"{self.test}: measurements of different pairs; delete those of {self.title!r}")
        numbers = {group: number for number, group in enumerate(dict.fromkeys(groups))}
        clusters = [numbers[group] for group in groups] if 1 < len(numbers) < len(groups) else []
        shown = Metric("accuracy")
        files, notes = {"test": str(self.test)}, _readings(measurements)
        return [Panel("", self.metric, shown, False, tuple(rows), rows, clusters, 1.0, [CHANCE], files, notes)]


def _weights(lines: Sequence[Mapping[str, Any]]) -> Any:
    """(n,) the weight of each pair in the mean over groups, which count alike."""
    sizes = Counter(line["group"] for line in lines)
    return np.array([1 / (len(sizes) * sizes[line["group"]]) for line in lines])


def _readings(measurements: Sequence[Measurement]) -> list[str]:
    """A note on how sentences were read, if recipes read them in several ways."""
    ways: dict[str, dict[str, None]] = {}
    for each in measurements:
        ways.setdefault(each.facts["reading"], {})[quoted(each.label)] = None
    words = {
        "pseudo": "with each token hidden in turn",
        "pseudo_words": "with each token hidden in turn, and the rest of its word with it",
    }
    several = "; ".join(f"{words.get(way, way)} by {listed([*those])}" for way, those in ways.items())
    return [f"sentences were read {several}"] if len(ways) > 1 else []
