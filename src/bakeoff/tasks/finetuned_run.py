"""The directory of a fine-tuned run: all that is needed to use, judge and reproduce a fine-tuning."""

import json
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from bakeoff import checksums
from bakeoff.config import Record
from bakeoff.errors import UserError, path_of
from bakeoff.json_files import json_lines, parse_any_json, read_json, read_json_lines
from bakeoff.learner.without_memory import filled, require_sizes
from bakeoff.plugins import require_plugins
from bakeoff.recipe import Recipe
from bakeoff.runs.records import Environment, read_metrics
from bakeoff.runs.rules import MARKS_BEGIN_WORDS, OF_FINETUNED_RUNS, changes_since
from bakeoff.runs.run import Run
from bakeoff.tasks.data import read_examples, require_known
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetune_results import FinetuneResult
from bakeoff.tasks.heads.heads import HeadedModel
from bakeoff.tasks.label_counts import some_of
from bakeoff.tasks.registry import parse_task
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.task import Task
from bakeoff.tasks.task_config import TaskConfig
from bakeoff.tensors import save_tensors
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.unfinished import ASKED, no_such_run
from bakeoff.yaml_files import read_yaml

WHAT_IT_LEARNT = "what the run has learnt"
"""What a fine-tuned run has learned from, in errors about labels."""


class Settings(Record):
    """The settings of a fine-tuning; task.yaml."""

    task: dict[str, Any]
    """The config of the task."""
    finetune: dict[str, Any]
    """The config of the training, with everything decided."""


class FinetunedRun:
    """The directory of a fine-tuned run.

    It holds recipe.yaml, tokenizer.json, task.yaml, asked.json (what the result depends on), labels.json,
    environment.json, metrics.jsonl, model.safetensors, predictions.jsonl (of test), README.md, results.json and
    bakeoff.sha256.
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
        path = path_of(path)
        if not path.exists():
            raise no_such_run(path)
        if not cls.at(path):
            what = (
                "a pre-trained run; make one with `bakeoff finetune`" if (path / "recipe.yaml").is_file() else "not it"
            )
            raise UserError(f"{path}: a fine-tuned run is needed, and this is {what}")
        checksums.require_present(path / "results.json")
        return cls(path)

    @staticmethod
    def at(path: str | Path) -> bool:
        """Whether a fine-tuned run is at that path; a run that is there is finished."""
        path = path_of(path)
        lost = (path / ASKED).is_file() and "results.json" in checksums.absent(path)
        return (path / "results.json").is_file() or lost

    @cached_property
    def recipe(self) -> Recipe:
        """The complete recipe of the model."""
        return self._run.recipe

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the pre-trained run, or the one that was given to a fine-tuning from scratch."""
        return self._run.tokenizer

    @property
    def environment(self) -> dict[str, Any]:
        """The machine, the versions and the pre-trained run."""
        path = self.path / "environment.json"
        return Environment.check(read_json(path), str(path))

    @cached_property
    def task(self) -> TaskConfig:
        """The files, columns and metric of the fine-tuning."""
        try:
            return parse_task(self._settings["task"], f"{self._settings_file}: task")
        except UserError:
            require_plugins(self.path, self.environment["versions"])
            raise

    @cached_property
    def config(self) -> FinetuneConfig:
        """The settings of the fine-tuning, with pooling, length and learning rates as they were decided."""
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
        """The task with its known labels."""
        path = self.path / "labels.json"
        return self.task.restore(parse_any_json(checksums.read(path), str(path)), str(path))

    @cached_property
    def results(self) -> FinetuneResult:
        """Scores on dev and test, the chosen learning rate and epoch, and the cost."""
        path = self.path / "results.json"
        return FinetuneResult.parse({**read_json(path), "path": self.path}, str(path), strict=True)

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl, one for each evaluation on dev."""
        return read_metrics(self.path / "metrics.jsonl")

    def predictions(self) -> list[dict[str, Any]]:
        """The label and the prediction of each row of test; see the record of the kind."""
        return read_predictions(self.path / "predictions.jsonl", self.task.record)

    def labelled_examples(self, path: Path, config: TaskConfig | None = None) -> tuple[list[Any], list[str]]:
        """The examples of a labelled file, and notes on rows that were left out and on labels that were not learnt.

        Args:
            path: the file.
            config: the task, with the settings by which the file is read; None: those of fine-tuning.

        Raises:
            UserError: there is a mistake in the file, or a class, or all labels, that the run has not learnt.
        """
        examples, left_out = read_examples(config or self.task, path)
        notes = left_out
        if unseen := require_known(self.learned, examples, path, WHAT_IT_LEARNT):
            named = some_of(sorted(unseen), unseen)
            where = f"{path.name} has labels that do not occur in {WHAT_IT_LEARNT}"
            notes = [*left_out, f"{where}, and where one stands every answer is wrong: {named}"]
        return examples, notes

    def format(self, length: int | None = None) -> InputFormat:
        """The format of the rows, by which texts become tokens as in fine-tuning.

        Args:
            length: the most tokens of a row; None: as many as in fine-tuning.

        Raises:
            UserError: the length is more than the model has positions for.
        """
        config = self.config
        assert config.length is not None
        rows = InputFormat(self.tokenizer, self.recipe, length or config.length, config.truncate, config.separators)
        rows.marks_begin_words = self.environment.get("rules", 0) >= MARKS_BEGIN_WORDS
        return rows

    def load(self, device: torch.device | None = None) -> HeadedModel:
        """The fine-tuned model with its head, in evaluation mode.

        Raises:
            UserError: it was fine-tuned on other rows than are read now.
        """
        self.require_current()
        head = filled(self.build, self.path / "model.safetensors")
        return head.to(device or torch.device("cpu")).eval()

    def build(self) -> HeadedModel:
        """The model with its head, with random weights."""
        return self.learned.build_head(self.recipe, self.tokenizer.size, self.config)

    def require_sizes(self) -> None:
        """Refuse a recipe whose sizes the weights have not, as `Run.require_sizes` does."""
        require_sizes(self.build, self.path / "model.safetensors")

    def require_current(self) -> None:
        """Refuse a run that has learned from rows of an older format.

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


def write_labels(folder: Path, task: Task) -> None:
    """Write labels.json: the known labels, with what dev has decided, such as a threshold."""
    text = json.dumps(task.labels, ensure_ascii=False, indent=1) + "\n"
    (folder / "labels.json").write_text(text, encoding="utf-8")


def write_results(
    folder: Path, weights: dict[str, Tensor], result: FinetuneResult, predictions: list[dict[str, Any]], card: str
) -> None:
    """Write the weights, predictions, README and results of a fine-tuning, results.json last of all."""
    save_tensors(weights, folder / "model.safetensors")
    (folder / "predictions.jsonl").write_text(json_lines(predictions), encoding="utf-8")
    (folder / "README.md").write_text(card, encoding="utf-8")
    text = json.dumps(result.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"
    (folder / "results.json").write_text(text, encoding="utf-8")
