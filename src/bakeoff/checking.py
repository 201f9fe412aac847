"""`check`: every file of a corpus, a run, a fine-tuned run or a comparison, compared with what was written."""

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

from pydantic import Field

from bakeoff import checksums
from bakeoff.config import Config
from bakeoff.corpus.store import MANIFEST, Corpus
from bakeoff.errors import UserError, path_of
from bakeoff.json_files import MOST_OF_LINES
from bakeoff.machine.limits import Limits
from bakeoff.recipe_files import load_recipe
from bakeoff.regular_files import require_regular
from bakeoff.runs.checkpoint import list_checkpoints
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tensors import load_tensors
from bakeoff.trainer.checkpoint import read_state
from bakeoff.tuning.results import RECIPE, RESULTS, SearchJournal
from bakeoff.unfinished import SEARCH, no_such_run

Kind = Literal["corpus", "run", "fine-tuned run", "comparison", "search"]

_WEIGHTS = "model.safetensors"

_BOUNDED = (".json", ".jsonl", ".yaml", ".md", ".csv", ".html")
"""Endings of files that are no arrays of numbers."""


class FileGroup(Config):
    """Files that are reported in one line: one file, a folder, or a split of a corpus."""

    name: str
    """A file, or a folder, or a split of a corpus."""
    files: int
    """How many files there are."""
    bytes: int
    """Size of the files."""
    listed: int
    """Number of files that have a checksum; the others can only be read."""
    problems: list[str] = Field(default=[])
    """Problems of the files, each with the file's name and what to do."""


class DirectoryFindings(Config):
    """The result of checking a directory."""

    path: str
    """The directory."""
    kind: Kind
    """The kind of the directory, such as a corpus or a run."""
    groups: list[FileGroup]
    """All files of the directory, in groups."""
    remarks: list[str] = Field(default=[])
    """Remarks on a corpus: its unknown tokens, and the characters that they hide."""
    limits: Limits
    """The limits of its disk and of open files, which work that goes on there runs into."""

    @property
    def problems(self) -> list[str]:
        """The problems of all groups, in their order."""
        return [problem for group in self.groups for problem in group.problems]


def check(path: str | Path, progress: Callable[[FileGroup], None] | None = None) -> DirectoryFindings:
    """Read every byte of a directory and compare it with its checksum, whatever was verified before.

    Args:
        path: a corpus, a run, a fine-tuned run or a comparison with all its runs.
        progress: a function that is called with each group when it has been read.

    Raises:
        UserError: the directory is none of these, or cannot be read. Damage is no error: the findings name it.
    """
    path = path_of(path, "path")
    kind = _kind(path)
    groups = []
    for name, files in _grouped(path, kind):
        group = _check(name, files)
        groups.append(group)
        if progress is not None:
            progress(group)
    damaged = any(group.problems for group in groups)
    remarks = _remarks(path) if kind == "corpus" and not damaged else []
    return DirectoryFindings(path=str(path), kind=kind, groups=groups, remarks=remarks, limits=Limits.of(path))


def _remarks(path: Path) -> list[str]:
    """Remarks on an undamaged corpus, a line for each split of which something is hidden."""
    splits = Corpus.open(path).manifest.splits
    hidden = {name: counts.hidden for name, counts in splits.items() if counts.hidden is not None}
    return [f"{name}: {counts}" for name, counts in hidden.items() if str(counts)]


def _kind(path: Path) -> Kind:
    """The kind of a directory, recognised by its files."""
    if not path.is_dir():
        raise no_such_run(path, "no such directory; give a corpus, a run, a fine-tuned run, a comparison or a search")
    names = {each.name for each in path.iterdir()} | {*checksums.absent(path)}
    if MANIFEST in names:
        return "corpus"
    if SEARCH in names:
        return "search"
    if "recipe.yaml" in names:
        return "fine-tuned run" if FinetunedRun.at(path) else "run"
    if names & {"budget.json", "results.json"}:
        return "comparison"
    raise UserError(
        f"{path}: this is no corpus, run, fine-tuned run, comparison or search: none of their files are here"
    )


