"""Families of questions in sentences and sections: all tasks together, starts from scratch, gains, trends, others."""

from collections.abc import Callable, Iterable, Iterator

from bakeoff.comparison.facts import TaskFacts
from bakeoff.comparison.reporting import tables
from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.comparison.reporting.verdict_words import IDENTICAL, more_exceed, what_would_decide
from bakeoff.comparison.results import Results
from bakeoff.comparison.statistics.families import OVER_TASKS
from bakeoff.comparison.statistics.questions import Difference, Interaction
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.display.wording import counted, quoted, quoted_list, verb
from bakeoff.report.elements import note

MOST = 3
"""Most differences of a family that are named in sentences."""


def measure_over_tasks(results: Results) -> ShownMetric:
    """The mean score over tasks as reports show it."""
    percent = all(each.unit == "%" for each in results.tasks if each.name in results.averaged)
    facts = TaskFacts(
        name=OVER_TASKS,
        metric="mean",
        metric_title="mean score",
        unit="%" if percent else "× 100",
        classes=0,
        rows={},
        files={},
    )
    return ShownMetric(facts)


def rows_over_tasks(results: Results) -> dict[str, int]:
    """The test rows of the tasks that are averaged, by their names."""
    rows = {each.name: each.rows["test"] for each in results.tasks}
    return {name: rows[name] for name in results.averaged}


def family_sentences(results: Results) -> Iterator[str]:
    """Sentences on what exceeds the noise in each family, and on the mean over tasks in any case."""
    for analysis in results.analyses:
        measure, where = ShownMetric.of(results, analysis.task), f" on {quoted(analysis.task)}"
        yield from _scratch_pairs(measure, analysis.scratch_pairs, where)
        yield from _gain_pairs(measure, analysis.gain_pairs, where)
        yield from _trends(measure, analysis, where, {analysis.task: measure.rows})
    if results.over_tasks is None:
        return
    measure, rows = measure_over_tasks(results), rows_over_tasks(results)
    over = f"Over {quoted_list(rows)}"
    pairs = results.over_tasks.pairs
    real = any(pair.better for pair in pairs)
    yield from _real(
        pairs,
        lambda pair: f"{over}, {quoted(pair.first)} is ahead of {quoted(pair.second)} by {_size(measure, pair)}.",
        lambda more: f"{over}, {more_exceed(more)}.",
    )
    if pairs and not real and pairs[0].real is not None:
        words = what_would_decide(measure, pairs[0], rows)
        best = f"; {quoted(pairs[0].first)} has the highest mean: {words}" if words else ""
        other = "another" if results.baseline is None else quoted(results.baseline)
        yield f"{over} together, no recipe can be told to be better than {other}{best}."
    where = f" {over[0].lower()}{over[1:]}"
    yield from _scratch_pairs(measure, results.over_tasks.scratch_pairs, where)
    yield from _gain_pairs(measure, results.over_tasks.gain_pairs, where)
    yield from _trends(measure, results.over_tasks, where, rows)
    yield from _interactions(measure, [each for each in results.interactions if each.better])


def _size(measure: ShownMetric, difference: Difference) -> str:
    """The size of a difference with its interval, beyond the noise."""
    upwards = difference if difference.difference >= 0 else difference.turned
    assert upwards.interval is not None
    low, high = map(measure.change, upwards.interval)
    size = f"{measure.extent(difference.difference)}{measure.steps}"
    return f"{size}, beyond the noise (95 % interval {low} to {high})"


def _real(
    pairs: Iterable[Difference], sentence: Callable[[Difference], str], rest: Callable[[int], str]
) -> Iterator[str]:
    """A sentence on each of the first differences that exceed the noise, and one on how many more there are."""
    real = [pair for pair in pairs if pair.better]
    yield from map(sentence, real[:MOST])
    if len(real) > MOST:
        yield rest(len(real) - MOST)


def _scratch_pairs(measure: ShownMetric, pairs: list[Difference], where: str) -> Iterator[str]:
    def sentence(pair: Difference) -> str:
        return f"From scratch, {quoted(pair.first)} is ahead of {quoted(pair.second)}{where} by {_size(measure, pair)}."

    yield from _real(pairs, sentence, lambda more: f"From scratch, {more_exceed(more, where)}.")


