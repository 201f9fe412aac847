"""Curves as one HTML file that needs no network, or as a picture for slides and papers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair
import vl_convert

from bakeoff.durable import beside, write_atomically
from bakeoff.errors import UserError
from bakeoff.overview.curves import SMOOTHED, TITLES, Axis, Curve, remarks, span
from bakeoff.report.charts import Figure, colour_scale, dash_scale, on_page, specification, styles
from bakeoff.report.elements import legend, note, opening, panels, table
from bakeoff.report.page import html_page

INK = "#1c2126"
"""Colour of text in a picture; figures on the page have the page's colour."""

ENDINGS = (".html", ".svg", ".png")


def require_out(path: Path) -> None:
    """Refuse an output file that has none of the `ENDINGS`, or is there, before any run is read.

    Raises:
        UserError: the name has another ending, or is taken.
    """
    if path.suffix.lower() not in ENDINGS:
        raise UserError(f"--out {path}: give a name that ends in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    if path.exists() or path.is_symlink():
        raise UserError(f"{path}: is there already; choose another --out")


def write_curves(curves: Sequence[Curve], over: Axis, path: Path) -> None:
    """Write the curves as HTML, SVG or PNG by the file's ending, whole or not at all.

    Raises:
        UserError: the file's name has none of the `ENDINGS`, or is taken.
    """
    require_out(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure = Figure("curves", "Loss", f"over {TITLES[over]}", _chart(curves, over))
    if path.suffix.lower() == ".html":
        rows = [[curve.label, *(f"{points[-1][1]:.4f}" if points else "" for points in curve[1:3])] for curve in curves]
        body = [
            *opening(f"{len(curves)} curves over {TITLES[over]}", "Losses of runs", (), remarks(curves)),
            note(f"Thick: held-out text. Thin: training, each point the mean of {SMOOTHED} around it."),
            legend(styles([curve.label for curve in curves])),
            *panels([figure]),
            table(["run", "train", "held-out"], rows),
        ]
        write_atomically(path, html_page("Losses of runs", "\n".join(body), on_page([figure], 420)))
        return
    drawn = specification(figure.chart, width=760, height=420, ink=INK, legend=True)
    if path.suffix.lower() == ".svg":
        write_atomically(path, vl_convert.vegalite_to_svg(drawn))
        return
    partial = beside(path)
    partial.write_bytes(vl_convert.vegalite_to_png(drawn, scale=2))
    partial.replace(path)


def _chart(curves: Sequence[Curve], over: Axis) -> Any:
    rows = [
        {"run": curve.label, "split": split, "x": float(f"{x:.6g}"), "y": float(f"{y:.5g}")}
        for curve in curves
        for split, points in (("train", curve.train), ("held-out", curve.held_out))
        for x, y in points
    ]
    style = styles([curve.label for curve in curves])
    left, right, bottom, top = span(curves)
    suffix = "replace(format(datum.value, '~s'), 'G', 'B')"  # a billion tokens is 1B to a reader, not 1G
    base = altair.Chart().encode(
        x=altair.X(
            "x:Q",
            title=TITLES[over],
            axis=altair.Axis(tickCount=8, labelExpr=suffix),
            scale=altair.Scale(domain=[left, right], nice=False),
        ),
        y=altair.Y("y:Q", title="loss, nats per target", scale=altair.Scale(domain=[bottom, top], nice=False)),
        color=altair.Color("run:N", title=None, scale=colour_scale(style)),
        strokeDash=altair.StrokeDash("run:N", title=None, scale=dash_scale(style)),
    )
    held = base.transform_filter("datum.split === 'held-out'")
    return altair.layer(
        base.transform_filter("datum.split === 'train'").mark_line(strokeWidth=1, opacity=0.6, clip=True),
        held.mark_line(strokeWidth=2.5, clip=True),
        held.mark_circle(size=40, clip=True).encode(
            strokeDash=altair.value([1, 0]),
            tooltip=[
                altair.Tooltip("run:N"),
                altair.Tooltip("x:Q", title=TITLES[over], format=".3s"),
                altair.Tooltip("y:Q", title="held-out loss", format=".4f"),
            ],
        ),
        data=altair.Data(values=rows),
    )
