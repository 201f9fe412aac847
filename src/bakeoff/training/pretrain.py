"""Pre-training from a recipe and a corpus to a finished run."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from pathlib import Path

import torch

from bakeoff import checksums
from bakeoff.config import differing
from bakeoff.corpus.mixture import AnyCorpus, open_corpus
from bakeoff.display.wording import number
from bakeoff.durable import held, is_held, remove, without_links
from bakeoff.errors import Interrupted, UserError
from bakeoff.full_disk import full_disk
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.machine.launch import require_one_process
from bakeoff.optimization.budget import Budget
from bakeoff.optimization.early_stopping import EarlyStopping
from bakeoff.optimization.save_points import SavePoints
from bakeoff.recipe import Recipe
from bakeoff.resources.device import (
    Placement,
    reset_peak_memory,
    resolve_device,
    resolve_precision,
)
from bakeoff.resources.thread_choice import Asked, quickest, resolve_threads
from bakeoff.resources.threads import default_threads, restoring_threads
from bakeoff.runs.beginning import alone_in, require_no_run
from bakeoff.runs.checkpoint import list_checkpoints
from bakeoff.runs.environment import environment
from bakeoff.runs.run import Run
from bakeoff.signals import stop_signals
from bakeoff.training.averaging import ELSEWHERE, average_path, is_average_of, write_average
from bakeoff.training.initial_weights import Start
from bakeoff.training.loop import Training
from bakeoff.training.position import Position
from bakeoff.training.progress import Shown, TrainingProgress
from bakeoff.training.remarks import changed_settings, falls_later, hidden, other_tokenizer, require_known, unread
from bakeoff.training.resolution import resolve_recipe
from bakeoff.training.resumption import begun_recipe, changes_budget, older_rules, require_same_request, with_budget
from bakeoff.training.saving import Saver
from bakeoff.training.speed import stepper
from bakeoff.training.stages import Stages, make_batches
from bakeoff.training.step_cost import step_cost
from bakeoff.training.summary import summary_of
from bakeoff.training.validation import HeldOut
from bakeoff.unfinished import require_free


@restoring_threads
def pretrain(
    recipe: Recipe | None,
    corpus: str | Path | None,
    out: str | Path,
    *,
    seed: int | None = None,
    budget: Budget | None = None,
    device: str = "auto",
    threads: Asked = None,
    start: Start | None = None,
    average_last: int | None = None,
    save_at: SavePoints | None = None,
    early_stopping: EarlyStopping | None = None,
    resume: bool = False,
    finish_now: bool = False,
    until: int | None = None,
    progress: Shown = True,
    watch: Callable[[Position], None] | None = None,
) -> Run:
    """Pre-train the model of a recipe on a corpus, into a run's directory; or go on with an interrupted run.

    Args:
        recipe: what to train and how; None: the recipe of the run that is resumed, or that `start` names.
        corpus: a directory that `prepare` made, or several with weights: `wiki:0.7,novels:0.3`; None: the corpus of
            the run that is resumed.
        out: directory of the run; it must not exist, unless the run is resumed.
        seed: seed of the weights, the order, the masks and the dropout; None: 0, or the seed of the run that is
            resumed.
        budget: replaces the recipe's budget; the schedule is fitted to it. A resumed run may get another budget than it
            was begun with: its schedule then goes on as in a training of the new number of steps.
        device: auto, cpu, cuda or mps.
        threads: number of threads with which torch computes on a CPU; auto: the number that a short measurement finds
            quickest, or the number that the run was begun with; None: as many as torch has.
        start: the runs that the first weights come from; None: chance.
        average_last: replaces the recipe's `training.average_last`; the averaged run is written to `OUT-average-N`.
        save_at: replaces the recipe's `training.save_at`; weights are kept as finished runs in `OUT/saved`.
        early_stopping: replaces the recipe's `training.early_stopping`.
        resume: continue the run at `out` if there is one; it must have the same settings. If there is none, a line
            says that the training begins.
        finish_now: end the run at `out` with the weights of its newest checkpoint: a finished run, marked as cut short,
            without an average of last weights.
        until: stop after that step, with a checkpoint: an unfinished run, which `resume` continues.
        progress: show a bar, or lines where there is no terminal; or a function that gets the notes of
            `TrainingProgress` instead.
        watch: called with the position of the training whenever figures are read; an exception of it ends the training.

    Raises:
        UserError: a mistake in the arguments.
        Diverged: the loss is not a number any more; the last checkpoint stays.
        DiskFull: there is no space left; the last checkpoint stays.
        Interrupted: SIGINT, SIGTERM or SIGHUP came; the run is saved and can be resumed.
    """
    require_one_process(out)
    begun = (resume or finish_now) and (Path(out) / "recipe.yaml").exists()
    checksums.require_present(Path(out) / "recipe.yaml")
    run = Run.open(out) if begun else None
    if run:
        if not run.finished and is_held(run.path):  # before anything in it is changed
            raise UserError(f"{out}: another process is writing here; wait for it, or choose another --out")
        run.complete_beginning()
        run.verify()
        if run.environment["corpus"] is None:
            raise UserError(f"{out}: imported, and has no training to go on with; train it further: --from {out}")
    if finish_now and not (run and (run.finished or list_checkpoints(run.checkpoints))):
        raise UserError(f"{out}: --finish-now: there is no training with a checkpoint to finish")
    if corpus is None:
        if run is None:
            nothing = "there is no run to resume; give a recipe and its corpus"
            raise UserError(f"{out}: {nothing if resume else 'give the corpus to train on'} (--corpus DIR)")
        corpus = run.environment["corpus"]["path"]
    opened = open_corpus(corpus)
    require_known(opened)
    on = resolve_device(device)
    origin = None if start is None else str(start)
    if run and recipe is None and start is None:
        recipe, origin = begun_recipe(run), run.environment.get("origin")
    recipe = _recipe(recipe, start, run)
    given = {"average_last": average_last, "save_at": save_at, "early_stopping": early_stopping}
    recipe = recipe.changed({f"training.{key}": value for key, value in given.items() if value is not None})
    if seed is None:
        seed = run.environment["seed"] if run else 0
    wanted = recipe.tokenizer
    recipe = recipe.with_tokenizer(opened.tokenizer.config)
    if on.type == "cpu":
        recorded = None if run is None else int(run.environment["threads"])
        fitting = recipe
        chosen = resolve_threads(threads, recorded, lambda: _quickest_threads(fitting, opened, budget, device))
        torch.set_num_threads(chosen or torch.get_num_threads())
    request = {
        "recipe": recipe.model_dump(mode="json"),
        "budget": None if budget is None else str(budget),
        "seed": seed,
        "corpus": {"path": str(corpus), "fingerprint": opened.fingerprint},
        "origin": origin,
    }
    changed: list[str] = []
    older: list[str] = []
    if run:
        without_links(run.path)
        require_same_request(run, request)
        older = older_rules(run)
        if budget is not None and changes_budget(run, budget):
            longer = resolve_recipe(recipe, opened, budget, device).training.budget.steps or 0
            changed = with_budget(run, budget, longer)
        if run.finished:
            remove(run.checkpoints)  # where a kill came before this
            if not run.snapshots.exists():
                return run
    count = 0 if finish_now else recipe.training.average_last
    beside = average_path(Path(out), count) if count else None
    if run and run.finished and beside is not None and is_average_of(run, beside):
        remove(run.snapshots)  # a kill came between the average and this
        return run
    if not run:
        require_no_run(Path(out))
    if beside is not None:
        require_free(beside, advice=ELSEWHERE)
    resolved = run.recipe if run else resolve_recipe(recipe, opened, budget, device)
    precision = resolve_precision(resolved.training.precision, on)
    reset_peak_memory(on)
    torch.manual_seed(seed)
    module = PretrainingModel(resolved, opened.tokenizer.size).to(on)
    if resolved.training.compile is True:
        module.compile_layers()
    batches = Stages(resolved, module, opened, seed)
    held_out = make_batches(resolved, module, opened, seed, split="validation")
    batches.first_rows()  # a corpus without rows is refused before there is a directory
    placement = Placement(on, precision)
    measured = HeldOut(opened.validation, held_out.fixed(resolved.training.validation_examples))
    here = environment(on, precision)
    taken = None
    if start is not None and not (run and (run.finished or list_checkpoints(run.checkpoints))):
        taken = start.load(module, opened)
    steps = resolved.training.budget.steps or 0
    if run:
        kept: AbstractContextManager[None] = nullcontext()
    else:
        facts = {**request, "steps": steps, "initial_weights": taken, **here}
        with full_disk(Path(out), lambda: "nothing was kept"), alone_in(Path(out)):
            run = Run.create(out, resolved, opened.tokenizer, facts)
        kept = run.removed_before_a_step()
    with (
        full_disk(run.path, run.what_is_kept),
        held(run.path),
        kept,
        TrainingProgress(resolved.name, steps, progress) as shown,
    ):
        saver = Saver(run, opened, batches, seed)
        training = Training(run, resolved, module, batches, measured, seed, placement, shown, watch, saver)
        if not run.finished:  # another process may have finished it since the run was opened
            resumed = begun and training.resume()
            if not finish_now:
                saver.forget(training.position.step)
            for line in changed:
                shown.line(f"{resolved.name}: {line}")
            if resumed:
                shown.line(f"{resolved.name}: resumed at step {training.position.step}")
                for change in older:
                    shown.line(
                        f"{resolved.name}: ATTENTION: begun before {change}; the rest is trained by that rule, so "
                        "begin the run anew where its result counts"
                    )
                for key in ("device", "device_name", "threads", "versions"):
                    for name, old, new in differing(run.environment[key], here[key], key):
                        shown.line(
                            f"{resolved.name}: {name} was {old}, now {new}: the last bits of the result may differ"
                        )
            elif resume:
                shown.line(f"{resolved.name}: nothing to resume in {out}; starting at step 0")
            if taken is not None and not resumed:
                shown.line(f"{resolved.name}: begun {start}: {taken['tensors']} of {taken['of']} tensors")
                training.save()  # so that a resumed training does not need the runs that it started from
            if progress and start is None and not resumed:
                for line in other_tokenizer(recipe, wanted, opened):
                    shown.remark(f"{resolved.name}: {line}")
            if progress and not finish_now:
                tokens, flops = batches.means()
                for line in chain(
                    changed_settings(recipe, resolved),
                    () if resumed else step_cost(resolved, budget or recipe.training.budget, tokens, flops, on.type),
                    hidden(opened),
                    unread(resolved, opened, seed),
                    saver.beyond(tokens),
                    falls_later(resolved),
                ):
                    shown.remark(f"{resolved.name}: {line}")
            if finish_now:
                training.end_here()
            with stop_signals() as stopping:  # what finishes a run takes as long as a checkpoint, and replaces it
                if not finish_now:
                    training.train(until)
                    if not training.over:
                        return run
                    if training.position.step < steps:
                        shown.line(f"{resolved.name}: {training.early_stop.told(training.position.step, steps)}")
                training.take_run_weights()
                run.finish(module, summary_of(training, opened, seed))
            if finish_now:
                remove(run.snapshots)
                shown.line(f"{resolved.name}: cut short at step {training.position.step:,} of {steps:,}")
            if stopping:
                raise Interrupted(
                    f"stopped when the training was over: {run.path} is whole{_without(beside)}", stopping[0]
                )
        if beside is not None and run.snapshots.exists():
            averaged = write_average(run, module, measured, placement)
            loss = averaged.summary["validation"]["loss"]
            shown.line(
                f"{resolved.name}: the average of its last weights is {averaged.path}: held-out loss {number(loss)}"
            )
    return run


def _without(average: Path | None) -> str:
    """The end of a sentence on a run that has finished, but not its average."""
    return "" if average is None else f", and the same command with --resume writes {average}"


def _quickest_threads(recipe: Recipe, corpus: AnyCorpus, budget: Budget | None, device: str) -> int:
    """The number of threads that is quickest in a short measurement of the first stage's steps."""
    budget, on = budget or recipe.training.budget, resolve_device(device)
    minutes = budget.minutes
    # Minutes are turned into steps after the measurement, which does not depend on the number of steps.
    fitted = resolve_recipe(recipe, corpus, budget if minutes is None else Budget(steps=1000), device)
    steps, first = fitted.training.budget.steps or 1, fitted.stages()[0]
    _, flops = Stages(fitted, build_on_meta(fitted, corpus.tokenizer.size), corpus, seed=0).means()

    def whole(seconds: float) -> float:
        return seconds * steps if minutes is None else 60 * minutes

    default = default_threads(fitted, corpus.tokenizer.size)
    return quickest(lambda: stepper(first, corpus, on), flops, whole, default)


def _recipe(recipe: Recipe | None, start: Start | None, begun: Run | None) -> Recipe:
    """The recipe to train: the given one or that of the run that it starts from, as deep as `start` says.

    Raises:
        UserError: neither is given, or the run cannot be grown.
    """
    if recipe is not None:
        return recipe if start is None else start.fit(recipe)
    if start is None:
        raise UserError("give a recipe, or a run to start from (--from RUN)")
    if begun is not None:
        return begun_recipe(begun)
    return start.recipe()
