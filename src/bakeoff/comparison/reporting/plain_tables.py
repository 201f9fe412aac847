"""The tables of a comparison as plain cells, from which Markdown and LaTeX are made."""

from collections.abc import Iterator, Mapping, Sequence

from bakeoff.comparison.reporting.decision import COSTS, costs
from bakeoff.comparison.reporting.findings import claims
from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.comparison.reporting.plain_cells import Cell, PlainTable
from bakeoff.comparison.reporting.section_tables import section_tables
from bakeoff.comparison.reporting.tables import leaders
from bakeoff.comparison.results import Results
from bakeoff.comparison.statistics.pairs import Spread
from bakeoff.comparison.statistics.questions import Difference
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.display.wording import counted

NOTHING = Cell("–")

BOLD = "bold beyond the noise, corrected for the number of questions"
"""What a difference in bold is."""


def plain_tables(results: Results) -> Iterator[PlainTable]:
    """The tables of scores, gains, differences from one recipe and the best baseline, of costs, and of sections."""
    if not results.analyses:
        return
    measures = {each.task: ShownMetric.of(results, each.task) for each in results.analyses}
    yield _scores(results, measures)
    if gained := [analysis for analysis in results.analyses if analysis.gains]:
        yield _gains(results, gained, measures)
    if len(results.recipes) > 1:
        yield _ablation(results, measures)
    if any(analysis.against_baseline for analysis in results.analyses):
        yield _against_baseline(results, measures)
    yield _costs(results)
    yield from section_tables(results)


def base_of(results: Results) -> str:
    """The label of the recipe from which an ablation says the differences: the plan's baseline, or its first recipe."""
    labels = [entry.label for entry in results.recipes]
    return results.baseline if results.baseline in labels else labels[0]


def difference_from(analysis: Analysis, label: str, base: str) -> Difference | None:
    """The difference of a recipe from another one, whichever of the two is the better; None: it was not tested."""
    for pair in analysis.pairs:
        if (pair.first, pair.second) == (label, base):
            return pair
        if (pair.first, pair.second) == (base, label):
            return pair.turned
    return None


def _heads(measures: Mapping[str, ShownMetric], *, change: bool = False) -> list[str]:
    """The names of columns, one for each task, with the unit of scores or of differences."""
    heads = []
    for name, measure in measures.items():
        unit = measure.steps.strip() if change and measure.steps else measure.heading
        heads.append(
            f"{name}{unit.removeprefix(measure.task.metric_title)}"
            if name.endswith(measure.task.metric_title) and unit.startswith(measure.task.metric_title)
            else f"{name}, {unit}"
        )
    return heads


def _spread(measure: ShownMetric, spread: Spread | None, strong: bool = False) -> Cell:
    if spread is None:
        return NOTHING
    deviation = "" if spread.deviation is None else f" ± {measure.value(spread.deviation)}"
    return Cell(f"{measure.value(spread.mean)}{deviation}", strong)


def _difference(measure: ShownMetric, difference: Difference | None) -> Cell:
    """A difference with its 95 % interval, in bold beyond the noise, however small; of identical ones a word."""
    if difference is None:
        return NOTHING
    if difference.verdict == "identical":
        return Cell("identical")
    text = measure.change(difference.difference)
    if difference.interval is not None:
        text += " [{}, {}]".format(*map(measure.change, difference.interval))
    return Cell(text, bool(difference.real))


def _scores(results: Results, measures: Mapping[str, ShownMetric]) -> PlainTable:
    best = {each.task: leaders(measures[each.task], each) for each in results.analyses}
    rows = [
        [
            Cell(entry.label),
            *(
                _spread(measures[each.task], each.pretrained.get(entry.label), entry.label in best[each.task])
                for each in results.analyses
            ),
        ]
        for entry in results.recipes
    ]
    for name in dict.fromkeys(baseline.name for baseline in results.baselines):
        values = {each.task: each.test for each in results.baselines if each.name == name}
        rows.append(
            [
                Cell(name),
                *(
                    Cell(measure.value(values[task][measure.task.metric])) if task in values else NOTHING
                    for task, measure in measures.items()
                ),
            ]
        )
    seeds = counted(len(results.finished_seeds), "seed")
    caption = f"Mean{' ± standard deviation' * (len(results.finished_seeds) > 1)} over {seeds} on test, "
    caption += "with pre-trained weights."
    if any(best.values()):
        caption += (
            " Bold: the best mean of a recipe and those next to it, down to the first that is worse beyond the noise."
        )
    return PlainTable("scores", "Scores", caption, ["Recipe", *_heads(measures)], rows)


