"""A pre-training on the command line: what `bakeoff pretrain` and `bakeoff distill` have in common."""

import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bakeoff.cli.shared.completing import complete_run
from bakeoff.cli.shared.makers import options_from, options_of
from bakeoff.cli.shared.options import threads_of
from bakeoff.cli.shared.printing import losses_text, print_json, print_table
from bakeoff.display.terminal import ask, complain, suggest
from bakeoff.display.wording import counted
from bakeoff.errors import Interrupted, UserError
from bakeoff.machine.launch import started_together
from bakeoff.optimization.early_stopping import EarlyStopping
from bakeoff.optimization.save_points import SavePoints
from bakeoff.signals import ask_anew
from bakeoff.unread_keys import parsed, require_effect

if TYPE_CHECKING:
    from bakeoff.recipe import Recipe
    from bakeoff.runs.run import Run
    from bakeoff.training.initial_weights import Start


START: dict[str, dict[str, Any]] = {
    "run": {"names": ("--from",), "metavar": "RUN", "autocompletion": complete_run},
    "grow": {"min": 1, "metavar": "LAYERS"},
    "grow_by": {"metavar": "repeat|interleave"},
    "encoder": {"names": ("--encoder-from",), "metavar": "RUN"},
    "decoder": {"names": ("--decoder-from",), "metavar": "RUN"},
}
"""Options that say where the first weights come from."""


START_OPTIONS = options_from("bakeoff.training.initial_weights.Start", *START, **START)  # type: ignore[arg-type]

TRAINING_OPTIONS = options_from(
    "bakeoff.training.pretrain.pretrain",
    *("budget", "seed", "average_last", "save_at", "resume", "finish_now", "shard"),
    average_last={"min": 0, "max": 100, "metavar": "N"},
    save_at={"type": list[str], "default": [], "metavar": "UNIT=POINTS"},
)

STOPPING_OPTIONS = options_of(
    EarlyStopping,
    *("patience", "keep_best"),
    patience={"default": None, "metavar": "N"},
    keep_best={"about": "With --patience"},
)

Out = Annotated[Path, typer.Option(help="Directory to write the run to.")]

CorpusToTrain = Annotated[
    Path | None,
    typer.Option(help="Corpus; DIR:0.7,DIR:0.3 mixes several. With --resume, the corpus of that run."),
]


@contextmanager
def _named_by_options(options: Mapping[str, str]) -> Iterator[None]:
    """Have an error about a key that an option stands for name the option, which is what the user has typed.

    Args:
        options: the names of options by dotted keys.
    """
    try:
        yield
    except UserError as error:
        for key, option in options.items():
            _, there, problem = str(error).partition(f": {key}: ")
            if there:
                raise UserError(f"{option}: {problem}") from None
        raise


def pretrained(
    recipe: str | None,
    corpus: Path | None,
    out: Path,
    *,
    overrides: Sequence[str],
    beside: Mapping[str, tuple[Any, str]] = {},
    options: dict[str, Any],
    start: dict[str, Any],
    stopping: dict[str, Any],
    device: str,
    threads: str,
    track: list[str],
    json: bool,
) -> None:
    """Pre-train, or go on with a training, and print what came of it.

    Args:
        recipe: a recipe's name or file; None: that of the run that is gone on with or started from.
        corpus: the corpus; None: that of the run that is gone on with.
        out: directory of the run.
        overrides: what `--set` gives.
        beside: values of the recipe that other options give, by dotted keys, and the names of these options.
        options: of `TRAINING_OPTIONS`.
        start: of `START_OPTIONS`.
        stopping: of `STOPPING_OPTIONS`.
        device: auto, cpu, cuda or mps.
        threads: a number, or auto.
        track: the trackers.
        json: print the result as JSON.
    """
    from bakeoff.display.progress import Remarked
    from bakeoff.recipe_files import load_recipe
    from bakeoff.tracking.track import track as mirrored
    from bakeoff.training.initial_weights import Start
    from bakeoff.training.pretrain import pretrain

    given = {"budget": options.get("budget"), "average_last": options.get("average_last")}
    given |= {"save_at": options["save_at"] or None, "early_stopping": stopping["patience"]}
    names = {"early_stopping": "--patience"}
    replaced = {
        f"training.{key}": names.get(key, f"--{key.replace('_', '-')}")
        for key, value in given.items()
        if value is not None
    } | {key: option for key, (_, option) in beside.items()}
    require_effect("pretrain", overrides, replaced)
    weights = {} if start == {"grow_by": "repeat"} else start
    if recipe is None and overrides:
        named = f"{start.get('run', 'RUN')}/recipe.yaml"
        raise UserError(f"--set changes a recipe, and none is given; name one, such as {named}")
    if options["finish_now"] and "budget" in options:
        raise UserError("--finish-now ends the run where it is, and --budget lets it go on; give one of them")
    loaded = None
    if recipe is not None:
        with _named_by_options({key: option for key, (_, option) in beside.items()}):
            loaded = load_recipe(recipe, {**parsed(overrides), **{key: value for key, (value, _) in beside.items()}})
    begun = Start.parse(weights, "pretrain") if weights else None
    goes_on = options["resume"] or options["finish_now"]
    options |= {
        "device": device,
        "threads": threads_of(threads),
        "start": begun,
        "save_at": SavePoints.parse_texts(options["save_at"]) if options["save_at"] else None,
        "early_stopping": _early_stopping(**stopping),
        "progress": Remarked(() if goes_on else _remark_on_exports(loaded, begun)),
    }
    try:
        with mirrored(out, track):
            run = pretrain(loaded, corpus, out, **options)
    except Interrupted as stop:
        if (out / "summary.json").is_file() or not _wants_it_finished(stop):
            raise
        run = pretrain(None, None, out, device=device, threads=options["threads"], finish_now=True)
    average = _average(run)
    if json:
        averaged = average and {"run": str(average.path), "validation": average.summary["validation"]}
        print_json({**run.summary, **({"average": averaged} if averaged else {})})
        return
    print_table(_rows(run, _begun(run) if weights else {}, average))
    suggest(_next(run))