def _grouped(path: Path, kind: Kind) -> Iterator[tuple[str, list[Path]]]:
    """The files of a directory in groups, each with its name and its files.

    Each file in the directory itself is a group, or, in a corpus, each split; so is each folder below that has files.
    """
    for folder, folders, names in os.walk(path):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        listed, _ = _listed(here)
        known = {*names, *listed} - {checksums.NAME}
        if kind == "search" and here == path and RESULTS in names:
            known.add(RECIPE)  # without a checksum, because people change it
        elif "recipe.yaml" in names and {"summary.json", RESULTS} & {*names}:
            known.add(_WEIGHTS)  # of a finished run, which cannot be used without it
        files = [here / name for name in sorted(known) if not name.startswith(".")]
        if here != path:
            if files:
                yield str(here.relative_to(path)), files
            continue
        splits: dict[str, list[Path]] = {}
        for file in files:
            grown = kind == "corpus" and file.suffix != ".json"
            splits.setdefault(file.stem if grown else file.name, []).append(file)
        yield from splits.items()


def _listed(folder: Path) -> tuple[dict[str, str], str | None]:
    """The checksums of a folder, from its list, or from the manifest of a corpus that is older than such lists.

    Returns:
        Digests by file name, and the problem of the list, if it has one.
    """
    try:
        listed = checksums.listed(folder)
    except UserError as error:
        return {}, str(error)
    if not listed and (folder / MANIFEST).is_file():
        with suppress(UserError):  # which is reported where the manifest is read as a file
            listed = Corpus.open(folder).manifest.sha256
    return listed, None


def _check(name: str, files: list[Path]) -> FileGroup:
    """Compare the files of a group, all in one folder, with their checksums, and see that they can be read."""
    folder = files[0].parent
    listed, problem = _listed(folder)
    problems = [] if problem is None else [problem]
    sizes = [file.stat().st_size for file in files if file.is_file()]
    for file in files:
        try:
            if file.name not in listed and not file.is_file():
                how = "restore it from a copy" if file.name == _WEIGHTS else "the same command writes it again"
                raise UserError(f"{file}: missing; {how}")
            if os.path.lexists(file):
                _require_regular(file)
            if file.name in listed:
                checksums.compare(file, listed[file.name], anew=True)
            _read(file)
        except UserError as error:
            problems.append(str(error))
    if not problems and (splits := [file.stem for file in files if file.suffix == ".tokens"]):
        try:
            Corpus.open(folder).split(splits[0])  # looks at the numbers, too
        except UserError as error:
            problems.append(str(error))
    count = sum(file.name in listed for file in files)
    return FileGroup(name=name, files=len(sizes), bytes=sum(sizes), listed=count, problems=problems)


def _require_regular(file: Path) -> None:
    """Refuse what is no regular file, and what is too large for its kind, before it is read.

    Raises:
        UserError: it is one of these.
    """
    try:
        require_regular(file, MOST_OF_LINES if file.suffix in _BOUNDED else None)
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror or error}") from None


def _read(file: Path) -> None:
    """Read a file with the code that uses it; directories older than checksums have no other check.

    Raises:
        UserError: the file cannot be used.
    """
    folder = file.parent
    if file.suffix == ".safetensors":
        load_tensors(file)
    elif file.name == MANIFEST:
        Corpus.open(folder)
    elif file.name == "state.json":
        read_state(file.parent)
    elif (folder / SEARCH).is_file():
        if file.name == SEARCH:
            SearchJournal.read(file)
        elif file.name == "recipe.yaml":
            load_recipe(file)
    elif (folder / "recipe.yaml").is_file():
        run, finetuned, of_finetuned = Run(folder), FinetunedRun(folder), FinetunedRun.at(folder)
        readers: dict[str, Callable[[], object]] = {
            "recipe.yaml": lambda: run.recipe,
            "tokenizer.json": lambda: run.tokenizer,
            "environment.json": lambda: finetuned.environment if of_finetuned else run.environment,
            "metrics.jsonl": lambda: finetuned.metrics() if of_finetuned else _metrics(run),
            "summary.json": lambda: run.summary,
            "task.yaml": lambda: (finetuned.task, finetuned.config),
            "labels.json": lambda: finetuned.learned,
            "results.json": lambda: finetuned.results,
            "predictions.jsonl": finetuned.predictions,
        }
        readers.get(file.name, lambda: None)()


def _metrics(run: Run) -> None:
    """The lines of a run's metrics; of an unfinished run those that its checkpoints know."""
    if (run.path / "summary.json").is_file():
        run.metrics()
        return
    for checkpoint in list_checkpoints(run.checkpoints)[-1:]:
        state = read_state(checkpoint)
        if state.get("metrics") is not None:
            run.metrics_file.marked(state["metrics"], state["step"])
