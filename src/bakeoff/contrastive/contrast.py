"""Vectors without labels: a pre-trained run learns to tell two views of a text from those of other texts."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch

from bakeoff.config import require_seed
from bakeoff.contrastive.config import ContrastConfig
from bakeoff.contrastive.opened import Opened
from bakeoff.contrastive.setting import Setting
from bakeoff.contrastive.speed import quickest_threads, steps_of
from bakeoff.contrastive.texts import ReadTexts, joined, texts_of, texts_of_corpus
from bakeoff.contrastive.unit import Contrast
from bakeoff.corpus.store import Corpus
from bakeoff.display.progress import Shown, TrainingProgress
from bakeoff.display.wording import counted
from bakeoff.distributed.launch import together
from bakeoff.durable import write_atomically
from bakeoff.errors import Interrupted, LostProcess, UserError, path_of, require_object
from bakeoff.full_disk import full_disk
from bakeoff.machine.launch import require_torchrun, started_again
from bakeoff.models.dropouts import has_dropout, with_dropout
from bakeoff.reading.text_files import TextFile, in_memory
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement, reset_peak_memory, resolve_device, resolve_precision
from bakeoff.resources.first_line import first_line
from bakeoff.resources.thread_choice import Asked as AskedThreads
from bakeoff.resources.thread_choice import resolve_threads
from bakeoff.resources.threads import restoring_threads
from bakeoff.runs.environment import environment
from bakeoff.runs.run import Run
from bakeoff.signals import stop_signals
from bakeoff.tasks.fitting.settings_files import begun_on
from bakeoff.tasks.rows.inputs import InputFormat, check_length
from bakeoff.tasks.unfinished_run import require_same_inputs, resumable, what_is_kept
from bakeoff.trainer.loop import Trainer
from bakeoff.trainer.save_plan import SavePlan
from bakeoff.training.summary import spent
from bakeoff.unfinished import ELSEWHERE, unfinished_folder
from bakeoff.vectors.embedder import require_poolable
from bakeoff.vectors.layer_states import common_width, layer_index, pooled_stack

WHAT = "training of vectors"
"""What is trained, in messages."""

SAVED_EVERY = 300.0
"""The most seconds between checkpoints."""


@restoring_threads
def contrast(
    run: str | Path | Run,
    out: str | Path,
    *,
    texts: str | Path | Sequence[str] | None = None,
    text_column: str | None = None,
    corpus: str | Path | None = None,
    config: ContrastConfig | None = None,
    seed: int = 0,
    device: str = "auto",
    threads: AskedThreads = None,
    resume: bool = False,
    progress: Shown = True,
) -> Run:
    """Teach a pre-trained run vectors of texts, without labels, into another run.

    Two views are taken of each text, and the run learns to tell them from the views of the other texts of a batch by
    the cosine of their vectors. Processes that torchrun has started train one model together, and all get the run.

    Args:
        run: a pre-trained run of any kind of model.
        out: directory of the run that is written; it must not exist.
        texts: texts to learn from: a file, which is read as that of `embed` is, or a list; 5 percent, 512 at most, are
            held out.
        text_column: the column of `texts` with the text; None: text.
        corpus: a corpus, whose documents are learned from, and the held-out ones held out; with `texts`, too, these are
            the ones that the vectors are for, over which they are whitened.
        config: the settings of the training.
        seed: seed of everything that is random.
        device: auto, cpu, cuda or mps.
        threads: the number of threads on a CPU; auto: the quickest of a short measurement, or the number that the
            training was begun with; None: as many as torch has.
        resume: continue an interrupted training exactly where it stopped. Where there is none, it begins.
        progress: show a bar, or lines where there is no terminal; or a function of the figures, see `TrainingProgress`.

    Returns:
        The run at `out`, with the pooling in its environment.json, which `embed` follows.

    Raises:
        UserError: a mistake in the arguments or the texts; the training to be resumed was begun with others.
        Diverged: the loss is not a number any more.
        Interrupted: SIGINT or SIGTERM came; it can be resumed.
    """
    require_torchrun(out)
    require_seed(seed)
    require_object("config", config, ContrastConfig, "bakeoff.ContrastConfig(...)")
    with together() as processes:
        path, resume = path_of(out, "out"), resume or started_again()
        source = run if isinstance(run, Run) else Run.open_finished(run)
        source.require_sizes()
        given = config or ContrastConfig()
        recipe, config = _resolved(source, given)
        on = resolve_device(processes.device_name(device))
        asked_precision = Recipe.parse(source.environment["recipe"], str(source.path)).training.precision
        placement = Placement(on, resolve_precision(asked_precision, on))
        begun = processes.once(lambda: _begun(path) if resume else None)
        assert config.length is not None
        format = InputFormat(source.tokenizer, recipe, config.length)
        read = _read(source, format, texts, text_column, corpus, seed)
        batch = min(config.batch, read.train.count)
        processes.require_shares(recipe.name, batch, config.micro_batch or batch, "rows", "--option micro_batch={}")
        both = recipe.reads_both_sides
        setting = Setting(config, format, read, 0, seed, placement, both, recipe.name, processes)
        opened = Opened(source, recipe, setting)
        if resume and (path / "summary.json").is_file():
            processes.once(lambda: _require_same(path, path, opened, f"what is there is finished: {ELSEWHERE}"))
            return Run.open_finished(path)
        if on.type == "cpu":
            recorded = None if begun is None else int(begun["threads"])
            chosen = resolve_threads(threads, recorded, lambda: quickest_threads(opened))
            torch.set_num_threads(chosen or torch.get_num_threads())
        steps = int(begun["steps"]) if begun is not None else processes.once(lambda: steps_of(opened))
        opened = opened._replace(setting=setting._replace(steps=steps))
        _train(opened, path, resume, progress)
        processes.wait()  # until the first one has given the folder its name
    return Run(path)


def _resolved(run: Run, config: ContrastConfig) -> tuple[Recipe, ContrastConfig]:
    """The recipe with the dropout of the training, and the config with everything decided that the model decides.

    Raises:
        UserError: a setting is not for this model.
    """
    recipe = run.recipe
    pooling = config.pooling or "mean"
    require_poolable(recipe.model, pooling, str(run.path))
    if not config.layers:
        raise UserError("layers: give at least one")
    depth = pooled_stack(recipe.model).layers
    common_width(recipe.model, [layer_index(layer, depth, str(run.path)) for layer in config.layers], str(run.path))
    length = config.length or recipe.input.length
    check_length(recipe.model, length)
    rate = config.learning_rate or float(f"{1e-3 * 128 / recipe.model.stack.output_width:.1e}")
    if config.dropout is not None:
        recipe = recipe.changed({"model": with_dropout(recipe.model, config.dropout).model_dump(mode="json")})
    if config.views == "whole" and not config.deletion and not has_dropout(recipe.model):
        raise UserError(
            f"{run.path}: views: whole: the two views of a text are one and the same, for the run has no dropout; give "
            "deletion=0.1 or dropout=0.1, or leave views=whole out"
        )
    return recipe, config.model_copy(update={"pooling": pooling, "length": length, "learning_rate": rate})


def _read(
    run: Run,
    format: InputFormat,
    texts: str | Path | Sequence[str] | None,
    text_column: str | None,
    corpus: str | Path | None,
    seed: int,
) -> ReadTexts:
    """The texts that are given.

    Raises:
        UserError: they are not given, or have a mistake.
    """
    if texts is None and corpus is None:
        raise UserError("give the texts to learn from: a file of texts (--texts), a corpus (--corpus), or both")
    if texts is None and text_column is not None:
        raise UserError("--text-column names a column of --texts, and a corpus has none")
    of_corpus = None if corpus is None else texts_of_corpus(Corpus.open(corpus), run)
    if isinstance(texts, str | Path):
        file = TextFile(Path(texts), [text_column or "text"], text_column is not None)
        given = texts_of(file, file.name, format, seed)
    elif texts is not None:
        given = texts_of(in_memory(texts), "the texts", format, seed)
    else:
        assert of_corpus is not None
        return of_corpus
    return given if of_corpus is None else joined(of_corpus, given)


def _begun(out: Path) -> dict[str, Any] | None:
    """The environment.json of the unfinished training of `out`; None: there is none."""
    return begun_on(unfinished_folder(out))


def _require_same(out: Path, folder: Path, opened: Opened, advice: str) -> None:
    require_same_inputs(out, folder, opened.asked(), advice, ContrastConfig)


def _train(opened: Opened, out: Path, resume: bool, progress: Shown) -> None:
    """Train in a folder beside `out`, and give it its name."""
    processes = opened.setting.processes
    with full_disk(out, lambda: what_is_kept(out, what=WHAT)), ExitStack() as stack:

        def entered() -> Path:
            folder = stack.enter_context(resumable(out, opened.asked(), resume, ContrastConfig))
            if not (folder / "recipe.yaml").is_file():
                _write_beginning(folder, opened)
            return folder

        folder = processes.once(entered)
        try:
            if not processes.once((folder / "summary.json").is_file):
                _fit(opened, folder, out, progress)
        except LostProcess as error:
            raise LostProcess(f"{out}: {error}; {what_is_kept(out, '', WHAT)}") from None


def _write_beginning(folder: Path, opened: Opened) -> None:
    """Write the tokenizer, the machine with the settings, and the recipe, which makes the folder a run."""
    run, setting = opened.run, opened.setting
    opened.run.tokenizer.save(folder / "tokenizer.json")
    facts = {
        "recipe": run.environment["recipe"],
        "corpus": {"path": setting.texts.name, "fingerprint": setting.texts.digest[:16]},
        "budget": str(setting.config.budget),
        "steps": setting.steps,
        "seed": setting.seed,
        "origin": f"from {run.path}, whose vectors of texts were taught without labels",
        "vectors": setting.config.model_dump(mode="json"),
        **environment(*setting.placement, setting.processes.size),
    }
    write_atomically(folder / "environment.json", json.dumps(facts, indent=2) + "\n")
    write_atomically(folder / "recipe.yaml", run.recipe.to_yaml())


def _fit(opened: Opened, folder: Path, out: Path, shown: Shown) -> None:
    """Train, from a checkpoint where the folder has one, and write the weights and the summary.

    Raises:
        Interrupted: a signal came; the folder has a checkpoint.
    """
    setting, run = opened.setting, Run(folder)
    reset_peak_memory(setting.placement.device)
    processes, module = setting.processes, opened.module()
    torch.manual_seed(setting.seed)
    unit = Contrast(module, setting)
    name, notes = setting.title, [*setting.texts.notes]
    if unit.batch < (asked := setting.config.batch):
        notes.append(
            f"a batch has {counted(unit.batch, 'text')} in place of {asked:,}: there are no more to learn from"
        )
    meant = setting.texts.meant.count
    if setting.config.whiten and meant < unit.fewest_whitened:
        notes.append(
            f"vectors are not whitened: there are {counted(meant, 'text')}, and vectors of {unit.width} numbers need "
            f"{unit.fewest_whitened:,}"
        )
    on = f"{name}: on {first_line(module.model, setting.placement, processes, prefixes=setting.reads_both_sides)}"
    with TrainingProgress(name, unit.steps, shown if processes.first else False, [on, *notes]) as bar:
        trainer = Trainer(unit, run, bar, SavePlan(SAVED_EVERY, at_end=True))
        if trainer.resume():
            bar.line(f"{name}: resumed at step {trainer.position.step}")
        with stop_signals() as stopping:
            trainer.train(stopping)
            if caught := processes.largest(stopping[0] if stopping else 0):
                trainer.save()
                processes.wait()
                raise Interrupted("stopped when the training was over; the same command with --resume goes on", caught)
            trainer.take_average()
            processes.write(_finish, run, unit, trainer, out)
    processes.wait()


def _finish(run: Run, unit: Contrast, trainer: Trainer[Any], out: Path) -> None:
    """Write the weights, the model card and the summary."""
    summary = {
        "name": unit.title,
        "seed": unit.seed,
        **spent(unit.module, trainer.position, unit.steps, unit.placement.device),
        "unigram_entropy": None,
        "validation": {key: value for key, value in unit.last.items() if key != "steps"},
    }
    unit.whitened().to(torch.device("cpu")).save(run)
    run.finish(unit.module.state_dict(), summary, out)
