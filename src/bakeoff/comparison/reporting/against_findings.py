"""The findings where a plan compares all recipes with one of them, and not with each other."""

from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.comparison.reporting.verdict_words import IDENTICAL
from bakeoff.comparison.results import Results
from bakeoff.comparison.statistics.questions import Difference
from bakeoff.comparison.task_analysis import Analysis
from bakeoff.display.wording import listed, quoted, quoted_list


def _from(analysis: Analysis, baseline: str) -> list[Difference]:
    """The differences of the other recipes from the baseline."""
    return [pair if pair.second == baseline else pair.turned for pair in analysis.pairs]


def _parts(measure: ShownMetric, analysis: Analysis, baseline: str) -> dict[str, list[tuple[str, float]]]:
    """The recipes with their differences from the baseline, by the verdict in words."""
    parts: dict[str, list[tuple[str, float]]] = {
        "better": [],
        "worse": [],
        "equivalent": [],
        "identical": [],
        "apart": [],
    }
    for pair in _from(analysis, baseline):
        word: str = pair.verdict if pair.verdict in ("equivalent", "identical") else "apart"
        if pair.better:
            word = "better" if measure.gain(pair.difference) > 0 else "worse"
        parts[word].append((pair.first, pair.difference))
    return parts


def headline_against(results: Results, baseline: str) -> str:
    """The main finding: which recipes are better or worse than the plan's baseline, on which tasks."""
    said: dict[str, dict[str, list[str]]] = {"better": {}, "worse": {}}
    for analysis in results.analyses:
        if baseline not in analysis.pretrained:
            continue  # its pairs are of the other recipes
        measure = ShownMetric.of(results, analysis.task)
        parts = _parts(measure, analysis, baseline)
        for word, of_word in said.items():
            for label, _ in parts[word]:
                of_word.setdefault(label, []).append(quoted(analysis.task))
    clauses = [
        f"{quoted(label)} is {word} on {listed(tasks)}"
        for word, of_word in said.items()
        for label, tasks in of_word.items()
    ]
    if not clauses:
        return f"No recipe has been shown to be better or worse than {quoted(baseline)}."
    return f"Compared with {quoted(baseline)}, {listed(clauses)}, and the difference is real."


def standing_against(measure: ShownMetric, analysis: Analysis, baseline: str) -> str:
    """All recipes on a task against the plan's baseline."""
    start = f"On {quoted(analysis.task)}, against {quoted(baseline)}"
    mean = measure.amount(analysis.pretrained[baseline].mean)
    if any(pair.real is None for pair in analysis.pairs):
        others = _from(analysis, baseline)
        far = listed([f"{quoted(each.first)} {measure.change(each.difference)}{measure.steps}" for each in others])
        return f"{start} with {mean}: {far}; that may be chance."
    parts = _parts(measure, analysis, baseline)

    def sizes(word: str) -> str:
        return listed([f"{quoted(label)} by {measure.extent(apart)}{measure.steps}" for label, apart in parts[word]])

    notes = [f"{word} beyond the noise: {sizes(word)}" for word in ("better", "worse") if parts[word]]
    silent = {"equivalent": "equivalent", "identical": IDENTICAL, "apart": "not to be told apart"}
    for word, text in silent.items():
        if parts[word]:
            notes.append(f"{text}: {quoted_list(label for label, _ in parts[word])}")
    return f"{start} with {mean}: {'; '.join(notes)}."
