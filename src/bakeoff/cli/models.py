"""`bakeoff recipes`, `show` and `pretrain`."""

import signal
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bakeoff.cli.completing import complete_recipe, complete_run
from bakeoff.cli.output import (
    LARGEST_SEED,
    Device,
    Json,
    Set,
    Threads,
    Track,
    losses_text,
    print_json,
    print_table,
    threads_of,
)
from bakeoff.cli.prepare_values import refuse_tokenizer
from bakeoff.display.terminal import suggest, tell, write
from bakeoff.errors import Interrupted, UserError
from bakeoff.signals import ask_anew

if TYPE_CHECKING:
    from bakeoff.runs.run import Run


def recipes(json: Json = False) -> None:
    """List the recipes that come with Bakeoff, with their parameters.

    Example: bakeoff recipes
    """
    from bakeoff.display.wording import quantity
    from bakeoff.learner.pretraining_model import build_on_meta
    from bakeoff.recipe_files import load_recipe, recipe_names

    found = {name: load_recipe(name) for name in recipe_names()}
    sizes = {name: build_on_meta(each, each.tokenizer.size).parameter_count() for name, each in found.items()}
    if json:
        print_json({name: {"parameters": sizes[name], "paper": each.paper} for name, each in found.items()})
    else:
        print_table({name: f"{quantity(sizes[name]):>6}  {each.paper}" for name, each in found.items()})


