"""What is asked of `bakeoff babylm`: checked by the rules of the track, and counted, before anything is written."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bakeoff.challenge.evaluation import Evaluation, missing_of, parts_of
from bakeoff.challenge.folder import EntryFolder, Settings
from bakeoff.challenge.labelled import FOLDER, TASKS, LabelledTask
from bakeoff.challenge.rules import MOST_EPOCHS, Track, backend_of, count_words, track_of
from bakeoff.errors import UserError
from bakeoff.extras import missing as not_installed
from bakeoff.reading.sources import SourceOptions
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.training.saving import MISSED_AT_THE_END

HELD_OUT = 0.005
"""The share of the text that is held out: so little that the last checkpoint is still that of all words."""


class Asked(NamedTuple):
    """What an entry is made of, checked and counted."""

    track: Track
    recipe: Recipe
    folder: EntryFolder
    settings: Settings
    evaluation: Path | None
    device: str

    @property
    def read(self) -> int:
        """The words that are read in training, at most."""
        return self.settings.words * self.settings.epochs

    def checkpoints(self) -> list[int]:
        """The words after which checkpoints are due."""
        return self.track.checkpoints(self.read * (1 - HELD_OUT) / (1 - MISSED_AT_THE_END))

    def evaluating(self) -> tuple[Evaluation, list[str]]:
        """The zero-shot evaluation, and what is missing of the files of all of the evaluation."""
        parts = parts_of(self.evaluation, self.checkpoints())
        absent = missing_of(parts)
        for task in TASKS:
            if not self.has_labels(task):
                absent.append(f"{task.name}: no full_eval/{FOLDER}/{task.name}.train.jsonl and .valid.jsonl")
        return Evaluation(self.folder, parts, self.settings.backend, self.device), absent

    def has_labels(self, task: LabelledTask) -> bool:
        """Whether the files of a fine-tuning task are there."""
        where = self.evaluation
        return where is not None and all(task.file(where, split).is_file() for split in ("train", "valid"))


def ask(
    track: str,
    recipe: str | Path | Recipe,
    data: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    evaluation: str | Path | None = None,
    epochs: int = 10,
    backend: str | None = None,
    document_per_line: bool = False,
    seed: int = 0,
    device: str = "auto",
) -> Asked:
    """What is asked for, by the rules of the track; see `babylm`. Nothing is written.

    Raises:
        UserError: a rule of the track is broken, or an argument has a mistake.
    """
    rules = track_of(track)
    if not 1 <= epochs <= MOST_EPOCHS:
        raise UserError(f"--epochs {epochs}: the track allows 1 to {MOST_EPOCHS} passes over the text")
    loaded = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    chosen = backend_of(loaded, backend)
    where = None if evaluation is None else Path(evaluation)
    if where is not None and not any((where / name).is_dir() for name in ("full_eval", "fast_eval")):
        raise UserError(
            f"--evaluation {where}: holds no folder full_eval or fast_eval; give the official evaluation_data"
        )
    try:
        import transformers  # noqa: F401
    except ImportError:
        raise not_installed("babylm exports checkpoints and reads them back with transformers", "hub") from None
    folder = EntryFolder(out)
    texts = [str(each) for each in ([data] if isinstance(data, str | Path) else data)]
    begun = folder.settings()
    if begun is not None and begun.data == texts and begun.document_per_line == document_per_line:
        words = begun.words
    else:
        words = count_words(texts, SourceOptions(document_per_line=document_per_line))
    if words > rules.words:
        raise UserError(
            f"{', '.join(texts)}: {words:,} words between white space, and the track {track} allows {rules.words:,}; "
            "leave some of the text out"
        )
    settings = Settings(
        track=track,
        data=texts,
        document_per_line=document_per_line,
        words=words,
        epochs=epochs,
        backend=chosen,
        seed=seed,
        recipe=loaded.model_dump(mode="json"),
    )
    return Asked(rules, loaded, folder, settings, where, device)