def _early_stopping(patience: int | None, keep_best: bool) -> EarlyStopping | None:
    """The rule of early stopping that the options give; None: the recipe's."""
    if keep_best and patience is None:
        raise UserError("--keep-best is for early stopping: give --patience, or a recipe with training.early_stopping")
    return None if patience is None else EarlyStopping(patience=patience, keep_best=keep_best)


def _average(run: "Run") -> "Run | None":
    """The run with the mean of the last weights; None: there is none, or it has been removed since."""
    from bakeoff.runs.run import Run
    from bakeoff.training.averaging import average_path

    count = run.recipe.training.average_last
    path = average_path(run.path, count) if count else None
    return Run(path) if path is not None and (path / "summary.json").is_file() else None


def _rows(run: "Run", begun_from: dict[str, str], average: "Run | None") -> dict[str, Any]:
    """The rows of what is printed about a finished run."""
    from bakeoff.display.progress import duration

    summary = run.summary
    return {
        "run": run.path,
        **begun_from,
        "trained": f"{_steps(summary)}, {summary['tokens']:,} tokens in {duration(summary['seconds'])} "
        f"({summary['tokens_per_second']:,.0f} tokens/s)",
        "parameters": f"{summary['parameters']:,}",
        **_kept(run),
        **losses_text(summary["validation"]),
        **(_averaged(average) if average else {}),
        "unigram entropy": f"{summary['unigram_entropy']:.4f} nats, the loss from the tokens' frequencies alone",
    }


def _next(run: "Run") -> str:
    """The command that a user may type next."""
    path = quote(str(run.path))
    if any(part.generates for part in run.recipe.objective):
        return f'bakeoff generate {path} "TEXT"'
    return f"bakeoff finetune {path} --train FILE --text-column COLUMN --label-column COLUMN --out RUN"


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
    if stop.signal_number != signal.SIGINT or started_together() or not (sys.stdin.isatty() and sys.stderr.isatty()):
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


def _begun(run: "Run") -> dict[str, str]:
    """Rows on the first weights, and on their held-out loss where the training has not lowered it."""
    from bakeoff.training.initial_weights import options_as

    origin = run.environment["origin"]
    rows = {"begun": f"{origin}: {_taken(run.environment)}"}
    validations = (line for line in run.metrics() if line["kind"] == "validation")
    first = next((line.get("loss") for line in validations if line["step"] == 0), None)
    last = run.summary["validation"].get("loss")
    if first is not None and last is not None and first < last:
        rows["no gain"] = (
            f"held-out loss {first:.4f} before this training, {last:.4f} after it; train for longer, or at a lower "
            f"rate: bakeoff pretrain {quote(str(run.path))}/recipe.yaml {options_as(origin)} --set "
            "training.optimizer.lr=RATE"
        )
    return rows


def _taken(environment: dict[str, Any]) -> str:
    """The number of tensors that came from other runs, and the names of those that are fresh or were not taken."""
    taken = environment["initial_weights"]
    fresh = f", fresh: {', '.join(taken['fresh'])}" if taken["fresh"] else ""
    unused = f", not taken: {', '.join(taken['unused'])}" if taken.get("unused") else ""
    return f"{taken['tensors']} of {taken['of']} tensors{fresh}{unused}"
