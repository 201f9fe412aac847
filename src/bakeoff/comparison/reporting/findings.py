"""The findings of a comparison in plain words: the headline, and sentences for each task."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bakeoff.comparison.reporting.against_findings import headline_against, standing_against
from bakeoff.comparison.reporting.baseline_findings import baseline_headline, baseline_standings
from bakeoff.comparison.reporting.factor_sentences import factor_sentences
from bakeoff.comparison.reporting.family_findings import family_sentences
from bakeoff.comparison.reporting.measures import ShownMetric, against_the_best, leading
from bakeoff.comparison.reporting.series_sentences import series_sentences
from bakeoff.comparison.reporting.until_loss import until_sentences
from bakeoff.comparison.reporting.verdict_words import IDENTICAL, what_would_decide
from bakeoff.comparison.results import Results
from bakeoff.comparison.statistics.noise import SEEDS_FOR_A_CLAIM
from bakeoff.comparison.statistics.questions import Difference
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.display.wording import counted, listed, quoted, quoted_list, verb


class Findings(NamedTuple):
    """The findings of a comparison, in sentences."""

    headline: str
    """The main finding: which recipe is best, and whether it is better than what needs no neural network."""
    details: list[str]
    """Further sentences, task by task: the best recipes, the gain of pre-training, the best baseline."""


class Standing(NamedTuple):
    """The best recipe of a task and the others.

    `beaten` are worse beyond the noise, `same` are identical, `equal` equivalent within the margin, and `peers` cannot
    be told apart.
    """

    best: str
    peers: list[str]
    same: list[str]
    equal: list[str]
    beaten: list[str]
    next: Difference | None

    @classmethod
    def of(cls, measure: ShownMetric, analysis: Analysis) -> "Standing":
        """The standing by the means over seeds."""
        best = measure.ranked(analysis)[0]
        pairs = against_the_best(analysis, best)
        beaten = [pair.second for pair in pairs if pair.better]
        same = [pair.second for pair in pairs if pair.verdict == "identical"]
        equal = [pair.second for pair in pairs if pair.verdict == "equivalent"]
        peers = [pair.second for pair in pairs if pair.second not in {*beaten, *same, *equal}]
        return cls(best, peers, same, equal, beaten, pairs[0] if pairs else None)

    @property
    def leads(self) -> bool:
        """Whether the best recipe is better than all others."""
        return not self.peers and not self.same and not self.equal

    @property
    def level(self) -> str:
        """What the best recipe and those level with it are, in words; empty if some cannot be told apart from it."""
        words = ["equivalent, within the plan's margin"] if self.equal else []
        words += [IDENTICAL] if self.same else []
        return "" if self.peers else listed(words, "or")


def findings(results: Results) -> Findings:
    """The headline and the details of a comparison's results."""
    standings, baselines = {}, baseline_standings(results)
    details = []
    for analysis in results.analyses:
        measure = ShownMetric.of(results, analysis.task)
        standing = standings[analysis.task] = Standing.of(measure, analysis)
        if results.baseline in analysis.pretrained and analysis.pairs:
            details.append(standing_against(measure, analysis, results.baseline))
        else:
            details.append(_standing(results, measure, analysis, standing))
        details += _what_would_decide(measure, analysis)
        # Of a single task the headline says all of its baseline.
        details += [
            each.sentence(on_task=True) for each in baselines if each.task == analysis.task and len(baselines) > 1
        ]
        details += _gain(results, measure, analysis)
        details += factor_sentences(measure, analysis)
    details += until_sentences(results)
    details += [sentence for each in results.series for sentence in series_sentences(results, each)]
    details += family_sentences(results)
    headlines = [_headline(results, standings), baseline_headline(baselines)]
    if any(each.ahead > 0 and each.real is not False for each in baselines):
        headlines.reverse()  # what a reader has to know first
    return Findings(" ".join(filter(None, [*headlines, _of_checkpoints(results)])), details)


def _of_checkpoints(results: Results) -> str:
    """What verdicts are about where all seeds start from the same weights; empty elsewhere, and without verdicts."""
    those = [entry.label for entry in results.recipes if entry.checkpoint is not None]
    if not those or not claims(results):
        return ""
    one = "one checkpoint, which all its seeds start from, and not the recipe that made it"
    several = "one checkpoint each, which all their seeds start from, and not the recipes that made them"
    return f"This is about {quoted_list(those)} as {one if len(those) == 1 else several}."


def claims(results: Results) -> bool:
    """Whether there are seeds enough to say which differences are real."""
    return len(results.finished_seeds) >= SEEDS_FOR_A_CLAIM


