"""Warnings of a comparison: what a reader has to know before believing or acting on the numbers."""

from collections.abc import Iterator, Mapping

from bakeoff.comparison.facts import StartFacts
from bakeoff.comparison.planning.asking import times_for
from bakeoff.comparison.pretraining_run import CurvePoint
from bakeoff.comparison.reporting.baseline_findings import baseline_standings, worthless
from bakeoff.comparison.reporting.collapses import collapse_cautions
from bakeoff.comparison.reporting.cut_texts import cut_cautions
from bakeoff.comparison.reporting.findings import claims
from bakeoff.comparison.reporting.measures import ShownMetric
from bakeoff.comparison.reporting.search_findings import finetuning_cautions, search_cautions
from bakeoff.comparison.reporting.spending import spending_cautions
from bakeoff.comparison.reporting.unequal import unequal_cautions
from bakeoff.comparison.reporting.until_loss import until_cautions
from bakeoff.comparison.results import Results
from bakeoff.comparison.statistics.noise import SEEDS_FOR_A_CLAIM
from bakeoff.config import differing
from bakeoff.display.wording import counted, listed, quoted, quoted_list
from bakeoff.objectives.registry import OBJECTIVES

PLATEAU = 0.95
"""Share of the unigram entropy above which a loss shows hardly more learned than token frequencies."""

FEW_ROWS = 20
"""Number of test rows below which a score is hardly one."""

MOST = 5
"""Most cautions at the top of a report; the others stand further below."""


def cautions(results: Results) -> list[str]:
    """All warnings, one for each kind of thing to know, the one of the most consequence first."""
    search = list(search_cautions(results))
    return [
        *_seeds(results),
        *_looks(results),
        *worthless(baseline_standings(results)),
        *_failures(results),
        *_later(results),
        *_without_transfer(results),
        *_of_checkpoints(results),
        *unequal_cautions(results),
        *collapse_cautions(results),
        *_identical(results),
        *_few_rows(results),
        *_at_the_plateau(results),
        *until_cautions(results),
        *(spending_cautions(results) if results.until_loss is None else ()),
        *cut_cautions(results),
        *_without_gain(results),
        *_unknown_noise(results),
        *search[:1],
        *_starts(results),
        *search[1:],
        *finetuning_cautions(results),
        *_notes(results),
    ]


def _seeds(results: Results) -> Iterator[str]:
    done, planned = len(results.finished_seeds), len(results.planned_seeds)
    few = f"from {SEEDS_FOR_A_CLAIM} seeds on, the report says which differences are real"
    if done < planned:
        end = "" if claims(results) else f"; {few}"
        yield f"The comparison is not finished: {done} of {counted(planned, 'seed')} are done{end}."
    elif not claims(results):
        yield f"Only {counted(done, 'seed')}: {few}."


def _looks(results: Results) -> Iterator[str]:
    """A warning that seeds were added, or changed, once verdicts had been seen."""
    if results.looks and claims(results):
        times = times_for(len(results.looks))
        how = "added" if max(results.looks) < len(results.planned_seeds) else "changed"
        seen = listed([str(each) for each in results.looks])
        yield (
            f"Seeds were {how} after verdicts had been seen with {seen} seeds. Who looks again until something "
            f"shows would find it by chance: p-values are {times} times as large for this."
        )


def _failures(results: Results) -> Iterator[str]:
    diverged = [
        f"{quoted(each.recipe)} ({each.training}, seed {each.seed}: {each.message})" for each in results.failures
    ]
    if diverged:
        yield f"Left out, because a training diverged: {listed(diverged)}."


def _later(results: Results) -> Iterator[str]:
    if results.later:
        later = quoted_list(results.later)
        yield f"Not all trained yet: {later}. The same plan, without --only, trains all of its recipes."


def _without_transfer(results: Results) -> Iterator[str]:
    without = [
        entry.label
        for entry in results.recipes
        if any(score.initialisation == "pretrained" and not score.transferred_tensors for score in entry.scores)
    ]
    if without:
        yield f"No tensor of {quoted_list(without)} was taken over from the pre-training; these numbers mean nothing."


def _at_the_plateau(results: Results) -> Iterator[str]:
    runs = []
    for entry in results.recipes:
        seeds = [str(run.seed) for run in entry.runs if _at_plateau(run.unigram_entropy, run.curve)]
        if seeds:
            runs.append(f"{quoted(entry.label)} (seed{'s' * (len(seeds) > 1)} {listed(seeds)})")
    if runs:
        yield (
            f"Pre-training ended above the unigram entropy, or less than {100 * (1 - PLATEAU):.0f} % below it, for "
            f"{listed(runs)}: hardly more than how frequent each token is has been learned. A larger budget or another "
            "learning rate may show another ranking."
        )


def _at_plateau(entropy: float | None, curve: list[CurvePoint]) -> bool:
    if not entropy or not curve:
        return False
    losses = [value for name, value in curve[-1].losses.items() if OBJECTIVES[name].bounded_by_frequencies]
    return any(loss > PLATEAU * entropy for loss in losses)


