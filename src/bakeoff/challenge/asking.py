"""What is asked of `bakeoff babylm`: checked by the rules of the track, and counted, before anything is written."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bakeoff.challenge.evaluation import Evaluation, missing_of, multilingual_parts, parts_of
from bakeoff.challenge.folder import RUN, EntryFolder, MultilingualSettings, Settings
from bakeoff.challenge.labelled import SEEDS, TASKS, LabelledTask, check_labels
from bakeoff.challenge.languages import premiums_of, texts_by_language, words_by_language
from bakeoff.challenge.multilingual import LABELS, NOT_DONE, ZERO_SHOT, suites_of, tasks_of
from bakeoff.challenge.multilingual import SEEDS as MULTILINGUAL_SEEDS
from bakeoff.challenge.rules import (
    MOST_EPOCHS,
    Track,
    backend_of,
    checkpoint_name,
    count_words,
    require_countable,
    track_of,
)
from bakeoff.config import require_seed
from bakeoff.corpus.store import Corpus
from bakeoff.errors import UserError
from bakeoff.extras import missing as not_installed
from bakeoff.optimization.save_points import SavePoint
from bakeoff.reading.sources import SourceOptions
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
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

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of an entry to the multilingual track."""
        return tuple(self.settings.languages) if isinstance(self.settings, MultilingualSettings) else ()

    @property
    def texts(self) -> list[str]:
        """The files and folders of text."""
        if not self.languages:
            return self.settings.data
        return [path for paths in texts_by_language(self.settings.data).values() for path in paths]

    @property
    def tokenizer(self) -> TokenizerConfig | Path:
        """The tokenizer of the text: that of the teachers, where the recipe has some."""
        teachers = _teacher_runs(self.recipe)
        return teachers[0] / "tokenizer.json" if teachers else self.recipe.tokenizer

    @property
    def tasks(self) -> Sequence[LabelledTask]:
        """The tasks with labels."""
        return tasks_of(self.languages) if self.languages else TASKS

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of the fine-tunings; predictions of the first one are submitted."""
        return MULTILINGUAL_SEEDS if self.languages else SEEDS

    def words_per_token(self, corpus: Corpus) -> float:
        """The words that a token of the corpus counts for."""
        if not self.languages:
            return corpus.words_per_token
        return self.settings.words / max(1, sum(split.tokens for split in corpus.manifest.splits.values()))

    def checkpoints(self) -> list[int]:
        """The words after which checkpoints are due."""
        return self.track.checkpoints(self.read * (1 - HELD_OUT) / (1 - MISSED_AT_THE_END))

    def points(self, corpus: Corpus) -> dict[int, SavePoint]:
        """The points of the training at which its weights are kept, by the words of the checkpoints."""
        if not self.languages:
            return {words: SavePoint("words", words) for words in self.checkpoints()}
        of_token = self.words_per_token(corpus)
        return {words: SavePoint("tokens", round(words / of_token)) for words in self.checkpoints()}

    def kept(self, corpus: Corpus) -> dict[str, Path]:
        """The runs of the checkpoints that there are, by the checkpoints' names."""
        paths = {checkpoint_name(words): self.folder.kept(point) for words, point in self.points(corpus).items()}
        return {name: path for name, path in paths.items() if path.is_dir()}

    def evaluating(self) -> tuple[Evaluation, list[str]]:
        """The zero-shot evaluation, and what is missing of the files of all of the evaluation."""
        if self.languages:
            parts = multilingual_parts(self.evaluation, self.checkpoints(), suites_of(self.languages), self.languages)
        else:
            parts = parts_of(self.evaluation, self.checkpoints())
        absent = missing_of(parts)
        for task in self.tasks:
            if not self.has_labels(task):
                file = task.file(Path(), "train").as_posix()
                absent.append(f"{task.name}: no {file} and .valid.jsonl")
        if self.languages:
            absent += NOT_DONE
        return Evaluation(self.folder, parts, self.settings.backend, self.device), absent

    def check(self) -> None:
        """Read all files of the evaluation, so that a mistake in one is told before a training.

        Raises:
            UserError: there is a mistake in a file.
        """
        self.evaluating()[0].check()
        for task in self.tasks:
            if self.evaluation is not None and self.has_labels(task):
                check_labels(task, self.evaluation)

    def has_labels(self, task: LabelledTask) -> bool:
        """Whether the files of a fine-tuning task are there."""
        where = self.evaluation
        return where is not None and all(task.file(where, split).is_file() for split in ("train", "valid"))


