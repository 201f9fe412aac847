"""The directory of a fine-tuned run: everything to use, judge and reproduce one fine-tuning."""

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from pydantic import Field, model_validator

from bakeoff import checksums
from bakeoff.config import Config, Record
from bakeoff.durable import fresh, held, own_folder, remove, sync, write_atomically
from bakeoff.errors import Diverged, Interrupted, UserError
from bakeoff.json_files import parse_any_json, read_json, read_json_lines
from bakeoff.recipe import Recipe
from bakeoff.runs.records import Environment, read_metrics
from bakeoff.runs.rules import OF_FINETUNED_RUNS, changes_since
from bakeoff.runs.run import Run
from bakeoff.tasks.fitting.finetune_config import FinetuneConfig
from bakeoff.tasks.heads.heads import Head
from bakeoff.tasks.registry import parse_task
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.scores.label_scores import LabelScore
from bakeoff.tasks.task import Task, TaskConfig
from bakeoff.tensors import fill, save_tensors
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.yaml_files import read_yaml


class TrialResult(Config):
    """What became of one of a fine-tuning's trainings."""

    learning_rate: float
    """Its learning rate."""
    epochs: int
    """The epochs that it was planned for."""
    score: float | None
    """The metric on dev at its best; null: the loss was not a number any more."""
    seconds: float
    """Time spent, looks at dev included."""


class FinetuneResult(Config):
    """What a fine-tuning achieved; results.json."""

    path: Path = Field(default=Path(), exclude=True)
    """The run's directory."""
    kind: str = "classification"
    """What was learned."""
    task: str
    """The task's name."""
    metric: str
    """What epochs and learning rates were chosen by."""
    recipe: str
    """The recipe's name."""
    source: str | None
    """The pre-trained run; null: the weights were random."""
    seed: int
    """Seed of the random weights, the order and the dropout."""
    scores: dict[str, dict[str, float]]
    """For dev and test all metrics, shares as fractions."""
    labels: dict[str, LabelScore] = Field(default={})
    """For each class, label or type of spans its precision, recall and F1 on test; none where there are no such."""
    simplest: dict[str, float]
    """The metrics on test of answers without a model, such as the most frequent class of train."""
    transferred_tensors: int
    """How many tensors came from the pre-training."""
    total_tensors: int
    """How many tensors the model and its head have."""
    parameters: int
    """How many numbers they hold."""
    learning_rate: float
    """The learning rate, chosen on dev where several were tried."""
    epochs: float
    """Epochs trained until it stopped."""
    best_epoch: float
    """The epoch that did best on dev, whose weights were kept."""
    seconds: float
    """Time spent, all trainings and evaluations together."""
    trials: list[TrialResult] = Field(default=[])
    """What became of each training, where several learning rates or numbers of epochs were tried."""
    classes: list[str]
    """Names of the classes, or tags, sorted; none where there are no such."""
    rows: dict[str, int]
    """Rows of train, dev and test."""
    notes: list[str]
    """What a reader of the numbers must know."""

    read_before: ClassVar[tuple[str, ...]] = ("majority",)

    @model_validator(mode="before")
    @classmethod
    def _of_older_runs(cls, values: Any) -> Any:
        """Until other tasks than classification were there, the accuracy of the most frequent class stood alone."""
        if isinstance(values, dict) and "majority" in values and "simplest" not in values:
            values = {**values, "simplest": {"accuracy": values["majority"]}}
            del values["majority"]
        return values


class Settings(Record):
    """What a fine-tuning was asked for; task.yaml."""

    task: dict[str, Any]
    """The task."""
    finetune: dict[str, Any]
    """How, everything decided."""


