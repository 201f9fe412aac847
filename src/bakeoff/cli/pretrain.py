"""`bakeoff pretrain`."""

import signal
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bakeoff.cli.shared.completing import complete_recipe, complete_run
from bakeoff.cli.shared.decorators import noted
from bakeoff.cli.shared.options import LARGEST_SEED, Device, Json, Set, Threads, Track, refuse_tokenizer, threads_of
from bakeoff.cli.shared.printing import losses_text, print_json, print_table
from bakeoff.display.terminal import ask, complain, suggest
from bakeoff.display.wording import counted
from bakeoff.errors import Interrupted, UserError
from bakeoff.signals import ask_anew

if TYPE_CHECKING:
    from bakeoff.recipe import Recipe
    from bakeoff.runs.run import Run
    from bakeoff.training.initial_weights import Start


@noted
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
        typer.Option(
            help="tokens=5M, words=10M, epochs=2, flops=1e15, minutes=10, hours=2 or steps=1000. Default: the recipe's."
        ),
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
    save_at: Annotated[
        list[str],
        typer.Option(
            metavar="UNIT=POINTS",
            help=(
                "Points after which to keep the weights, as runs in OUT/saved: words=1M..10M:1M,20M, steps=100,1000, "
                "tokens=5M, epochs=1,2 or shares=0.1. May be repeated."
            ),
        ),
    ] = [],  # noqa: B006
    patience: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="End the training when the held-out loss has not become better in N validations in a row.",
        ),
    ] = None,
    keep_best: Annotated[
        bool,
        typer.Option("--keep-best", help="With --patience: the run's weights are those of the best held-out loss."),
    ] = False,
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

    Example: bakeoff pretrain gpt-tiny --corpus corpora/mine --out runs/gpt --budget words=10M --save-at
    words=1M..10M:1M

    Example: bakeoff pretrain --out runs/bert --resume --budget minutes=20
    """
    from bakeoff.display.progress import Remarked, duration
    from bakeoff.optimization.budget import Budget
    from bakeoff.optimization.early_stopping import EarlyStopping
    from bakeoff.optimization.save_points import SavePoints
    from bakeoff.recipe_files import load_recipe
    from bakeoff.runs.run import Run
    from bakeoff.tracking.track import track as mirrored
    from bakeoff.training.averaging import average_path
    from bakeoff.training.initial_weights import Start
    from bakeoff.training.pretrain import pretrain as pretrain_model

    refuse_tokenizer(set)
    weights = {"run": from_run, "grow": grow, "encoder": encoder_from, "decoder": decoder_from}
    weights = {name: value for name, value in weights.items() if value is not None}
    if recipe is None and set:
        raise UserError(f"--set changes a recipe, and none is given; name one, such as {from_run or 'RUN'}/recipe.yaml")
    if finish_now and budget is not None:
        raise UserError("--finish-now ends the run where it is, and --budget lets it go on; give one of them")
    if keep_best and patience is None:
        raise UserError("--keep-best is for early stopping: give --patience, or a recipe with training.early_stopping")
    early_stopping = None if patience is None else EarlyStopping(patience=patience, keep_best=keep_best)
    loaded = None if recipe is None else load_recipe(recipe, set)
    start = Start.parse({**weights, "grow_by": grow_by}, "pretrain") if weights else None
    points = SavePoints.parse_texts(save_at) if save_at else None
    try:
        with mirrored(out, track):
            run = pretrain_model(
                loaded,
                corpus,
                out,
                seed=seed,
                budget=None if budget is None else Budget.parse_text(budget),
                device=device,
                threads=threads_of(threads),
                start=start,
                average_last=average_last,
                save_at=points,
                early_stopping=early_stopping,
                resume=resume,
                finish_now=finish_now,
                progress=Remarked(() if resume or finish_now else _remark_on_exports(loaded, start)),
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
            **({"begun": f"{run.environment['origin']}: {_taken(run.environment)}"} if weights else {}),
            "trained": f"{_steps(summary)}, {summary['tokens']:,} tokens in {duration(summary['seconds'])} "
            f"({summary['tokens_per_second']:,.0f} tokens/s)",
            "parameters": f"{summary['parameters']:,}",
            **_kept(run),
            **losses_text(summary["validation"]),
            **(_averaged(average) if average else {}),
            "unigram entropy": f"{summary['unigram_entropy']:.4f} nats, the loss from the tokens' frequencies alone",
        }
    )
    path = quote(str(run.path))
    if any(part.generates for part in run.recipe.objective):
        suggest(f'bakeoff generate {path} "TEXT"')
    else:
        suggest(f"bakeoff finetune {path} --train FILE --text-column COLUMN --label-column COLUMN --out RUN")


def _steps(summary: dict[str, Any]) -> str:
    planned = summary.get("planned_steps", summary["steps"])
    stop = summary.get("early_stopping") or {}
    cut = (
        ""
        if planned == summary["steps"]
        else f" of {planned:,}, {'stopped early' if stop.get('stopped') else 'cut short'}"
    )
    return f"{summary['steps']:,} steps{cut}"


def _wants_it_finished(stop: Interrupted) -> bool:
    """Ask on a terminal, after Ctrl-C, whether the run shall end as it is; any answer but yes leaves it unfinished."""
    if stop.signal_number != signal.SIGINT or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    ask_anew()
    try:
        complain(str(stop))
        ask("End the run as it is, to be used from now on? [y/N] ")
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    except KeyboardInterrupt:
        return False


def _averaged(run: "Run") -> dict[str, Any]:
    """The path and the figures of the run with the mean of the last weights."""
    return {"average": run.path, **losses_text(run.summary["validation"], "average's held-out")}


def _remark_on_exports(recipe: "Recipe | None", start: "Start | None") -> list[str]:
    """A remark on a model that transformers has no class for, as long as that can still be changed."""
    from bakeoff.interop.hugging_face.membership import membership

    if recipe is None and start is not None and start.run is not None:
        recipe = start.recipe()
    remark = None if recipe is None else membership(recipe).told()
    return [] if recipe is None or remark is None else [f"{recipe.name}: {remark}"]


def _kept(run: "Run") -> dict[str, str]:
    """Rows on the best weights and on those that were kept on the way."""
    rows, stop = {}, run.summary.get("early_stopping") or {}
    if stop:
        of = "the weights are those of" if stop["kept_best"] else "the loss was best at"
        rows["early stopping"] = f"{of} step {stop['best_step']:,}, {stop['best_loss']:.4f}"
    if run.saved.is_dir() and (count := len([each for each in run.saved.iterdir() if each.name[0] != "."])):
        rows["kept on the way"] = f"{counted(count, 'run')} in {run.saved}"
    return rows


def _taken(environment: dict[str, Any]) -> str:
    """The number of tensors that came from other runs, and the names of fresh ones."""
    taken = environment["initial_weights"]
    fresh = f", fresh: {', '.join(taken['fresh'])}" if taken["fresh"] else ""
    return f"{taken['tensors']} of {taken['of']} tensors{fresh}"
