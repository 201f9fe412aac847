"""The zero-shot scores of an entry's models: what is to be scored on which files, and the scores that there are."""

import hashlib
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from bakeoff.challenge.acquisition import (
    CHILDREN,
    FILES,
    AgeScore,
    age_score,
    read_ages,
    read_contexts,
    score_words,
)
from bakeoff.challenge.choosing import HiddenScores, SuiteScores, score_choices
from bakeoff.challenge.folder import MAIN, EntryFolder
from bakeoff.challenge.meco import WordSurprisals, file_of, meco_keys, read_words, surprisals_of
from bakeoff.challenge.reading_times import FILE, ReadingScores, read_times, score_reading
from bakeoff.challenge.rules import READINGS, Backend, checkpoint_name
from bakeoff.challenge.suites import SUITES, Suite, files_of, not_lines, read_choices
from bakeoff.config import Config
from bakeoff.digests import digest
from bakeoff.display.wording import counted, number
from bakeoff.runs.run import Run
from bakeoff.scoring.completions import Completions
from bakeoff.signals import go_on

READING, AOA = "reading", "aoa"
"""Names of the parts beside the suites of choices."""


class Surprisals(Config):
    """The surprisals of words after contexts, in the order of the file."""

    surprisals: list[float]
    """In nats."""


class Part(NamedTuple):
    """A part of the evaluation of one model."""

    model: str
    """The name of the checkpoint, or main."""
    key: str
    """The name of the part in a submission."""
    files: tuple[Path, ...]
    """The files; empty: they are missing."""
    wanted: str
    """What the user has to give."""
    suite: Suite | None = None
    """The suite, of parts that are choices."""
    folder: Path | None = None
    """The folder of the suite's files."""

    @property
    def scores(self) -> type[Config]:
        """The config of its scores."""
        if self.suite is not None:
            return HiddenScores if self.suite.hidden else SuiteScores
        if self.key.startswith("meco_"):
            return WordSurprisals
        return ReadingScores if self.key == READING else Surprisals

    @property
    def children(self) -> Path:
        """The file of children's words beside the contexts of AoA."""
        return self.files[0].with_name(CHILDREN)

    def missing(self) -> list[str]:
        """What is missing of its files."""
        found = [] if self.files else [self.wanted]
        if self.key == AOA and not self.files:
            found.append(str(Path(self.wanted).with_name(CHILDREN)))
        elif self.key == AOA and not self.children.is_file():
            found.append("/".join(self.children.parts[-3:]))
        return found

    def digest(self) -> str:
        """A digest of the files' contents and names."""
        names = [path.name if self.folder is None else path.relative_to(self.folder).as_posix() for path in self.files]
        parts = [f"{name} {digest(path)}" for name, path in zip(names, self.files, strict=True)]
        if self.suite is not None and self.suite.version > 1:
            parts.append(f"version {self.suite.version}")
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def parts_of(evaluation: Path | None, words: Sequence[int]) -> list[Part]:
    """The parts of the evaluation of all checkpoints, then of the last model; those whose files are missing, too."""
    folder = Path("evaluation_data") if evaluation is None else evaluation
    parts = []
    for model in [*map(checkpoint_name, words), MAIN]:
        fast = model != MAIN
        for suite in SUITES:
            place = suite.folder(folder, fast)
            if place is not None:
                files = () if evaluation is None else tuple(files_of(place))
                parts.append(Part(model, suite.key, files, f"{place.relative_to(folder)}/*.jsonl", suite, place))
        place = folder / ("fast_eval" if fast else "full_eval") / FILE
        there = evaluation is not None and place.is_file()
        parts.append(Part(model, READING, (place,) if there else (), str(place.relative_to(folder))))
        if fast:
            places = [folder / "full_eval" / file for file in FILES]
            found = [path for path in places if evaluation is not None and path.is_file()]
            parts.append(Part(model, AOA, tuple(found[:1]), str(places[0].relative_to(folder))))
    return parts


def multilingual_parts(
    evaluation: Path | None, words: Sequence[int], suites: Sequence[Suite], languages: Sequence[str]
) -> list[Part]:
    """The parts of the multilingual track: the same of all checkpoints and of the last model."""
    folder = Path("multilingual") if evaluation is None else evaluation
    tables = [(suite, *_tables(suite, folder / suite.full, evaluation is not None)) for suite in suites]
    parts = []
    for model in [*map(checkpoint_name, words), MAIN]:
        for suite, files, wanted in tables:
            parts.append(Part(model, suite.key, files, wanted, suite, folder / suite.full))
        for key in meco_keys(languages):
            path = folder / file_of(key)
            there = evaluation is not None and path.is_file()
            parts.append(Part(model, key, (path,) if there else (), file_of(key)))
    return parts


