"""Pre-training from a recipe and a corpus to a finished run: open, settle, prepare, fit, finish."""

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

from bakeoff.config import differing, require_seed
from bakeoff.display.progress import Shown, TrainingProgress
from bakeoff.display.wording import listed, number
from bakeoff.distributed.launch import together
from bakeoff.distributed.processes import Processes
from bakeoff.distributed.shards import whole
from bakeoff.durable import remove
from bakeoff.errors import Interrupted, path_of, require_object
from bakeoff.machine.launch import require_torchrun, started_again
from bakeoff.optimization.budget import Budget
from bakeoff.optimization.early_stopping import EarlyStopping
from bakeoff.optimization.save_points import SavePoints
from bakeoff.recipe import Recipe
from bakeoff.resources.device import return_device_memory
from bakeoff.resources.first_line import first_line
from bakeoff.resources.thread_choice import Asked as AskedThreads
from bakeoff.resources.threads import restoring_threads
from bakeoff.runs.run import Run
from bakeoff.signals import stop_signals
from bakeoff.trainer.loop import Trainer
from bakeoff.trainer.position import Position
from bakeoff.trainer.save_plan import SavePlan
from bakeoff.trainer.shortage import Resized
from bakeoff.training.averaging import Snapshots, snapshot_steps, write_average
from bakeoff.training.initial_weights import Start
from bakeoff.training.opening import Asked, open_training
from bakeoff.training.preparing import Prepared, prepare
from bakeoff.training.pretraining import Pretraining
from bakeoff.training.remarks import changed_settings, falls_later, hidden, other_tokenizer, step_cost, unread
from bakeoff.training.running import running
from bakeoff.training.saving import Saver
from bakeoff.training.settling import Settled, settle
from bakeoff.training.summary import summary_of


@restoring_threads
def pretrain(
    recipe: Recipe | None,
    corpus: str | Path | None,
    out: str | Path,
    *,
    seed: int | None = None,
    budget: Budget | None = None,
    device: str = "auto",
    threads: AskedThreads = None,
    start: Start | None = None,
    average_last: int | None = None,
    save_at: SavePoints | None = None,
    early_stopping: EarlyStopping | None = None,
    resume: bool = False,
    finish_now: bool = False,
    until: int | None = None,
    goes_on: bool = False,
    shard: bool = False,
    progress: Shown = True,
    watch: Callable[[Position], None] | None = None,
    kept: Callable[[], None] | None = None,
) -> Run:
    """Pre-train the model of a recipe on a corpus, into a run's directory; or go on with an interrupted run.

    Processes that torchrun has started train one model together, and all of them get the run.

    Args:
        recipe: what to train and how; None: the recipe of the run that is resumed, or that `start` names.
        corpus: a directory that `prepare` made, or several with weights: `wiki:0.7,novels:0.3`; None: the corpus of
            the run that is resumed.
        out: directory of the run; it must not exist, unless the run is resumed.
        seed: seed of everything that is random; None: 0, or the seed of the run that is resumed.
        budget: length of the training: tokens=5M, words=10M, epochs=2, flops=1e15, minutes=10, hours=2 or steps=1000.
            The schedule is fitted to it, also to another one of a resumed run. None: the recipe's.
        device: auto, cpu, cuda or mps.
        threads: number of threads with which torch computes on a CPU; auto: the number that a short measurement finds
            quickest, or the number that the run was begun with; None: as many as torch has.
        start: the runs that the first weights come from; None: chance.
        average_last: number of snapshots, the last ones, whose mean is also written, as run OUT-average-N; None: the
            recipe's.
        save_at: points after which to keep the weights, as runs in OUT/saved: words=1M..10M:1M,20M, steps=100,1000,
            tokens=5M, epochs=1,2 or shares=0.1; None: the recipe's.
        early_stopping: replaces the recipe's `training.early_stopping`.
        resume: continue the run at `out` exactly where it stopped, with the same settings; with another `budget`, train
            it further. Where there is none, the training begins.
        finish_now: finish an interrupted run with the weights of its newest checkpoint, marked as cut short, without a
            mean of last weights.
        shard: with torchrun, divide the weights of the model and the state of its optimizer among the processes, for
            models that one device cannot hold; they are gathered part by part (FSDP2).
        until: stop after that step, with a checkpoint: an unfinished run, which `resume` continues.
        goes_on: whether a resumed run goes on from such a stop as planned, so that no line says that it was resumed.
        progress: show a bar, or lines where there is no terminal; or a function that gets the notes of
            `TrainingProgress` instead.
        watch: called with the position of the training whenever figures are read; an exception of it ends the training.
        kept: called after weights were kept at a point of `save_at`, where one process trains alone; its time does not
            count as that of the training, and an exception of it ends the training.

    Raises:
        UserError: a mistake in the arguments.
        Diverged: the loss is not a number any more; the last checkpoint stays.
        DiskFull: there is no space left; the last checkpoint stays.
        Interrupted: SIGINT, SIGTERM, SIGHUP or SIGUSR1 came; the run is saved and can be resumed.
    """
    require_torchrun(out)
    require_seed(seed)
    require_object("recipe", recipe, Recipe, "bakeoff.load_recipe(NAME)")
    require_object("budget", budget, Budget, "one such as bakeoff.Budget(minutes=10)")
    require_object("start", start, Start, "one such as bakeoff.Start(run=RUN)")
    replacements = {"average_last": average_last, "save_at": save_at, "early_stopping": early_stopping}
    changes = {key: value for key, value in replacements.items() if value is not None}
    with together() as all_processes:
        processes = all_processes.dividing(shard)
        device, resume = processes.device_name(device), resume or (started_again() and not finish_now)
        where = path_of(out, "out"), seed, budget, device, threads, start
        asked = Asked(recipe, corpus, *where, changes, resume, finish_now, processes)
        settled = settle(open_training(asked))
        if settled.done is not None:
            return settled.done
        return _run_of(settled, processes, progress, watch, kept, until, goes_on)


