"""What the numbers say, in plain words: the headline, a sentence a task, and warnings."""

from collections.abc import Iterator
from typing import NamedTuple

from bakeoff.comparison.reporting.search_findings import search_cautions
from bakeoff.comparison.reporting.spending import spending_cautions
from bakeoff.comparison.results import Analysis, CurvePoint, Results, TaskFacts
from bakeoff.comparison.statistics import SEEDS_FOR_A_CLAIM, Difference
from bakeoff.display.wording import METRIC_NAMES, counted, listed, percent, points
from bakeoff.objectives.registry import OBJECTIVES

PLATEAU = 0.95
"""A loss above this share of the unigram entropy: hardly more than token frequencies has been learned."""


class Findings(NamedTuple):
    """The answer of a comparison."""

    headline: str
    """One sentence."""
    details: list[str]
    """A few more, each on its own."""


class Standing(NamedTuple):
    """The recipes of one task by the best: what is worse beyond the noise, and what cannot be told apart."""

    best: str
    peers: list[str]
    beaten: list[str]
    next: Difference | None

    @classmethod
    def of(cls, analysis: Analysis) -> "Standing":
        """Rank by the mean over seeds."""
        best = max(analysis.pretrained, key=lambda label: analysis.pretrained[label].mean)
        pairs = [pair for pair in analysis.pairs if pair.first == best]
        peers = [pair.second for pair in pairs if not pair.real]
        return cls(best, peers, [pair.second for pair in pairs if pair.real], pairs[0] if pairs else None)


def findings(results: Results) -> Findings:
    """The headline and its details."""
    standings = {analysis.task: Standing.of(analysis) for analysis in results.analyses}
    details = []
    for analysis in results.analyses:
        details.append(_standing(results, analysis, standings[analysis.task]))
        details += [*_gain(results, analysis), *_floor(results, analysis)]
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


def _standing(results: Results, analysis: Analysis, standing: Standing) -> str:
    metric = METRIC_NAMES[_task(results, analysis.task).metric]
    mean = f"{percent(analysis.pretrained[standing.best].mean)} % {metric}"
    start = f"On {analysis.task}, {standing.best}"
    if standing.next is None:
        return f"{start} reaches {mean}."
    behind = f"{points(standing.next.difference)[1:]} points ahead of {standing.next.second}"
    if not _claims(results):
        return f"{start} has the highest mean, {mean}, {behind}; that may be chance."
    if not standing.peers and standing.next.interval:
        low, high = (points(value) for value in standing.next.interval)
        return f"{start} is best with {mean}, {behind}, the next (95 % interval {low} to {high} points)."
    text = f"{start} has the highest mean, {mean}, but {listed(standing.peers)} cannot be told apart from it"
    return f"{text}; {listed(standing.beaten)} did worse beyond the noise." if standing.beaten else f"{text}."


def _gain(results: Results, analysis: Analysis) -> Iterator[str]:
    if not analysis.gains or not _claims(results):
        return
    for sign, verb in ((1, "raises"), (-1, "lowers")):
        real = {label: gain for label, gain in analysis.gains.items() if gain.real and gain.difference * sign > 0}
        if real:
            sizes = sorted(abs(gain.difference) for gain in real.values())
            size = percent(sizes[0]) if len(sizes) == 1 else f"{percent(sizes[0])} to {percent(sizes[-1])}"
            who = "every recipe" if len(real) == len(analysis.gains) > 1 else listed(list(real))
            metric = METRIC_NAMES[_task(results, analysis.task).metric]
            yield f"Pre-training {verb} the {metric} of {who} on {analysis.task} by {size} points, beyond the noise."


def _floor(results: Results, analysis: Analysis) -> Iterator[str]:
    metric = _task(results, analysis.task).metric
    best = Standing.of(analysis).best
    mean = analysis.pretrained[best].mean
    for floor in results.floors:
        if floor.task == analysis.task and floor.kind == "tfidf_logistic_regression" and mean > floor.test[metric]:
            above = points(mean - floor.test[metric])[1:]
            yield (
                f"TF-IDF with logistic regression reaches {percent(floor.test[metric])} % on {analysis.task}; "
                f"{best} is {above} points above it."
            )


def _task(results: Results, name: str) -> TaskFacts:
    return next(task for task in results.tasks if task.name == name)


def cautions(results: Results) -> list[str]:
    """What a reader has to know before believing or acting on the numbers."""
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


def _at_plateau(entropy: float | None, curve: list[CurvePoint]) -> bool:
    if not entropy or not curve:
        return False
    losses = [value for name, value in curve[-1].losses.items() if OBJECTIVES[name].bounded_by_frequencies]
    return any(loss > PLATEAU * entropy for loss in losses)


def _task_cautions(results: Results, analysis: Analysis) -> Iterator[str]:
    task = _task(results, analysis.task)
    highest = max(spread.mean for spread in analysis.pretrained.values())
    # The stronger floor alone; on a tie that of TF-IDF, which is the later one.
    floors = sorted((floor for floor in results.floors if floor.task == task.name), key=lambda f: f.test[task.metric])
    for floor in floors[-1:]:
        if floor.test[task.metric] >= highest:
            what = "TF-IDF with logistic regression" if floor.kind != "majority" else "Always the most frequent class"
            yield (
                f"{what} scores {percent(floor.test[task.metric])} % on {task.name}, no less than the best recipe "
                f"({percent(highest)} %): at this budget, no model compared here is worth its cost on this task."
            )
    if analysis.gains:
        pays = [label for label, gain in analysis.gains.items() if gain.difference > 0 and gain.real is not False]
        without = [label for label in analysis.gains if label not in pays]
        if without and _claims(results):
            who = "no recipe" if not pays else "all but these"
            told = f"no gain from pre-training could be shown for {listed(without)}"
            yield f"On {task.name}, {told}." if pays else f"Pre-training pays for {who} on {task.name}: {told}."
        elif not pays:
            yield f"Pre-training raises no recipe's mean on {task.name}."
    for note in task.notes:
        yield f"{task.name}: {note}."