def _identical(results: Results) -> Iterator[str]:
    """Warnings on recipes whose answers are the same everywhere, with what they have otherwise."""
    verdicts: dict[tuple[str, str], set[str | None]] = {}
    for pair in (pair for analysis in results.analyses for pair in analysis.pairs):
        verdicts.setdefault((min(pair.first, pair.second), max(pair.first, pair.second)), set()).add(pair.verdict)
    entries = {entry.label: entry for entry in results.recipes}
    for (one, other), found in verdicts.items():
        if found == {"identical"}:
            first, second = ({**entries[each].recipe, "name": ""} for each in (one, other))
            keys = [key for key, _, _ in differing(first, second)]
            keys += ["finetune"] if entries[one].finetune != entries[other].finetune else []
            what = f" What they have otherwise ({listed(keys)}) has changed nothing here." if keys else ""
            yield f"{quoted(one)} and {quoted(other)} gave the same answer to every test row with every seed.{what}"


def _few_rows(results: Results) -> Iterator[str]:
    """A warning on tasks with so few rows that a score is one of a few steps."""
    few = [task for task in results.tasks if 0 < task.rows["test"] < FEW_ROWS]
    if few:
        sizes = listed([f"{quoted(task.name)} has {task.rows['test']}" for task in few])
        yield (
            f"Few test rows: {sizes}. A score is one of a few steps there, and hardly any difference can be shown; "
            "give more test rows, or more held-out text."
        )


def _without_gain(results: Results) -> Iterator[str]:
    """A warning on the recipes, task by task, for which pre-training shows no gain; of few seeds nothing is shown."""
    if not claims(results):
        return
    tasks: dict[str, list[str]] = {}
    for analysis in results.analyses:
        measure, gains = ShownMetric.of(results, analysis.task), analysis.gains
        paying = [label for label, gain in gains.items() if measure.gain(gain.difference) > 0]
        pays = [label for label in paying if gains[label].real is not False]
        lowers = [label for label in gains if label not in paying and gains[label].real]  # which the answer says
        without = [label for label in gains if label not in [*pays, *lowers]]
        if without:
            who = "any recipe" if not pays and len(without) > 1 else quoted_list(without)
            tasks.setdefault(who, []).append(quoted(analysis.task))
    if tasks:
        cases = "; ".join(f"{who} on {listed(names)}" for who, names in tasks.items())
        yield f"No gain from pre-training could be shown for {cases}."


def _unknown_noise(results: Results) -> Iterator[str]:
    if not claims(results):
        return
    unknown = [
        each.task for each in results.analyses if any(pair.p is None for pair in [*each.pairs, *each.gains.values()])
    ]
    if unknown:
        rows = {task.name: task.rows["test"] for task in results.tasks}
        sizes = listed([f"{rows[name]:,}" for name in unknown])
        yield (
            f"On {quoted_list(unknown)} no difference is called real: how much chance is in the {sizes} test examples "
            "is not known."
        )


def _starts(results: Results) -> Iterator[str]:
    """A warning about recipes that start from a run: its cost is outside the budget, its weights are in the gain."""
    begun = {entry.label: entry.starts for entry in results.recipes if entry.starts}
    if not begun:
        return
    parts = [f"{'; '.join(map(_start, begun, begun.values()))}. What those weights have cost is no part of the budget"]
    others = [entry.label for entry in results.recipes if entry.label not in begun]
    if others:
        parts.append(
            f"{quoted_list(others)} had the budget alone, so the difference is also one of what was spent before"
        )
    if any(analysis.gains for analysis in results.analyses):
        parts.append(
            f"From scratch is the same architecture with random weights, so the gain of {quoted_list(begun)} is that "
            "of the first weights and of this pre-training together"
        )
    yield ". ".join(parts) + "."


def _start(label: str, starts: Mapping[int, StartFacts]) -> str:
    """The start of a recipe, the first one of several: bert starts from runs/seed-0 (9 steps): 3 of 3 tensors."""
    first, *others = {each.weights: each for each in starts.values()}.values()
    more = f", and each other seed from a run of its own ({listed([each.source for each in others])})" if others else ""
    return f"{quoted(label)} starts from {first}{more}"


def _of_checkpoints(results: Results) -> Iterator[str]:
    """A warning that seeds with one start are no evidence about the recipe that it was trained by."""
    those = [entry.label for entry in results.recipes if entry.checkpoint is not None]
    if those:
        yield (
            f"All seeds of {quoted_list(those)} start from the same weights. Another pre-training by the same recipe "
            "would give others, by more than any interval here allows for: what is said is about these weights. A "
            "start for each seed, `start: .../seed-{seed}`, says something about the recipe."
        )


def _notes(results: Results) -> Iterator[str]:
    of_tasks: dict[str, list[str]] = {}
    for task in results.tasks:
        if task.notes:
            of_tasks.setdefault("; ".join(task.notes), []).append(task.name)
    if of_tasks:
        yield f"On the data of {'. Of '.join(f'{quoted_list(names)}: {notes}' for notes, names in of_tasks.items())}."
