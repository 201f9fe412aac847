"""Fine-tuning: from a pre-trained run, or from scratch, to a model that does a task, and its scores."""

import hashlib
import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bakeoff.digests import digest
from bakeoff.durable import write_atomically
from bakeoff.errors import UserError
from bakeoff.full_disk import full_disk
from bakeoff.json_files import read_json
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.models.dropouts import with_dropout
from bakeoff.models.layer_map import unshared
from bakeoff.optimization.optimizers.adamw import AdamWConfig
from bakeoff.reading.hub import on_hub
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement, resolve_device, resolve_precision
from bakeoff.resources.thread_choice import Asked, quickest, resolve_threads
from bakeoff.resources.threads import default_threads, restoring_threads
from bakeoff.runs.environment import environment
from bakeoff.runs.records import Environment
from bakeoff.runs.run import Run
from bakeoff.tasks.answers.answering import answers_of
from bakeoff.tasks.checks.hidden_text import hidden_notes
from bakeoff.tasks.cut_rows import CutRows
from bakeoff.tasks.data import load_task
from bakeoff.tasks.finetune_notes import notes_on_epochs, notes_on_items, notes_on_stopping
from bakeoff.tasks.finetune_results import FinetuneResult
from bakeoff.tasks.finetuned_run import FinetunedRun, write_labels, write_results
from bakeoff.tasks.fitting.finetune_config import FinetuneConfig
from bakeoff.tasks.fitting.fitting import Setting, TaskSplit, optimize_items
from bakeoff.tasks.fitting.resolution import lengthened, resolve_finetuning
from bakeoff.tasks.fitting.trials import StartingPoint, new_head, planned_trials, run_trials
from bakeoff.tasks.model_card import model_card
from bakeoff.tasks.rows.batches import shuffled_batches
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.task_config import TaskConfig
from bakeoff.tasks.unfinished_run import (
    done_already,
    require_no_run,
    require_same_inputs,
    resumable,
    saved_if_interrupted,
    what_is_kept,
)
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.training.progress import Shown
from bakeoff.unfinished import ELSEWHERE, unfinished_folder
from bakeoff.yaml_files import dump_yaml


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
    progress: Shown = True,
) -> FinetuneResult:
    """Fine-tune a model on labelled data. Dev decides everything, test is scored once.

    Args:
        source: a run, whose architecture and weights are taken, pre-trained or fine-tuned already (of that one the
            head, too, where its labels are the task's), or a recipe, to train from scratch.
        task: the kind of task, the files, their columns and the metric.
        out: directory of the fine-tuned run; it must not exist.
        config: the settings of the training.
        seed: the seed of fresh weights, order and dropout.
        tokenizer: a tokenizer.json, or a directory with one (a corpus, a run); only for a recipe.
        device: auto, cpu, cuda or mps.
        threads: the number of threads on a CPU; auto: the quickest of a short measurement; None: as many as torch has.
        resume: go on exactly with a fine-tuning that was stopped or killed; where there is none, begin; if it is
            finished, return its results.
        progress: show a bar, or lines where there is no terminal; or a function of the figures, see `TrainingProgress`.

    Raises:
        UserError: a mistake in the arguments or the data; the fine-tuning to be resumed was begun with others.
        Diverged: the loss is not a number any more, with every learning rate.
        Interrupted: SIGINT or SIGTERM came; it can be resumed.
    """
    out, config = Path(out), config or FinetuneConfig()
    if not (done := resume and done_already(out)):
        require_no_run(out)
    begun = open_source(source, tokenizer)
    task.require_model(begun.recipe)
    config = resolve_finetuning(begun.continued(config), begun.recipe, task)
    data = load_task(task)
    on = resolve_device(device)
    precision = resolve_precision(begun.precision, on)
    recipe = begun.recipe.changed({"training.precision": precision})
    if config.model_dropout is not None:
        recipe = recipe.changed({"model": with_dropout(recipe.model, config.model_dropout).model_dump(mode="json")})
    if config.unshare:
        recipe = recipe.changed(unshared(recipe.model))
    assert config.length is not None
    format = InputFormat(begun.tokenizer, recipe, config.length, config.truncate, config.separators)
    examples_of = {"train": data.train, "dev": data.dev, "test": data.test}
    splits = {name: TaskSplit(examples, data.task.encode(examples, format)) for name, examples in examples_of.items()}
    planned, config = config.epochs, lengthened(config, len(splits["train"].items.owners))
    setting = Setting(config, data.task, format, seed, Placement(on, precision))
    asked = _asked(recipe, begun, setting, splits)
    if done:
        require_same_inputs(out, out, asked, f"what is there is finished: {ELSEWHERE}")
        return FinetunedRun.open(out).results
    begun = begun._replace(recipe=recipe)
    if on.type == "cpu":
        train, kept = splits["train"], threads_of_unfinished(out) if resume else None
        found = kept or resolve_threads(threads, None, lambda: _quickest_threads(begun, train, setting))
        torch.set_num_threads(found or torch.get_num_threads())
    cut = {name: CutRows.of(split.items, format.length) for name, split in splits.items()}
    told = [*data.notes, *notes_on_items(splits, cut, config), *notes_on_epochs(planned, setting, splits["train"])]
    notes = list(dict.fromkeys(told))  # some of train are among both of the first
    machine = {"seed": seed, "source": None if begun.run is None else str(begun.run.path), **environment(on, precision)}
    with full_disk(out, lambda: what_is_kept(out)), resumable(out, asked, resume) as folder, ExitStack() as stack:
        _write_settings(folder, recipe, begun, task, config, machine)
        head, best, transferred, trials, save = run_trials(begun, splits, setting, folder, progress)
        stack.enter_context(saved_if_interrupted(save))
        diverged = [each.learning_rate for each in trials if each.score is None]
        notes += [f"learning rate {rate:g} diverged and was left out" for rate in diverged]
        # Reported numbers are computed in float32, as in `predict`, to depend on the machine as little as possible.
        exact = Placement(on, "float32")
        answers = {
            name: answers_of(head, splits[name].items, data.task, format, exact).answers for name in ("dev", "test")
        }
        notes += notes_on_stopping(best, config, len(splits["train"].items.owners))
        learned = data.task.resolve(data.dev, answers["dev"])
        write_labels(folder, learned)
        epoch_steps = config.epoch_steps(len(splits["train"].items.owners))
        result = FinetuneResult(
            path=out,
            kind=task.kind,
            task=task.title,
            metric=data.task.metric,
            recipe=recipe.name,
            source=machine["source"],
            seed=seed,
            scores={name: learned.score(splits[name].examples, found) for name, found in answers.items()},
            labels=learned.score_labels(data.test, answers["test"]),
            simplest=learned.simplest(data.train, data.test),
            transferred_tensors=transferred,
            total_tensors=len(head.state_dict()),
            parameters=sum(parameter.numel() for parameter in head.parameters()),
            learning_rate=best.trial.learning_rate,
            epochs=round(best.steps / epoch_steps, 3),
            planned_epochs=best.trial.epochs,
            best_epoch=round(best.best.step / epoch_steps, 3),
            seconds=round(sum(each.seconds for each in trials), 3),
            trials=trials if len(trials) > 1 else [],
            classes=data.task.classes,
            rows={name: len(split.examples) for name, split in splits.items()},
            cut=cut,
            default_epochs=[] if config.epochs == planned else planned,
            notes=[*notes, *hidden_notes(begun.tokenizer, examples_of)],
        )
        lines = [learned.line(*pair) for pair in zip(data.test, answers["test"], strict=True)]
        write_results(folder, head, result, lines, model_card(task, config, result, machine))
    return result


