"""The track's seven fine-tuning tasks (GLUE and SuperGLUE, filtered) with the official settings, over three seeds."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from bakeoff.challenge.suites import rows_of, text_of, whole_number
from bakeoff.config import Config
from bakeoff.digests import digest
from bakeoff.display.progress import Shown
from bakeoff.durable import write_atomically
from bakeoff.errors import UserError
from bakeoff.json_files import json_lines
from bakeoff.recipe import Recipe
from bakeoff.runs.run import Run
from bakeoff.tasks.data import load_task
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.pooling import natural_pooling
from bakeoff.tasks.registry import parse_task
from bakeoff.tasks.task_config import TaskConfig

FOLDER = "glue_filtered"
"""The folder of the files in `full_eval`."""

SEEDS = (42, 43, 44)
"""The seeds of the fine-tunings; 42 is the official one, whose predictions are submitted."""

SPLITS = ("train", "valid")
"""The official names of what is learned from, and of what is predicted."""

LONGEST = 512
"""The most tokens of a row."""


class LabelledTask(NamedTuple):
    """A task of texts with labels."""

    name: str
    texts: Callable[[Mapping[str, Any]], tuple[str, str | None]]
    """The text of a row, and the second one, where there are two."""
    rows: int
    """The official number of rows that are predicted."""
    metric: str = "accuracy"
    batch: int = 32
    epochs: int = 10
    place: str | None = None
    """The official files' common path; None: that of the strict tracks."""
    settings: "Callable[[LabelledTask, Recipe], FinetuneConfig] | None" = None
    """Makes the settings; None: those of the strict tracks."""
    whole_batches: int = 1
    """Rows at the end that do not fill so many are not predicted."""
    named_labels: bool = False
    """Whether labels are texts."""

    def file(self, evaluation: Path, split: str) -> Path:
        """The official file of a split, train or valid."""
        place = f"full_eval/{FOLDER}/{self.name}" if self.place is None else self.place
        return evaluation / f"{place}.{split}.jsonl"


def _columns(first: str, second: str) -> Callable[[Mapping[str, Any]], tuple[str, str]]:
    return lambda row: (text_of(row, first, blank=True), text_of(row, second, blank=True))


def _multirc(row: Mapping[str, Any]) -> tuple[str, str]:
    question, answer, paragraph = (text_of(row, key, blank=True) for key in ("question", "answer", "paragraph"))
    return f"Question: {question} Answer: {answer}", paragraph


def _wsc(row: Mapping[str, Any]) -> tuple[str, str]:
    first, second, text = (text_of(row, key, blank=True) for key in ("span1_text", "span2_text", "text"))
    return f'Does "{second}" refer to "{first}" in this passage?', text


TASKS = (
    LabelledTask("boolq", _columns("question", "passage"), 1635, batch=16),
    LabelledTask("multirc", _multirc, 2424, batch=16),
    LabelledTask("rte", _columns("sentence1", "sentence2"), 139),
    LabelledTask("wsc", _wsc, 52, epochs=30),
    LabelledTask("mrpc", _columns("sentence1", "sentence2"), 204, "f1"),
    LabelledTask("qqp", _columns("question1", "question2"), 20215, "f1"),
    LabelledTask("mnli", _columns("premise", "hypothesis"), 4908),
)
"""The tasks, as babylm-org/babylm-eval has them (strict/scripts/eval_finetuning.sh and finetune/dataset.py)."""


NEARLY_ALL = 0.99
"""The share of rows with one label from which on a model has learned nothing but the label."""


class TaskScores(Config):
    """The scores of a task over the seeds."""

    metric: str
    """accuracy, or f1 of the label 1."""
    scores: dict[int, float]
    """The score of each seed in percent, on the file by which the best epoch was chosen, as officially."""
    collapsed: list[int]
    """The seeds whose model gave nearly every row the same label."""
    predictions: list[int | str]
    """The labels that the first seed's model gave."""

    @property
    def mean(self) -> float:
        """The mean over seeds."""
        return fmean(self.scores.values())

    @property
    def deviation(self) -> float:
        """The standard deviation over seeds; 0 for one."""
        return stdev(self.scores.values()) if len(self.scores) > 1 else 0.0


def settings_of(task: LabelledTask, recipe: Recipe) -> FinetuneConfig:
    """The official settings: an evaluation after each epoch; a head at the first token, or a causal model's last."""
    if task.settings is not None:
        return task.settings(task, recipe)
    longest = recipe.model.longest_input
    return FinetuneConfig.parse(
        {
            "learning_rate": 3e-5,
            "batch": task.batch,
            "epochs": task.epochs,
            "warmup": 0.06,
            "schedule": {"kind": "cosine", "final": 0.1},
            "weight_decay": 0.01,
            "evaluations": task.epochs,
            "patience": None,
            "length": LONGEST if longest is None else min(LONGEST, longest),
            "pooling": "last" if natural_pooling(recipe) == "last" else "cls",
        },
        task.name,
    )


