"""The findings of a comparison in plain words: the headline, sentences for each task, and warnings."""

from collections.abc import Iterator
from typing import NamedTuple

from bakeoff.comparison.reporting.measures import ShownMetric, against_the_best
from bakeoff.comparison.reporting.search_findings import search_cautions
from bakeoff.comparison.reporting.spending import spending_cautions
from bakeoff.comparison.results import Analysis, CurvePoint, Results
from bakeoff.comparison.statistics import SEEDS_FOR_A_CLAIM, Difference, Spread
from bakeoff.display.wording import counted, listed
from bakeoff.objectives.registry import OBJECTIVES

PLATEAU = 0.95
"""Share of the unigram entropy above which a loss shows hardly more learned than token frequencies."""


class Findings(NamedTuple):
    """The findings of a comparison, in sentences."""

    headline: str
    """The main finding, one sentence."""
    details: list[str]
    """Further sentences, task by task: the best recipes, the gain of pre-training, the best floor."""


class Standing(NamedTuple):
    """The best recipe of a task and the others: `beaten` are worse beyond the noise, `peers` cannot be told apart."""

    best: str
    peers: list[str]
    beaten: list[str]
    next: Difference | None

    @classmethod
    def of(cls, measure: ShownMetric, analysis: Analysis) -> "Standing":
        """The standing by the means over seeds."""
        best = measure.ranked(analysis)[0]
        pairs = against_the_best(analysis, best)
        peers = [pair.second for pair in pairs if not pair.real]
        return cls(best, peers, [pair.second for pair in pairs if pair.real], pairs[0] if pairs else None)


def findings(results: Results) -> Findings:
    """The headline and the details of a comparison's results."""
    standings = {}
    details = []
    for analysis in results.analyses:
        measure = ShownMetric.of(results, analysis.task)
        standing = standings[analysis.task] = Standing.of(measure, analysis)
        details.append(_standing(results, measure, analysis, standing))
        details += [*_gain(results, measure, analysis), *_floor(results, measure, analysis)]
    return Findings(_headline(results, standings), details)


def _claims(results: Results) -> bool:
    return len(results.finished_seeds) >= SEEDS_FOR_A_CLAIM


def _headline(results: Results, standings: dict[str, Standing]) -> str:
    count = len(results.recipes)
    if not _claims(results):
        seeds = counted(len(results.finished_seeds), "seed")
        return f"Nothing can be claimed yet: {seeds} cannot show whether a difference is real."
    if count == 1:
        return f"Only {results.recipes[0].label} was measured; there is no other recipe to compare it with."
    won = {task: standing.best for task, standing in standings.items() if not standing.peers}
    if len(won) == len(standings) and len(set(won.values())) == 1:
        of_tasks = "" if len(won) == 1 else " on both tasks" if len(won) == 2 else f" on all {len(won)} tasks"
        best = next(iter(won.values()))
        superlative = "better of the two" if count == 2 else f"best of all {count} recipes"
        return f"{best} is the {superlative}{of_tasks}, and the difference is real."
    if won:
        parts = [f"{best} is best on {task}" for task, best in won.items()]
        undecided = [task for task in standings if task not in won]
        if undecided:
            parts.append(f"on {listed(undecided)} the leaders cannot be told apart")
        return f"{'; '.join(parts)}."
    leading = set.intersection(*({standing.best, *standing.peers} for standing in standings.values()))
    if len(leading) == count:
        if count == 2:
            return "No winner: the difference between the two recipes is within the noise."
        return f"No winner: the differences between all {count} recipes are within the noise."
    if len(leading) > 1:
        names = [entry.label for entry in results.recipes if entry.label in leading]
        return f"No single winner: {listed(names)} lead, and the differences among them are within the noise."
    return "No single winner: on each task, the leaders cannot be told apart."


def _standing(results: Results, measure: ShownMetric, analysis: Analysis, standing: Standing) -> str:
    mean = measure.amount(analysis.pretrained[standing.best].mean)
    extreme = "lowest" if measure.task.lower_is_better else "highest"
    start = f"On {analysis.task}, {standing.best}"
    if standing.next is None:
        return f"{start} reaches {mean}."
    behind = f"{measure.size(standing.next.difference)}{measure.steps} ahead of {standing.next.second}"
    if not _claims(results):
        return f"{start} has the {extreme} mean, {mean}, {behind}; that may be chance."
    if not standing.peers and standing.next.interval:
        low, high = (measure.change(each) for each in sorted(map(measure.gain, standing.next.interval)))
        return f"{start} is best with {mean}, {behind}, the next (95 % interval {low} to {high}{measure.steps})."
    text = f"{start} has the {extreme} mean, {mean}, but {listed(standing.peers)} cannot be told apart from it"
    return f"{text}; {listed(standing.beaten)} did worse beyond the noise." if standing.beaten else f"{text}."


def _gain(results: Results, measure: ShownMetric, analysis: Analysis) -> Iterator[str]:
    if not analysis.gains or not _claims(results):
        return
    verbs = [(1, "raises"), (-1, "lowers")]
    for sign, verb in reversed(verbs) if measure.task.lower_is_better else verbs:
        real = {label: gain for label, gain in analysis.gains.items() if gain.real and gain.difference * sign > 0}
        if real:
            sizes = [measure.size(each) for each in sorted(abs(gain.difference) for gain in real.values())]
            size = sizes[0] if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
            who = "every recipe" if len(real) == len(analysis.gains) > 1 else listed(list(real))
            what = f"{measure.task.metric_title} of {who} on {analysis.task}"
            yield f"Pre-training {verb} the {what} by {size}{measure.steps}, beyond the noise."


