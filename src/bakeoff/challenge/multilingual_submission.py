"""The two files that BabyLM's multilingual track takes: scores, and the predictions behind them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bakeoff.challenge.asking import Asked
from bakeoff.challenge.choosing import HiddenScores, SuiteScores
from bakeoff.challenge.evaluation import Evaluation, Part
from bakeoff.challenge.folder import MAIN
from bakeoff.challenge.labelled import TaskScores
from bakeoff.challenge.meco import SECOND, meco_keys
from bakeoff.challenge.multilingual import suites_of
from bakeoff.challenge.rules import checkpoint_name
from bakeoff.challenge.suites import Suite
from bakeoff.display.wording import counted
from bakeoff.durable import write_atomically

Scored = Mapping[str, SuiteScores]
"""The scores of a model by the names of tasks."""


def write_multilingual(asked: Asked, evaluation: Evaluation, labelled: Mapping[str, TaskScores]) -> list[str]:
    """Write both files in the form of the official `collate_results.py --fast`; returns what they lack.

    Args:
        asked: the entry.
        evaluation: its evaluation.
        labelled: the scores of the tasks with labels by their names.
    """
    suites = {suite.key: suite for suite in suites_of(asked.languages)}
    names = [checkpoint_name(words) for words in asked.track.checkpoints(asked.track.most_read)]
    scored = {model: _scores_of(evaluation, model) for model in [*names, MAIN]}
    read = {model: _read_by(evaluation, model, asked.languages) for model in [*names, MAIN]}
    scores = {key: {key: each.accuracy / 100} for key, each in scored[MAIN].items() if not suites[key].hidden}
    for name, task in labelled.items():
        key, _, language = name.rpartition("_")
        scores.setdefault(key, {})[language] = next(iter(task.scores.values())) / 100
    predictions = {
        "zeroshot": {key: row for name, each in scored[MAIN].items() for key, row in _rows(suites[name], each)},
        "finetune": {
            name: [{"index": number, "prediction": str(label)} for number, label in enumerate(task.predictions)]
            for name, task in labelled.items()
        },
        "hidden": _hidden(scored[MAIN], read[MAIN]),
        "fast_eval_results": [{key: each.accuracy / 100 for key, each in scored[name].items()} for name in names],
        "fast_eval_hidden": [{"revision": name, "hidden": _hidden(scored[name], read[name])} for name in names],
    }
    for path, content in zip(
        asked.folder.multilingual_submission(asked.recipe.name), (scores, predictions), strict=True
    ):
        write_atomically(path, json.dumps(content, ensure_ascii=False, indent=2) + "\n")
    absent = [key for key in meco_keys(asked.languages) if key not in {part.key for part in evaluation.parts}]
    unread = [f"{key}: no surprisals, which count as 0" for key in absent]
    return [*_lacking(asked, suites, scored[MAIN], labelled), *unread, *_lacking_checkpoints(suites, scored, names)]


def _scores_of(evaluation: Evaluation, model: str) -> dict[str, SuiteScores]:
    def scores(part: Part) -> SuiteScores | None:
        found = evaluation.scores(part)
        return found if isinstance(found, SuiteScores) else None

    parts = {part.key: scores(part) for part in evaluation.parts if part.model == model}
    return {key: found for key, found in parts.items() if found is not None}


def _rows(suite: Suite, scores: SuiteScores) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of lm-eval's results: the task's, and those of its parts, where it has several."""
    metric = "acc_norm,none" if suite.per_token else "acc,none"
    yield suite.key, {"alias": f" - {suite.key}", metric: scores.accuracy / 100}
    if len(scores.fields) > 1:
        for field, accuracy in scores.fields.items():
            yield f"{suite.key}_{field}", {"alias": f"  - {suite.key}_{field}", metric: accuracy}


def _read_by(evaluation: Evaluation, model: str, languages: Sequence[str]) -> dict[str, dict[str, dict[str, float]]]:
    """The surprisals of words that people read, by the readers' languages."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for part in evaluation.parts:
        scores = evaluation.scores(part) if part.model == model and part.key.startswith("meco_") else None
        if scores is not None:
            readers = [code for code in languages if code != "eng"] if part.key == SECOND else [part.key[-3:]]
            found.setdefault(part.key[: len(SECOND)], {}).update(dict.fromkeys(readers, scores.surprisals))
    return found


def _hidden(scored: Scored, read: Mapping[str, Any]) -> dict[str, Any]:
    """The sums and surprisals that the organisers make scores of."""
    return {
        **read,
        **{
            key: {name: {"scores": sums, "has_unk": name in each.unknown} for name, sums in each.sums.items()}
            for key, each in scored.items()
            if isinstance(each, HiddenScores)
        },
    }


def _lacking(
    asked: Asked, suites: Mapping[str, Suite], main: Scored, labelled: Mapping[str, TaskScores]
) -> Iterator[str]:
    for key, suite in suites.items():
        if key not in main:
            yield f"{key}: no scores, which count as 0"
            continue
        fields, items = len(main[key].fields), main[key].items
        if suite.sizes.fields not in (None, fields):
            yield f"{key}: {counted(fields, 'part')}, officially {suite.sizes.fields:,}"
        if suite.sizes.items not in (None, items):
            yield f"{key}: {counted(items, 'item')}, officially {suite.sizes.items:,}"
    for task in asked.tasks:
        if task.name not in labelled:
            yield f"{task.name}: no scores, which count as 0"
        elif (rows := len(labelled[task.name].predictions)) != task.rows:
            yield f"{task.name}: {counted(rows, 'prediction')}, officially {task.rows:,}"


def _lacking_checkpoints(suites: Mapping[str, Suite], scored: Mapping[str, Scored], names: list[str]) -> Iterator[str]:
    """A line for all tasks that are scored of equally many checkpoints."""
    tasks: dict[int, list[str]] = {}
    for key in suites:
        tasks.setdefault(sum(key in scored[name] for name in names), []).append(key)
    for found, keys in tasks.items():
        if found != len(names):
            shown = keys[0] + (f" and {len(keys) - 1} more" if len(keys) > 1 else "")
            yield f"{shown}: scores of {counted(found, 'checkpoint')}, the track has {len(names)}"