def _headline(results: Results, standings: dict[str, Standing]) -> str:
    compared = [each for each in results.analyses if len(each.pretrained) > 1]
    if len(results.recipes) > 1 and not compared:
        return "Nothing is compared: no two recipes have losses of one kind, which alone compare."
    if not claims(results):
        seeds = counted(len(results.finished_seeds), "seed")
        return f"Nothing can be claimed yet: {seeds} cannot show whether a difference is real."
    if len(results.recipes) == 1:
        return f"Only {quoted(results.recipes[0].label)} was measured; there is no other recipe to compare it with."
    if results.baseline is not None and any(results.baseline in each.pretrained for each in compared):
        return headline_against(results, results.baseline)
    standings = {each.task: standings[each.task] for each in compared}
    count = len(compared[0].pretrained)
    everywhere = all(each.pretrained.keys() == compared[0].pretrained.keys() for each in compared)
    won = {task: standing.best for task, standing in standings.items() if standing.leads}
    if len(won) == len(standings) and len(set(won.values())) == 1 and everywhere:
        of_tasks = "" if len(won) == 1 else " on both tasks" if len(won) == 2 else f" on all {len(won)} tasks"
        best = next(iter(won.values()))
        superlative = "better of the two" if count == 2 else f"best of all {count} recipes"
        return f"{quoted(best)} is the {superlative}{of_tasks}, and the difference is real."
    if won:
        parts = [f"{quoted(best)} is best on {quoted(task)}" for task, best in won.items()]
        undecided = [task for task in standings if task not in won]
        if undecided:
            parts.append(_leaders({task: standings[task] for task in undecided}, f"on {quoted_list(undecided)}"))
        return f"{'; '.join(parts)}."
    if not everywhere:
        return f"No winner: {_leaders(standings, 'on each task,')}."
    measures = {each.task: ShownMetric.of(results, each.task) for each in compared}
    first = set.intersection(*({*leading(measures[each.task], each)} for each in compared))
    among = [pair for each in compared for pair in each.pairs if {pair.first, pair.second} <= first]
    level = {standing.level for standing in standings.values()}
    if len(level) == 1 and "" not in level and len(first) > 1:
        equal = quoted_list(entry.label for entry in results.recipes if entry.label in first)
        return f"{equal} are {level.pop()}."
    noise = "the differences among them are within the noise"
    if any(pair.real for pair in among):
        noise = "none of them can be told apart from the best"
    if len(first) == count:
        if count == 2:
            return "No winner: the difference between the two recipes is within the noise."
        if any(pair.real for pair in among):
            return f"No winner: of the {count} recipes none can be told apart from the best."
        return f"No winner: the differences between all {count} recipes are within the noise."
    if len(first) > 1:
        names = [entry.label for entry in results.recipes if entry.label in first]
        return f"No single winner: {quoted_list(names)} lead, and {noise}."
    return f"No single winner: {_leaders(standings, 'on each task,')}."


def _standing(results: Results, measure: ShownMetric, analysis: Analysis, standing: Standing) -> str:
    mean = measure.amount(analysis.pretrained[standing.best].mean)
    start = f"On {quoted(analysis.task)}, {quoted(standing.best)}"
    if standing.next is None:
        return f"{start} reaches {mean}."
    apart = standing.next.difference
    ahead = f"{measure.extent(apart)}{measure.steps} ahead of" if apart else "level with"
    lead = f"{ahead} {quoted(standing.next.second)}"
    if not claims(results):
        return f"{start} has the {measure.extreme} mean, {mean}, {lead}; that may be chance."
    if standing.leads and standing.next.interval:
        low, high = sorted(map(measure.gain, standing.next.interval))
        return f"{start} is best with {mean}, {lead}, the next ({measure.between(low, high)})."
    notes = [f"{quoted_list(standing.peers)} cannot be told apart from it"] if standing.peers else []
    if standing.same:
        notes.append(f"{quoted_list(standing.same)} {verb(len(standing.same), 'is', 'are')} {IDENTICAL}")
    if standing.equal and analysis.margin is not None:
        are = verb(len(standing.equal), "is", "are")
        within = f"{measure.size(analysis.margin)}{measure.steps}"
        notes.append(f"{quoted_list(standing.equal)} {are} equivalent to it within {within}")
    text = f"{start} has the {measure.extreme} mean, {mean}, but {listed(notes)}"
    return f"{text}; {quoted_list(standing.beaten)} did worse beyond the noise." if standing.beaten else f"{text}."


def _not_apart(standings: Iterable[Standing]) -> str:
    known = [*standings]
    words = ["equivalent"] * any(each.equal for each in known) + ["identical"] * any(each.same for each in known)
    apart = any(each.peers for each in known)
    return "the leaders cannot be told apart" if apart else f"the leaders are {listed(words, 'or')}"


def _leaders(standings: dict[str, Standing], where: str) -> str:
    """What the leaders of tasks are on which no recipe leads; `where` names all of these tasks."""
    apart = [task for task, standing in standings.items() if standing.peers]
    level = [task for task in standings if task not in apart]
    if not apart or not level:
        return f"{where} {_not_apart(standings.values())}"
    of_level = _not_apart(standings[task] for task in level)
    return f"on {quoted_list(level)} {of_level}, on {quoted_list(apart)} they cannot be told apart"


def _what_would_decide(measure: ShownMetric, analysis: Analysis) -> Iterator[str]:
    """What would decide the first undecided difference of the best recipe."""
    undecided = [pair for pair in against_the_best(analysis, measure.ranked(analysis)[0]) if pair.deciding is not None]
    for pair in undecided[:1]:
        words = what_would_decide(measure, pair, {analysis.task: measure.rows})
        yield f"{quoted(pair.first)} against {quoted(pair.second)} on {quoted(analysis.task)} is undecided: {words}."


def _gain(results: Results, measure: ShownMetric, analysis: Analysis) -> Iterator[str]:
    if not analysis.gains or not claims(results):
        return
    verbs = [(1, "raises"), (-1, "lowers")]
    for sign, moves in reversed(verbs) if measure.task.lower_is_better else verbs:
        real = {label: gain for label, gain in analysis.gains.items() if gain.real and gain.difference * sign > 0}
        if real:
            sizes = [measure.extent(each) for each in sorted(abs(gain.difference) for gain in real.values())]
            size = sizes[0] if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
            who = "every recipe" if len(real) == len(analysis.gains) > 1 else quoted_list(real)
            what = f"{measure.task.metric_title} of {who} on {quoted(analysis.task)}"
            yield f"Pre-training {moves} the {what} by {size}{measure.steps}, beyond the noise."