def write_tables(task: LabelledTask, evaluation: Path, folder: Path) -> tuple[Path, Path]:
    """Write a task's rows with the columns text, pair (if there is one) and label, for train and what is predicted.

    Raises:
        UserError: a file cannot be read, or a row lacks a column or a label.
    """
    paths = _tables(task, folder)
    for path, split in zip(paths, SPLITS, strict=True):
        rows = list(_rows(task, task.file(evaluation, split)))
        if not rows:
            raise UserError(f"{task.file(evaluation, split)}: the file holds no rows")
        if split == "valid" and len(rows) >= task.whole_batches:
            rows = rows[: len(rows) // task.whole_batches * task.whole_batches]
        write_atomically(path, json_lines(rows))
    return paths


def check_labels(task: LabelledTask, evaluation: Path) -> None:
    """Read a task's files as a fine-tuning does.

    Raises:
        UserError: there is a mistake in them, such as a label that is never learned.
    """
    with TemporaryDirectory() as scratch:
        tables = write_tables(task, evaluation, Path(scratch))
        try:
            load_task(_config(task, tables))
        except UserError as error:
            message = str(error)
            for table, split in zip(tables, SPLITS, strict=True):
                message = message.replace(str(table), str(task.file(evaluation, split)))
            raise UserError(message) from None


def digests_of(task: LabelledTask, folder: Path) -> list[str] | None:
    """Digests of the tables that `write_tables` has written; None: it has not."""
    paths = _tables(task, folder)
    return [digest(path) for path in paths] if all(path.is_file() for path in paths) else None


def _tables(task: LabelledTask, folder: Path) -> tuple[Path, Path]:
    return folder / f"{task.name}.train.jsonl", folder / f"{task.name}.valid.jsonl"


def _rows(task: LabelledTask, path: Path) -> Iterator[dict[str, str]]:
    for number, row in rows_of(path):
        try:
            text, pair = task.texts(row)
            label = _named(row) if task.named_labels else str(whole_number(row, "label"))
        except KeyError as error:
            raise UserError(f"{path}:{number}: no row of {task.name}: it has no {error}") from None
        except ValueError as error:
            raise UserError(f"{path}:{number}: {error}") from None
        yield {"text": text, **({} if pair is None else {"pair": pair}), "label": label}


def _named(row: Mapping[str, Any]) -> str:
    """The label of a row, a text or a number."""
    if not isinstance(row["label"], str | int) or not str(row["label"]).strip():
        raise ValueError(f"the label {row['label']!r} is no name")
    return str(row["label"])


def fine_tune(
    task: LabelledTask, run: Path, tables: tuple[Path, Path], out: Path, seed: int, device: str, progress: Shown
) -> None:
    """Fine-tune a run on a task with one seed; goes on where it was interrupted.

    Raises:
        UserError: a mistake in the data.
        Interrupted: a signal came; it can be gone on with.
    """
    config = _config(task, tables)
    settings = settings_of(task, Run.open_finished(run).recipe)
    finetune(run, config, out, config=settings, seed=seed, device=device, resume=True, progress=progress)


def _config(task: LabelledTask, tables: tuple[Path, Path]) -> TaskConfig:
    train, valid = tables
    values: dict[str, Any] = {"kind": "classification", "name": task.name, "train": train, "dev": valid, "test": valid}
    values |= {"text_column": "text", "label_column": "label", "metric": task.metric}
    if "pair" in next(iter(rows_of(train)))[1]:
        values["pair_column"] = "pair"
    if task.metric == "f1":
        values["positive"] = "1"
    return parse_task(values, task.name)


def scores_of(task: LabelledTask, runs: Mapping[int, Path]) -> TaskScores:
    """The scores of a task's fine-tuned runs, by their seeds."""
    opened = {seed: FinetunedRun.open(path) for seed, path in runs.items()}
    predicted = {seed: [line["prediction"] for line in run.predictions()] for seed, run in opened.items()}
    return TaskScores(
        metric=task.metric,
        scores={seed: 100 * run.results.scores["test"][task.metric] for seed, run in opened.items()},
        collapsed=[seed for seed, labels in predicted.items() if _most_frequent(labels) >= NEARLY_ALL],
        predictions=[label if task.named_labels else int(label) for label in next(iter(predicted.values()))],
    )


def _most_frequent(labels: Sequence[str]) -> float:
    """The share of the most frequent label."""
    return max(Counter(labels).values()) / len(labels)


def official_labels(name: str, scores: TaskScores) -> dict[str, Any]:
    """The first seed's predictions in the form of a submission."""
    rows = [{"id": f"{name}_{number}", "pred": label} for number, label in enumerate(scores.predictions)]
    return {name: {"predictions": rows}}
