"""Mirrors of growing metrics.jsonl files in trackers.

A thread follows the files, which remain the record. A training does not know of it, and does not stop when a tracker
fails.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bakeoff.display.terminal import tell
from bakeoff.durable import write_atomically
from bakeoff.errors import UserError, nearest, path_of
from bakeoff.extras import missing
from bakeoff.json_files import read_json
from bakeoff.machine.launch import rank_here
from bakeoff.overview.entries import folder_of
from bakeoff.overview.lines import Follower, Line
from bakeoff.overview.listing import run_folders
from bakeoff.repeating import repeating
from bakeoff.tracking.tracker import TrackedTraining, Tracker
from bakeoff.unfinished import finished_folder, unfinished_folder

TRACKERS = ("tensorboard", "trackio", "wandb")
"""Values of `--track`; each is a file of this folder."""

EVERY = 2.0
"""Seconds between two reads of the files."""


@contextmanager
def track(out: str | Path, names: Sequence[str], *, say: Callable[[str], None] = tell) -> Iterator[None]:
    """Mirror the trainings in `out` until the context ends, including their last lines.

    Args:
        out: the run, the fine-tuned run or the comparison that is made or resumed in the context.
        names: tensorboard, trackio or wandb; empty: nothing is mirrored.
        say: a function that is called with one line when a tracker fails, which ends that tracker alone.

    Raises:
        UserError: there is no such tracker, or its library is not installed.
    """
    modules = {name: _module(name) for name in dict.fromkeys(names)}
    if not modules or rank_here() > 0:  # of processes that train together the first one mirrors
        yield
        return
    mirror = _Mirror(path_of(out, "out"), modules, say)
    try:
        with repeating(EVERY, mirror.look, "bakeoff-track"):
            yield
    finally:
        mirror.look()
        mirror.close()


def _module(name: str) -> Any:
    """The module of a tracker.

    Raises:
        UserError: there is no such tracker, or its library is not installed.
    """
    if name not in TRACKERS:
        raise UserError(f"--track {name}: there is no such tracker{nearest(name, TRACKERS)}; {', '.join(TRACKERS)}")
    module = import_module(f"bakeoff.tracking.{name}")
    if find_spec(module.INSTALL) is None:
        raise missing(f"--track {name} needs {module.INSTALL}", "track")
    return module


class _Mirror:
    """All trainings in a folder, each mirrored in every tracker."""

    def __init__(self, out: Path, modules: dict[str, Any], say: Callable[[str], None]) -> None:
        self.out, self.modules, self.say = out, modules, say
        self.followers: dict[Path, Follower] = {}
        self.open: dict[tuple[str, Path], _Sent] = {}

    def look(self) -> None:
        """Send new lines."""
        for folder in self._folders():
            path = finished_folder(folder.absolute())
            follower = self.followers.setdefault(path, Follower(folder / "metrics.jsonl"))
            follower.path = folder / "metrics.jsonl"
            try:
                lines, _ = follower.look()
            except UserError:
                continue  # being replaced, or damaged, which the training itself reports
            if not lines:
                continue
            for name in list(self.modules):
                self._attempt(name, partial(self._send, name, folder, path, lines))

    def close(self) -> None:
        """Close all trackers."""
        for (name, _), sent in list(self.open.items()):
            self._attempt(name, sent.close)

    def _folders(self) -> list[Path]:
        folder = folder_of(self.out)
        beside = unfinished_folder(self.out)
        return [each for top in (folder, beside) if top.is_dir() for each in run_folders(top)]

    def _send(self, name: str, folder: Path, path: Path, lines: Sequence[Line]) -> None:
        sent = self.open.get((name, path))
        if sent is None:
            whole = path == self.out.absolute()
            parent = path.parent if whole else self.out.absolute()
            training = TrackedTraining(str(path.relative_to(parent)), parent, _settings(folder))
            sent = self.open[name, path] = _Sent(name, self.modules[name], training)
        for line in lines:
            sent.line(line)
        sent.remember()

    def _attempt(self, name: str, what: Callable[[], None]) -> None:
        """Call a function of a tracker; any exception ends this tracker alone."""
        if name not in self.modules:
            return
        try:
            what()
        except Exception as error:
            del self.modules[name]
            text = " ".join(str(error).split()) or type(error).__name__
            self.say(f"bakeoff: --track {name} failed and is left out from here on: {text}")


class _Sent:
    """A training in a tracker, with the last step that was sent."""

    def __init__(self, name: str, module: Any, training: TrackedTraining) -> None:
        self.file: Path | None = None
        self.steps: dict[str, int] = {}
        if not module.ANEW:  # a resumed training writes again lines that a killed process has sent
            self.file = training.place / f".{training.name.replace('/', '--')}.{name}.json"
            if self.file.is_file():
                self.steps = {key: int(step) for key, step in read_json(self.file).items()}
        self.tracker: Tracker = module.begin(training)

    def line(self, line: Line) -> None:
        """Send a line, unless it was sent before."""
        series = _series(line)
        if line["step"] <= self.steps.get(series, -1):
            return
        self.tracker.log(numbers(line), line["step"])
        self.steps[series] = line["step"]

    def remember(self) -> None:
        """Save the last steps that were sent."""
        if self.file is not None:
            write_atomically(self.file, json.dumps(self.steps))

    def close(self) -> None:
        """Close the tracker."""
        self.tracker.close()


def _series(line: Line) -> str:
    """The name of the series in which each step occurs once: a kind of line, or one training of a fine-tuning."""
    if line["kind"] != "dev":
        return str(line["kind"])
    return f"dev lr {line.get('learning_rate')} epochs {line.get('epochs')}"


def numbers(line: Line) -> dict[str, float]:
    """The numbers of a line, named `kind/name`, or `kind/name/objective` for each objective."""
    values: dict[str, float] = {}
    kind = _series(line) if line["kind"] == "dev" else line["kind"]
    for key, value in line.items():
        if key in ("step", "kind"):
            continue
        for name, each in value.items() if isinstance(value, dict) else [(None, value)]:
            if isinstance(each, int | float) and not isinstance(each, bool):
                values[f"{kind}/{key}" if name is None else f"{kind}/{key}/{name}"] = float(each)
    return values


def _settings(folder: Path) -> dict[str, Any]:
    path = folder / "environment.json"
    return read_json(path) if path.is_file() else {}
