"""Fine-tuning: from a pre-trained run, or from scratch, to a model that does a task, and its scores."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from bakeoff.errors import Diverged, UserError
from bakeoff.full_disk import full_disk
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.models.dropouts import with_dropout
from bakeoff.models.layer_map import unshared
from bakeoff.optimization.optimizers.adamw import AdamWConfig
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement, resolve_device, resolve_precision
from bakeoff.resources.thread_choice import Asked, quickest
from bakeoff.resources.thread_choice import settled as settled_threads
from bakeoff.resources.threads import default_threads, restoring_threads
from bakeoff.runs.environment import environment
from bakeoff.runs.run import Run
from bakeoff.signals import stop_signals
from bakeoff.tasks.answering import answers_of
from bakeoff.tasks.batches import shuffled_batches
from bakeoff.tasks.data import load_task
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun, FinetuneResult, require_free, unfinished, write_results
from bakeoff.tasks.fitting import Fit, Part, Setting, fit, optimize_items, plan_steps
from bakeoff.tasks.heads import Head, natural_pooling, transfer
from bakeoff.tasks.inputs import InputFormat, check_length
from bakeoff.tasks.model_card import model_card
from bakeoff.tasks.task import Task, TaskConfig
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.training.progress import Shown, TrainingProgress
from bakeoff.yaml_files import dump_yaml


class StartingPoint(NamedTuple):
    """What a fine-tuning starts from."""

    recipe: Recipe
    """The architecture."""
    tokenizer: Tokenizer
    """The tokenizer."""
    run: Run | None
    """The pre-trained run; None: fresh weights."""

    @property
    def precision(self) -> Literal["auto", "float32", "bfloat16"]:
        """What was asked for, and not what the machine of the pre-training made of it: this may be another one."""
        if self.run is None:
            return self.recipe.training.precision
        return Recipe.parse(self.run.environment["recipe"], str(self.run.path)).training.precision


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
    progress: Shown = True,
) -> FinetuneResult:
    """Fine-tune a model on labelled data. Dev decides everything, test is scored once.

    Args:
        source: a pre-trained run, whose architecture and weights are taken, or a recipe, to train from scratch.
        task: its kind, the files, their columns and the metric.
        out: directory of the fine-tuned run; it must not exist.
        config: how to train.
        seed: of the fresh weights, the order and the dropout.
        tokenizer: a tokenizer.json, or a directory with one (a corpus, a run); for a recipe only.
        device: auto, cpu, cuda or mps.
        threads: with which torch computes on a CPU; auto: what a quick look finds; None: as many as torch has.
        progress: show a bar, or lines where there is no terminal; or what is told instead, see `Progress`.

    Raises:
        UserError: a mistake in the arguments or the data.
        Diverged: the loss is not a number any more, whichever of the learning rates it is.
        Interrupted: SIGINT or SIGTERM came; nothing was written.
    """
    out, config = Path(out), config or FinetuneConfig()
    require_free(out)
    begun = open_source(source, tokenizer)
    task.require_model(begun.recipe)
    data = load_task(task)
    config = settle(config, begun.recipe)
    on = resolve_device(device)
    precision = resolve_precision(begun.precision, on)
    recipe = begun.recipe.changed({"training.precision": precision})
    if config.model_dropout is not None:
        recipe = recipe.changed({"model": with_dropout(recipe.model, config.model_dropout).model_dump(mode="json")})
    if config.unshare:
        recipe = recipe.changed(unshared(recipe.model))
    assert config.length is not None
    format = InputFormat(begun.tokenizer, recipe, config.length)
    setting = Setting(config, data.task, format, seed, Placement(on, precision))
    found_parts = {"train": data.train, "dev": data.dev, "test": data.test}
    parts = {name: Part(examples, data.task.encode(examples, format)) for name, examples in found_parts.items()}
    if on.type == "cpu":
        copied, train = begun._replace(recipe=recipe), parts["train"]
        found = settled_threads(threads, None, lambda: _quickest_threads(copied, train, setting))
        torch.set_num_threads(found or torch.get_num_threads())
    notes = [*data.notes, *_truncations(parts, config.length)]
    notes += [note for name, part in parts.items() for note in data.task.remarks(name, part.items)]
    machine = {"seed": seed, "source": None if begun.run is None else str(begun.run.path), **environment(on, precision)}
    with full_disk(out, lambda: "nothing of this fine-tuning was kept"), unfinished(out) as folder:
        _write_settings(folder, recipe, begun, data.task, config, machine)
        began = time.perf_counter()
        begun = begun._replace(recipe=recipe)
        head, best, transferred, dropped = _fit_all(begun, parts, setting, folder, progress)
        notes += [f"learning rate {rate:g} diverged and was left out" for rate in dropped]
        seconds = time.perf_counter() - began
        # What is reported is float32, as in `predict`: it should not depend on the machine more than it must.
        exact = Placement(on, "float32")
        answers = {
            name: answers_of(head, parts[name].items, data.task, format, exact).answers for name in ("dev", "test")
        }
        epoch_steps, _ = plan_steps(len(parts["train"].items.owners), config)
        result = FinetuneResult(
            path=out,
            kind=task.kind,
            task=task.title,
            metric=data.task.metric,
            recipe=recipe.name,
            source=machine["source"],
            seed=seed,
            scores={name: data.task.score(parts[name].examples, found) for name, found in answers.items()},
            simplest=data.task.simplest(data.train, data.test),
            transferred_tensors=transferred,
            total_tensors=len(head.state_dict()),
            parameters=sum(parameter.numel() for parameter in head.parameters()),
            learning_rate=best.learning_rate,
            epochs=round(best.steps / epoch_steps, 3),
            best_epoch=round(best.best.step / epoch_steps, 3),
            seconds=round(seconds, 3),
            classes=data.task.classes,
            rows={name: len(part.examples) for name, part in parts.items()},
            notes=notes,
        )
        lines = [data.task.line(*pair) for pair in zip(data.test, answers["test"], strict=True)]
        write_results(folder, head, result, lines, model_card(task, config, result, machine))
    return result


def open_source(source: str | Path | Run | Recipe, tokenizer: str | Path | None) -> StartingPoint:
    """What a fine-tuning starts from.

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
        raise UserError(f"{path}: this run is fine-tuned already; give the pre-trained run that it came from")
    run = Run.open_finished(path)
    return StartingPoint(run.recipe, run.tokenizer, run)