class FinetunedRun:
    """The directory of a fine-tuned run.

    recipe.yaml, tokenizer.json, task.yaml, labels.json, environment.json, metrics.jsonl, model.safetensors,
    predictions.jsonl (of test), README.md, results.json and bakeoff.sha256.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._run = Run(path)

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """Open the fine-tuned run at a path.

        Raises:
            UserError: there is none at that path.
        """
        path = Path(path)
        if not path.exists():
            raise UserError(f"{path}: no such run")
        if not cls.at(path):
            what = (
                "a pre-trained run; make one with `bakeoff finetune`" if (path / "recipe.yaml").is_file() else "not it"
            )
            raise UserError(f"{path}: a fine-tuned run is needed, and this is {what}")
        return cls(path)

    @staticmethod
    def at(path: str | Path) -> bool:
        """Whether a fine-tuned run is at that path; it is finished whenever it is there."""
        return (Path(path) / "results.json").is_file()

    @cached_property
    def recipe(self) -> Recipe:
        """The complete recipe of the model."""
        return self._run.recipe

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the pre-trained run, or the one that was given from scratch."""
        return self._run.tokenizer

    @property
    def environment(self) -> dict[str, Any]:
        """Machine, versions and the pre-trained run."""
        path = self.path / "environment.json"
        return Environment.check(read_json(path), str(path))

    @cached_property
    def task(self) -> TaskConfig:
        """The files, columns and metric that it was fine-tuned with."""
        return parse_task(self._settings["task"], f"{self._settings_file}: task")

    @cached_property
    def config(self) -> FinetuneConfig:
        """How it was fine-tuned, with pooling, length and learning rates as they were decided."""
        config = FinetuneConfig.parse(self._settings["finetune"], f"{self._settings_file}: finetune")
        if config.length is None or config.pooling == "auto":
            raise UserError(f"{self._settings_file}: finetune: length and pooling have to be those that were decided")
        return config

    @property
    def _settings_file(self) -> Path:
        return self.path / "task.yaml"

    @cached_property
    def _settings(self) -> dict[str, Any]:
        return Settings.check(read_yaml(self._settings_file), str(self._settings_file))

    @cached_property
    def learned(self) -> Task:
        """The task with what is known of its labels."""
        path = self.path / "labels.json"
        return self.task.restore(parse_any_json(checksums.read(path), str(path)), str(path))

    @cached_property
    def results(self) -> FinetuneResult:
        """Scores on dev and test, the chosen learning rate and epoch, and the cost."""
        path = self.path / "results.json"
        return FinetuneResult.parse({**read_json(path), "path": self.path}, str(path), strict=True)

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl: one a look at dev."""
        return read_metrics(self.path / "metrics.jsonl")

    def predictions(self) -> list[dict[str, Any]]:
        """Label and prediction for each row of test; see the kind's record."""
        return read_predictions(self.path / "predictions.jsonl", self.task.record)

    def format(self) -> InputFormat:
        """The format of its rows, by which texts become tokens as in fine-tuning."""
        assert self.config.length is not None
        return InputFormat(self.tokenizer, self.recipe, self.config.length, self.config.truncate)

    def load(self, device: torch.device | None = None) -> Head:
        """The fine-tuned model with its head, in evaluation mode.

        Raises:
            UserError: it was fine-tuned on other rows than are read now.
        """
        self.require_current()
        head = self.learned.build_head(self.recipe, self.tokenizer.size, self.config)
        fill(head, self.path / "model.safetensors")
        return head.to(device or torch.device("cpu")).eval()

    def require_current(self) -> None:
        """Refuse a run from before rows have become what they are.

        Raises:
            UserError: it was fine-tuned on other rows than are read now.
        """
        for change in changes_since(self._run.written_recipe, self.environment, OF_FINETUNED_RUNS):
            raise UserError(
                f"{self.path}: from before {change}, and does not read what it learnt from; fine-tune it anew"
            )


def read_predictions(path: Path, record: type[Record]) -> list[dict[str, Any]]:
    """The lines of a predictions.jsonl, each a record of that kind.

    Raises:
        UserError: it is damaged, or a line is no JSON object or lacks a key.
    """
    return [record.check(line, f"{path}:{number}") for number, line in enumerate(read_json_lines(path), 1)]


