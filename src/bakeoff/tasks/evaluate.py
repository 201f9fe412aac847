"""Evaluation of a finished run: a pre-trained one on held-out text, a fine-tuned one on another labelled file."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from bakeoff.batching.batch import Batch
from bakeoff.corpus.mixture import AnyCorpus, Mixture, open_corpus
from bakeoff.corpus.split import Split
from bakeoff.display.wording import listed
from bakeoff.errors import UserError
from bakeoff.inference.readings import Reading
from bakeoff.objectives.objective import Sharing
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.resources.device import Placement, resolve_device, resolve_precision
from bakeoff.runs.changed_run import Overrides, changed_run, parsed
from bakeoff.runs.run import Run
from bakeoff.tasks.answers.answering import answers_of
from bakeoff.tasks.data import read_examples, split_examples
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.language.judge_pairs import evaluate_pairs
from bakeoff.tasks.language.score_options import ScoreOptions
from bakeoff.tasks.language.score_texts import evaluate_texts, open_scores, require_pretrained
from bakeoff.tasks.reading.other_files import reading_otherwise
from bakeoff.tasks.task import Task
from bakeoff.tasks.task_config import TaskConfig
from bakeoff.training.stages import make_batches
from bakeoff.training.validation import HeldOut, validate


def evaluate(
    run: str | Path,
    *,
    corpus: str | Path | None = None,
    split: str = "validation",
    data: str | Path | None = None,
    text_column: str | None = None,
    pair_column: str | None = None,
    label_column: str | list[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    errors: Literal["strict", "replace"] = "strict",
    examples: int | None = None,
    texts: str | Path | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    last_word: bool = False,
    stride: int | None = None,
    minimal_pairs: str | Path | None = None,
    reading: Reading | None = None,
    overrides: Overrides = (),
    device: str = "auto",
) -> dict[str, Any]:
    """Losses of a pre-trained run on held-out text, its log-probabilities of texts, or a fine-tuned run's scores.

    Args:
        run: the run; it must have finished.
        corpus: for a pre-trained run, a directory that `prepare` made with the same tokenizer.
        split: the split of the corpus: validation, test (where `prepare` was given one) or train.
        data: for a fine-tuned run, a .csv, .tsv or .jsonl file.
        text_column: the file's column with the text; absent: the same as in fine-tuning, as for the next two.
        pair_column: the column with the second text.
        label_column: the column with the class, or that of each label.
        settings: by the keys of the task's config whatever else is otherwise in this file than in those of fine-tuning:
            other columns, header, separator, encoding, layout, ...
        errors: invalid UTF-8 in `data` is an error, or is replaced.
        examples: rows of the split to measure on, spread evenly; absent: all (of a mixture as many as in pre-training).
        texts: for a pre-trained run, a file of texts to score; `text_column` is its column, absent `text`.
        source_column: for pairs, that of a sequence-to-sequence model's source; absent: `source`.
        target_column: and that of its target; absent: `target`.
        last_word: score the last word of each text alone.
        stride: the most tokens that are scored of a row of a text that is longer than one, behind its first row;
            absent: half a row.
        minimal_pairs: for a pre-trained run, a file of pairs of sentences, the first of which is to be the likelier.
        reading: how these are read: forwards, pseudo or pseudo_words; absent: forwards where the run has learnt that.
        overrides: for a pre-trained run, keys of its recipe to change that leave its tensors as they are.
        device: auto, cpu, cuda or mps.

    Returns:
        For text: examples and of_examples (rows measured, and how many there are); loss, losses, targets, accuracy,
        perplexity and bits_per_byte of each objective; of clm in all rows words and perplexity_per_word. For labels:
        rows, loss, scores (all metrics), labels (precision, recall, f1 and count of each class, label or type of
        spans) and simplest (those of answers without a model, such as always the most
        frequent class), made of what simplest_from says: train, or the data itself where train's file is gone; and
        notes, where something must be known of the rows. For a file of texts: results (a list, one for each text), and
        the figures of all together. For minimal pairs: accuracy, that of each kind of pairs,
        and ties.

    Raises:
        UserError: not exactly one of `corpus`, `data`, `texts` and `minimal_pairs`, one that the run cannot be
            evaluated on, or a mistake in it.
    """
    require_one(
        {"--corpus": corpus, "--data": data, "--texts": texts, "--minimal-pairs": minimal_pairs},
        {
            "--texts": {
                "--last-word": last_word,
                "--source-column": source_column is not None,
                "--target-column": target_column is not None,
                "--stride": stride is not None,
            },
            "--minimal-pairs": {"--reading": reading is not None},
        },
    )
    if minimal_pairs is not None:
        return {**evaluate_pairs(opened(run, overrides), minimal_pairs, reading, device), **_set(overrides)}
    if texts is not None:
        options = ScoreOptions(text_column, source_column, target_column, errors, last_word, stride)
        return {**evaluate_texts(open_scores(opened(run, overrides), texts, options, device)), **_set(overrides)}
    if corpus is not None:
        if FinetunedRun.at(run):
            raise UserError(f"{run}: a fine-tuned run is evaluated on labelled --data, not on a corpus")
        figures = _evaluate_text(opened(run, overrides), open_corpus(corpus), split, examples, device)
        return {**figures, **_set(overrides)}
    if (Path(run) / "recipe.yaml").is_file() and not FinetunedRun.at(run):
        raise UserError(
            f"{run}: a pre-trained run is evaluated on a --corpus; fine-tune it first to evaluate it on labels"
        )
    finetuned = FinetunedRun.open(run)
    if overrides:
        raise UserError(f"--set changes the recipe of a pre-trained run; {run} is fine-tuned")
    columns = {"text_column": text_column, "pair_column": pair_column, "label_column": label_column}
    named = {name: column for name, column in columns.items() if column is not None}
    config = reading_otherwise(finetuned.task, {"errors": errors, **named, **(settings or {})})
    path = Path(str(data))
    (rows, left_out), task = finetuned.labelled_examples(path, config), finetuned.learned
    on, format = resolve_device(device), finetuned.format()
    items = task.encode(rows, format)
    found = answers_of(finetuned.load(on), items, task, format, Placement(on, "float32"), labelled=True)
    notes = [*left_out, *items.notes]
    learned_from = _train_of(finetuned.task, task)
    return {
        "run": str(run),
        "data": str(data),
        "kind": config.kind,
        "task": config.title,
        "metric": task.metric,
        "rows": len(rows),
        "loss": found.loss,
        "scores": task.score(rows, found.answers),
        "labels": {name: own.model_dump() for name, own in task.score_labels(rows, found.answers).items()},
        "simplest": task.simplest(rows if learned_from is None else learned_from, rows),
        "simplest_from": "data" if learned_from is None else "train",
        **({"notes": notes} if notes else {}),
    }


def _train_of(config: TaskConfig, task: Task) -> list[Any] | None:
    """The rows that a run has learned from; None where their file is not there any more, or is another by now."""
    # Splits that have a file of their own take nothing from train.
    others: dict[str, tuple[list[Any], list[str]]] = {"dev": ([], []), "test": ([], [])}
    try:
        train = split_examples(config, {"train": read_examples(config, config.train), **others}).train
        task.check(train, config.train, "what the run has learnt")
    except UserError:
        return None
    return train


def require_one(given: Mapping[str, str | Path | None], options: Mapping[str, Mapping[str, bool]]) -> None:
    """Refuse anything but one of what a run can be evaluated on.

    Args:
        given: by its option each of these, None where it is not given.
        options: of some of these the options that they alone have, and whether they are given.

    Raises:
        UserError: none is given, or more than one, or an option of another one.
    """
    if sum(each is not None for each in given.values()) != 1:
        raise UserError(
            "give either --corpus, --texts or --minimal-pairs (for a pre-trained run), or --data (for a fine-tuned run)"
        )
    for name, own in options.items():
        if given[name] is None and any(own.values()):
            raise UserError(f"{listed(list(own))} {'belong' if len(own) > 1 else 'belongs'} to {name} FILE")


def opened(run: str | Path, overrides: Overrides = ()) -> Run:
    """A pre-trained run, its recipe changed; one that was stopped counts as its newest checkpoint has it.

    Raises:
        UserError: there is none, it is fine-tuned, or the changed recipe does not fit its weights.
    """
    require_pretrained(run)
    return changed_run(Run.open_trained(run), overrides)


def _set(overrides: Overrides) -> dict[str, Any]:
    """The keys that were changed, where there are any."""
    return {"set": keys} if (keys := parsed(overrides)) else {}


def _evaluate_text(run: Run, corpus: AnyCorpus, split: str, examples: int | None, device: str) -> dict[str, Any]:
    """The losses on a split of a corpus, on masks that never change: all of its rows, or some."""
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
            rows += len(batch.ids)
            yield batch

    precision = resolve_precision(run.recipe.training.precision, on)
    figures = validate(module, HeldOut(text, counted()), Placement(on, precision))
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
        **figures,
        **(_per_word(figures, text) if whole and isinstance(text, Split) else {}),
    }


def _per_word(figures: dict[str, Any], text: Split) -> dict[str, Any]:
    """The perplexity per word of an objective that predicts all of a text, and the number of words.

    exp(sum of -log p / words), the sum over all targets, the marks between documents among them. Words are what white
    space separates, whatever tokens hold of them, and ends of lines where these are tokens.
    """
    names, words = [name for name in figures["losses"] if OBJECTIVES[name].whole_text], text.counts.words
    if not names or not words:
        return {}
    totals = {name: figures["losses"][name] * figures["targets"][name] for name in names}
    per_word = {name: math.exp(min(total / words, 700.0)) for name, total in totals.items()}
    return {"words": words, "perplexity_per_word": per_word}
