"""The curves of runs: losses on training and held-out text over tokens, words, steps, seconds or FLOPs."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bakeoff.display.terminal import tell
from bakeoff.errors import UserError
from bakeoff.overview.entries import RunEntry, entry_of, folder_of
from bakeoff.overview.lines import Line, read_lines
from bakeoff.overview.listing import list_runs, run_folders

Axis = Literal["tokens", "words", "steps", "seconds", "flops"]
AXES: tuple[Axis, ...] = ("tokens", "words", "steps", "seconds", "flops")
TITLES = {
    "tokens": "tokens seen",
    "words": "words seen",
    "steps": "steps",
    "seconds": "seconds of training",
    "flops": "FLOPs spent",
}
"""The title of each axis."""

SMOOTHED = 9
"""Number of lines of metrics whose mean is one point of the smoothed training loss."""

BEGINNING = 0.05
"""Share of the axis, from its start, whose steeply falling losses do not stretch the chart's height."""

MOST = 26
"""Most curves in one chart, because each has its own letter."""

Point = tuple[float, float]


class Curve(NamedTuple):
    """The losses of one training, as points (position on the axis, loss in nats)."""

    label: str
    """The run's path; for one of several trials of a fine-tuning, its learning rate and epochs too."""
    train: list[Point]
    """The points of the smoothed training loss."""
    held_out: list[Point]
    """The points of the held-out loss; for a fine-tuning, of the loss on dev."""
    objectives: tuple[str, ...]
    """The names of the objectives whose losses are summed; empty for a fine-tuning."""


def curves(paths: Sequence[str | Path], over: Axis = "tokens") -> list[Curve]:
    """The curves of all runs at and below folders.

    Args:
        paths: runs, or folders of them; a search stands for its trials.
        over: the axis: tokens, words, steps, seconds or flops.

    Raises:
        UserError: there is no run, no run has figures over that axis yet, there are more than `MOST` curves, or the
            only run's log is damaged; one of several is named, and the others are drawn.
    """
    if over not in AXES:
        raise UserError(f"--over {over}: give one of {', '.join(AXES)}")
    listed = [entry for entry in list_runs(paths) if entry.state != "saved" or entry.path in map(Path, paths)]
    entries = [each for entry in listed for each in _trials(entry)]
    if not entries:
        raise UserError(f"{', '.join(map(str, paths))}: no runs here")
    drawn, without = list[Curve](), list[RunEntry]()
    for entry in entries:
        try:
            of_entry = _curves(entry, over)
        except UserError as error:
            if len(entries) == 1:
                raise
            tell(f"not drawn: {error}")
            continue
        drawn += of_entry
        without += [] if of_entry else [entry]
    if not drawn:
        raise UserError(f"--over {over}: there is nothing to draw; {_why_not(entries[0], over)}")
    for entry in without:
        tell(f"not drawn: {entry.path}: {_why_not(entry, over)}")
    for path in paths if len(paths) > 1 else ():
        if not any(run_folders(folder_of(Path(path)))):
            tell(f"not drawn: {path}: no runs here")
    if len(drawn) > MOST:
        raise UserError(f"{len(drawn)} curves are too many for one chart; name {MOST} runs at most")
    return drawn


def _why_not(entry: RunEntry, over: Axis) -> str:
    """Why a run has no curve over an axis."""
    if entry.kind == "fine-tuning" and over in ("tokens", "words", "flops"):
        return "fine-tunings count steps and seconds"
    return f"no figures over {over} yet"


def _trials(entry: RunEntry) -> Iterable[RunEntry]:
    if entry.kind != "search":
        return [entry]
    return [entry_of(folder) for folder in run_folders(entry.path) if folder != entry.path]


def _curves(entry: RunEntry, over: Axis) -> list[Curve]:
    lines = read_lines(folder_of(entry.path) / "metrics.jsonl")
    if entry.kind != "fine-tuning":
        return _of_lines(str(entry.path), lines, over)
    settings = dict.fromkeys((line.get("learning_rate"), line.get("epochs")) for line in lines)
    return [
        curve
        for rate, epochs in settings
        for curve in _of_lines(
            str(entry.path) if len(settings) == 1 else f"{entry.path} lr {rate:g}, {epochs} epochs",
            [line for line in lines if (line.get("learning_rate"), line.get("epochs")) == (rate, epochs)],
            over,
        )
    ]


def _of_lines(label: str, lines: list[Line], over: Axis) -> list[Curve]:
    key = "step" if over == "steps" else over
    train, held_out = list[Point](), list[Point]()
    objectives = dict[str, None]()
    for line in lines:
        x = line.get(key)
        if not isinstance(x, int | float):
            continue
        objectives |= dict.fromkeys(line.get("losses", {}))
        if line["kind"] == "train":
            train.append((float(x), float(line["loss"])))
            continue
        if line["loss"] is not None:
            held_out.append((float(x), float(line["loss"])))
        if "train_loss" in line:
            train.append((float(x), float(line["train_loss"])))
    if not train and not held_out:
        return []
    return [Curve(label, smoothed(train), held_out, tuple(objectives))]


def smoothed(points: Sequence[Point]) -> list[Point]:
    """The points as means of `SMOOTHED` points around each, fewer near both ends, so that the curve is not shifted."""
    reach = SMOOTHED // 2
    means = []
    for index, (x, _) in enumerate(points):
        near = min(reach, index, len(points) - 1 - index)
        window = points[index - near : index + near + 1]
        means.append((x, sum(y for _, y in window) / len(window)))
    return means


def span(drawn: Sequence[Curve]) -> tuple[float, float, float, float]:
    """Left, right, bottom and top of a chart, beyond whose top the first steep fall of curves may lie."""
    points = [point for curve in drawn for point in (*curve.train, *curve.held_out)]
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    late = [y for x, y in points if x >= left + BEGINNING * (right - left)] or [y for _, y in points]
    bottom, top = min(y for _, y in points), max(late)
    pad = 0.03 * (top - bottom) or 0.5
    return left, right if right > left else left + 1, bottom - pad, top + pad


def remarks(drawn: Sequence[Curve]) -> list[str]:
    """Sentences that a reader must know before comparing the curves; empty if there is nothing to know."""
    if len({frozenset(curve.objectives) for curve in drawn}) > 1:
        return ["the runs have different objectives, whose losses cannot be compared"]
    return []


def as_json(drawn: Sequence[Curve]) -> list[dict[str, Any]]:
    """The curves as plain data for JSON, one object for each with the fields of `Curve`."""
    return [curve._asdict() for curve in drawn]