def _run_of(
    settled: Settled,
    processes: Processes,
    progress: Shown,
    watch: Callable[[Position], None] | None,
    kept: Callable[[], None] | None,
    until: int | None,
    goes_on: bool,
) -> Run:
    """Train, in micro-batches that become smaller where memory runs out; and write what comes of it."""
    name, shown, asked = settled.recipe.name, progress if processes.first else False, settled.opened.asked
    prepared = prepare(settled, TrainingProgress(name, 0, shown))
    on = [] if asked.finish_now else [f"{name}: on {_first_line(settled.recipe, prepared, processes)}"]
    facts = {"initial_weights": prepared.taken, **prepared.here}
    with running(settled, facts) as run, TrainingProgress(name, settled.steps, shown, on) as bar:
        while True:
            training = Training(run, settled, prepared, bar, watch, kept)
            try:
                finished = run.finished or training.train(until, goes_on)
                break
            except Resized as change:  # its traceback holds the memory of a step
                line, settled = str(change), settled.gone_on(run, change.size)
            del training, prepared
            return_device_memory(settled.opened.device)
            bar.line(line)
            prepared = prepare(settled, bar)
        if finished:  # else a stop at `until`
            training.average()
        processes.wait()  # until the first one has written all
    return run


def _first_line(recipe: Recipe, prepared: Prepared, processes: Processes) -> str:
    module = prepared.module
    return first_line(module.model, prepared.placement, processes, module.generator, recipe.reads_both_sides)


