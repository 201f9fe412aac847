"""`bakeoff finetune`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bakeoff.cli.shared.completing import complete_source
from bakeoff.cli.shared.decorators import noted, of_checkpoint, taking
from bakeoff.cli.shared.finetuned import print_result, source_of
from bakeoff.cli.shared.makers import options_from
from bakeoff.cli.shared.options import Device, Json, Set, Threads, Track, threads_of
from bakeoff.cli.shared.task_options import Files, Options, files_of, task_of


@noted
@of_checkpoint("source")
@taking(
    files=files_of,
    chosen=options_from(
        "bakeoff.tasks.finetune_config.FinetuneConfig",
        *("unshare", "freeze", "reinitialise_last", "truncate", "search"),
        freeze={"metavar": "model|N"},
        reinitialise_last={"default": None, "min": 0, "metavar": "N"},
        truncate={"default": None},
    ),
    begun=options_from("bakeoff.tasks.finetune.finetune", "seed", "resume", "shard"),
)
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
    chosen: dict[str, Any],
    begun: dict[str, Any],
    options: Options = [],  # noqa: B006
    corpus: Annotated[Path | None, typer.Option(help="From scratch: corpus whose tokenizer to use.")] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="From scratch: tokenizer.json to use, instead of --corpus.")
    ] = None,
    set: Set = [],  # noqa: B006
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
    from bakeoff.overrides import parse_overrides
    from bakeoff.tasks.finetune import finetune as finetune_model
    from bakeoff.tasks.finetune_config import FinetuneConfig
    from bakeoff.tracking.track import track as mirrored

    trained = source_of(source, set, scratch=corpus is not None or tokenizer is not None)
    settings = parse_overrides(options, "--option")
    settings |= {name: value for name, value in chosen.items() if value is not False}
    asked = task_of(files, settings, "finetune")
    config = FinetuneConfig.parse(settings, "--option")
    with mirrored(out, track):
        result = finetune_model(
            trained,
            asked,
            out,
            config=config,
            tokenizer=tokenizer or corpus,
            device=device,
            threads=threads_of(threads),
            **begun,
        )
    print_result(result, out, json)