def settle(config: FinetuneConfig, recipe: Recipe) -> FinetuneConfig:
    """The config with everything decided that depends on the model: pooling, length, learning rates.

    Raises:
        UserError: a pooling or length that is not for this model.
    """
    length = config.length or recipe.input.length
    check_length(recipe.model, length)
    if config.pooling == "last" and not recipe.model.causal:
        raise UserError("pooling: last is for causal models; this one sees both sides, use cls, mean or max")
    if config.pooling == "cls" and recipe.model.causal and not recipe.reads_both_sides:
        raise UserError("pooling: the first position of a causal model has seen nothing; use last, mean or max")
    if config.pooling == "cls" and recipe.model.directions == 2:
        raise UserError("pooling: at the first position one of the two directions has seen nothing; use mean or max")
    return config.model_copy(
        update={
            "pooling": natural_pooling(recipe) if config.pooling == "auto" else config.pooling,
            "length": length,
            "learning_rate": config.learning_rate or [default_learning_rate(recipe)],
        }
    )


def default_learning_rate(recipe: Recipe) -> float:
    """5e-5 for a width of 768, as for BERT base, and in inverse proportion for others."""
    return float(f"{5e-5 * 768 / recipe.model.stack.output_width:.1e}")


def _truncations(parts: dict[str, Part], length: int) -> list[str]:
    return [
        f"{rows.truncated} of the {len(rows.ids)} rows of {name} were cut to {length} tokens"
        for name, rows in ((name, part.items.encoded) for name, part in parts.items())
        if rows.truncated
    ]


def _quickest_threads(source: StartingPoint, train: Part, setting: Setting) -> int:
    """What a look at some steps finds, on a head of its own."""
    config, items = setting.config, train.items
    order = shuffled_batches(items.lengths, config.batch, setting.seed, 0)
    steps = plan_steps(len(items.owners), config)[1] * len(config.learning_rate or [0.0])
    tokens = int(items.lengths.sum()) / len(order)
    flops = build_on_meta(source.recipe, source.tokenizer.size).flops_per_token()

    def begin() -> Callable[[int], float]:
        head = _head(source, setting)
        optimizer = AdamWConfig(lr=1e-4).build(head)
        return lambda step: optimize_items(head, optimizer, items, order[step % len(order)], setting, step)

    default = default_threads(source.recipe, source.tokenizer.size)
    return quickest(begin, tokens * flops, lambda seconds: steps * seconds, default)


def _head(source: StartingPoint, setting: Setting) -> Head:
    """A fresh head where it computes."""
    head = setting.task.build_head(source.recipe, source.tokenizer.size, setting.config)
    return head.to(setting.placement.device)


def _fit_all(
    source: StartingPoint, parts: dict[str, Part], setting: Setting, folder: Path, shown: Shown
) -> tuple[Head, Fit, int, list[float]]:
    """The best head of all learning rates, its training, the tensors transferred, and the rates that diverged."""
    config, run = setting.config, Run(folder)
    _, steps = plan_steps(len(parts["train"].items.owners), config)
    best: Fit | None = None
    transferred = 0
    dropped: list[float] = []
    with stop_signals() as stopping:
        for rate in config.learning_rate:
            torch.manual_seed(setting.seed)
            head = _head(source, setting)
            if source.run is not None:
                transferred = transfer(head, source.run.path / "model.safetensors", source.run.recipe)
            title = f"{source.recipe.name} lr {rate:g}" if len(config.learning_rate) > 1 else source.recipe.name
            with TrainingProgress(title, steps, shown) as bar:
                try:
                    found = fit(
                        head,
                        parts["train"],
                        parts["dev"],
                        rate,
                        setting,
                        log=run.append_metrics,
                        stopping=stopping,
                        progress=bar,
                    )
                except Diverged as error:
                    if best is None and rate == config.learning_rate[-1]:
                        raise
                    bar.line(f"{title}: {error}")
                    dropped.append(rate)
                    continue
            if best is None or found.best.rank(setting.task) > best.best.rank(setting.task):
                best = found
    assert best is not None
    head.load_state_dict(best.weights)
    return head.eval(), best, transferred, dropped


def _write_settings(
    folder: Path,
    recipe: Recipe,
    source: StartingPoint,
    task: Task,
    config: FinetuneConfig,
    machine: dict[str, Any],
) -> None:
    """Write what the fine-tuning was asked for, everything decided."""
    source.tokenizer.save(folder / "tokenizer.json")
    settings = {"task": task.config.model_dump(mode="json"), "finetune": config.model_dump(mode="json")}
    files = {
        "recipe.yaml": recipe.to_yaml(),
        "task.yaml": dump_yaml(settings),
        "labels.json": json.dumps(task.labels, ensure_ascii=False, indent=1) + "\n",
        "environment.json": json.dumps(machine, indent=2) + "\n",
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