def show(
    recipe: Annotated[str, typer.Argument(help="A recipe's name or file.", autocompletion=complete_recipe)],
    set: Set = [],  # noqa: B006
    vocabulary: Annotated[
        int | None, typer.Option(min=1, max=2**32, help="Size of the vocabulary. Default: the recipe's.")
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(min=1, max=2**32, help="Rows in a batch, for the estimate of memory. Default: the recipe's."),
    ] = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Print a complete recipe, to save and change as your own, and on standard error its parameters and costs.

    Example: bakeoff show albert-base --set model.encoder.layers=6 --batch 32

    Example: bakeoff show bert-mini > mine.yaml
    """
    from bakeoff.recipe_files import load_recipe
    from bakeoff.resources.costs import costs_of
    from bakeoff.resources.device import resolve_device
    from bakeoff.resources.memory_need import memory_need

    loaded = load_recipe(recipe, set)
    size = vocabulary or loaded.tokenizer.size
    costs, memory = costs_of(loaded, size), memory_need(loaded, size, resolve_device(device), batch)
    published = loaded.published
    counted = costs if published is None or published.vocabulary == size else costs_of(loaded, published.vocabulary)
    if json:
        print_json(
            {
                "recipe": loaded.model_dump(mode="json"),
                **costs.model_dump(),
                "published": published and {**published.model_dump(), "counted": counted.parameters},
                "memory": {**memory.model_dump(), "total": memory.total},
            }
        )
        return
    write(loaded.to_yaml().rstrip())  # a recipe's file: all else goes to standard error
    sys.stdout.flush()
    parts = ", ".join(f"{name} {count:,}" for name, count in costs.parts.items())
    rows = {
        "layers": _by_stack(
            {
                name: f"{stack.layers}, with {stack.parts} distinct parts applied {stack.applications} times"
                for name, stack in costs.stacks.items()
            }
        ),
        "parameters": f"{costs.parameters:,} ({parts}) with a vocabulary of {costs.vocabulary:,}",
    }
    if published is not None:
        rows["published"] = (
            f"{published.parameters:,} with a vocabulary of {published.vocabulary:,}; here {counted.parameters:,} "
            f"with that vocabulary ({100 * (counted.parameters / published.parameters - 1):+.1f} %)"
            + (f": {published.differs}" if published.differs else "")
        )
    rows["FLOPs a token"] = f"{costs.flops_per_token:,} in training, forward and backward"
    rows["receptive field"] = _by_stack(
        {
            name: "the whole row" if field is None else f"{field:,} tokens, its own among them"
            for name, field in costs.receptive_field.items()
        }
    )
    needs = {"weights": memory.weights, "gradients": memory.gradients, "optimizer": memory.optimizer}
    needs[f"activations of {memory.rows:,} row{'s' if memory.rows > 1 else ''}"] = memory.activations
    if memory.remembered:
        needs["remembered rows"] = memory.remembered
    if memory.update > memory.activations:
        needs["in place of the activations the optimizer's step"] = memory.update
    rows["memory"] = (
        f"{memory.total / 1e9:,.2f} GB: {', '.join(f'{name} {size / 1e9:,.2f}' for name, size in needs.items())} "
        f"({memory.precision} on {memory.device}, not compiled); --batch N for other rows at once, "
        "training.micro_batch to train so"
    )
    tell("")
    print_table(rows, tell)


def _by_stack(texts: dict[str, str]) -> str:
    """The text of a single stack, or the texts of several stacks, each after its stack's name."""
    return "; ".join(f"{name} {text}" for name, text in texts.items()) if len(texts) > 1 else next(iter(texts.values()))


def pretrain(
    out: Annotated[Path, typer.Option(help="Directory to write the run to.")],
    recipe: Annotated[
        str | None,
        typer.Argument(
            help="A recipe's name or file. With --from or --resume, the recipe of that run.",
            autocompletion=complete_recipe,
        ),
    ] = None,
    corpus: Annotated[
        Path | None,
        typer.Option(help="Corpus; DIR:0.7,DIR:0.3 mixes several. With --resume, the corpus of that run."),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="tokens=5M, epochs=2, flops=1e15, minutes=10, hours=2 or steps=1000. Default: the recipe's."),
    ] = None,
    set: Set = [],  # noqa: B006
    seed: Annotated[
        int | None, typer.Option(min=0, max=LARGEST_SEED, help="Seed of everything that is random. Default: 0.")
    ] = None,
    device: Device = "auto",
    threads: Threads = "auto",
    from_run: Annotated[
        Path | None,
        typer.Option("--from", metavar="RUN", help="Run whose weights to start from.", autocompletion=complete_run),
    ] = None,
    grow: Annotated[
        int | None,
        typer.Option(min=1, metavar="LAYERS", help="With --from: number of layers of the new, deeper model."),
    ] = None,
    grow_by: Annotated[
        str,
        typer.Option(
            metavar="repeat|interleave",
            help="With --grow: order of the copied layers. Layers 1 2 become 1 2 1 2, or 1 1 2 2.",
        ),
    ] = "repeat",
    encoder_from: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Run to take the weights of the encoder from (sequence-to-sequence)."),
    ] = None,
    decoder_from: Annotated[
        Path | None,
        typer.Option(metavar="RUN", help="Run to take the weights of the decoder from (sequence-to-sequence)."),
    ] = None,
    average_last: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=100,
            metavar="N",
            help="Also write the mean of the last N snapshots, as run OUT-average-N. Default: the recipe's.",
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue a run exactly where it stopped; with another --budget, train it further.",
        ),
    ] = False,
    finish_now: Annotated[
        bool,
        typer.Option("--finish-now", help="Finish an interrupted run with the weights it has, marked as cut short."),
    ] = False,
    track: Track = [],  # noqa: B006
    json: Json = False,
) -> None:
    """Pre-train a model on a corpus.

    Example: bakeoff pretrain bert-mini --corpus corpora/mine --out runs/bert --budget minutes=10

    Example: bakeoff pretrain transformer-base-wmt --corpus corpora/de-en --out runs/de-en --average-last 5

    Example: bakeoff pretrain --out runs/bert --resume --budget minutes=20
    """
    from bakeoff.optimization.budget import Budget
    from bakeoff.recipe_files import load_recipe
    from bakeoff.runs.run import Run
    from bakeoff.tracking.track import track as mirrored
    from bakeoff.training.averaging import average_path
    from bakeoff.training.initial_weights import Start
    from bakeoff.training.pretrain import pretrain as pretrain_model
    from bakeoff.training.progress import duration

    refuse_tokenizer(set)
    given = {"run": from_run, "grow": grow, "encoder": encoder_from, "decoder": decoder_from}
    given = {name: value for name, value in given.items() if value is not None}
    if recipe is None and set:
        raise UserError(f"--set changes a recipe, and none is given; name one, such as {from_run or 'RUN'}/recipe.yaml")
    if finish_now and budget is not None:
        raise UserError("--finish-now ends the run where it is, and --budget lets it go on; give one of them")
    try:
        with mirrored(out, track):
            run = pretrain_model(
                None if recipe is None else load_recipe(recipe, set),
                corpus,
                out,
                seed=seed,
                budget=None if budget is None else Budget.parse_text(budget),
                device=device,
                threads=threads_of(threads),
                start=Start.parse({**given, "grow_by": grow_by}, "pretrain") if given else None,
                average_last=average_last,
                resume=resume,
                finish_now=finish_now,
            )
    except Interrupted as stop:
        if (out / "summary.json").is_file() or not _wants_it_finished(stop):
            raise
        run = pretrain_model(None, None, out, device=device, threads=threads_of(threads), finish_now=True)
    summary, count = run.summary, run.recipe.training.average_last
    beside = average_path(run.path, count) if count else None
    average = Run(beside) if beside is not None and (beside / "summary.json").is_file() else None  # not removed since
    if json:
        averaged = average and {"run": str(average.path), "validation": average.summary["validation"]}
        print_json({**summary, **({"average": averaged} if averaged else {})})
        return
    print_table(
        {
            "run": run.path,
            **({"begun": f"{run.environment['origin']}: {_taken(run.environment)}"} if given else {}),
            "trained": f"{_steps(summary)}, {summary['tokens']:,} tokens in {duration(summary['seconds'])} "
            f"({summary['tokens_per_second']:,.0f} tokens/s)",
            "parameters": f"{summary['parameters']:,}",
            **losses_text(summary["validation"]),
            **(_averaged(average) if average else {}),
            "unigram entropy": f"{summary['unigram_entropy']:.4f} nats, the loss from the tokens' frequencies alone",
        }
    )
    path = quote(str(run.path))
    if any(part.writes for part in run.recipe.objective):
        suggest(f'bakeoff generate {path} "TEXT"')
    else:
        suggest(f"bakeoff finetune {path} --train FILE --text-column COLUMN --label-column COLUMN --out RUN")


def _steps(summary: dict[str, Any]) -> str:
    planned = summary.get("planned_steps", summary["steps"])
    cut = "" if planned == summary["steps"] else f" of {planned:,}, cut short"
    return f"{summary['steps']:,} steps{cut}"


def _wants_it_finished(stop: Interrupted) -> bool:
    """Ask on a terminal, after Ctrl-C, whether the run shall end as it is; any answer but yes leaves it unfinished."""
    if stop.signal_number != signal.SIGINT or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    ask_anew()
    try:
        tell(str(stop))
        tell("End the run as it is, to be used from now on? [y/N] ", end="")
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    except KeyboardInterrupt:
        return False


def _averaged(run: "Run") -> dict[str, Any]:
    """The path and the figures of the run with the mean of the last weights."""
    return {"average": run.path, **losses_text(run.summary["validation"], "average's held-out")}


def _taken(environment: dict[str, Any]) -> str:
    """The number of tensors that came from other runs, and the names of fresh ones."""
    taken = environment["initial_weights"]
    fresh = f", fresh: {', '.join(taken['fresh'])}" if taken["fresh"] else ""
    return f"{taken['tensors']} of {taken['of']} tensors{fresh}"
