"""What an entry takes, before anything is written: what is done, what is missing, and how long the rest is."""

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bakeoff.challenge.asking import Asked
from bakeoff.challenge.folder import MAIN, MultilingualSettings
from bakeoff.challenge.languages import BYTES_PER_WORD, LANGUAGES, texts_by_language
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
"""Characters (of several languages: bytes) of the text on which a training is measured where there is no corpus yet."""


def forecast_entry(asked: Asked) -> dict[str, Any]:
    """What an entry takes, by names and values; nothing is written but a small corpus among temporary files.

    Args:
        asked: the entry.
    """
    folder, settings, points = asked.folder, asked.settings, asked.checkpoints()
    evaluation, absent = asked.evaluating()
    asked.check()
    waiting = evaluation.waiting()
    found: dict[str, Any] = {
        "words": f"{settings.words:,} of {asked.track.words:,} allowed; {asked.read:,} are read",
        "checkpoints": f"{len(points)}, the last after {points[-1]:,} words"
        if points
        else "none, for too little is read",
    }
    if isinstance(settings, MultilingualSettings):
        shares = (f"{LANGUAGES[code].name} {round(words):,}" for code, words in settings.languages.items())
        found["languages"] = ", ".join(shares)
    found |= _training(asked)
    made = sum(folder.checkpoint(words).is_dir() for words in points) + folder.export(MAIN).is_dir()
    found["exports"] = f"{made} of {len(points) + 1} done"
    scored = len(evaluation.parts) - len(waiting)
    found["zero-shot"] = f"{counted(len(waiting), 'part')} of checkpoints and the last model; {scored} done"
    tasks, seeds = [task for task in asked.tasks if asked.has_labels(task)], asked.seeds
    tuned = sum((folder.finetuned(task.name, seed) / "results.json").is_file() for task in tasks for seed in seeds)
    found["fine-tunings"] = f"{len(tasks) * len(seeds)}; {tuned} done"
    found["missing"] = absent
    return found


def _training(asked: Asked) -> dict[str, str]:
    if (asked.folder.run / "summary.json").is_file():
        return {"training": f"done, in {duration(Run.open_finished(asked.folder.run).summary['seconds'])}"}
    with tempfile.TemporaryDirectory() as scratch:
        there = asked.folder.corpus.exists()
        corpus, share = (Corpus.open(asked.folder.corpus), 1.0) if there else _sampled(asked, Path(scratch))
        words = asked.words_per_token(corpus) * (share if asked.languages else 1.0)
        budget = Budget(tokens=max(1, round(asked.read / max(words, 1e-9))))
        steps = resolve_recipe(asked.recipe, corpus, budget, asked.device).training.budget.steps or 1
        (time,) = step_times([asked.recipe], corpus, asked.device, FORECAST_SECONDS)
        size = Size.of(asked.recipe, corpus.tokenizer.size, asked.device)
    kept = size.running + (2 * len(asked.checkpoints()) + 2) * size.weights
    speed = f"{steps:,} steps of {1000 * time.seconds:.3g} ms, measured now"
    return {
        "training": f"about {duration(steps * time.seconds)}: {speed}",
        "disk": f"about {memory(kept)} for the training, the checkpoints and their exports",
    }


def _sampled(asked: Asked, scratch: Path) -> tuple[Corpus, float]:
    """A corpus of the first part of the text, of each language's, with a tokenizer; and the share of that part."""
    text, settings = scratch / "text.txt", asked.settings
    parts, share = [(settings.data, SAMPLE)], 1.0
    if isinstance(settings, MultilingualSettings):
        sizes = {code: words * settings.byte_premiums[code] for code, words in settings.languages.items()}
        share = min(1.0, SAMPLE / (BYTES_PER_WORD * sum(sizes.values())))
        texts = texts_by_language(settings.data)
        parts = [(texts[code], max(1, round(BYTES_PER_WORD * size * share))) for code, size in sizes.items()]
    made = "".join(piece for files, size in parts for piece in _beginning(asked, files, size))
    text.write_text(made, encoding="utf-8")
    return prepare(text, scratch / "corpus", tokenizer=asked.tokenizer, validation=0.1, workers=0), share


def _beginning(asked: Asked, files: Sequence[str], size: int) -> Iterator[str]:
    """The first pieces of files up to a size: characters, or bytes where several languages are compared."""
    options = SourceOptions(document_per_line=asked.settings.document_per_line)
    done = 0
    for piece in TextReader(find_files(list(files), Counter()), options):
        yield ("\n" if piece.opens >= PARAGRAPH else "") + piece.text
        done += len(piece.text.encode()) if asked.languages else len(piece.text)
        if done > size:
            return
