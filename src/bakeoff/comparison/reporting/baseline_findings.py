"""The distance between the best recipe of a task and the best method without a neural network, with its noise."""

from typing import NamedTuple

from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.comparison.results import Baseline, Results
from bakeoff.comparison.statistics.questions import Difference
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.display.wording import capitalised, listed, quoted, quoted_list


class BaselineStanding(NamedTuple):
    """The best baseline of a task beside the best recipe."""

    measure: ShownMetric
    """The task's metric."""
    baseline: Baseline
    """The best baseline on test."""
    recipe: str
    """The label of the recipe with the best mean."""
    mean: float
    """The mean of this recipe over seeds."""
    ahead: float
    """The distance of the baseline from the recipe, above zero where the baseline is better."""
    interval: tuple[float, float] | None
    """95 % interval of the distance for other seeds and other test examples; None: it is not known."""
    tested: Difference | None
    """The paired test of both; None: the baseline's predictions are not known, and the interval is the recipe's."""

    @classmethod
    def of(cls, results: Results, analysis: Analysis) -> "BaselineStanding | None":
        """The standing on a task; None: the task has no baseline for its metric."""
        measure = ShownMetric.of(results, analysis.task)
        metric = measure.task.metric
        baselines = [each for each in results.baselines if each.task == analysis.task and metric in each.test]
        if not baselines or not analysis.pretrained:
            return None
        baseline, recipe = measure.strongest(baselines)[0], measure.ranked(analysis)[0]
        value, best = baseline.test[metric], analysis.pretrained[recipe]
        tested = analysis.against_baseline.get(recipe)
        if tested is not None and tested.second == baseline.name:
            ends = None if tested.interval is None else [-each for each in tested.interval]
        else:
            tested, ends = None, None
            if best.interval is not None:
                ends = [value - each for each in measure.cut(best.interval)]
        interval = None
        if ends is not None:
            low, high = sorted(map(measure.gain, ends))
            interval = (low, high)
        return cls(measure, baseline, recipe, best.mean, measure.gain(value - best.mean), interval, tested)

    @property
    def task(self) -> str:
        """The task's name."""
        return self.measure.task.name

    @property
    def real(self) -> bool | None:
        """Whether the distance exceeds the noise; None: the noise is not known."""
        if self.tested is not None:
            return self.tested.real
        return None if self.interval is None else not self.interval[0] <= 0 <= self.interval[1]

    @property
    def name(self) -> str:
        """The baseline in a sentence."""
        return (
            self.baseline.name if self.baseline.kind == "learned" else f"what needs no model (“{self.baseline.name}”)"
        )

    @property
    def noise(self) -> str:
        """The distance's noise in words, with its interval."""
        if self.interval is None:
            return "how much of that is noise is not known"
        low, high = self.interval if self.ahead >= 0 else [-x for x in self.interval[::-1]]
        return f"{'beyond' if self.real else 'within'} the noise ({self.measure.between(low, high)})"

    def sentence(self, *, on_task: bool) -> str:
        """The standing in a sentence; it names the task if `on_task`."""
        measure = self.measure
        side = "level with" if self._level else "ahead of" if self.ahead > 0 else "behind"
        distance = "" if self._level else f"{measure.extent(self.ahead)}{measure.steps} "
        value, mean = measure.short(self.baseline.test[measure.task.metric]), measure.short(self.mean)
        task = f" on {quoted(measure.task.name)}" if on_task else ""
        text = f"{self.name} ({value}){task} is {distance}{side} the best recipe, {quoted(self.recipe)} ({mean})"
        return f"{capitalised(text)}{', ' if self.interval else '; '}{self.noise}."

    @property
    def _level(self) -> bool:
        """Whether both have the same value in the report."""
        measure = self.measure
        return measure.value(self.baseline.test[measure.task.metric]) == measure.value(self.mean)


def baseline_standings(results: Results) -> list[BaselineStanding]:
    """The standing of each task that has a baseline, in the order of the tasks."""
    standings = (BaselineStanding.of(results, analysis) for analysis in results.analyses)
    return [each for each in standings if each is not None]


def baseline_headline(standings: list[BaselineStanding]) -> str:
    """One sentence on the baselines of all tasks, for the headline; empty without baselines."""
    if len(standings) == 1:
        return standings[0].sentence(on_task=False)
    level = [each for each in standings if each.real is False or each.ahead == 0]
    ahead, behind, above, below = (
        [each for each in standings if each.real is real and each not in level and (each.ahead > 0) == better]
        for real, better in ((True, True), (True, False), (None, True), (None, False))
    )
    parts = [
        f"on {_tasks(those)} {text.format(baseline=_common(those))}{_sizes(those)}"
        for those, text in (
            (ahead, "{baseline} is ahead of the best recipe, beyond the noise"),
            (level, "the best recipe cannot be told apart from {baseline}"),
            (behind, "the best recipe is ahead of {baseline}, beyond the noise"),
            (above, "{baseline} is ahead of the best recipe"),
            (below, "the best recipe is ahead of {baseline}"),
        )
        if those
    ]
    text = "; ".join(parts)
    return f"{capitalised(text)}." if text else ""


def _common(standings: list[BaselineStanding]) -> str:
    """The baseline of some tasks in a sentence: its name, where they have the same one."""
    names = {each.name for each in standings}
    return names.pop() if len(names) == 1 else "what needs no neural network"


def worthless(standings: list[BaselineStanding]) -> list[str]:
    """Cautions where a baseline is better than all recipes, and where no recipe has been shown to be better than it."""
    beaten = [each for each in standings if each.real and each.ahead > 0]
    others = [each for each in standings if each not in beaten and (each.real is False or each.ahead >= 0)]
    cautions = []
    if beaten:
        cautions.append(
            f"At this budget no recipe compared here is worth its cost on {_tasks(beaten)}: what needs no neural "
            f"network does better, beyond the noise ({'; '.join(_short(each) for each in beaten)})."
        )
    if others:
        cautions.append(
            "It has not been shown that any recipe compared here is better than what needs no neural network on "
            f"{_tasks(others)} ({'; '.join(_short(each) for each in others)}); a larger budget, more seeds or more "
            "test rows may show it."
        )
    return cautions


def _short(standing: BaselineStanding) -> str:
    measure = standing.measure
    value, mean = (measure.short(each) for each in (standing.baseline.test[measure.task.metric], standing.mean))
    return f"{standing.baseline.name} {value}, {quoted(standing.recipe)} {mean}"


def _tasks(standings: list[BaselineStanding]) -> str:
    return quoted_list(each.task for each in standings)


def _sizes(standings: list[BaselineStanding]) -> str:
    """The distances of some tasks: (by 4.0 and 13.3 points); empty where there are none."""
    if all(each.ahead == 0 for each in standings):
        return ""
    units = {each.measure.steps for each in standings}
    sizes = [each.measure.extent(each.ahead) + each.measure.steps * (len(units) > 1) for each in standings]
    return f" (by {listed(sizes)}{units.pop() if len(units) == 1 else ''})"