def _floor(results: Results, measure: ShownMetric, analysis: Analysis) -> Iterator[str]:
    best = measure.ranked(analysis)[0]
    mean = analysis.pretrained[best].mean
    learned = [floor for floor in results.floors if floor.task == analysis.task and floor.kind == "learned"]
    for floor in measure.strongest(learned)[:1]:
        value = floor.test[measure.task.metric]
        if measure.gain(mean - value) > 0:
            side = "below" if measure.task.lower_is_better else "above"
            yield (
                f"{floor.name} reaches {measure.short(value)} on {analysis.task}; "
                f"{best} is {measure.size(mean - value)}{measure.steps} {side} it."
            )


def cautions(results: Results) -> list[str]:
    """Warnings that a reader has to know before believing or acting on the numbers."""
    found = []
    done, planned = len(results.finished_seeds), len(results.planned_seeds)
    if done < planned:
        found.append(f"The comparison is not finished: {done} of {counted(planned, 'seed')} are done.")
    if not _claims(results):
        found.append(
            f"Only {counted(done, 'seed')}: from {SEEDS_FOR_A_CLAIM} on, the report says which differences are real."
        )
    found += [
        f"{failure.recipe} is left out: {failure.training} diverged with seed {failure.seed} ({failure.message})."
        for failure in results.failures
    ]
    found += spending_cautions(results)
    found += search_cautions(results)
    found += _start_cautions(results)
    for entry in results.recipes:
        at_plateau = [run.seed for run in entry.runs if _at_plateau(run.unigram_entropy, run.curve)]
        if at_plateau:
            which = f"seed{'s' * (len(at_plateau) > 1)} {listed([str(seed) for seed in at_plateau])}"
            found.append(
                f"{entry.label} ends its pre-training no better than the unigram entropy ({which}): at best it has "
                "learned how frequent each token is. A larger budget or another learning rate may show another ranking."
            )
        if any(score.initialisation == "pretrained" and not score.transferred_tensors for score in entry.scores):
            found.append(f"{entry.label}: no tensor was taken over from the pre-training; its numbers mean nothing.")
    for analysis in results.analyses:
        found += _task_cautions(results, analysis)
    return found


def _start_cautions(results: Results) -> Iterator[str]:
    """Warnings about recipes that start from a run: its cost is outside the budget, and its weights are in the gain."""
    begun = {entry.label: entry.start for entry in results.recipes if entry.start is not None}
    for label, start in begun.items():
        yield f"{label} starts from {start}. What those weights have cost is no part of the budget."
    others = [entry.label for entry in results.recipes if entry.label not in begun]
    if begun and others:
        yield f"{listed(others)} had the budget alone; the difference is also one of what was spent before."
    if begun and any(analysis.gains for analysis in results.analyses):
        yield (
            f"From scratch is the same architecture with random weights, so the gain of {listed(list(begun))} is that "
            "of the weights that it starts from and of this pre-training together."
        )


def _at_plateau(entropy: float | None, curve: list[CurvePoint]) -> bool:
    if not entropy or not curve:
        return False
    losses = [value for name, value in curve[-1].losses.items() if OBJECTIVES[name].bounded_by_frequencies]
    return any(loss > PLATEAU * entropy for loss in losses)


def _against(measure: ShownMetric, value: float, best: Spread) -> str:
    """The comparison of a floor with the best recipe in words; "better than" only beyond the noise."""
    if best.interval is None:  # The noise is not known: the two numbers alone are told.
        equal = measure.short(value) == measure.short(best.mean)
        return "as good as" if equal else "less than" if measure.task.lower_is_better else "more than"
    return "as good as" if best.interval[0] <= value <= best.interval[1] else "better than"


def _task_cautions(results: Results, analysis: Analysis) -> Iterator[str]:
    measure = ShownMetric.of(results, analysis.task)
    task = measure.task
    best = analysis.pretrained[measure.ranked(analysis)[0]]
    for floor in measure.strongest(floor for floor in results.floors if floor.task == task.name)[:1]:
        value = floor.test[task.metric]
        if measure.gain(value - best.mean) >= 0:
            what = floor.name if floor.kind == "learned" else f"What answers without a model ({floor.name})"
            yield (
                f"{what} scores {measure.short(value)} on {task.name}, {_against(measure, value, best)} the best "
                f"recipe ({measure.short(best.mean)}): at this budget, no model compared here is worth its cost on "
                "this task."
            )
    if _claims(results) and any(pair.p is None for pair in [*analysis.pairs, *analysis.gains.values()]):
        yield (
            f"On {task.name} no difference is called real: how much chance is in its {task.rows['test']:,} test "
            "examples is not known."
        )
    if analysis.gains:
        paying = [label for label, gain in analysis.gains.items() if measure.gain(gain.difference) > 0]
        pays = [label for label in paying if analysis.gains[label].real is not False]
        without = [label for label in analysis.gains if label not in pays]
        if without and _claims(results):
            who = "no recipe" if not pays else "all but these"
            told = f"no gain from pre-training could be shown for {listed(without)}"
            yield f"On {task.name}, {told}." if pays else f"Pre-training pays for {who} on {task.name}: {told}."
        elif not pays:
            yield f"Pre-training improves no recipe's mean on {task.name}."
    for note in task.notes:
        yield f"{task.name}: {note}."
