"""The tables of a report, as HTML."""

from html import escape
from typing import cast

from bakeoff.comparison.reporting.spending import spending
from bakeoff.comparison.results import Analysis, Floor, RecipeEntry, Results
from bakeoff.comparison.statistics import Difference, Spread
from bakeoff.display.wording import METRIC_NAMES, duration, memory, p_value, percent, points, quantity
from bakeoff.report.elements import frame, head

NOTHING = '<td class="weak">–</td>'


def leaders(analysis: Analysis) -> set[str]:
    """The best recipe and all that cannot be told apart from it; none while no claim can be made."""
    best = max(analysis.pretrained, key=lambda label: analysis.pretrained[label].mean)
    against = [pair for pair in analysis.pairs if pair.first == best]
    if any(pair.real is None for pair in against):
        return set()
    return {best, *(pair.second for pair in against if not pair.real)}


def scores(results: Results) -> str:
    """Recipes and floors against tasks; the best on average first."""
    analyses = {analysis.task: analysis for analysis in results.analyses}
    bold = {name: leaders(analysis) for name, analysis in analyses.items()}
    scratch = any(analysis.scratch for analysis in results.analyses)
    columns = ["pre-trained", "from scratch", "gain"] if scratch else ["pre-trained"]
    groups = "".join(
        f'<th class="start" colspan="{len(columns)}">{escape(task.name)}, {METRIC_NAMES[task.metric]}'
        f"{' × 100' if task.metric == 'matthews' else ' %'}</th>"
        for task in results.tasks
    )
    names = "".join(
        f"<th{' class=start' if i == 0 else ''}>{name}</th>" for _ in results.tasks for i, name in enumerate(columns)
    )
    rows = []
    for entry in sorted(results.recipes, key=lambda entry: -_average(results, entry.label)):
        cells = ""
        for name, analysis in analyses.items():
            cells += _spread(analysis.pretrained.get(entry.label), strong=entry.label in bold[name], start=True)
            if scratch:
                cells += _spread(analysis.scratch.get(entry.label)) + _gain(analysis.gains.get(entry.label))
        rows.append(f"<tr><th>{escape(entry.label)}</th>{cells}</tr>")
    rows += _floor_rows(results, len(columns))
    return frame(f'<tr class="groups"><th></th>{groups}</tr><tr><th>Recipe</th>{names}</tr>', rows)


def _average(results: Results, label: str) -> float:
    return sum(analysis.pretrained[label].mean for analysis in results.analyses) / max(1, len(results.analyses))


def _spread(spread: Spread | None, *, strong: bool = False, start: bool = False) -> str:
    """Mean ± standard deviation, and the interval below it."""
    if spread is None:
        return NOTHING
    mean = f"<b>{percent(spread.mean)}</b>" if strong else percent(spread.mean)
    deviation = f" ± {percent(spread.deviation)}" if spread.deviation is not None else ""
    interval = f"<small>{_interval(spread.interval)}</small>" if spread.interval else ""
    return f"<td{' class=start' if start else ''}>{mean}{deviation}{interval}</td>"


def _interval(interval: tuple[float, float], form: object = percent) -> str:
    """A confidence interval, cut at what a fraction can be."""
    low, high = interval
    return f"{points(low)} to {points(high)}" if form is points else f"{percent(low)} to {percent(min(high, 1.0))}"


def _gain(gain: Difference | None) -> str:
    """Points, and the relative gain below; set in bold where it exceeds the noise."""
    if gain is None:
        return NOTHING
    relative = f"<small>{points(gain.relative)} %</small>" if gain.relative is not None else ""
    if gain.real:
        return f"<td><b>{points(gain.difference)}</b>{relative}</td>"
    return f'<td class="weak">{points(gain.difference)}{relative}</td>'


def _floor_rows(results: Results, width: int) -> list[str]:
    """A row for each kind of floor."""
    rows = []
    for kind, name in (
        ("majority", "Most frequent class"),
        ("tfidf_logistic_regression", "TF-IDF + logistic regression"),
    ):
        by_task: dict[str, Floor] = {floor.task: floor for floor in results.floors if floor.kind == kind}
        if not by_task:
            continue
        cells = ""
        for task in results.tasks:
            floor = by_task.get(task.name)
            cells += f'<td class="start">{percent(floor.test[task.metric]) if floor else "–"}</td>'
            cells += "<td></td>" * (width - 1)
        rows.append(f'<tr class="floor"><th>{name}</th>{cells}</tr>')
    return rows


def differences(analysis: Analysis) -> str:
    """Every two recipes of one task."""
    rows = []
    for pair in analysis.pairs:
        verdict = {
            True: "<b>exceeds the noise</b>",
            False: "within the noise",
            None: "no claim",
        }[pair.real]
        interval = _interval(pair.interval, points) if pair.interval else "–"
        p = p_value(pair.adjusted_p) if pair.adjusted_p is not None else "–"
        rows.append(
            f"<tr><th>{escape(pair.first)} − {escape(pair.second)}</th><td>{points(pair.difference)}</td>"
            f'<td>{interval}</td><td>{p}</td><td class="text{"" if pair.real else " weak"}">{verdict}</td></tr>'
        )
    names = head(["Difference of pre-trained recipes", "points", "95 % interval", "p, corrected"])
    return frame(names.replace("</tr>", '<th class="text">verdict</th></tr>'), rows)


def costs(results: Results) -> str:
    """What each recipe spent, as means over seeds."""
    names = ["Recipe", "parameters", "FLOPs/token", "steps", "tokens", "tokens/s", "peak memory", "time"]
    names += ["budget spent", "total FLOPs"]
    return frame(head(names), (_cost(results, entry) for entry in results.recipes))


def _cost(results: Results, entry: RecipeEntry) -> str:
    runs = entry.runs

    def mean(name: str) -> float:
        return cast(float, sum(getattr(run, name) for run in runs) / len(runs))

    peaks = [run.peak_memory_bytes for run in runs if run.peak_memory_bytes is not None]
    cells = [
        quantity(entry.parameters),
        quantity(entry.flops_per_token),
        f"{entry.steps:,}",
        quantity(mean("tokens")),
        quantity(mean("tokens_per_second")),
        memory(max(peaks) if peaks else None),
        duration(mean("seconds")),
        f"{100 * spending(results, entry).fair:.0f} %",
        quantity(mean("flops")),
    ]
    return f"<tr><th>{escape(entry.label)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