def _gains(results: Results, gained: Sequence[Analysis], measures: Mapping[str, ShownMetric]) -> PlainTable:
    """What pre-training adds on the tasks that have scores from scratch, which measures without labels have not."""
    rows = []
    for entry in results.recipes:
        cells = [Cell(entry.label)]
        for each in gained:
            measure = measures[each.task]
            cells.append(_spread(measure, each.scratch.get(entry.label)))
            cells.append(_difference(measure, each.gains.get(entry.label)))
        rows.append(cells)
    heads = [
        head
        for each in gained
        for head in (f"{each.task}, from scratch", f"gain,{measures[each.task].steps}".rstrip(","))
    ]
    interval = f", with its 95 % interval; {BOLD}" * claims(results)
    caption = f"From scratch: the same model with random weights. Gain: what pre-training adds{interval}."
    return PlainTable("gains", "What pre-training adds", caption, ["Recipe", *heads], rows)


def _ablation(results: Results, measures: Mapping[str, ShownMetric]) -> PlainTable:
    base = base_of(results)
    rows = [[Cell(base), *(_spread(measures[each.task], each.pretrained.get(base)) for each in results.analyses)]]
    rows += [
        [
            Cell(entry.label),
            *(_difference(measures[each.task], difference_from(each, entry.label, base)) for each in results.analyses),
        ]
        for entry in results.recipes
        if entry.label != base
    ]
    interval = f", with the 95 % interval of the difference; {BOLD}" * claims(results)
    caption = f"The score of {base}, and how far the others are from it{interval}."
    return PlainTable("ablation", f"Differences from {base}", caption, ["Recipe", *_heads(measures, change=True)], rows)


def _against_baseline(results: Results, measures: Mapping[str, ShownMetric]) -> PlainTable:
    """The differences from baselines with predictions, which measures without labels have not."""
    paired = [analysis for analysis in results.analyses if analysis.against_baseline]
    rows = [
        [
            Cell(entry.label),
            *(_difference(measures[each.task], each.against_baseline.get(entry.label)) for each in paired),
        ]
        for entry in results.recipes
    ]
    names = {each.second for analysis in paired for each in analysis.against_baseline.values()}
    against = names.pop() if len(names) == 1 else "the best method without a neural network"
    interval = f", with the 95 % interval; {BOLD}" * claims(results)
    caption = f"Pre-trained recipes, paired with it by test row{interval}."
    heads = _heads({each.task: measures[each.task] for each in paired}, change=True)
    return PlainTable("baseline", f"Differences from {against}", caption, ["Recipe", *heads], rows)


def _costs(results: Results) -> PlainTable:
    """The costs of every recipe; latency for each task."""
    others = COSTS[1:]
    timed = {each.task for each in results.latencies}
    tasks = [analysis.task for analysis in results.analyses if analysis.task in timed]
    rows = []
    for entry in results.recipes:
        known = costs(results, entry, tasks[0] if tasks else results.analyses[0].task)
        cells = [Cell(entry.label)]
        cells += [Cell(cost.shown(known[cost.name])) if cost.name in known else NOTHING for cost in others]
        for task in tasks:
            seconds = costs(results, entry, task).get("latency")
            cells.append(NOTHING if seconds is None else Cell(COSTS[0].shown(seconds)))
        rows.append(cells)
    heads = [cost.column for cost in others] + [f"latency, {task}" for task in tasks]
    texts = "a text" if results.latency.batch == 1 else f"{results.latency.batch} texts"
    caption = f"Parameters{' of the fine-tuned model' * bool(tasks)}; memory and time of pre-training."
    caption += f" Latency: the median time of {texts}." if tasks else ""
    return PlainTable("costs", "Costs", caption, ["Recipe", *heads], rows)
