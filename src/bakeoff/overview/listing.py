"""Listing runs: finding them below folders, sorting them, and writing them as the lines of a table."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from bakeoff.display.text import visible
from bakeoff.display.wording import aligned, quantity
from bakeoff.errors import UserError
from bakeoff.overview.entries import RunEntry, entry_of, folder_of
from bakeoff.unfinished import ASKED, UNFINISHED

ListingOrder = Literal["path", "loss", "age", "tokens"]
ORDERS: tuple[ListingOrder, ...] = ("path", "loss", "age", "tokens")

_MARKS = {"environment.json", "metrics.jsonl", "summary.json", "labels.json"}
"""Files of which one beside recipe.yaml makes a folder a run; a recipe.yaml alone is only a recipe."""


def list_runs(paths: str | Path | Iterable[str | Path] = ".", *, sort: ListingOrder = "path") -> list[RunEntry]:
    """The runs at and below folders: pre-trained and fine-tuned ones, unfinished ones, searches.

    A damaged run has an entry with its problem. Weights that a training has kept on the way are runs, too. A search is
    one entry; its trials are listed as well if the search itself is one of the paths. Links to folders are not
    followed.

    Args:
        paths: folders, or runs.
        sort: order of the list: path; loss, the lowest first; age, the newest first; tokens, the most first. Runs
            without that figure come last.

    Raises:
        UserError: there is no such folder, or no such order.
    """
    if not isinstance(paths, str | Path | Iterable):
        raise UserError(f"runs: folders are wanted, not {paths!r:.30}")
    if sort not in ORDERS:
        raise UserError(f"--sort {sort}: give one of {', '.join(ORDERS)}")
    folders = [Path(paths)] if isinstance(paths, str | Path) else [Path(path) for path in paths]
    entries: dict[Path, RunEntry] = {}
    for path in folders:
        folder = folder_of(path)
        if not folder.is_dir():
            raise UserError(f"{path}: {'not a folder' if path.exists() else 'no such folder'}")
        for each in run_folders(folder):
            entry = entry_of(each)
            entries.setdefault(entry.path.resolve(), entry)
    return sorted(entries.values(), key=lambda entry: _rank(entry, sort))


def _rank(entry: RunEntry, sort: ListingOrder) -> tuple[bool, float, str, int, str]:
    value = {"path": 0.0, "loss": entry.loss, "age": entry.age, "tokens": entry.tokens and -entry.tokens}[sort]
    if entry.state == "saved":  # in the order of the training, after their run
        return value is None, value or 0.0, str(entry.path.parents[1]), 1 + (entry.step or 0), entry.path.name
    return value is None, value or 0.0, str(entry.path), 0, ""


def run_folders(top: Path) -> Iterator[Path]:
    """The directories of runs at and below a folder, in the order of their names."""
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as scan:
                inside = {each.name: each.is_dir(follow_symlinks=False) for each in scan}
        except OSError:
            continue  # not ours to read
        search = "search.json" in inside
        is_run = search or _is_run(set(inside)) or (folder.name.endswith(UNFINISHED) and ASKED in inside)
        if is_run:
            yield folder
        if is_run and not (search and folder == top):
            inside = {name: True for name in ("saved",) if inside.get(name)}  # weights that were kept on the way
        below = sorted(name for name, is_folder in inside.items() if is_folder)
        waiting += [
            folder / name
            for name in reversed(below)
            if not name.startswith(".") or (name.endswith(UNFINISHED) and name.removesuffix(UNFINISHED) != ".")
        ]


def _is_run(names: set[str]) -> bool:
    if "recipe.yaml" in names:
        return bool(names & _MARKS)
    if ".bakeoff-begun" in names:  # a killed process has left it, and the next one makes it anew
        return False
    return {"environment.json", "tokenizer.json"} <= names and "corpus.json" not in names


def table(entries: Iterable[RunEntry]) -> list[str]:
    """The lines of a table for people: a heading and one line for each run, without empty columns."""
    rows: list[tuple[str, ...]] = [
        ("run", "recipe", "state", "tokens", "held-out loss", "test", "parameters", "age", "")
    ]
    rows += [_row(entry) for entry in entries]
    return aligned(rows, numbers=(3, 4, 6, 7))


def _row(entry: RunEntry) -> tuple[str, ...]:
    return (
        visible(str(entry.path)),
        entry.recipe or "-",
        state_text(entry),
        "-" if entry.tokens is None else quantity(entry.tokens),
        "-" if entry.loss is None else f"{'at most ' if entry.loss_at_most else ''}{entry.loss:.4f}",
        "" if entry.score is None else f"{entry.metric} {entry.score:.4f}",
        "-" if entry.parameters is None else quantity(entry.parameters),
        age_text(entry.age),
        entry.problem or "",
    )


def state_text(entry: RunEntry) -> str:
    """The state of a run in words: training, step 100 of 1,000."""
    if entry.problem is not None:
        return "damaged"
    if entry.kind == "search":
        return f"{'searching' if entry.state == 'training' else entry.state}, {entry.trials} trials"
    if entry.state == "finished":
        return "finished" if entry.kind == "pre-training" else "fine-tuned"
    of = "" if entry.steps is None else f" of {entry.steps:,}"
    step = f"step {entry.step or 0:,}{of}"
    return f"training, {step}" if entry.state == "training" else f"{entry.state} at {step}"


def age_text(seconds: float) -> str:
    """A time in words, in the largest unit that gives at least two: 3 h."""
    for length, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
