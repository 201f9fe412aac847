"""The section of a report on what the layers of recipes do: distances of their input and output, and kernels."""

from collections.abc import Sequence
from typing import Any

import altair

from bakeoff.comparison.layer_profiles import LayerSimilarity, RecipeLayers
from bakeoff.comparison.reporting.charts import colours
from bakeoff.comparison.results import Results
from bakeoff.report.charts import PALETTE, Figure, axis_scale, colour_scale, dash_scale
from bakeoff.report.elements import legend, note, panels

MEASURES = (
    ("l2_distance", "L2 distance of input and output", 0.0, float("inf")),
    ("cosine_similarity", "cosine of input and output", -1.0, 1.0),
)
"""The measures of a layer: key, title, lowest and highest possible value."""


def layer_figures(results: Results) -> list[Figure]:
    """Curves over layers with a line for each recipe, and a heat map of the kernels of each recipe that has any."""
    if not results.layers:
        return []
    figures = [
        Figure(f"layers-{key}", "Input and output", title, _curves(results, key, title, lowest, highest))
        for key, title, lowest, highest in MEASURES
    ]
    convolutions = [each for each in results.layers if any(layer.kernels for layer in each.layers)]
    figures += [
        Figure(
            f"layers-kernels-{number}",
            "Kernels",
            f"{each.recipe}: {', '.join(dict.fromkeys(k.kind for layer in each.layers for k in layer.kernels))}",
            _kernels(each),
        )
        for number, each in enumerate(convolutions, 1)
    ]
    alike = [each for each in results.similarities if each.values]
    figures += [
        Figure(f"layers-alike-{number}", "Alike", f"{each.first} across, {each.second} down", _alike(each))
        for number, each in enumerate(alike, 1)
    ]
    return figures


def layer_section(results: Results, figures: Sequence[Figure]) -> str:
    """The section, as HTML; empty where nothing was measured."""
    if not figures:
        return ""
    kernels, alike = ([figure for figure in figures if figure.title == title] for title in ("Kernels", "Alike"))
    curves = [figure for figure in figures if figure not in [*kernels, *alike]]
    parts = [
        "<h2>What their layers do</h2>",
        note(
            "Models of the first seed, on held-out text: means over tokens of the distance between the states that "
            "come into a layer and those that leave it, as in figure 1 of the ALBERT paper. A layer that changes the "
            "width has none. “bakeoff inspect” shows one model in full."
        ),
        legend(colours(results)),
        *panels(curves),
    ]
    if kernels:
        parts.append(
            note(
                "Kernels: the share of the absolute weight of a layer's kernels at each distance in tokens from the "
                "output (negative: before it), over all heads or channels; kernels that depend on the token are means."
            )
        )
        parts += panels(kernels)
    if alike:
        parts.append(
            note(
                "How alike layers are: centred kernel alignment (linear, debiased; Kornblith et al. 2019) of the "
                "vectors that they give the same sentences of held-out text, means over tokens. 1: one is a "
                "rotation of the other; 0: they have nothing in common. Layer 0 is the input of the first one."
            )
        )
        parts += panels(alike)
    return "\n".join(parts)


def _curves(results: Results, key: str, title: str, lowest: float, highest: float) -> Any:
    """A chart with the layers across, and a line for each recipe's stacks."""
    rows: list[dict[str, Any]] = [
        {"recipe": each.recipe, "stack": layer.stack, "layer": layer.layer, "y": float(f"{value:.5g}")}
        for each in results.layers
        for layer in each.layers
        if (value := getattr(layer, key)) is not None
    ]
    deepest = max((row["layer"] for row in rows), default=1)
    style = colours(results)
    height = axis_scale([row["y"] for row in rows] or [0.0], lowest, highest)
    base = altair.Chart(altair.Data(values=rows)).encode(
        x=altair.X(
            "layer:Q",
            title="layer",
            scale=altair.Scale(domain=[1, max(2, deepest)], nice=False, padding=12),
            axis=altair.Axis(values=list(range(1, deepest + 1)), format="d", labelOverlap="greedy"),
        ),
        y=altair.Y("y:Q", title=title, scale=height),
        color=altair.Color("recipe:N", title=None, scale=colour_scale(style)),
        detail="stack:N",
        tooltip=["recipe:N", "stack:N", "layer:Q", altair.Tooltip("y:Q", title=title, format=".4~g")],
    )
    lines = base.mark_line(strokeWidth=2).encode(
        strokeDash=altair.StrokeDash("recipe:N", title=None, scale=dash_scale(style))
    )
    return altair.layer(lines, base.mark_point(filled=True, size=40, opacity=1))


def _kernels(layers: RecipeLayers) -> Any:
    """A heat map with taps across and convolutions down: the darker, the more of the weight lies there."""
    rows: list[dict[str, Any]] = []
    for layer in layers.layers:
        for number, kernel in enumerate(layer.kernels, 1):
            several = f".{number}" if len(layer.kernels) > 1 else ""
            for offset, share in zip(kernel.offsets, kernel.shares, strict=True):
                name = f"{layer.stack} {layer.layer}{several}"
                rows.append({"layer": name, "tap": offset, "share": share, "kind": kernel.kind})
    taps = sorted({row["tap"] for row in rows})
    largest = max(row["share"] for row in rows) or 1.0
    scale = altair.Scale(domain=[0, largest], range=["#ffffff", PALETTE[0]], interpolate="rgb")
    return (
        altair.Chart(altair.Data(values=rows))
        .mark_rect()
        .encode(
            x=altair.X("tap:O", title="tokens from the output", sort=taps, axis=altair.Axis(labelAngle=0)),
            y=altair.Y("layer:O", title=None, sort=None, axis=altair.Axis(labelOverlap="greedy")),
            color=altair.Color("share:Q", title=None, scale=scale, legend=None),
            tooltip=["layer:O", "kind:N", "tap:O", altair.Tooltip("share:Q", format=".1%")],
        )
    )


def _alike(similarity: LayerSimilarity) -> Any:
    """A heat map with the layers of one recipe across and those of the other down: the darker, the more alike."""
    rows = [
        {"first": across, "second": down, "cka": value, "shown": f"{value:.2f}"}
        for across, values in enumerate(similarity.values)
        for down, value in enumerate(values)
    ]
    scale = altair.Scale(domain=[0, 1], range=["#ffffff", PALETTE[0]], interpolate="rgb", clamp=True)
    return (
        altair.Chart(altair.Data(values=rows))
        .mark_rect()
        .encode(
            x=altair.X("first:O", title="layer", axis=altair.Axis(labelAngle=0, labelOverlap="greedy")),
            y=altair.Y("second:O", title="layer", sort="descending", axis=altair.Axis(labelOverlap="greedy")),
            color=altair.Color("cka:Q", title=None, scale=scale, legend=None),
            tooltip=["first:O", "second:O", altair.Tooltip("shown:N", title="CKA")],
        )
    )