def _gain_pairs(measure: ShownMetric, pairs: list[Difference], where: str) -> Iterator[str]:
    def sentence(pair: Difference) -> str:
        first, second = quoted(pair.first), quoted(pair.second)
        return f"Pre-training does more for {first} than for {second}{where}: by {_size(measure, pair)}."

    def rest(more: int) -> str:
        differ = verb(more, "differs", "differ")
        return f"Of the gains of pre-training{where}, {counted(more, 'more pair')} {differ} beyond the noise."

    yield from _real(pairs, sentence, rest)


def _trends(measure: ShownMetric, analysis: Analysis, where: str, rows: dict[str, int]) -> Iterator[str]:
    for name, trend in analysis.trends.items():
        ends = f"from {quoted(trend.second)} to {quoted(trend.first)}"
        if trend.better:
            moves, what = "rises" if trend.difference > 0 else "falls", measure.task.metric_title
            yield f"Along {quoted(name)}, {ends}, the {what} {moves}{where} by {_size(measure, trend)}."
        elif trend.verdict == "identical":
            yield f"Along {quoted(name)}, {ends}, nothing changes{where}: {IDENTICAL}."
        elif trend.verdict == "equivalent" and trend.margin is not None:
            margin = f"{measure.size(trend.margin)}{measure.steps}"
            yield f"Along {quoted(name)}, {ends}, the {measure.task.metric_title} changes{where} by less than {margin}."
        elif trend.real is not None:
            words = what_would_decide(measure, trend, rows)
            yield f"Along {quoted(name)}, {ends}, no trend can be shown{where}: {words}."


def _interactions(measure: ShownMetric, real: list[Interaction]) -> Iterator[str]:
    for each in sorted(real, key=lambda each: -abs(each.difference))[:MOST]:
        yield (
            f"The difference of {quoted(each.first)} from {quoted(each.second)} is another one on {quoted(each.task)} "
            f"than on {quoted(each.other)}: by {_size(measure, each)}."
        )
    if len(real) > MOST:
        more = len(real) - MOST
        changes = verb(more, "changes", "change")
        yield f"{counted(more, 'more difference')} {changes} from task to task beyond the noise."


def of_task(results: Results, analysis: Analysis) -> Iterator[str]:
    """The tables of a task's recipes from scratch, of its gains against each other, and of its trends."""
    measure = ShownMetric.of(results, analysis.task)
    rows = {analysis.task: measure.rows}
    yield from _tables(measure, analysis, rows)


def _tables(measure: ShownMetric, analysis: Analysis, rows: dict[str, int]) -> Iterator[str]:
    # Recipes that differ in their pre-training alone are one model from scratch, of which there is nothing to say.
    if any(pair.verdict != "identical" for pair in analysis.scratch_pairs):
        yield tables.differences(measure, analysis.scratch_pairs, "Difference of recipes from scratch", rows)
    if analysis.gain_pairs:
        yield tables.differences(measure, analysis.gain_pairs, "Difference of gains from pre-training", rows)
    if analysis.trends:
        named = [each.model_copy(update={"first": f"{name}: {each.first}"}) for name, each in analysis.trends.items()]
        yield tables.differences(measure, named, "Rise along an order", rows)


def over_tasks_section(results: Results) -> str:
    """The section of the mean over tasks, and of differences that change from task to task."""
    if results.over_tasks is None:
        return ""
    measure, rows = measure_over_tasks(results), rows_over_tasks(results)
    parts = [
        "<h2>Over all tasks</h2>",
        note(
            f"The mean score over {quoted_list(rows)}, seed by seed, each task counting alike; "
            "another comparison has other seeds and other rows of the same tasks."
        ),
    ]
    if results.over_tasks.pairs:
        parts.append(tables.differences(measure, results.over_tasks.pairs, "Difference of mean scores", rows))
    parts += _tables(measure, results.over_tasks, rows)
    if results.interactions:
        parts.append(
            note(
                "Does a difference change from task to task? On the first task less that on the second, all corrected "
                "together; the largest ones."
            )
        )
        parts.append(tables.differences(measure, _largest(results.interactions), "Change of a difference", rows))
    return "\n".join(parts)


def _largest(interactions: Iterable[Interaction]) -> list[Difference]:
    """The interactions with the smallest p-values, at most a dozen, with their tasks in their names."""
    known = sorted(interactions, key=lambda each: (each.p is None, each.p))[:12]
    return [each.model_copy(update={"second": f"{each.second}, on {each.task} − on {each.other}"}) for each in known]