class Training:
    """A pre-training in its directory: fresh, resumed, with another budget, or to be finished as it is.

    Args:
        run: the run.
        settled: what was decided.
        prepared: what was built.
        shown: where figures are shown.
        watch: see `pretrain`.
        kept: see `pretrain`.
    """

    def __init__(
        self,
        run: Run,
        settled: Settled,
        prepared: Prepared,
        shown: TrainingProgress,
        watch: Callable[[Position], None] | None,
        kept: Callable[[], None] | None,
    ) -> None:
        self.run, self.settled, self.prepared, self.shown = run, settled, prepared, shown
        self.opened, self.asked, self.processes = settled.opened, settled.opened.asked, settled.opened.asked.processes
        recipe, (module, stages, held_out, placement, *_) = settled.recipe, prepared
        seed, processes = self.opened.seed, self.processes
        fits = self.opened.fits_memory
        self.unit = Pretraining(
            recipe, module, placement, seed, None, stages, held_out, run, processes, fits, prepared.teachers
        )
        self.saver = Saver(run, self.unit, self.opened.corpus, kept)
        averaged = snapshot_steps(settled.steps, recipe.training.average_last)
        snapshots = Snapshots(run, module, averaged, processes)
        plan = SavePlan(60 * recipe.training.checkpoint_minutes)
        self.trainer = Trainer(self.unit, run, shown, plan, [snapshots, self.saver], watch)

    def train(self, until: int | None, goes_on: bool) -> bool:
        """Train to the end, or to `until`, and finish the run; returns whether it is finished. See `pretrain`.

        Raises:
            Interrupted: a signal came; what was done is saved.
            Resized: memory ran out, and another training goes on in smaller micro-batches.
        """
        self._begin(goes_on)
        with stop_signals() as stopping:  # what finishes a run takes as long as a checkpoint, and replaces it
            if self.asked.finish_now:
                self._end_here()
            else:
                self.trainer.train(stopping, until)
                if not self.trainer.over:
                    return False
            self._finish()
        caught = self.processes.largest(stopping[0] if stopping else 0)
        if caught:
            average = self.settled.average
            rest = "" if average is None else f", and the same command with --resume writes {average}"
            raise Interrupted(f"stopped when the training was over: {self.run.path} is whole{rest}", caught)
        return True

    def _begin(self, goes_on: bool) -> None:
        """Go on from the newest checkpoint, if there is one, and say what is to be known."""
        trainer, asked, taken = self.trainer, self.asked, self.prepared.taken
        resumed = self.opened.run is not None and trainer.resume()
        if not asked.finish_now:
            self.processes.write(self.saver.forget, trainer.position.step)
        for line in self.settled.changed:
            self._say(line)
        if resumed:
            self._say_resumed(goes_on)
        elif asked.resume and not resumed:
            self._say(f"nothing to resume in {asked.out}; starting at step 0")
        if taken is not None and not resumed:
            unused = f"; without the run's {listed(taken['unused'])}" if taken["unused"] else ""
            self._say(f"begun {asked.start}: {taken['tensors']} of {taken['of']} tensors{unused}")
            trainer.save()  # so that a resumed training does not need the runs that it started from
        if self.shown.shown:
            self._remark(resumed)

    def _say(self, line: str) -> None:
        self.shown.line(f"{self.settled.recipe.name}: {line}")

    def _say_resumed(self, goes_on: bool) -> None:
        """Say where the training goes on, unless it `goes_on` as planned; and what is no longer as it was."""
        if not goes_on:
            self._say(f"resumed at step {self.trainer.position.step}")
        for change in self.settled.older:
            self._say(
                f"ATTENTION: begun before {change}; the rest is trained by that rule, so begin the run anew where its "
                "result counts"
            )
        begun, here = self.run.environment, self.prepared.here
        for key in ("device", "device_name", "threads", "processes", "kernels", "versions"):
            known = begun.get(key, 1 if key == "processes" else None)  # before it was recorded
            for name, old, new in differing(known, here[key], key):
                self._say(f"{name} was {old}, now {new}: the last bits of the result may differ")

    def _remark(self, resumed: bool) -> None:
        """Remark on settings that are allowed, but may not be meant."""
        opened, asked, recipe = self.opened, self.asked, self.settled.recipe
        lines: list[Iterator[str]] = []
        if asked.start is None and not resumed:
            lines.append(other_tokenizer(opened.recipe, opened.tokenizer, opened.corpus))
        if not asked.finish_now:
            tokens, flops = self.prepared.stages.means()
            lines.append(changed_settings(opened.recipe, recipe))
            if not resumed:
                budget = asked.budget or opened.recipe.training.budget
                lines.append(step_cost(recipe, budget, tokens, flops, opened.device.type))
            lines += [hidden(opened.corpus), unread(recipe, self.prepared.stages.modules, opened.corpus, opened.seed)]
            lines += [self.saver.beyond(tokens), falls_later(recipe)]
        for line in chain(*lines):
            self.shown.remark(f"{recipe.name}: {line}")

    def _end_here(self) -> None:
        """End the training at its present step, with a last measurement of the held-out loss."""
        if self.unit.last_validation.get("step") != self.trainer.position.step:
            self.trainer.evaluate()

    def _finish(self) -> None:
        """Finish the run with its final weights: the best, the running average, or those of the last step."""
        step, steps = self.trainer.position.step, self.settled.steps
        if step < steps and not self.asked.finish_now:
            self._say(self.unit.early_stop.told(step, steps))
        self.trainer.take_average()
        self.unit.take_best()
        summary = summary_of(self.unit, self.trainer.position, self.opened.corpus)
        weights = whole(self.unit.module.state_dict(), self.processes)
        self.processes.once(lambda: self.run.finish(weights, summary))
        if self.asked.finish_now:
            self.processes.write(remove, self.run.snapshots)
            self._say(f"cut short at step {step:,} of {steps:,}")

    def average(self) -> None:
        """Write the mean of the last weights as a run beside the finished one, where it is asked for."""
        there = self.processes.once(lambda: self.settled.average is not None and self.run.snapshots.exists())
        if not there:
            return
        measured_on = self.prepared.held_out, self.prepared.placement, self.processes
        averaged = write_average(self.run, self.unit.module, *measured_on)
        loss = averaged.summary["validation"]["loss"]
        self._say(f"the average of its last weights is {averaged.path}: held-out loss {number(loss)}")
