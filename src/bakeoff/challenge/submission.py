"""The file of predictions that a track takes, in the official form, and whether all of it is there."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bakeoff.challenge.acquisition import ROWS as WORDS
from bakeoff.challenge.acquisition import official_surprisals
from bakeoff.challenge.choosing import SuiteScores, official_predictions
from bakeoff.challenge.evaluation import AOA, READING, Evaluation, Part
from bakeoff.challenge.folder import MAIN, EntryFolder
from bakeoff.challenge.labelled import TASKS, TaskScores, official_labels
from bakeoff.challenge.reading_times import ROWS, ReadingScores, official_reading
from bakeoff.challenge.rules import checkpoint_name
from bakeoff.challenge.suites import SUITES, Sizes
from bakeoff.durable import write_atomically


def official_key(key: str) -> str:
    """The name of a part in a submission."""
    return {"entity_tracking": "entity_tracking_filtered", AOA: "aoa_surprisals"}.get(key, key)


def submission_of(
    folder: EntryFolder, evaluation: Evaluation, labelled: Mapping[str, TaskScores], model: str
) -> dict[str, Any]:
    """The predictions of the last model, and the scores of all checkpoints; what is not scored is left out.

    Args:
        folder: the entry.
        evaluation: its evaluation.
        labelled: the scores of fine-tuning tasks by their names.
        model: the model's name.
    """
    content: dict[str, Any] = {}
    fast: dict[str, list[dict[str, float]]] = {}
    surprisals: dict[str, list[float]] = {}
    for part in evaluation.parts:
        scores = evaluation.scores(part)
        if scores is None:
            continue
        key = official_key(part.key)
        if part.key == AOA:
            surprisals[part.model] = scores.surprisals
        elif part.model == MAIN:
            content[key] = official_reading(scores) if part.key == READING else official_predictions(scores)
        else:
            fast.setdefault(key, []).append(_fast(part, scores))
    if surprisals:
        words = next(evaluation.content(part) for part in evaluation.parts if part.key == AOA)
        content[official_key(AOA)] = official_surprisals(words, surprisals, model)
    if labelled:
        content["glue"] = {
            key: rows for name, scores in labelled.items() for key, rows in official_labels(name, scores).items()
        }
    if fast:
        content["fast_eval_results"] = fast
    return content


def write_submission(folder: EntryFolder, backend: str, content: dict[str, Any]) -> None:
    """Write the file under its official name."""
    write_atomically(folder.submission(backend), json.dumps(content, ensure_ascii=False) + "\n")


def lacking(content: Mapping[str, Any], checkpoints: Sequence[int]) -> list[str]:
    """What a submission lacks, or has in other numbers than the official files: a sentence each; empty: nothing.

    Args:
        content: the submission.
        checkpoints: the words of the checkpoints that the track wants.
    """
    return [*_lacking_predictions(content), *_lacking_checkpoints(content, [*map(checkpoint_name, checkpoints)])]


def _lacking_predictions(content: Mapping[str, Any]) -> Iterator[str]:
    for suite in SUITES:
        yield from _compared(suite.key, content.get(official_key(suite.key)), suite.sizes)
    yield from _compared(READING, content.get(READING), Sizes(1, ROWS))
    glue = content.get("glue", {})
    for task in TASKS:
        found = {task.name: glue[task.name]} if task.name in glue else None
        yield from _compared(task.name, found, Sizes(1, task.rows))


def _compared(key: str, found: Mapping[str, Any] | None, sizes: Sizes) -> Iterator[str]:
    if found is None:
        yield f"{key}: no predictions"
        return
    items = sum(len(field["predictions"]) for field in found.values())
    if sizes.fields is not None and len(found) != sizes.fields:
        yield f"{key}: {len(found):,} fields, officially {sizes.fields:,}"
    if sizes.items is not None and items != sizes.items:
        yield f"{key}: {items:,} predictions, officially {sizes.items:,}"


def _lacking_checkpoints(content: Mapping[str, Any], names: Sequence[str]) -> Iterator[str]:
    fast = content.get("fast_eval_results", {})
    wanted = [*(suite.key for suite in SUITES if suite.fast is not None), READING]
    for key in wanted:
        if (found := len(fast.get(official_key(key), []))) != len(names):
            yield f"fast {key}: scores of {found} checkpoints, the track has {len(names)}"
    rows = content.get(official_key(AOA), {}).get("results", [])
    steps: dict[str, int] = {}
    for row in rows:
        steps[row["step"]] = steps.get(row["step"], 0) + 1
    if absent := [name for name in names if name not in steps]:
        yield f"aoa: no surprisals of {absent[0]}" + (f" and {len(absent) - 1} more" if len(absent) > 1 else "")
    if other := {name: count for name, count in steps.items() if count != WORDS}:
        name, count = next(iter(other.items()))
        yield f"aoa: {count:,} surprisals of {name}, officially {WORDS:,}"


def _fast(part: Part, scores: SuiteScores | ReadingScores) -> dict[str, float]:
    if isinstance(scores, ReadingScores):
        return {"spr": scores.self_paced / 100, "rt": scores.eye_tracking / 100}
    if part.suite is not None and part.suite.per_token:  # whose fields are single items
        return {part.key: scores.accuracy / 100}
    return scores.fields