def open_source(source: str | Path | Run | Recipe, tokenizer: str | Path | None) -> StartingPoint:
    """The starting point of a fine-tuning.

    Raises:
        UserError: no finished pre-trained run, or not exactly one tokenizer.
    """
    if isinstance(source, Recipe):
        if tokenizer is None:
            raise UserError(f"{source.name}: from scratch, the tokenizer is needed; give --corpus or --tokenizer")
        loaded = Tokenizer.load(tokenizer)
        return StartingPoint(source.with_tokenizer(loaded.config), loaded, None)
    path = source.path if isinstance(source, Run) else Path(source)
    if tokenizer is not None:
        raise UserError(f"{path}: a run has its own tokenizer; leave --corpus and --tokenizer out, or name a recipe")
    if FinetunedRun.at(path):
        tuned = FinetunedRun.open(path)
        tuned.require_current()
        tuned.require_sizes()
        return StartingPoint(tuned.recipe, tuned.tokenizer, Run(path), tuned.learned, tuned.config)
    run = Run.open_finished(path)
    run.require_sizes()
    return StartingPoint(run.recipe, run.tokenizer, run)


def _asked(recipe: Recipe, source: StartingPoint, setting: Setting, splits: dict[str, TaskSplit]) -> dict[str, Any]:
    """All inputs on which the result of a fine-tuning depends, by the words with which an error names them."""
    data = hashlib.sha256()
    for split in splits.values():
        encoded, targets = split.items.encoded, split.items.targets
        for array in (*encoded.ids, encoded.second, split.items.bounds, split.items.owners):
            data.update(array.tobytes())
        for target in targets:
            data.update(target.tobytes() if isinstance(target, np.ndarray) else repr(target).encode())
    weights = None if source.run is None else digest(source.run.path / "model.safetensors")
    device, precision = setting.placement
    return {
        "recipe": recipe.model_dump(mode="json"),
        "run_to_start_from": weights,
        "task": setting.task.config.model_dump(mode="json"),
        "setting_of_the_training": setting.config.model_dump(mode="json"),
        "set_of_labels": json.loads(json.dumps(setting.task.labels)),
        "content_of_the_files": data.hexdigest(),
        "seed": setting.seed,
        "device": device.type,
        "precision": precision,
    }