def require_free(out: Path) -> None:
    """Refuse a directory that holds something.

    Raises:
        UserError: `out` is not empty, or not a directory.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        what = "a fine-tuned run" if FinetunedRun.at(out) else "something else"
        raise UserError(f"{out}: holds {what} already; choose another --out")


CHECKPOINT = "checkpoint-"
"""How the folders of an unfinished run begin from which it can be resumed; a number follows."""
PARTIAL = ".checkpoint.partial"
"""Where one is written before it is whole."""
ASKED = "asked.json"
"""What an unfinished fine-tuning was asked for, by which it is known again."""


@contextmanager
def unfinished(out: Path, asked: dict[str, Any], resume: bool = False) -> Iterator[Path]:
    """A folder beside `out` that takes its place at the end.

    Behind a stop by a signal and behind a kill it can be resumed, and behind an error too if it has a checkpoint; else
    it is removed.

    Args:
        out: where the run is to be.
        asked: all that its result follows from.
        resume: go on with the folder that is there, if any, and asked for the same.

    Raises:
        UserError: `out` holds something, its folder cannot be written to, or what is to be resumed was asked for
            something else.
    """
    require_free(out)
    folder = unfinished_folder(out)
    with ExitStack() as stack:
        try:
            if resume and (folder / ASKED).is_file():
                stack.enter_context(held(own_folder(folder), out))
                remove(folder / PARTIAL)
                _require_same(read_json(folder / ASKED), asked, out)
            else:
                stack.enter_context(fresh(folder, out))
                write_atomically(folder / ASKED, json.dumps(asked))
        except OSError as error:
            raise UserError(f"{out}: cannot be made: {error.strerror}") from None
        kept = False
        try:
            yield folder
            for rest in [*folder.glob(f"{CHECKPOINT}*"), folder / PARTIAL]:
                remove(rest)
            (folder / ASKED).unlink()
            for file in folder.iterdir():
                sync(file)
            checksums.record(folder, [file.name for file in folder.iterdir()])
            sync(folder)
            require_free(out)
            folder.rename(out)
            sync(out.absolute().parent)
        except Interrupted:
            kept = True
            raise
        except Diverged:  # and would again
            raise
        except BaseException as error:
            # Memory that was short, a disk that was full, or Ctrl-C behind the trainings, where no loop looks for it.
            kept = any(folder.glob(f"{CHECKPOINT}*"))
            if kept and isinstance(error, KeyboardInterrupt):
                raise Interrupted("stopped; the same command with --resume goes on", signal.SIGINT) from None
            raise
        finally:
            if not kept:
                remove(folder)


def what_is_kept(out: Path) -> str:
    """What an error has left of the fine-tuning that was to become `out`, and what to type."""
    if any(unfinished_folder(out).glob(f"{CHECKPOINT}*")):
        return "a checkpoint is kept: with more space, the same command with --resume goes on"
    return "nothing of this fine-tuning was kept"


def unfinished_folder(out: Path) -> Path:
    """Where a fine-tuning stands that is to become `out`."""
    return out.absolute().with_name(f".{out.absolute().name}.unfinished")


def _require_same(before: Any, asked: dict[str, Any], out: Path) -> None:
    """Refuse to go on with what was asked for something else.

    Raises:
        UserError: it was; the message names the first that differs.
    """
    for key in asked:
        own = before.get(key) if isinstance(before, dict) else None
        if own != asked[key]:
            raise UserError(
                f"{out}: cannot be resumed, because it was begun with another {key.replace('_', ' ')}; leave --resume "
                "out to begin anew"
            )


def write_labels(folder: Path, task: Task) -> None:
    """Write what is known of the labels, with what dev has settled."""
    text = json.dumps(task.labels, ensure_ascii=False, indent=1) + "\n"
    (folder / "labels.json").write_text(text, encoding="utf-8")


def write_results(
    folder: Path, head: Head, result: FinetuneResult, predictions: list[dict[str, Any]], card: str
) -> None:
    """Write what comes out of a fine-tuning, results.json last of all."""
    save_tensors(head.state_dict(), folder / "model.safetensors")
    lines = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in predictions)
    (folder / "predictions.jsonl").write_text(lines, encoding="utf-8")
    (folder / "README.md").write_text(card, encoding="utf-8")
    text = json.dumps(result.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
    (folder / "results.json").write_text(text, encoding="utf-8")
