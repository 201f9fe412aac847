"""`bakeoff similarity`."""

import json as json_format
from pathlib import Path
from typing import Annotated, Any

import typer

from bakeoff.cli.shared.decorators import noted, of_checkpoint, taking
from bakeoff.cli.shared.makers import options_of
from bakeoff.cli.shared.options import Device, Json
from bakeoff.cli.shared.printing import print_table
from bakeoff.display.terminal import write_json
from bakeoff.display.wording import counted
from bakeoff.vectors.options import SimilarityOptions

COLUMNS = ("text_column", "pair_column", "label_column", "least_score", "at")
"""Options that come first."""


@noted
@of_checkpoint("run")
@taking(options=options_of(SimilarityOptions, *COLUMNS, "pooling", "layers", "length", "whiten", "errors"))
def similarity(
    run: Annotated[Path, typer.Argument(help="A pre-trained or a fine-tuned run.")],
    data: Annotated[Path, typer.Option(help="File with two texts in each row: .csv, .tsv or .jsonl.")],
    *,
    options: dict[str, Any],
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Compare two columns of texts by a run's vectors, without training: correlation with scores, or retrieval.

    Example: bakeoff similarity runs/bert --data sts-test.tsv --text-column sentence1 --pair-column sentence2
    --label-column score

    Example: bakeoff similarity runs/bert --data questions.jsonl --text-column question --pair-column answer --at 1,10
    """
    from bakeoff.vectors.baselines import OF_CHARACTERS
    from bakeoff.vectors.similarity import similarity as compare_texts

    figures = compare_texts(run, data, device=device, **options)
    if json:
        cosines = figures.pop("cosines")
        write_json(json_format.dumps(figures, ensure_ascii=False).removesuffix("}") + ', "cosines": [')
        write_json(",\n".join(map(repr, cosines)))
        write_json("]}")
        return
    rows = f"{figures['rows']:,}"
    if "recall" in figures["scores"]:
        rows += f"  sought {figures['scores']['queries']:,} among {figures['scores']['partners']:,}"
    if figures["blank"]:
        rows += f"  blank {counted(figures['blank'], 'text')}"
    if figures["truncated"]:
        rows += f"  cut {counted(figures['truncated'], 'text')}"
    print_table(
        {
            "rows": rows,
            **({"unknown": figures["hidden"]} if figures["hidden"] else {}),
            "cosine, whitened" if options["whiten"] else "cosine": _figures(figures["scores"]),
            **_baselines(figures["baselines"]),
            f"cosine with {OF_CHARACTERS}": _figures(figures["together"]),
        }
    )


def _baselines(baselines: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {name: _figures(scores) for name, scores in baselines.items()}


def _figures(scores: dict[str, Any]) -> str:
    """Correlations, or recall and mean reciprocal rank, in words."""
    parts = [f"{name} {scores[name]:.4f}" for name in ("spearman", "pearson") if name in scores]
    if "recall" in scores:
        parts += [f"recall@{k} {share:.4f}" for k, share in scores["recall"].items()] + [f"mrr {scores['mrr']:.4f}"]
    return "  ".join(parts)
