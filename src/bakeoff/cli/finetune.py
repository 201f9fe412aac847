"""`bakeoff finetune`."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bakeoff.cli.shared.completing import complete_source
from bakeoff.cli.shared.decorators import noted, of_checkpoint, taking
from bakeoff.cli.shared.makers import options_from
from bakeoff.cli.shared.options import Device, Json, Set, Threads, Track, threads_of
from bakeoff.cli.shared.printing import print_json, print_table, simplest_text
from bakeoff.cli.shared.task_options import Files, Options, files_of, task_of
from bakeoff.display.terminal import suggest
from bakeoff.errors import UserError
from bakeoff.unread_keys import require_effect

if TYPE_CHECKING:
    from bakeoff.tasks.finetune_results import FinetuneResult


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
    from bakeoff.overrides import parse_override
    from bakeoff.tasks.finetune import finetune as finetune_model
    from bakeoff.tasks.finetune_config import FinetuneConfig
    from bakeoff.tracking.track import track as mirrored

    trained = _source(source, set, scratch=corpus is not None or tokenizer is not None)
    settings = dict(parse_override(text, "--option") for text in options)
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


def _source(source: str, overrides: Sequence[str], *, scratch: bool) -> Any:
    """The path of the run that is fine-tuned, or the recipe that is trained from scratch.

    Args:
        source: the run's path, or the recipe's name or file.
        overrides: changes to the recipe.
        scratch: whether there is a tokenizer for a training from scratch.

    Raises:
        UserError: there is no such run or recipe; a recipe has no tokenizer; changes are to a run.
    """
    from bakeoff.recipe_files import load_recipe, recipe_names

    path = Path(source)
    if path.exists() and path.suffix not in (".yaml", ".yml"):
        if overrides:
            raise UserError(f"--set changes a recipe, but {source} is a run, whose model is fixed")
        return path
    if not scratch and source not in recipe_names() and path.suffix == "":
        raise UserError(f"{source}: no such run (nor a recipe: `bakeoff recipes` lists them)")
    require_effect("finetune", overrides)
    recipe = load_recipe(source, overrides)
    if not scratch:
        needs = "a recipe is trained from scratch and needs a tokenizer: give --corpus or --tokenizer"
        raise UserError(f"{source}: {needs}")
    return recipe


def _search(result: "FinetuneResult") -> dict[str, str]:
    """Rows on the setting that dev chose among several, and on the cost of trying all of them."""
    if not result.trials:
        return {}
    return {
        "chosen": f"learning rate {result.learning_rate:g}, the best of {len(result.trials)} trainings, which took "
        f"{result.seconds:.0f} s together"
    }