def _require_entries(recipe: Recipe, texts: list[str]) -> None:
    """Refuse a recipe that learns from models of other text than the entry's: what they have read counts, too.

    Raises:
        UserError: a teacher is no run of an entry that is made of these files.
    """
    for teacher in _teacher_runs(recipe):
        settings = EntryFolder(teacher.parent).settings() if teacher.name == RUN and teacher.is_dir() else None
        if settings is None or settings.data != texts:
            raise UserError(
                f"{teacher}: {recipe.name} learns from it (training.distillation), and the text that it has read "
                f"counts, too: give ENTRY/{RUN} of an entry that is made of the same --data, or set "
                "training.distillation=null"
            )


def _teacher_runs(recipe: Recipe) -> list[Path]:
    """The runs that a recipe's models learn from."""
    distillation = recipe.training.distillation
    return [] if distillation is None else [Path(each) for each in distillation.teachers]


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
    byte_premiums: str | None = None,
    seed: int = 0,
    device: str = "auto",
) -> Asked:
    """What is asked for, by the rules of the track; see `babylm`. Nothing is written.

    Raises:
        UserError: a rule of the track is broken, or an argument has a mistake.
    """
    require_seed(seed)
    rules = track_of(track)
    if not 1 <= epochs <= MOST_EPOCHS:
        raise UserError(f"--epochs {epochs}: the track allows 1 to {MOST_EPOCHS} passes over the text")
    loaded = recipe if isinstance(recipe, Recipe) else load_recipe(recipe)
    chosen = backend_of(loaded, backend)
    require_countable(loaded)
    where = None if evaluation is None else Path(evaluation)
    wanted = (ZERO_SHOT, LABELS) if rules.multilingual else ("full_eval", "fast_eval")
    if where is not None and not any((where / name).is_dir() for name in wanted):
        name = "folder multilingual" if rules.multilingual else "evaluation_data"
        raise UserError(f"--evaluation {where}: holds no folder {' or '.join(wanted)}; give the official {name}")
    if byte_premiums is not None and not rules.multilingual:
        raise UserError(f"--byte-premiums: the words of the track {track} have no weights; leave it out")
    try:
        import transformers  # noqa: F401
    except ImportError:
        raise not_installed("babylm exports checkpoints and reads them back with transformers", "hub") from None
    folder = EntryFolder(out)
    texts = [str(each) for each in ([data] if isinstance(data, str | Path) else data)]
    options = SourceOptions(document_per_line=document_per_line)
    values: dict[str, Any] = {"track": track, "data": texts, "document_per_line": document_per_line, "epochs": epochs}
    values |= {"backend": chosen, "seed": seed, "recipe": loaded.model_dump(mode="json")}
    begun = folder.settings()
    _require_entries(loaded, texts)
    same = begun is not None and begun.data == texts and begun.document_per_line == document_per_line
    same = same and folder.corpus.exists()  # before, the text may have changed
    settings: Settings
    if rules.multilingual:
        premiums = premiums_of(byte_premiums)
        if same and isinstance(begun, MultilingualSettings):  # with other premiums it is refused as begun otherwise
            languages = begun.languages
        else:
            languages = words_by_language(texts_by_language(texts), premiums, options)
        words = math.ceil(sum(languages.values()))
        settings = MultilingualSettings(**values, words=words, languages=languages, byte_premiums=premiums)
        counted_as = "words, weighted by language,"
    else:
        words = begun.words if same and begun is not None else count_words(texts, options)
        settings = Settings(**values, words=words)
        counted_as = "words between white space,"
    if not words:
        raise UserError(f"{', '.join(texts)}: holds no words")
    if words > rules.words:
        raise UserError(
            f"{', '.join(texts)}: {words:,} {counted_as} and the track {track} allows {rules.words:,}; "
            "leave some of the text out"
        )
    return Asked(rules, loaded, folder, settings, where, device)
