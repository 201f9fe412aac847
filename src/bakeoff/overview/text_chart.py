"""Curves as a chart of letters, for a terminal, a pipe or a file alike.

A library would draw with finer dots that only colours tell apart; letters are told apart in a pipe, by colour-blind
readers and in a copied text, and are forty lines.
"""

import shutil
from collections.abc import Sequence
from itertools import pairwise

from bakeoff.display.wording import quantity
from bakeoff.overview.curves import TITLES, Axis, Curve, Point, remarks, span

MARGIN = 9
"""Width of the numbers at the left, in columns."""
HEIGHT = 18
"""Height of the chart, in rows."""


def text_chart(curves: Sequence[Curve], over: Axis, width: int | None = None) -> list[str]:
    """The lines of the chart, of its axis and of its legend.

    Args:
        curves: the curves.
        over: the axis of the curves.
        width: width in columns; None: the terminal's, 120 at most.
    """
    columns = max(20, (width or min(120, shutil.get_terminal_size().columns)) - MARGIN - 2)
    left, right, bottom, top = span(curves)
    grid = [[" "] * columns for _ in range(HEIGHT)]

    def draw(points: Sequence[Point], letter: str) -> None:
        for column in range(columns):
            y = _at(points, left + (right - left) * column / (columns - 1), (right - left) / columns)
            if y is not None and bottom <= y <= top:
                grid[round((top - y) / (top - bottom) * (HEIGHT - 1))][column] = letter

    for index, curve in enumerate(curves):
        draw(curve.train, chr(ord("a") + index))
    for index, curve in enumerate(curves):
        draw(curve.held_out, chr(ord("A") + index))
    lines = []
    for row, cells in enumerate(grid):
        value = f"{top - (top - bottom) * row / (HEIGHT - 1):.3f}" if row % 4 == 0 or row == HEIGHT - 1 else ""
        lines.append(f"{value:>{MARGIN}} |{''.join(cells)}".rstrip())
    lines.append(f"{'':>{MARGIN}} +{'-' * columns}")
    ends = f"{quantity(left)}{TITLES[over]:^{max(1, columns - 14)}}{quantity(right)}"
    lines.append(f"{'':>{MARGIN}}  {ends}")
    for index, curve in enumerate(curves):
        losses = [
            f"{chr(ord(first) + index)} {name} {points[-1][1]:.4f}"
            for first, name, points in (("A", "held-out", curve.held_out), ("a", "train", curve.train))
            if points
        ]
        lines.append(f"{', '.join(losses)}  {curve.label}")
    return [*lines, *remarks(curves)]


def _at(points: Sequence[Point], x: float, near: float) -> float | None:
    """The loss at `x`, straight between points; beyond the ends, that of an end within `near`; None: none is."""
    for (x0, y0), (x1, y1) in pairwise(points):
        if x0 <= x <= x1:
            return y1 if x1 == x0 else y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    closest = min(points, key=lambda point: abs(point[0] - x), default=None)
    return closest[1] if closest is not None and abs(closest[0] - x) <= near else None
