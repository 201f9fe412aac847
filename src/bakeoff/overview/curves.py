"""The curves of runs: losses of training and held-out text over what was spent."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bakeoff.errors import UserError
from bakeoff.overview.entries import RunEntry, entry_of, folder_of
from bakeoff.overview.lines import Line, read_lines
from bakeoff.overview.listing import list_runs, run_folders

Axis = Literal["tokens", "steps", "seconds", "flops"]
AXES: tuple[Axis, ...] = ("tokens", "steps", "seconds", "flops")
TITLES = {"tokens": "tokens seen", "steps": "steps", "seconds": "seconds of training", "flops": "FLOPs spent"}
"""What each axis is called."""

SMOOTHED = 9
"""Lines of metrics that a point of the smoothed training loss is the mean of."""

BEGINNING = 0.05
"""Share of the axis in which losses fall so steeply that the chart is not stretched for them."""

MOST = 26
"""Curves in one chart, of which each has a letter."""

Point = tuple[float, float]


class Curve(NamedTuple):
    """The losses of one training."""

    label: str
    """The run, and the setting where it has trained with several."""
    train: list[Point]
    """Place on the axis and smoothed training loss, in nats."""
    held_out: list[Point]
    """The points of the held-out loss, or of the loss on dev."""
    objectives: tuple[str, ...]
    """What the loss is the sum of."""


def curves(paths: Sequence[str | Path], over: Axis = "tokens") -> list[Curve]:
    """The curves of all runs at and below folders.

    Args:
        paths: runs, or folders of them; a search stands for its trials.
        over: tokens, steps, seconds or flops.

    Raises:
        UserError: there is no run, none has figures yet over that axis, or there are more than `MOST`.
    """
    if over not in AXES:
        raise UserError(f"--over {over}: give one of {', '.join(AXES)}")
    entries = [each for entry in list_runs(paths) for each in _trials(entry)]
    if not entries:
        raise UserError(f"{', '.join(map(str, paths))}: no runs here")
    found = [curve for entry in entries for curve in _curves(entry, over)]
    if not found:
        what = "fine-tunings count steps and seconds" if over in ("tokens", "flops") else "no run has a line of it yet"
        raise UserError(f"--over {over}: there is nothing to draw; {what}")
    if len(found) > MOST:
        raise UserError(f"{len(found)} curves are too many for one chart; name {MOST} runs at most")
    return found


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
        held_out.append((float(x), float(line["loss"])))
        if "train_loss" in line:
            train.append((float(x), float(line["train_loss"])))
    if not train and not held_out:
        return []
    return [Curve(label, smoothed(train), held_out, tuple(objectives))]


def smoothed(points: Sequence[Point]) -> list[Point]:
    """Each point the mean of `SMOOTHED` around it, fewer towards both ends, so that the curve is not shifted."""
    reach = SMOOTHED // 2
    found = []
    for place, (x, _) in enumerate(points):
        near = min(reach, place, len(points) - 1 - place)
        window = points[place - near : place + near + 1]
        found.append((x, sum(y for _, y in window) / len(window)))
    return found


def span(found: Sequence[Curve]) -> tuple[float, float, float, float]:
    """Left, right, bottom and top of a chart in which the curves' first steep fall may leave at the top."""
    points = [point for curve in found for point in (*curve.train, *curve.held_out)]
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    late = [y for x, y in points if x >= left + BEGINNING * (right - left)] or [y for _, y in points]
    bottom, top = min(y for _, y in points), max(late)
    pad = 0.03 * (top - bottom) or 0.5
    return left, right if right > left else left + 1, bottom - pad, top + pad


def remarks(found: Sequence[Curve]) -> list[str]:
    """What to know before curves are compared."""
    if len({frozenset(curve.objectives) for curve in found}) > 1:
        return ["the runs have different objectives, whose losses cannot be compared"]
    return []


def as_json(found: Sequence[Curve]) -> list[dict[str, Any]]:
    """The curves as plain data."""
    return [curve._asdict() for curve in found]
