"""What an entry takes, before anything is written: what is done, what is missing, and how long the rest is."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bakeoff.challenge.asking import Asked
from bakeoff.challenge.labelled import SEEDS, TASKS
from bakeoff.corpus.store import Corpus
from bakeoff.display.wording import counted, duration, memory
from bakeoff.jobs.forecast import Size
from bakeoff.optimization.budget import Budget
from bakeoff.preparation.prepare import prepare
from bakeoff.reading.files import find_files
from bakeoff.reading.pieces import PARAGRAPH
from bakeoff.reading.sources import SourceOptions, TextReader
from bakeoff.runs.run import Run
from bakeoff.training.resolution import resolve_recipe
from bakeoff.training.speed import FORECAST_SECONDS, step_times

SAMPLE = 2_000_000
"""Characters of the text on which a training is measured where there is no corpus yet."""


def forecast_entry(asked: Asked) -> dict[str, Any]:
    """What an entry takes, by names and values; nothing is written but a small corpus among temporary files.

    Args:
        asked: the entry.
    """
    folder, settings, points = asked.folder, asked.settings, asked.checkpoints()
    evaluation, absent = asked.evaluating()
    evaluation.check()
    waiting = evaluation.waiting()
    found: dict[str, Any] = {
        "words": f"{settings.words:,} of {asked.track.words:,} allowed; {asked.read:,} are read",
        "checkpoints": f"{len(points)}, the last after {points[-1]:,} words"
        if points
        else "none, for too little is read",
    }
    found |= _training(asked)
    made = sum(folder.checkpoint(words).is_dir() for words in points)
    found["exports"] = f"{made} of {len(points)} done"
    scored = len(evaluation.parts) - len(waiting)
    found["zero-shot"] = f"{counted(len(waiting), 'part')} of checkpoints and the last model; {scored} done"
    tasks = [task for task in TASKS if asked.has_labels(task)]
    tuned = sum((folder.finetuned(task.name, seed) / "results.json").is_file() for task in tasks for seed in SEEDS)
    found["fine-tunings"] = f"{len(tasks) * len(SEEDS)}; {tuned} done"
    found["missing"] = absent
    return found


def _training(asked: Asked) -> dict[str, str]:
    if (asked.folder.run / "summary.json").is_file():
        return {"training": f"done, in {duration(Run.open_finished(asked.folder.run).summary['seconds'])}"}
    with tempfile.TemporaryDirectory() as scratch:
        corpus = Corpus.open(asked.folder.corpus) if asked.folder.corpus.exists() else _sampled(asked, Path(scratch))
        budget = Budget(tokens=max(1, round(asked.read / max(corpus.words_per_token, 1e-9))))
        steps = resolve_recipe(asked.recipe, corpus, budget, asked.device).training.budget.steps or 1
        (time,) = step_times([asked.recipe], corpus, asked.device, FORECAST_SECONDS)
        size = Size.of(asked.recipe, corpus.tokenizer.size, asked.device)
    kept = size.running + (2 * len(asked.checkpoints()) + 2) * size.weights
    speed = f"{steps:,} steps of {1000 * time.seconds:.3g} ms, measured now"
    return {
        "training": f"about {duration(steps * time.seconds)}: {speed}",
        "disk": f"about {memory(kept)} for the training, the checkpoints and their exports",
    }


def _sampled(asked: Asked, scratch: Path) -> Corpus:
    """A corpus of the first part of the text, with a tokenizer of its own."""
    text = scratch / "text.txt"
    text.write_text("".join(_beginning(asked)), encoding="utf-8")
    return prepare(text, scratch / "corpus", tokenizer=asked.recipe.tokenizer, validation=0.1, workers=0)


def _beginning(asked: Asked) -> Iterator[str]:
    options = SourceOptions(document_per_line=asked.settings.document_per_line)
    characters = 0
    for piece in TextReader(find_files(list(asked.settings.data), Counter()), options):
        yield ("\n" if piece.opens >= PARAGRAPH else "") + piece.text
        characters += len(piece.text)
        if characters > SAMPLE:
            return
