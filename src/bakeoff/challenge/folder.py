"""The folder of a BabyLM entry: what stands where, and what is done already."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from bakeoff.challenge.rules import Backend, checkpoint_name
from bakeoff.config import Config
from bakeoff.durable import holds_something, without_links, write_atomically
from bakeoff.errors import UserError, path_of
from bakeoff.json_files import read_json
from bakeoff.optimization.save_points import SavePoint
from bakeoff.same_settings import require_same

RUN = "run"
"""The name of the training's folder."""

MAIN = "main"
"""The name of the last model, which the official pipeline takes where no checkpoint is named."""

Scores = TypeVar("Scores", bound=Config)


class Settings(Config):
    """What an entry is made from; settings.json."""

    track: str
    """The track."""
    data: list[str]
    """The files and folders of text."""
    document_per_line: bool
    """Whether each line of a .txt is a document."""
    words: int
    """The words of the text, between white space."""
    epochs: int
    """The number of passes over the text."""
    backend: Backend
    """causal or mlm."""
    seed: int
    """The seed of everything that is random."""
    recipe: dict[str, Any]
    """The complete recipe."""


class MultilingualSettings(Settings):
    """What an entry to the multilingual track is made from; `words` is the sum of those of all languages."""

    languages: dict[str, float]
    """The words that the text of each language counts for."""
    byte_premiums: dict[str, float]
    """The byte premium of each language."""


class EntryFolder:
    """The folder of an entry.

    Args:
        path: the folder, which need not exist.

    Raises:
        UserError: it holds something else.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path_of(path, "out")
        self.corpus, self.run = self.path / "corpus", self.path / RUN
        self.results, self.report = self.path / "babylm.json", self.path / "babylm.md"
        self._settings = self.path / "settings.json"
        if not self._settings.is_file() and holds_something(self.path, besides=self._settings.name):
            raise UserError(f"{self.path}: holds something else already; choose another --out")

    def submission(self, backend: str) -> Path:
        """The file to be submitted, under its official name."""
        return self.path / f"all_full_preds_and_fast_scores_{backend}.json"

    def multilingual_submission(self, model: str) -> tuple[Path, Path]:
        """The two files that the multilingual track takes: of scores, and of predictions."""
        return self.path / f"{model}_submission.json", self.path / f"{model}_predictions.json"

    def settings(self) -> Settings | None:
        """The settings with which the entry was begun; None: it was not."""
        if not self._settings.is_file():
            return None
        values = read_json(self._settings)
        kind = MultilingualSettings if "languages" in values else Settings
        return kind.parse(values, str(self._settings))

    def begin(self, settings: Settings) -> None:
        """Make the folder, or go on in it.

        Raises:
            UserError: it was begun with other settings, or cannot be made.
        """
        begun = self.settings()
        if begun is not None:
            advice = "go on with what it was begun with, or choose another --out"
            require_same(self.path, begun.model_dump(), settings.model_dump(), advice)
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be made: {error.strerror}") from None
        without_links(self.path)
        write_atomically(self._settings, settings.model_dump_json(indent=2) + "\n")

    def forsake(self) -> None:
        """Remove the folder of an entry of which nothing was made."""
        self._settings.unlink(missing_ok=True)
        with suppress(OSError):  # it holds something else
            self.path.rmdir()

    def kept(self, point: SavePoint) -> Path:
        """The run that the training keeps at a point."""
        return self.run / "saved" / point.folder

    def export(self, name: str) -> Path:
        """The export of a checkpoint, or of the last model."""
        return self.path / "models" / name

    def checkpoint(self, words: int) -> Path:
        """The export of the checkpoint after so many words."""
        return self.export(checkpoint_name(words))

    def scores_file(self, name: str, part: str) -> Path:
        """The file of a model's scores on a part of the evaluation."""
        return self.path / "scores" / name / f"{part}.json"

    def finetuned(self, task: str, seed: int) -> Path:
        """The fine-tuned run of a task and a seed."""
        return self.path / "finetuned" / f"{task}-{seed}"

    def tables(self) -> Path:
        """The folder of the tables that fine-tuning reads."""
        return self.path / "finetuned" / "tables"

    def read_scores(self, kind: type[Scores], name: str, part: str, files: str) -> Scores | None:
        """The scores of a model on a part; None: there are none, or those of other files.

        Args:
            kind: their config.
            name: the checkpoint, or main.
            part: the part.
            files: a digest of the files that are to be scored.
        """
        path = self.scores_file(name, part)
        if not path.is_file():
            return None
        values = read_json(path)
        if values.pop("files", None) != files:
            return None
        return kind.parse(values, str(path))

    def write_scores(self, scores: Config, name: str, part: str, files: str) -> None:
        """Write the scores of a model on a part, with the digest of the files."""
        path = self.scores_file(name, part)
        path.parent.mkdir(parents=True, exist_ok=True)
        values = {"files": files, **scores.model_dump(mode="json")}
        write_atomically(path, json.dumps(values, ensure_ascii=False) + "\n")
