"""Where recipes cross and where pre-training gains, over labelled rows or budgets, in sentences."""

from collections.abc import Iterator

from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.comparison.results import Results
from bakeoff.comparison.statistics.series import BreakEven, Crossing, Series
from bakeoff.display.wording import listed, quoted, quoted_list


def series_sentences(results: Results, series: Series) -> Iterator[str]:
    """Sentences on a curve; none where nothing can be claimed."""
    if any(each.real is None for point in series.points for each in (*point.pairs, *point.gains.values())):
        return
    names = [point.name for point in series.points]
    on = f"On {quoted(series.task)}"
    yield from (_crossing(series, each) for each in series.crossings)
    of = " of the budget" * (series.scale == "budget")
    if series.points[0].pairs and not series.crossings:
        yield f"{on}, from {names[0]} to {names[-1]}{of}, no lead changes to another recipe beyond the noise."
    yield from (_pays(series, each) for each in series.break_even)
    if series.scale == "budget":
        return
    measure = ShownMetric.of(results, series.points[0].task)
    never = []
    for label in series.points[0].gains:
        gains = {point.name: point.gains[label] for point in series.points if label in point.gains}
        real = [name for name, gain in gains.items() if gain.real and measure.gain(gain.difference) > 0]
        without = [name for name in gains if name not in real]
        if not real:
            never.append(label)
            continue
        sizes = [f"{measure.change(gains[name].difference)}{measure.steps} with {name}" for name in real]
        rest = f"; with {listed(without, 'or')} none could be shown" if without else ""
        beyond = "beyond the noise with all numbers of rows tested together"
        yield f"{on}, pre-training gains for {quoted(label)}, {beyond}: {listed(sizes)}{rest}."
    if never:
        yield (
            f"{on}, no gain of {quoted_list(never)} from pre-training could be shown with any number of rows, all of "
            "them tested together."
        )


def _pays(series: Series, even: BreakEven) -> str:
    """From which budget on a recipe's pre-training pays."""
    lowest, highest = (series.points[end].at for end in (0, -1))
    who = f"pre-training of {quoted(even.recipe)}"
    if even.estimate is None:
        return f"On {quoted(series.task)}, no gain of {who} could be shown with any budget up to {highest:g} %."
    low, high = even.interval
    place = f"gains above {_percent(even.estimate)} of the budget"
    if even.estimate <= lowest:
        place = f"gains with all of these budgets, from {lowest:g} % on"
    if high is None:  # at no budget the interval of the gain leaves out zero
        least = "" if low is None else f" (95 % interval of that budget: at least {_percent(low)})"
        return (
            f"On {quoted(series.task)}, it has not been shown that {who} gains with any of these budgets{least}; "
            f"by the means alone it {place}."
        )
    ends = f"at most {_percent(high)}" if low is None else f"{_percent(low)} to {_percent(high)}"
    real = "no gain exceeds the noise after the correction for all of these budgets"
    if even.real_from is not None:
        real = f"beyond the noise {'at' if even.real_from == highest else 'from'} {even.real_from:g} %"
    return f"On {quoted(series.task)}, {who} {place} (95 % interval of that budget: {ends}), {real}."


def _percent(value: float) -> str:
    return f"{value:.2g} %"


def _crossing(series: Series, crossing: Crossing) -> str:
    names = {point.at: point.name for point in series.points}
    return (
        f"On {quoted(series.task)}, {quoted(crossing.first)} is ahead of {quoted(crossing.second)} with "
        f"{names[crossing.after]}, and behind with {names[crossing.before]}, both beyond the noise: they cross between."
    )
