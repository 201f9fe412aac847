"""The page of an inspection: one HTML file that needs no network."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import altair
import torch

from bakeoff.durable import write_atomically
from bakeoff.inspection.layers import Kernels, Layer
from bakeoff.report.charts import PALETTE, Figure, on_page
from bakeoff.report.elements import note, opening, panels
from bakeoff.report.page import html_page

MOST_KERNELS = 64
"""Largest number of kernels that are drawn for a layer; more rows could not be told apart."""

FIGURES = {
    "l2_distance": "L2 distance",
    "cosine_similarity": "cosine similarity",
    "degrees": "angle in degrees",
}


def write_page(path: Path, title: str, about: str, layers: Sequence[Layer]) -> None:
    """Write the page: curves of input and output over layers, and heat maps of kernels."""
    parts = [
        *opening(about, title),
        "<h2>Input and output of each layer</h2>",
        note(
            "Means over real tokens, between the states that come into a layer and those that leave it, as in figure 1 "
            "of the ALBERT paper. A layer that changes the width has none."
        ),
    ]
    curves = [Figure(name, "Input and output", text, _curve(layers, name, text)) for name, text in FIGURES.items()]
    parts += panels(curves)
    heat_maps = [
        Figure(
            f"kernels-{layer.stack}-{layer.layer}-{each.part}",
            "Kernels",
            f"{layer.stack} layer {layer.layer}, {each.kind}",
            _heat_map(each),
        )
        for layer in layers
        for each in layer.kernels
    ]
    if heat_maps:
        parts.append("<h2>Kernels</h2>")
        parts.append(
            note(
                "Weight of each tap, by distance in tokens from the output (negative: before it). Rows are heads or "
                "channels; dynamic kernels are means over the text; of dense ones, and of the dense layer over a "
                "window, the length of each tap's vector of weights. If there are more rows than "
                f"{MOST_KERNELS}, so many are drawn, spread evenly over all in the order of where their weight lies."
            )
        )
        parts += panels(heat_maps)
    write_atomically(path, html_page(title, "\n".join(parts), on_page([*curves, *heat_maps], 240, legend=True)))


def _curve(layers: Sequence[Layer], name: str, text: str) -> Any:
    rows = [
        {"stack": layer.stack, "layer": layer.layer, "y": value}
        for layer in layers
        if (value := getattr(layer, name)) is not None
    ]
    ticks = list(range(1, max(layer.layer for layer in layers) + 1))
    stacks = list(dict.fromkeys(layer.stack for layer in layers))
    colour = altair.Color("stack:N", title=None, scale=altair.Scale(domain=stacks, range=list(PALETTE[: len(stacks)])))
    return (
        altair.Chart(altair.Data(values=rows))
        .mark_line(point=True)
        .encode(
            x=altair.X("layer:Q", axis=altair.Axis(values=ticks, format="d"), scale=altair.Scale(nice=False)),
            y=altair.Y("y:Q", title=text, scale=altair.Scale(zero=False)),
            color=colour,
            tooltip=["stack:N", "layer:Q", altair.Tooltip("y:Q", title=text, format=".4f")],
        )
    )


def _heat_map(kernels: Kernels) -> Any:
    """A heat map with taps across and kernels down; blue is positive, orange negative."""
    rows = list(_cells(kernels))
    largest = max((abs(row["weight"]) for row in rows), default=1.0) or 1.0
    scale = altair.Scale(domain=[-largest, 0, largest], range=[PALETTE[1], "#ffffff", PALETTE[0]], interpolate="rgb")
    return (
        altair.Chart(altair.Data(values=rows))
        .mark_rect()
        .encode(
            x=altair.X("tap:O", title="tokens from the output", axis=altair.Axis(labelAngle=0)),
            y=altair.Y("kernel:O", title="kernel", sort=None, axis=altair.Axis(labels=False, ticks=False)),
            color=altair.Color("weight:Q", scale=scale, title=None, legend=altair.Legend(symbolType="square")),
            tooltip=["kernel:O", "tap:O", altair.Tooltip("weight:Q", format=".4f")],
        )
    )


def _cells(kernels: Kernels) -> Iterator[dict[str, Any]]:
    weights = torch.tensor(kernels.weights)
    order = torch.arange(len(weights))
    if len(weights) > MOST_KERNELS:
        sizes = weights.abs()
        centre = sizes @ torch.tensor(kernels.offsets, dtype=sizes.dtype) / sizes.sum(-1).clamp(min=1e-30)
        order = centre.argsort()[torch.linspace(0, len(weights) - 1, MOST_KERNELS).long()]
    for kernel in order.tolist():
        for tap, weight in zip(kernels.offsets, kernels.weights[kernel], strict=True):
            yield {"kernel": kernel + 1, "tap": tap, "weight": float(f"{weight:.4g}")}