def threads_of_unfinished(out: Path) -> int | None:
    """The threads with which the unfinished fine-tuning of `out` was begun; None: there is none."""
    path = unfinished_folder(out) / "environment.json"
    if not path.is_file():
        return None
    return int(Environment.check(read_json(path), str(path))["threads"])


def _quickest_threads(source: StartingPoint, train: TaskSplit, setting: Setting) -> int:
    """The quickest number of threads in a short measurement, on a head of its own."""
    config, items = setting.config, train.items
    order = shuffled_batches(items.lengths, config.batch, setting.seed, 0)
    steps = config.epoch_steps(len(items.owners)) * sum(trial.epochs for trial in planned_trials(config))
    tokens = int(items.lengths.sum()) / len(order)
    flops = build_on_meta(source.recipe, source.tokenizer.size).flops_per_token()

    def begin() -> Callable[[int], float]:
        head, _ = new_head(source, setting)
        optimizer = AdamWConfig(lr=1e-4).build(head)
        return lambda step: optimize_items(head, optimizer, items, order[step % len(order)], setting, step)

    default = default_threads(source.recipe, source.tokenizer.size)
    return quickest(begin, tokens * flops, lambda seconds: steps * seconds, default)


def _write_settings(
    folder: Path,
    recipe: Recipe,
    source: StartingPoint,
    task: TaskConfig,
    config: FinetuneConfig,
    machine: dict[str, Any],
) -> None:
    """Write the tokenizer, the recipe, the settings with everything decided, and the description of the machine."""
    source.tokenizer.save(folder / "tokenizer.json")
    # Absolute paths, because an evaluation may run in another folder.
    paths = {name: value for name in type(task).model_fields if isinstance(value := getattr(task, name), Path)}
    whole = task.model_copy(update={name: path if on_hub(path) else path.absolute() for name, path in paths.items()})
    settings = {"task": whole.model_dump(mode="json"), "finetune": config.model_dump(mode="json")}
    files = {
        "recipe.yaml": recipe.to_yaml(),
        "task.yaml": dump_yaml(settings),
        "environment.json": json.dumps(machine, indent=2) + "\n",
    }
    for name, text in files.items():
        write_atomically(folder / name, text)  # --resume reads what is there before it comes here
