"""The tables of a report, as HTML."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import cast

from bakeoff.comparison.reporting.measures import ShownMetric, against_the_best, leading
from bakeoff.comparison.reporting.spending import spending
from bakeoff.comparison.reporting.unequal import budget_of, equal_budgets
from bakeoff.comparison.reporting.verdict_words import verdict, what_would_decide
from bakeoff.comparison.results import Baseline, RecipeEntry, Results
from bakeoff.comparison.statistics.pairs import Spread
from bakeoff.comparison.statistics.questions import Difference
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.display.wording import capitalised, duration, memory, p_value, points, quantity
from bakeoff.report.elements import frame, head

WITH_SCRATCH, WITHOUT_SCRATCH = 3, 6
"""Most tasks in one table: with three columns for each task, and with one."""

NOTHING = '<td class="weak">–</td>'
"""The cell of what is not known."""


def leaders(measure: ShownMetric, analysis: Analysis) -> set[str]:
    """Labels of the recipes that lead, see `leading`; empty if no claim can be made, or there is one recipe."""
    ranked = measure.ranked(analysis)
    pairs = against_the_best(analysis, ranked[0])
    if not pairs or len(pairs) < len(ranked) - 1 or any(pair.real is None for pair in pairs):
        return set()
    return set(leading(measure, analysis))


def scores(results: Results) -> str:
    """The table of scores: recipes, the best on average first, and baselines; many tasks make several tables.

    Tasks that some recipes alone have, such as losses of one objective, have tables of their own.
    """
    together: dict[tuple[bool, tuple[str, ...]], dict[str, Analysis]] = {}
    for analysis in results.analyses:
        key = bool(analysis.scratch), tuple(sorted(analysis.pretrained))
        together.setdefault(key, {})[analysis.task] = analysis
    return "".join(
        _tables(results, analyses, scratch, [each for each in results.recipes if each.label in labels])
        for (scratch, labels), analyses in together.items()
    )


def _tables(results: Results, analyses: Mapping[str, Analysis], scratch: bool, entries: Sequence[RecipeEntry]) -> str:
    """The tables of tasks that the same recipes have."""
    names = [*analyses]
    parts = math.ceil(len(names) / (WITH_SCRATCH if scratch else WITHOUT_SCRATCH))
    measures = {name: ShownMetric.of(results, name) for name in names}
    recipes = sorted(entries, key=_standing(analyses, measures))
    cuts = [round(part * len(names) / parts) for part in range(parts + 1)]
    return "".join(
        _scores(results, recipes, {name: measures[name] for name in names[begin:end]}, scratch)
        for begin, end in pairwise(cuts)
    )


def _scores(results: Results, recipes: list[RecipeEntry], measures: Mapping[str, ShownMetric], scratch: bool) -> str:
    """The table of scores on the tasks in `measures`."""
    analyses = {analysis.task: analysis for analysis in results.analyses if analysis.task in measures}
    bold = {name: leaders(measures[name], analysis) for name, analysis in analyses.items()}
    columns = ["pre-trained", "from scratch", "gain"] if scratch else ["pre-trained"]
    groups = "".join(
        f'<th class="start" colspan="{len(columns)}">{escape(name)}<br>{escape(measure.heading)}</th>'
        for name, measure in measures.items()
    )
    names = "".join(
        f"<th{' class=start' if i == 0 else ''}>{name}</th>" for _ in measures for i, name in enumerate(columns)
    )
    rows = []
    for entry in recipes:
        cells = ""
        for name, analysis in analyses.items():
            measure, strong = measures[name], entry.label in bold[name]
            cells += _spread(measure, analysis.pretrained.get(entry.label), strong=strong, start=True)
            if scratch:
                cells += _spread(measure, analysis.scratch.get(entry.label))
                cells += _gain(measure, analysis.gains.get(entry.label))
        rows.append(f"<tr><th>{escape(entry.label)}</th>{cells}</tr>")
    rows += _baseline_rows(results, measures, len(columns))
    return frame(f'<tr class="groups"><th></th>{groups}</tr><tr><th>Recipe</th>{names}</tr>', rows)


def _standing(analyses: Mapping[str, Analysis], measures: Mapping[str, ShownMetric]) -> Callable[[RecipeEntry], float]:
    """A sort key, the best recipe first: by the sum of scores, or of places where scores have no scale in common."""
    if all(measure.task.unit and not measure.task.lower_is_better for measure in measures.values()):
        return lambda entry: -sum(analysis.pretrained[entry.label].mean for analysis in analyses.values())
    ranked = [measures[name].ranked(analysis) for name, analysis in analyses.items()]
    return lambda entry: sum(labels.index(entry.label) for labels in ranked)


def _spread(measure: ShownMetric, spread: Spread | None, *, strong: bool = False, start: bool = False) -> str:
    """A cell with mean ± standard deviation, and the interval below."""
    if spread is None:
        return NOTHING
    mean = f"<b>{measure.value(spread.mean)}</b>" if strong else measure.value(spread.mean)
    deviation = f" ± {measure.value(spread.deviation)}" if spread.deviation is not None else ""
    return f"<td{' class=start' if start else ''}>{mean}{deviation}{interval_below(measure, spread)}</td>"


def interval_below(measure: ShownMetric, spread: Spread) -> str:
    """The interval of a mean, for the second line of its cell; empty where it is not known."""
    if spread.interval is None:
        return ""
    return f"<small>{' to '.join(map(measure.value, measure.cut(spread.interval)))}</small>"


def _gain(measure: ShownMetric, gain: Difference | None) -> str:
    """A cell with the difference, in bold if it exceeds the noise; below, its interval and the relative difference."""
    if gain is None:
        return NOTHING
    relative = f"<small>{points(gain.relative)} %</small>" if gain.relative is not None else ""
    if gain.interval:
        relative = f"<small>{' to '.join(map(measure.change, gain.interval))}</small>{relative}"
    if gain.real:
        return f"<td><b>{measure.change(gain.difference)}</b>{relative}</td>"
    return f'<td class="weak">{measure.change(gain.difference)}{relative}</td>'


def _baseline_rows(results: Results, measures: Mapping[str, ShownMetric], width: int) -> list[str]:
    """The rows of baselines: answers without a model, and methods without a neural network, one row for each rank."""
    by_kind: dict[str, dict[str, list[Baseline]]] = {"simplest": defaultdict(list), "learned": defaultdict(list)}
    for baseline in results.baselines:
        if baseline.task in measures:
            by_kind[baseline.kind][baseline.task].append(baseline)
    rows = []
    for kind, title in (("simplest", "Without a model"), ("learned", "Without a neural network")):
        for rank in range(max(map(len, by_kind[kind].values()), default=0)):
            baselines_of_rank = {task: those[rank] for task, those in by_kind[kind].items() if rank < len(those)}
            names = {baseline.name for baseline in baselines_of_rank.values()}
            cells = ""
            for task, measure in measures.items():
                baseline_of_task = baselines_of_rank.get(task)
                what = f"<small>{escape(baseline_of_task.name)}</small>" if baseline_of_task and len(names) > 1 else ""
                value = measure.value(baseline_of_task.test[measure.task.metric]) if baseline_of_task else "–"
                cells += f'<td class="start">{value}{what}</td>' + "<td></td>" * (width - 1)
            name = title if len(names) > 1 else capitalised(next(iter(names)))
            rows.append(f'<tr class="baseline"><th>{escape(name)}</th>{cells}</tr>')
    return rows


def differences(
    measure: ShownMetric, pairs: Iterable[Difference], heading: str, counts: Mapping[str, int] | None = None
) -> str:
    """A table of differences, each with its interval and verdict, and with what would decide it.

    Args:
        measure: the metric.
        pairs: the differences.
        heading: the heading of the first column.
        counts: the test rows of the tasks that they are about, by their names; None: those of the metric's task.
    """
    rows = []
    for pair in pairs:
        text = escape(verdict(measure, pair))
        text = f"<b>{text}</b>" if pair.better else text
        if words := what_would_decide(measure, pair, counts or {measure.task.name: measure.rows}):
            text += f"<br><small>{escape(words)}</small>"
        interval = " to ".join(map(measure.change, pair.interval)) if pair.interval else "–"
        p = p_value(pair.adjusted_p) if pair.adjusted_p is not None else "–"
        rows.append(
            f"<tr><th>{escape(pair.first)} − {escape(pair.second)}</th><td>{measure.change(pair.difference)}</td>"
            f'<td>{interval}</td><td>{escape(p)}</td><td class="text{"" if pair.better else " weak"}">{text}</td></tr>'
        )
    unit = measure.steps.strip() or measure.task.metric_title
    names = head([heading, unit, "95 % interval", "p, corrected"], last="verdict")
    return frame(names, rows)


def costs(results: Results) -> str:
    """The table of each recipe's costs, as means over seeds."""
    own = not equal_budgets(results)
    names = ["Recipe", *(["budget"] if own else []), "parameters", "FLOPs/token", "steps", "tokens", "tokens/s"]
    names += ["memory", "time", "budget spent", "total FLOPs"]
    return frame(head(names), (_cost(results, entry, own) for entry in results.recipes))


def _cost(results: Results, entry: RecipeEntry, own: bool) -> str:
    """The row of a recipe; `own`: with its budget."""
    runs = entry.runs
    first = [budget_of(results, entry)] if own else []
    if not runs:
        untrained = [*first, quantity(entry.parameters), quantity(entry.flops_per_token), *["–"] * 7]
        return f"<tr><th>{escape(entry.label)}</th>{''.join(f'<td>{cell}</td>' for cell in untrained)}</tr>"

    def mean(name: str) -> float:
        return cast(float, sum(getattr(run, name) for run in runs) / len(runs))

    cells = [
        *first,
        quantity(entry.parameters),
        quantity(entry.flops_per_token),
        f"{entry.steps:,}",
        quantity(mean("tokens")),
        quantity(mean("tokens_per_second")),
        memory(entry.memory),
        duration(mean("seconds")),
        f"{100 * spending(results, entry).fair:.0f} %",
        quantity(mean("flops")),
    ]
    return f"<tr><th>{escape(entry.label)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
