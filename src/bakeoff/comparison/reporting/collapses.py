"""Models that answer the same to every test row, and seeds that fell to what needs no model."""

import math
from collections import defaultdict
from collections.abc import Iterator

from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.comparison.results import Results
from bakeoff.comparison.statistics.pairs import Spread
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.display.wording import listed, quoted

STARTS = {"pretrained": "", "scratch": " from scratch"}
"""The initialisations as they stand after a recipe's name."""

ERRORS = 5
"""Standard errors of a share of the test rows, at most, by which a seed has to lie below the others to have fallen."""

RANGES = 3
"""The multiple of the other seeds' range by which it has to."""


def collapse_cautions(results: Results) -> Iterator[str]:
    """A warning on models with one answer for everything, and one on seeds that fell."""
    same = [text for analysis in results.analyses for text in _same(analysis)]
    if same:
        yield (
            f"The same answer to every test row: {'; '.join(same)}. Such a model has learned nothing of the task, "
            "whatever its score; another learning rate or more epochs of fine-tuning may help."
        )
    fallen = [text for analysis in results.analyses for text in _fallen(results, analysis)]
    if fallen:
        yield (
            f"No better than what needs no model, unlike the other seeds: {'; '.join(fallen)}. One such seed widens "
            "every interval of its recipe, and hides differences; look at the curve of its training."
        )


def _same(analysis: Analysis) -> Iterator[str]:
    """The recipes with one answer on a task: “A” from scratch on “T” (seeds 0 and 2: yes)."""
    found: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for each in analysis.same_answers:
        seeds = found[each.recipe, each.initialisation][each.answer]
        if str(each.seed) not in seeds:
            seeds.append(str(each.seed))
    for (recipe, start), answers in found.items():
        parts = [f"seed{'s' * (len(seeds) > 1)} {listed(seeds)}: {answer}" for answer, seeds in answers.items()]
        yield f"{quoted(recipe)}{STARTS[start]} on {quoted(analysis.task)} ({'; '.join(parts)})"


def _fallen(results: Results, analysis: Analysis) -> Iterator[str]:
    """The seeds of a task that fell: “A” on “T” (seed 1: 50.1 %, the others from 71.0 %)."""
    measure = ShownMetric.of(results, analysis.task)
    metric, known = measure.task.metric, {(each.recipe, each.seed) for each in analysis.same_answers}
    simple = [
        each.test[metric]
        for each in results.baselines
        if each.task == analysis.task and each.kind == "simplest" and metric in each.test
    ]
    for start, spreads in (("pretrained", analysis.pretrained), ("scratch", analysis.scratch)):
        for label, spread in spreads.items():
            for seed in _lost(measure, spread, simple[0]) if simple else ():
                if (label, seed) not in known:
                    others = (value for other, value in spread.seeds.items() if other != seed)
                    least = min(others, key=measure.gain)
                    yield (
                        f"{quoted(label)}{STARTS[start]} on {quoted(analysis.task)} (seed {seed}: "
                        f"{measure.short(spread.seeds[seed])}, the others from {measure.short(least)})"
                    )


def _lost(measure: ShownMetric, spread: Spread, simple: float) -> Iterator[int]:
    """The seeds far below all others, with no more than a baseline's score, which the others exceed."""
    error = 0.5 / math.sqrt(measure.task.rows["test"]) if measure.task.unit else 0.0
    for seed, value in spread.seeds.items():
        others = [measure.gain(score) for other, score in spread.seeds.items() if other != seed]
        if len(others) < 2 or measure.gain(value - simple) > 2 * error:
            continue
        distance = min(others) - measure.gain(value)
        if min(others) - measure.gain(simple) <= 2 * error:
            continue
        if distance > ERRORS * error and distance > RANGES * (max(others) - min(others)):
            yield seed
