"""What the factors of a grid do, in sentences."""

from collections.abc import Iterator

from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.comparison.reporting.verdict_words import more_exceed
from bakeoff.comparison.statistics.factors import Effect, FactorAnalysis
from bakeoff.comparison.statistics.questions import Difference
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.display.wording import listed, quoted

MOST = 4
"""The most effects of one kind that are named one by one."""


def factor_sentences(measure: ShownMetric, analysis: Analysis) -> Iterator[str]:
    """Sentences on the factors of each grid on a task; none where nothing can be claimed."""
    for factors in analysis.factors:
        if all(each.difference.real is None for each in factors.effects):
            continue
        real = _better(factors.effects)
        yield from (_effect(measure, analysis, factors, each) for each in real[:MOST])
        if len(real) > MOST:
            yield f"On {quoted(analysis.task)}, {more_exceed(len(real) - MOST, ' between levels')}."
        equal = _equivalent(factors.effects)
        compared = [factor for factor in factors.levels if any(each.factors == [factor] for each in factors.effects)]
        if apart := [factor for factor in factors.levels if factor not in compared]:
            yield (
                f"On {quoted(analysis.task)}, no two levels of {_names(apart)} can be compared: too few of the "
                "recipes that have them have a score."
            )
        silent = [factor for factor in compared if all(each.factors != [factor] for each in real)]
        if undecided := [factor for factor in silent if (factor,) not in equal]:
            beyond = "exceeds the noise" if analysis.margin is None else "has been shown to matter"
            yield f"On {quoted(analysis.task)}, no difference between the levels of {_names(undecided)} {beyond}."
        for (factor,) in equal:
            yield (
                f"On {quoted(analysis.task)}, the levels of “{factor}” are equivalent: their means differ by less than "
                f"{_margin(measure, factors.effects)}."
            )
        yield from (_interaction(measure, analysis, each) for each in _better(factors.interactions)[:MOST])
        for one, other in _equivalent(factors.interactions):
            yield (
                f"On {quoted(analysis.task)}, what “{one}” does depends on “{other}” by less than "
                f"{_margin(measure, factors.interactions)}."
            )
        yield from (_interaction(measure, analysis, each) for each in _better(factors.triples)[:MOST])
        for one, *others in _equivalent(factors.triples):
            yield (
                f"On {quoted(analysis.task)}, what “{one}” does depends on {_names(others)} together by less than "
                f"{_margin(measure, factors.triples)} beyond what it does on each."
            )


def _better(effects: list[Effect]) -> list[Effect]:
    """The effects beyond the noise and not within the margin, the largest first."""
    better = (each for each in effects if each.difference.better)
    return sorted(better, key=lambda each: -abs(each.difference.difference))


def _equivalent(effects: list[Effect]) -> list[tuple[str, ...]]:
    """The factors, or pairs of factors, of which every difference is within the margin."""
    shown: dict[tuple[str, ...], list[bool]] = {}
    for each in effects:
        shown.setdefault(tuple(each.factors), []).append(each.difference.equivalent)
    return [factors for factors, of_factors in shown.items() if all(of_factors)]


def _margin(measure: ShownMetric, effects: list[Effect]) -> str:
    """The margin within which effects are equivalent."""
    margin = next(each.difference.margin for each in effects if each.difference.margin is not None)
    return f"{measure.size(margin)}{measure.steps}"


def _effect(measure: ShownMetric, analysis: Analysis, factors: FactorAnalysis, effect: Effect) -> str:
    difference = effect.difference
    others = [factor for factor in factors.levels if factor not in effect.factors]
    over = f", over all levels of {_names(others)}" if others else ""
    return (
        f"On {quoted(analysis.task)}, “{difference.first}” is {measure.extent(difference.difference)}{measure.steps} "
        f"better than “{difference.second}”{over}, beyond the noise{_interval(measure, _gained(measure, difference))}."
    )


def _interaction(measure: ShownMetric, analysis: Analysis, effect: Effect) -> str:
    difference = effect.difference
    one, *others = effect.factors
    together = f"{_names(others)} together" if len(others) > 1 else _names(others)
    more = "more" if difference.difference > 0 else "less"
    return (
        f"On {quoted(analysis.task)}, what “{one}” does depends on {together}: {difference.first} is "
        f"{measure.extent(difference.difference)}{measure.steps} {more} than {difference.second}, beyond the noise"
        f"{_interval(measure, difference.interval)}."
    )


def _gained(measure: ShownMetric, difference: Difference) -> tuple[float, float] | None:
    """The interval of a difference from its lower to its upper end, above zero where the first level is better."""
    if difference.interval is None:
        return None
    low, high = sorted(map(measure.gain, difference.interval))
    return low, high


def _interval(measure: ShownMetric, interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f" ({measure.between(*interval)})"


def _names(factors: list[str]) -> str:
    return listed([f"“{factor}”" for factor in factors])
