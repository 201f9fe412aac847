"""Evaluation of a finished run: a pre-trained one on held-out text, a fine-tuned one on another labelled file."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bakeoff.batching.batch import Batch
from bakeoff.corpus.mixture import AnyCorpus, Mixture, open_corpus
from bakeoff.corpus.split import Split
from bakeoff.display.wording import listed
from bakeoff.distributed.launch import together
from bakeoff.distributed.processes import Processes
from bakeoff.errors import UserError, path_of
from bakeoff.objectives.held_out import separators_of
from bakeoff.objectives.objective import Sharing
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.resources.device import Placement, resolve_device, resolve_precision
from bakeoff.runs.changed_run import changed_run
from bakeoff.runs.checkpoint import run_folder
from bakeoff.runs.run import Run
from bakeoff.tasks.checks.hidden_text import hidden_notes
from bakeoff.tasks.cut_rows import CutRows
from bakeoff.tasks.data import read_examples, split_examples
from bakeoff.tasks.evaluate_options import EvaluateOptions
from bakeoff.tasks.finetuned_run import WHAT_IT_LEARNT, FinetunedRun
from bakeoff.tasks.language import evaluate_pairs, evaluate_texts, open_scores, require_pretrained
from bakeoff.tasks.predictions.predicting import predictions_of
from bakeoff.tasks.task import Task
from bakeoff.tasks.task_config import TaskConfig
from bakeoff.training.stages import make_batches
from bakeoff.training.validation import HeldOut, validate
from bakeoff.unread_keys import Overrides, parsed, require_effect, require_effect_on_held_out_rows


def evaluate(run: str | Path, *, overrides: Overrides = (), device: str = "auto", **options: Any) -> dict[str, Any]:
    """Losses of a pre-trained run on held-out text, its log-probabilities of texts, or the scores of a fine-tuned run.

    Args:
        run: the run; it must have finished.
        overrides: for a pre-trained run, changed keys of its recipe, which must leave its tensors as they are.
        device: auto, cpu, cuda or mps.
        options: fields of `EvaluateOptions`: one of corpus, data, texts and minimal_pairs; of a corpus split and
            examples; of data text_column, pair_column, label_column, settings and errors; of texts text_column,
            source_column, target_column, errors, last_word and stride; of minimal pairs reading.

    Returns:
        For text: examples and of_examples (the rows measured, and the rows there are); loss, losses, targets, accuracy,
        perplexity and bits_per_byte of each objective; of clm in all rows words and perplexity_per_word. For labels:
        rows, cut (see `CutRows`), loss, scores (all metrics), labels (precision, recall, f1 and count of each class,
        label or type of spans), simplest (scores of predictions without a model, such as always the most frequent
        class), simplest_from (the rows from which these predictions are made: train, or data where train's file is
        gone), and notes, if there are any. For a file of texts: results (a list, one for each text), and the figures of
        all together. For minimal pairs: accuracy of all pairs and of each kind of pairs, and ties.

    Raises:
        UserError: not exactly one of `corpus`, `data`, `texts` and `minimal_pairs`, one that the run cannot be
            evaluated on, or a mistake in it or in the options.
    """
    asked = EvaluateOptions.parse(options, "evaluate")
    require_one(
        {
            "--corpus": asked.corpus,
            "--data": asked.data,
            "--texts": asked.texts,
            "--minimal-pairs": asked.minimal_pairs,
        },
        {
            "--texts": {
                "--last-word": asked.last_word,
                "--source-column": asked.source_column is not None,
                "--target-column": asked.target_column is not None,
                "--stride": asked.stride is not None,
            },
            "--minimal-pairs": {"--reading": asked.reading is not None},
        },
    )
    with together() as processes:
        return _evaluate(run, asked, overrides, processes.device_name(device), processes)


def _evaluate(
    run: str | Path, asked: EvaluateOptions, overrides: Overrides, device: str, processes: Processes
) -> dict[str, Any]:
    """The figures; several processes share the rows, the texts or the sentences."""
    if asked.data is not None:
        return _evaluate_labels(run, asked, overrides, device, processes)
    if asked.corpus is None:
        require_effect("score", overrides)
    if asked.minimal_pairs is not None:
        figures = evaluate_pairs(opened(run, overrides), asked.minimal_pairs, asked.reading, device, processes)
    elif asked.texts is not None:
        figures = evaluate_texts(open_scores(opened(run, overrides), asked.texts, asked.scored(), device, processes))
    else:
        assert asked.corpus is not None
        if FinetunedRun.at(run):
            raise UserError(f"{run}: a fine-tuned run is evaluated on labelled --data, not on a corpus")
        corpus = open_corpus(asked.corpus)
        several = isinstance(corpus, Mixture) and asked.examples is None
        require_effect("evaluate a mixture" if several else "evaluate a corpus", overrides)
        figures = _evaluate_text(opened(run, overrides), corpus, asked.split, asked.examples, device, processes)
    return {**figures, **_set(overrides)}


def _evaluate_labels(
    run: str | Path, asked: EvaluateOptions, overrides: Overrides, device: str, processes: Processes
) -> dict[str, Any]:
    """The scores of a fine-tuned run on a labelled file."""
    if (run_folder(path_of(run)) / "recipe.yaml").is_file() and not FinetunedRun.at(run):
        raise UserError(
            f"{run}: a pre-trained run is evaluated on a --corpus; fine-tune it first to evaluate it on labels"
        )
    finetuned = FinetunedRun.open(run)
    if overrides:
        raise UserError(f"--set changes the recipe of a pre-trained run; {run} is fine-tuned")
    config = finetuned.task.read_otherwise(asked.reading_of_data())
    path = Path(str(asked.data))
    (rows, left_out), task = finetuned.labelled_examples(path, config), finetuned.learned
    on, format = resolve_device(device), finetuned.format()
    items = task.encode(rows, format)
    where = Placement(on, "float32"), processes
    predicted = predictions_of(finetuned.load(on), items, task, format, *where, labelled=True)
    cut = CutRows.of(items, format.length)
    cut_notes = [cut.of_split(path.name)] if cut.rows and items.encoded.truncated else []
    notes = [*left_out, *cut_notes, *items.notes, *hidden_notes(finetuned.tokenizer, {"data": rows})]
    learned_from = _train_of(finetuned.task, task)
    return {
        "run": str(run),
        "data": str(asked.data),
        "kind": config.kind,
        "task": config.title,
        "metric": task.metric,
        "rows": len(rows),
        "cut": cut.model_dump(),
        "loss": predicted.loss,
        "scores": task.score(rows, predicted.predictions),
        "labels": {
            name: scores.model_dump() for name, scores in task.score_labels(rows, predicted.predictions).items()
        },
        "simplest": task.simplest(rows if learned_from is None else learned_from, rows),
        "simplest_from": "data" if learned_from is None else "train",
        **({"notes": notes} if notes else {}),
    }


def _train_of(config: TaskConfig, task: Task) -> list[Any] | None:
    """The rows that a run has learned from; None where their file is missing, or has other rows by now."""
    # Splits with a file take nothing from train.
    others: dict[str, tuple[list[Any], list[str]]] = {"dev": ([], []), "test": ([], [])}
    try:
        train = split_examples(config, {"train": read_examples(config, config.train), **others}).train
        task.check(train, config.train, WHAT_IT_LEARNT)
    except UserError:
        return None
    return None if task.unseen(train) else train


def require_one(data: Mapping[str, str | Path | None], options: Mapping[str, Mapping[str, bool]]) -> None:
    """Require exactly one option that names data, and no further option that belongs to another one.

    Args:
        data: the values of the options that name data, by option; None where an option is not given.
        options: whether each further option is given, by the option to whose data it belongs.

    Raises:
        UserError: none is given, or more than one, or an option of another one.
    """
    if sum(each is not None for each in data.values()) != 1:
        raise UserError(
            "give either --corpus, --texts or --minimal-pairs (for a pre-trained run), or --data (for a fine-tuned run)"
        )
    for name, further in options.items():
        if data[name] is None and any(further.values()):
            raise UserError(f"{listed(list(further))} {'belong' if len(further) > 1 else 'belongs'} to {name} FILE")


def opened(run: str | Path, overrides: Overrides = ()) -> Run:
    """A pre-trained run with changes to its recipe; a stopped run stands at its newest checkpoint.

    Raises:
        UserError: there is no such run, it is fine-tuned, the changed recipe does not fit its weights, or a change
            would have no effect.
    """
    require_pretrained(run)
    changed = changed_run(Run.open_trained(run), overrides)
    require_effect_on_held_out_rows([part.of_training for part in changed.recipe.objective], overrides)
    return changed


def _set(overrides: Overrides) -> dict[str, Any]:
    """The changed keys, as an entry of the result; empty where there are none."""
    return {"set": keys} if (keys := parsed(overrides)) else {}


def _evaluate_text(
    run: Run, corpus: AnyCorpus, split: str, examples: int | None, device: str, processes: Processes
) -> dict[str, Any]:
    """The losses on a split of a corpus, on all rows or some of them, with masks that never change."""
    run.require_tokenizer_of(corpus)
    text = corpus.split(split)
    on = resolve_device(device)
    module = run.load(on)
    batches = make_batches(run.recipe, module, corpus, seed=0, split=split)
    some = examples
    if some is None and isinstance(corpus, Mixture):  # whose corpora have their shares in a sample alone
        some = run.recipe.training.validation_examples
    read = batches.whole() if some is None else iter(batches.fixed(some))
    rows = 0

    def counted() -> Iterator[Batch]:
        nonlocal rows
        for batch in read:
            rows += len(batch.row.ids)
            yield batch

    precision = resolve_precision(run.recipe.training.precision, on)
    figures = validate(module, HeldOut(text, counted(), batches), Placement(on, precision), processes)
    whole = some is None and not any(isinstance(each, Sharing) for each in module.objectives)
    return {
        "run": str(run.path),
        "step": run.step(),
        "corpus": str(corpus.path),
        "corpus_fingerprint": corpus.fingerprint,
        "split": split,
        "examples": rows,
        "of_examples": max(rows, batches.rows_an_epoch),
        "unigram_entropy": text.unigram_entropy(),
        "hidden": None if text.hidden is None else str(text.hidden),
        "separators": separators_of(run.recipe.input.model_dump()),
        **figures,
        **(_per_word(figures, text) if whole and isinstance(text, Split) else {}),
    }


def _per_word(figures: dict[str, Any], text: Split) -> dict[str, Any]:
    """The number of words, and the perplexity per word of each objective that predicts all of a text.

    exp(sum of -log p / words), with the sum over all targets, including the separators between documents, or sentences.
    Words are separated by white space, whatever the tokens are; ends of lines are words where they are tokens.
    """
    losses, words = figures["losses"], text.counts.words
    names = [name for name, loss in losses.items() if OBJECTIVES[name].whole_text and loss is not None]
    if not names or not words:
        return {}
    totals = {name: losses[name] * figures["targets"][name] for name in names}
    per_word = {name: math.exp(min(total / words, 700.0)) for name, total in totals.items()}
    return {"words": words, "perplexity_per_word": per_word}
