"""`bakeoff finetune`."""

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bakeoff.cli.shared.completing import complete_source
from bakeoff.cli.shared.decorators import noted, of_checkpoint, taking
from bakeoff.cli.shared.options import Device, Json, Seed, Set, Threads, Track, refuse_tokenizer, threads_of
from bakeoff.cli.shared.printing import print_json, print_table, simplest_text
from bakeoff.cli.shared.task_options import Files, Options, files_of, task_of
from bakeoff.display.terminal import suggest
from bakeoff.errors import UserError

if TYPE_CHECKING:
    from bakeoff.tasks.finetune_results import FinetuneResult


@noted
@of_checkpoint("source")
@taking(files=files_of)
def finetune(
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN|RECIPE",
            help="A pre-trained run, or a recipe to train from scratch.",
            autocompletion=complete_source,
        ),
    ],
    out: Annotated[Path, typer.Option(help="Directory to write the fine-tuned run to.")],
    *,
    files: Files,
    unshare: Annotated[
        bool, typer.Option("--unshare", help="Give layers that share weights copies of their own before training.")
    ] = False,
    freeze: Annotated[
        str | None,
        typer.Option(
            help=(
                "What keeps its weights: model (all but the head), or a number N (the embedding and the lowest "
                "N layers)."
            )
        ),
    ] = None,
    reinitialise_last: Annotated[
        int | None, typer.Option(min=0, help="Number of topmost layers that start with new random weights.")
    ] = None,
    truncate: Annotated[
        str | None, typer.Option(help="What to read of texts that are too long: head, head+tail, or all in windows.")
    ] = None,
    search: Annotated[
        bool,
        typer.Option(
            "--search",
            help="Try four learning rates with two numbers of epochs each, and keep the setting that is best on dev.",
        ),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted training exactly where it stopped.")
    ] = False,
    options: Options = [],  # noqa: B006
    corpus: Annotated[Path | None, typer.Option(help="From scratch: corpus whose tokenizer to use.")] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="From scratch: tokenizer.json to use, instead of --corpus.")
    ] = None,
    set: Set = [],  # noqa: B006
    seed: Seed = 0,
    device: Device = "auto",
    threads: Threads = "auto",
    track: Track = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Fine-tune a pre-trained run, or train a recipe from scratch, on labelled data.

    Example: bakeoff finetune runs/bert --train train.tsv --dev dev.tsv --test test.tsv --text-column sentence
    --label-column label --out runs/bert-sst2

    Example: bakeoff finetune runs/bert --dataset sst2 --data glue/SST-2 --out runs/bert-sst2
    """
    from bakeoff.overrides import parse_override
    from bakeoff.recipe_files import load_recipe, recipe_names
    from bakeoff.tasks.finetune import finetune as finetune_model
    from bakeoff.tasks.fitting.finetune_config import FinetuneConfig
    from bakeoff.tracking.track import track as mirrored

    begun: Any = Path(source)
    if not begun.exists() or begun.suffix in (".yaml", ".yml"):
        if corpus is None and tokenizer is None and source not in recipe_names() and begun.suffix == "":
            raise UserError(f"{source}: no such run (nor a recipe: `bakeoff recipes` lists them)")
        refuse_tokenizer(set)
        begun = load_recipe(source, set)
        if corpus is None and tokenizer is None:
            raise UserError(
                f"{source}: a recipe is trained from scratch and needs a tokenizer: give --corpus or --tokenizer"
            )
    elif set:
        raise UserError(f"--set changes a recipe, but {source} is a run, whose model is fixed")
    settings = dict(parse_override(text, "--option") for text in options)
    flags = {
        "unshare": unshare or None,
        "freeze": int(freeze) if freeze is not None and freeze.isdecimal() else freeze,
        "reinitialise_last": reinitialise_last,
        "truncate": truncate,
        "search": search or None,
    }
    settings |= {name: value for name, value in flags.items() if value is not None}
    asked = task_of(files, settings, "finetune")
    with mirrored(out, track):
        result = finetune_model(
            begun,
            asked,
            out,
            config=FinetuneConfig.parse(settings, "--option"),
            seed=seed,
            tokenizer=tokenizer or corpus,
            device=device,
            threads=threads_of(threads),
            resume=resume,
        )
    if json:
        print_json(result.model_dump(mode="json"))
        return
    scores = {
        part: "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        for part, metrics in result.scores.items()
    }
    print_table(
        {
            "run": out,
            "rows": "  ".join(f"{part} {count:,}" for part, count in result.rows.items()),
            "pre-trained": f"{result.transferred_tensors} of {result.total_tensors} tensors",
            **scores,
            **simplest_text(result.kind, result.simplest),
            **_search(result),
            **{f"note {number + 1}": note for number, note in enumerate(result.notes)},
        }
    )
    suggest(f"bakeoff predict {quote(str(out))} --texts FILE")


def _search(result: "FinetuneResult") -> dict[str, str]:
    """Rows on the setting that dev chose among several, and on the cost of trying all of them."""
    if not result.trials:
        return {}
    return {
        "chosen": f"learning rate {result.learning_rate:g}, the best of {len(result.trials)} trainings, which took "
        f"{result.seconds:.0f} s together"
    }
