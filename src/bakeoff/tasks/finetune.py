"""Fine-tuning: from a pre-trained run, or from scratch, to a model that does a task, and its scores."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bakeoff.config import require_seed
from bakeoff.display.progress import Shown
from bakeoff.display.wording import counted, listed
from bakeoff.distributed.launch import together
from bakeoff.distributed.shards import whole
from bakeoff.errors import LostProcess, path_of, require_object
from bakeoff.full_disk import full_disk
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.machine.launch import require_torchrun, started_again
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement
from bakeoff.resources.thread_choice import Asked, quickest, resolve_threads
from bakeoff.resources.threads import default_threads, restoring_threads
from bakeoff.runs.environment import environment
from bakeoff.runs.run import Run
from bakeoff.tasks.checks.hidden_text import hidden_notes
from bakeoff.tasks.cut_rows import CutRows
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetune_results import FinetuneResult
from bakeoff.tasks.finetuned_run import FinetunedRun, write_labels, write_results
from bakeoff.tasks.fitting.expected import step_of, steps_of
from bakeoff.tasks.fitting.fitting import Setting, TaskSplit
from bakeoff.tasks.fitting.memory import fitting_items
from bakeoff.tasks.fitting.settings_files import begun_on, decided_micro_batch, write_settings
from bakeoff.tasks.fitting.settling import Settled, settle
from bakeoff.tasks.fitting.starting_point import open_source
from bakeoff.tasks.fitting.trial import Fit
from bakeoff.tasks.fitting.trials import Fitted, run_trials
from bakeoff.tasks.heads.heads import HeadedModel
from bakeoff.tasks.model_card import model_card
from bakeoff.tasks.predictions.predicting import predictions_of
from bakeoff.tasks.task_config import TaskConfig
from bakeoff.tasks.unfinished_run import (
    done_already,
    require_no_run,
    require_same_inputs,
    resumable,
    saved_if_interrupted,
    what_is_kept,
)
from bakeoff.unfinished import ELSEWHERE, unfinished_folder


@restoring_threads
def finetune(
    source: str | Path | Run | Recipe,
    task: TaskConfig,
    out: str | Path,
    *,
    config: FinetuneConfig | None = None,
    seed: int = 0,
    tokenizer: str | Path | None = None,
    device: str = "auto",
    threads: Asked = None,
    resume: bool = False,
    shard: bool = False,
    progress: Shown = True,
) -> FinetuneResult:
    """Fine-tune a model on labelled data. Dev decides everything, test is scored once.

    Processes that torchrun has started train one model together, and all of them get its results.

    Args:
        source: a run, whose architecture and weights are taken, pre-trained or fine-tuned already (of that one the
            head, too, where its labels are the task's), or a recipe, to train from scratch.
        task: the kind of task, the files, their columns and the metric.
        out: directory of the fine-tuned run; it must not exist.
        config: the settings of the training.
        seed: seed of everything that is random.
        tokenizer: a tokenizer.json, or a directory with one (a corpus, a run); only for a recipe.
        device: auto, cpu, cuda or mps.
        threads: the number of threads on a CPU; auto: the quickest of a short measurement; None: as many as torch has.
        resume: continue an interrupted training exactly where it stopped. Where there is none, it begins; where it is
            finished, its results are given.
        shard: with torchrun, divide the weights of the model and the state of its optimizer among the processes, for
            models that one device cannot hold; they are gathered part by part (FSDP2).
        progress: show a bar, or lines where there is no terminal; or a function of the figures, see `TrainingProgress`.

    Raises:
        UserError: a mistake in the arguments or the data; the fine-tuning to be resumed was begun with others.
        Diverged: the loss is not a number any more, with every learning rate.
        Interrupted: SIGINT or SIGTERM came; it can be resumed.
    """
    require_torchrun(out)
    require_seed(seed)
    require_object("task", task, TaskConfig, "one such as bakeoff.ClassificationConfig(...)", needed=True)
    require_object("config", config, FinetuneConfig, "bakeoff.FinetuneConfig(...)")
    with together() as all_processes:
        processes = all_processes.dividing(shard)
        path, resume = path_of(out, "out"), resume or started_again()
        done = processes.once(lambda: resume and done_already(path))
        if not done:
            processes.once(lambda: require_no_run(path))
        where = seed, processes.device_name(device), processes
        settled = settle(open_source(source, tokenizer), task, config or FinetuneConfig(), *where)
        if done:
            advice = f"what is there is finished: {ELSEWHERE}"
            processes.once(lambda: require_same_inputs(path, path, settled.asked(), advice))
            return FinetunedRun.open(path).results
        _choose_threads(settled, threads, processes.once(lambda: _threads_of_unfinished(path) if resume else None))
        result = _fitted(settled, path, resume, progress)
        processes.wait()  # until the first one has given the folder its name
    return result


def _fitted(settled: Settled, out: Path, resume: bool, progress: Shown) -> FinetuneResult:
    """Train, score and write; the first process writes."""
    run, processes = settled.source.run, settled.setting.processes
    source = None if run is None else str(run.path)
    machine = {"seed": settled.setting.seed, "source": source, **environment(*settled.placement, processes.size)}
    with full_disk(out, lambda: what_is_kept(out)), ExitStack() as stack:

        def entered() -> tuple[Path, int | None, dict[str, Any]]:
            folder = stack.enter_context(resumable(out, settled.asked(), resume))
            size, begun = settled.setting.micro_batch, begun_on(folder) or {}
            if settled.setting.config.micro_batch == "auto":
                size = decided_micro_batch(folder) if begun else fitting_items(settled)
            on = {**machine, **{key: begun[key] for key in ("micro_batches",) if key in begun}}
            source, task, config = settled.source, settled.setting.task.config, settled.setting.config
            config = config.model_copy(update={"micro_batch": size})
            write_settings(folder, source.recipe, source.tokenizer, task, config, on)
            return folder, size, on

        folder, size, machine = processes.once(entered)
        settled = settled.with_micro_batch(size)
        try:
            fitted = run_trials(settled.source, settled.splits, settled.setting, folder, progress)
            stack.enter_context(saved_if_interrupted(fitted.save))
            predictions, weights = _predictions(settled, fitted.head), whole(fitted.head.state_dict(), processes)
            return processes.once(lambda: _finish(folder, out, settled, fitted, predictions, weights, machine))
        except LostProcess as error:
            raise LostProcess(f"{out}: {error}; {what_is_kept(out, '')}") from None


def _predictions(settled: Settled, head: HeadedModel) -> dict[str, list[Any]]:
    """The predictions for dev and test."""
    setting = settled.setting
    # Reported numbers are computed in float32, as in `predict`, to depend on the machine as little as possible.
    where = Placement(setting.placement.device, "float32"), setting.processes
    return {
        name: predictions_of(head, settled.splits[name].items, setting.task, setting.format, *where).predictions
        for name in ("dev", "test")
    }


def _finish(
    folder: Path,
    out: Path,
    settled: Settled,
    fitted: Fitted,
    predictions: dict[str, list[Any]],
    weights: dict[str, Tensor],
    machine: dict[str, Any],
) -> FinetuneResult:
    """Score dev and test, and write the results, the predictions and the weights."""
    head, best, setting, splits = fitted.head, fitted.best, settled.setting, settled.splits
    task, config = setting.task, setting.config
    learned = task.resolve(splits["dev"].examples, predictions["dev"])
    write_labels(folder, learned)
    test, train, epoch_steps = splits["test"].examples, splits["train"], config.epoch_steps(settled.items)
    diverged = [each.learning_rate for each in fitted.trials if each.score is None]
    notes = [
        *notes_before(settled),
        *(f"learning rate {rate:g} diverged and was left out" for rate in diverged),
        *notes_on_stopping(best, config, settled.items),
        *hidden_notes(settled.source.tokenizer, {name: split.examples for name, split in splits.items()}),
    ]
    result = FinetuneResult(
        path=out,
        kind=task.config.kind,
        task=task.config.title,
        metric=task.metric,
        recipe=settled.source.recipe.name,
        source=machine["source"],
        seed=setting.seed,
        scores={name: learned.score(splits[name].examples, each) for name, each in predictions.items()},
        labels=learned.score_labels(test, predictions["test"]),
        simplest=learned.simplest(train.examples, test),
        transferred_tensors=fitted.transferred,
        total_tensors=len(head.state_dict()),
        parameters=sum(parameter.numel() for parameter in head.parameters()),
        learning_rate=best.trial.learning_rate,
        epochs=round(best.steps / epoch_steps, 3),
        planned_epochs=best.trial.epochs,
        best_epoch=round(best.best.step / epoch_steps, 3),
        seconds=round(sum(each.seconds for each in fitted.trials), 3),
        trials=fitted.trials if len(fitted.trials) > 1 else [],
        classes=task.classes,
        rows={name: len(split.examples) for name, split in splits.items()},
        cut=settled.cut,
        default_epochs=[] if config.epochs == settled.planned_epochs else settled.planned_epochs,
        notes=notes,
    )
    lines = [learned.line(*pair) for pair in zip(test, predictions["test"], strict=True)]
    write_results(folder, weights, result, lines, model_card(task.config, config, result, machine))
    return result


def _threads_of_unfinished(out: Path) -> int | None:
    """The threads with which the unfinished fine-tuning of `out` was begun; None: there is none."""
    begun = begun_on(unfinished_folder(out))
    return None if begun is None else int(begun["threads"])


def _choose_threads(settled: Settled, asked: Asked, kept: int | None) -> None:
    """Set torch's threads on a CPU: those of an unfinished fine-tuning (`kept`), or those that are asked for."""
    if settled.placement.device.type == "cpu":
        chosen = kept or resolve_threads(asked, None, lambda: _quickest_threads(settled))
        torch.set_num_threads(chosen or torch.get_num_threads())


def _quickest_threads(settled: Settled) -> int:
    """The quickest number of threads in a short measurement, on another head; of several processes torch's."""
    if not settled.setting.processes.alone:
        return torch.get_num_threads()
    source, train = settled.source, settled.splits["train"]
    tokens = int(train.items.lengths.sum()) / settled.setting.config.epoch_steps(settled.items)
    flops = build_on_meta(source.recipe, source.tokenizer.size).flops_per_token()
    default = default_threads(source.recipe, source.tokenizer.size)
    return quickest(lambda: step_of(settled), tokens * flops, lambda seconds: steps_of(settled) * seconds, default)


def notes_before(settled: Settled) -> list[str]:
    """Notes on the data and the epochs, which are known before the training."""
    setting, splits = settled.setting, settled.splits
    notes = [
        *settled.data_notes,
        *notes_on_items(splits, settled.cut, setting.config),
        *notes_on_epochs(settled.planned_epochs, setting, splits["train"]),
    ]
    return list(dict.fromkeys(notes))  # some of train are among both of the first


def notes_on_items(splits: dict[str, TaskSplit], cut: dict[str, CutRows], config: FinetuneConfig) -> list[str]:
    """Notes on rows of the splits that were cut or are read in windows, and the notes of their items."""
    notes = []
    for name, split in splits.items():
        rows = split.items.encoded
        if rows.truncated and rows.owners is not None:
            notes.append(
                f"{counted(rows.truncated, 'row')} of {name} longer than {config.length} tokens, read in windows"
            )
        elif rows.truncated:
            notes.append(cut[name].of_split(name))
        notes += [f"{name}: {note}" for note in split.items.notes]
    return notes


def notes_on_epochs(planned: list[int], setting: Setting, train: TaskSplit) -> list[str]:
    """A note that there are more epochs than `planned`, for the sake of the fewest steps."""
    config = setting.config
    if config.epochs == planned:
        return []
    epochs, instead = (listed([str(each) for each in numbers], "or") for numbers in (config.epochs, planned))
    steps = counted(config.epoch_steps(len(train.items.owners)), "step")
    return [
        f"up to {epochs} epochs in place of {instead}: an epoch has {steps}, and `least_steps` asks for "
        f"{config.least_steps:,} at least"
    ]


def notes_on_stopping(best: Fit, config: FinetuneConfig, items: int) -> list[str]:
    """A note that the training ended before its last epoch."""
    epoch_steps = config.epoch_steps(items)
    if best.steps == best.trial.epochs * epoch_steps:
        return []
    where = f"{best.steps / epoch_steps:.3g} of {best.trial.epochs}"
    evaluations = counted(config.patience or 0, "evaluation")
    return [f"stopped at epoch {where}, after {evaluations} on dev without a better one (`patience`)"]
