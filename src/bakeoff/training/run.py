"""The directory of a run: everything to resume, reproduce, inspect and use one training."""

import contextlib
import json
import shlex
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch

from bakeoff.corpus.mixture import AnyCorpus
from bakeoff.corpus.tokenizer import Tokenizer
from bakeoff.durable import beside, remove, sync, write_atomically
from bakeoff.errors import UserError
from bakeoff.recipe import Recipe
from bakeoff.tensors import load_tensors, save_tensors
from bakeoff.training.checkpoint import checkpoint_step, list_checkpoints
from bakeoff.training.model_card import model_card
from bakeoff.training.pretraining_model import PretrainingModel
from bakeoff.yaml_files import read_yaml


class Run:
    """A run's directory.

    recipe.yaml (complete), tokenizer.json, environment.json, metrics.jsonl, checkpoints/, and when it has finished
    model.safetensors, summary.json and README.md.
    """

    def __init__(self, path: str | Path) -> None:
        """A run that has begun.

        Raises:
            UserError: there is no run at that path.
        """
        self.path = path = Path(path)
        if not path.exists():
            raise UserError(f"{path}: no such run")
        if not (path / "recipe.yaml").is_file():
            raise UserError(f"{path}: this is not a run: it has no recipe.yaml")
        self.checkpoints = path / "checkpoints"
        self.snapshots = path / "snapshots"  # weights that are to be averaged

    def __repr__(self) -> str:
        """What it is, from what its directory holds, as far as that can be read."""
        try:
            name = self.recipe.name
            if (self.path / "results.json").is_file():
                return f"Run({str(self.path)!r}): {name}, fine-tuned"
            if not self.finished:
                checkpoints = list_checkpoints(self.checkpoints)
                step = checkpoint_step(checkpoints[-1]) if checkpoints else 0
                return f"Run({str(self.path)!r}): {name}, unfinished, step {step:,} of {self.planned_steps:,}"
            summary = self.summary
            loss = f"held-out loss {summary['validation']['loss']:.4f}"
            size = f"{summary['parameters']:,} parameters, {summary['steps']:,} steps"
        except (UserError, OSError, ValueError, KeyError, TypeError):
            return f"Run({str(self.path)!r})"
        return f"Run({str(self.path)!r}): {name}, {size}, {loss}"

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """A pre-training that has begun.

        Raises:
            UserError: there is no run at that path, or a fine-tuned one.
        """
        if (Path(path) / "labels.json").is_file():
            raise UserError(f"{path}: a fine-tuned run, which names classes; give the run that it came from")
        return cls(path)

    @classmethod
    def open_finished(cls, path: str | Path) -> Self:
        """A run that has finished.

        Raises:
            UserError: there is no run at that path, or it is unfinished.
        """
        run = cls.open(path)
        if not run.finished:
            raise UserError(f"{path}: this run has not finished; {run.how_to_go_on}")
        return run

    @classmethod
    def open_trained(cls, path: str | Path) -> Self:
        """A run with weights to use: a finished one, or one that was stopped behind a checkpoint.

        Raises:
            UserError: there is no run at that path, or it has no checkpoint yet.
        """
        run = cls.open(path)
        run.weights_file()
        return run

    @classmethod
    def create(cls, path: str | Path, recipe: Recipe, tokenizer: Tokenizer, environment: dict[str, Any]) -> Self:
        """A new run's directory.

        Raises:
            UserError: something is there already.
        """
        path = Path(path)
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            what = "a run" if (path / "recipe.yaml").exists() else "something else"
            raise UserError(f"{path}: holds {what} already; choose another --out, or --resume an unfinished run")
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{path}: cannot be made: {error.strerror}") from None
        tokenizer.save(path / "tokenizer.json")
        write_atomically(path / "environment.json", json.dumps(environment, indent=2) + "\n")
        write_atomically(path / "recipe.yaml", recipe.to_yaml())  # last: it makes the directory a run
        return cls(path)

    @property
    def finished(self) -> bool:
        """The training reached its end."""
        return (self.path / "summary.json").is_file()

    @property
    def planned_steps(self) -> int:
        """The steps of the whole training."""
        return self.recipe.training.budget.steps or 0

    @property
    def how_to_go_on(self) -> str:
        """What to type where the training was stopped."""
        command = f"bakeoff pretrain --out {shlex.quote(str(self.path))}"
        return f"continue it with `{command} --resume`, or end it as it is with `{command} --finish-now`"

    def weights_file(self) -> Path:
        """The weights of a finished run, or those of an unfinished one's newest checkpoint.

        Raises:
            UserError: it has no checkpoint yet.
        """
        if self.finished:
            return self.path / "model.safetensors"
        checkpoints = list_checkpoints(self.checkpoints)
        if not checkpoints:
            raise UserError(f"{self.path}: this run has not finished and has no checkpoint yet; {self.how_to_go_on}")
        return checkpoints[-1] / "model.safetensors"

    def step(self) -> int:
        """The step behind which its weights are.

        Raises:
            UserError: it has no checkpoint yet.
        """
        return int(self.summary["steps"]) if self.finished else checkpoint_step(self.weights_file().parent)

    @cached_property
    def recipe(self) -> Recipe:
        """The complete recipe, its budget in steps."""
        return Recipe.parse(read_yaml(self.path / "recipe.yaml"), str(self.path / "recipe.yaml"))

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The corpus's tokenizer."""
        return Tokenizer.load(self.path / "tokenizer.json")

    @property
    def environment(self) -> dict[str, Any]:
        """Machine, versions and settings of the training."""
        return self._json("environment.json")

    def replace_recipe(self, recipe: Recipe) -> None:
        """Write another complete recipe."""
        write_atomically(self.path / "recipe.yaml", recipe.to_yaml())
        self.recipe = recipe

    def replace_environment(self, environment: dict[str, Any]) -> None:
        """Write other settings of the training."""
        write_atomically(self.path / "environment.json", json.dumps(environment, indent=2) + "\n")

    @property
    def summary(self) -> dict[str, Any]:
        """The figures of the whole training; only a finished run has one."""
        return self._json("summary.json")

    def require_tokenizer_of(self, corpus: AnyCorpus) -> None:
        """Refuse a corpus whose ids mean something else.

        Raises:
            UserError: it was prepared with another tokenizer.
        """
        if corpus.tokenizer.to_string() != self.tokenizer.to_string():
            raise UserError(
                f"{corpus.path}: prepared with another tokenizer than {self.path}; prepare it with --tokenizer "
                f"{self.path / 'tokenizer.json'}"
            )

    def _json(self, name: str) -> dict[str, Any]:
        values: dict[str, Any] = json.loads((self.path / name).read_text(encoding="utf-8"))
        return values

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl."""
        path = self.path / "metrics.jsonl"
        if not path.is_file():
            return []
        lines = []
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(json.JSONDecodeError):  # a machine that lost its power leaves half a line
                lines.append(json.loads(line))
        return lines

    def append_metrics(self, line: dict[str, Any]) -> None:
        """Add a line to metrics.jsonl."""
        with open(self.path / "metrics.jsonl", "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def sync_metrics(self) -> None:
        """Bring metrics.jsonl to the disk."""
        if (self.path / "metrics.jsonl").is_file():
            sync(self.path / "metrics.jsonl")

    def truncate_metrics(self, step: int) -> None:
        """Forget the metrics behind a step, which a resumed training writes anew."""
        kept = [json.dumps(line) + "\n" for line in self.metrics() if line["step"] <= step]
        write_atomically(self.path / "metrics.jsonl", "".join(kept))

    def finish(self, module: PretrainingModel, summary: dict[str, Any], path: Path | None = None) -> None:
        """Write the weights, the model card and, last of all, the summary that marks the run as finished.

        `path` is where the run will stand, if it is moved yet.
        """
        partial = beside(self.path / "model.safetensors")
        save_tensors(module.state_dict(), partial)
        partial.replace(self.path / "model.safetensors")
        write_atomically(self.path / "README.md", model_card(path or self.path, self.recipe, self.environment, summary))
        write_atomically(self.path / "summary.json", json.dumps(summary, indent=2) + "\n")
        remove(self.checkpoints)  # three times the weights, and nothing left to resume

    def load(self, device: torch.device | None = None) -> PretrainingModel:
        """The trained model with its heads, in evaluation mode; an unfinished run's as its newest checkpoint has it.

        Raises:
            UserError: the run has no checkpoint yet, or its weights are damaged.
        """
        file = self.weights_file()
        module = PretrainingModel(self.recipe, self.tokenizer.size)
        try:
            module.load_state_dict(load_tensors(file))
        except RuntimeError as error:
            problem = str(error).splitlines()[0]
            raise UserError(f"{file}: cannot be loaded: {problem}") from None
        return module.to(device or torch.device("cpu")).eval()