def _tables(suite: Suite, place: Path, given: bool) -> tuple[tuple[Path, ...], str]:
    """The files of a suite where an evaluation is given, and in words what is wanted there."""
    files = tuple(files_of(place, tables=True)) if given else ()
    others = not_lines(place) if given and not files else []
    why = f"; {', '.join(others)} has no JSON object a line" if others else ""
    return files, f"table in {suite.full}{why}"


def missing_of(parts: Sequence[Part]) -> list[str]:
    """What is missing of the evaluation, each file or folder once."""
    return list(dict.fromkeys(f"{part.key}: no {file}" for part in parts for file in part.missing()))


class Evaluation:
    """The zero-shot evaluation of an entry.

    Args:
        folder: the entry.
        parts: those of `parts_of`.
        backend: how texts are scored.
        device: auto, cpu, cuda or mps.
    """

    def __init__(self, folder: EntryFolder, parts: Sequence[Part], backend: Backend, device: str) -> None:
        self.folder, self.backend, self.device = folder, backend, device
        self.parts = [part for part in parts if part.files]
        self._read: dict[tuple[str, tuple[Path, ...]], Any] = {}
        self._digests: dict[tuple[Path, ...], str] = {}

    def scores(self, part: Part) -> Any:
        """The scores of a part; None: it is not scored yet."""
        return self.folder.read_scores(part.scores, part.model, part.key, self._digest(part))

    def shown(self, model: str) -> str:
        """The scores of a model in words, in percent, the official way."""
        found = [(part.key, self.scores(part)) for part in self.parts if part.model == model]
        values = [
            (key, scores.accuracy if isinstance(scores, SuiteScores) else scores.score)
            for key, scores in found
            if isinstance(scores, SuiteScores | ReadingScores)
        ]
        return ", ".join(f"{key} {number(value, 2)}" for key, value in values) or "scored"

    def _digest(self, part: Part) -> str:
        if part.files not in self._digests:
            self._digests[part.files] = part.digest()
        return self._digests[part.files]

    def waiting(self) -> list[Part]:
        """The parts that are not scored yet."""
        return [part for part in self.parts if self.scores(part) is None]

    def check(self) -> None:
        """Read all files, so that a mistake in one is told before a training.

        Raises:
            UserError: there is a mistake in a file.
        """
        for part in self.parts:
            self.content(part)
        if (children := self._children()) is not None:
            read_ages(children)

    def ages(self) -> AgeScore | None:
        """How the order in which words are learned agrees with that of children; None: a file or a score is missing."""
        children, parts = self._children(), [part for part in self.parts if part.key == AOA]
        found = {part.model: self.scores(part) for part in parts}
        if children is None or None in found.values():
            return None
        surprisals = {model: scores.surprisals for model, scores in found.items()}
        tokenizer = self.folder.export(MAIN) / "tokenizer.json"
        return age_score(self.content(parts[0]), surprisals, read_ages(children), tokenizer)

    def _children(self) -> Path | None:
        """The file of children's words; None: it is missing, or no contexts are scored."""
        files = (part.children for part in self.parts if part.key == AOA)
        return next((file for file in files if file.is_file()), None)

    def score(self, run_of: Callable[[str], Run | None], say: Callable[[str], None]) -> None:
        """Score what is not scored yet, model by model; each part is kept as soon as it is scored.

        Args:
            run_of: gives the run of a model by its name; None: there is none, and it is passed over.
            say: called with a line for each model.

        Raises:
            UserError: there is a mistake in a file, or a score is not a finite number.
        """
        for model, group in groupby(self.waiting(), lambda part: part.model):
            parts = list(group)
            run = run_of(model)
            if run is None:
                continue
            say(f"{model}: scoring {counted(len(parts), 'part')} of the evaluation")
            scorer = Completions(run, READINGS[self.backend], device=self.device)
            for part in parts:
                go_on()
                self.folder.write_scores(self._scored(part, run, scorer), model, part.key, self._digest(part))
            say(f"{model}: {self.shown(model)}")

    def content(self, part: Part) -> Any:
        """The content of a part's files: choices, rows or words.

        Raises:
            UserError: there is a mistake in a file.
        """
        where = part.key, part.files
        if where not in self._read:
            if part.suite is not None:
                assert part.folder is not None
                self._read[where] = read_choices(part.suite, part.folder)
            elif part.scores is WordSurprisals:
                self._read[where] = read_words(part.files[0], part.key)
            else:
                self._read[where] = (read_times if part.key == READING else read_contexts)(part.files[0])
        return self._read[where]

    def _scored(self, part: Part, run: Run, scorer: Completions) -> Config:
        content = self.content(part)
        if part.suite is not None:
            return score_choices(scorer, part.suite, content)
        if part.key == READING:
            return score_reading(run, scorer, self.backend == "mlm", content, self.device)
        if part.scores is WordSurprisals:
            return surprisals_of(scorer, content)
        return Surprisals(surprisals=score_words(scorer, content))
