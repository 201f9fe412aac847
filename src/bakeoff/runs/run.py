"""The directory of a run, with everything to resume, reproduce, inspect and use a training."""

import json
import shlex
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from bakeoff import checksums
from bakeoff.corpus.mixture import AnyCorpus
from bakeoff.durable import beside, remove, write_atomically
from bakeoff.errors import WHERE_RUNS_ARE, UserError, path_of
from bakeoff.json_files import read_json
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.learner.without_memory import filled, require_sizes
from bakeoff.plugins import require_plugins
from bakeoff.recipe import Recipe
from bakeoff.runs.beginning import begin, complete
from bakeoff.runs.checkpoint import checkpoint_step, list_checkpoints, run_folder
from bakeoff.runs.metrics_file import METRICS, MetricsFile
from bakeoff.runs.model_card import model_card
from bakeoff.runs.records import PretrainingEnvironment, read_metrics, read_summary
from bakeoff.tensors import rows_of, save_tensors
from bakeoff.tokenizer.identity import same_ids
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.unfinished import SEARCH, no_such_run, search_of, was_dropped
from bakeoff.yaml_files import read_yaml

_LAST = ("model.safetensors", "README.md", METRICS)
"""Files that are final when a run finishes."""
_FIRST = ("tokenizer.json", "environment.json", "recipe.yaml")
"""Files that make a directory a run, in the order in which they are written."""


class Run:
    """The directory of a run, finished or not, or one of its checkpoints, whose weights are then meant.

    It has recipe.yaml (complete), tokenizer.json, environment.json, metrics.jsonl and checkpoints/, and a finished run
    has model.safetensors, summary.json and README.md. `path` is as it was given, `home` the directory of the run.
    """

    def __init__(self, path: str | Path) -> None:
        """The run at a path, finished or not, pre-trained or fine-tuned; or RUN/checkpoints/step-N.

        Raises:
            UserError: there is no run at the path.
        """
        self.path = path = path_of(path)
        if not path.exists():
            raise no_such_run(path)
        self.home = home = run_folder(path)
        if not (home / "recipe.yaml").is_file():
            checksums.require_present(home / "recipe.yaml")
            of_transformers = (home / "config.json").is_file()
            advice = f"`bakeoff import {path} --out RUN` makes one of it" if of_transformers else WHERE_RUNS_ARE
            raise UserError(f"{path}: this is not a run: it has no recipe.yaml; {advice}")
        if (path / SEARCH).is_file():
            raise UserError(f"{path}: this is not a run but a search; its runs are in {path / 'trials'}")
        self.checkpoints = home / "checkpoints"
        self.snapshots = home / "snapshots"  # weights to be averaged
        self.saved = home / "saved"  # runs with the weights at some points
        self.metrics_file = MetricsFile(home, self.checkpoints)

    def __repr__(self) -> str:
        """The run in one line, as far as its directory can be read."""
        try:
            name = self.recipe.name
            if (self.path / "results.json").is_file():
                return f"Run({str(self.path)!r}): {name}, fine-tuned"
            if not self.finished:
                checkpoints = list_checkpoints(self.checkpoints)
                step = checkpoint_step(checkpoints[-1]) if checkpoints else 0
                return f"Run({str(self.path)!r}): {name}, unfinished, step {step:,} of {self.planned_steps:,}"
            summary = self.summary
            if summary["validation"] is None:
                return f"Run({str(self.path)!r}): {name}, {summary['parameters']:,} parameters, imported"
            loss = f"held-out loss {summary['validation']['loss']:.4f}"
            size = f"{summary['parameters']:,} parameters, {summary['steps']:,} steps"
        except (UserError, OSError, ValueError, KeyError, TypeError):
            return f"Run({str(self.path)!r})"
        return f"Run({str(self.path)!r}): {name}, {size}, {loss}"

    @classmethod
    def open(cls, path: str | Path) -> Self:
        """The pre-trained run at a path, finished or not.

        Raises:
            UserError: there is no run at the path, or a fine-tuned one.
        """
        run = cls(path)
        run._require_pretrained()
        return run

    @classmethod
    def open_finished(cls, path: str | Path) -> Self:
        """The finished pre-trained run at a path, or the checkpoint that the path names.

        Raises:
            UserError: there is no run at the path, or it is unfinished or fine-tuned.
        """
        run = cls.open(path)
        if not run.finished and run.home == run.path:
            raise UserError(f"{path}: this run has not finished; {run.how_to_go_on}")
        return run

    @classmethod
    def open_trained(cls, path: str | Path) -> Self:
        """The pre-trained run at a path, with weights: finished, or with a checkpoint.

        Raises:
            UserError: there is no run at the path, or it has no checkpoint yet or is fine-tuned.
        """
        run = cls.open(path)
        run.weights_file()
        return run

    @classmethod
    def create(cls, path: str | Path, recipe: Recipe, tokenizer: Tokenizer, environment: dict[str, Any]) -> Self:
        """Make the directory of a new run.

        Raises:
            UserError: the path holds something, or the directory cannot be made.
        """
        path = Path(path)
        texts = (tokenizer.to_string(), json.dumps(environment, indent=2) + "\n", recipe.to_yaml())
        begin(path, dict(zip(_FIRST, texts, strict=True)))
        return cls(path)

    def complete_beginning(self) -> None:
        """Do what is left of `create` where a process was killed in it."""
        complete(self.path, [*_FIRST])

    @property
    def finished(self) -> bool:
        """Whether the training reached its end.

        Raises:
            Damaged: it did, and summary.json is lost; the finished weights are not to be trained again.
        """
        if (self.path / "summary.json").is_file():
            return True
        checksums.require_present(self.path / "summary.json")
        return False

    @property
    def planned_steps(self) -> int:
        """Number of steps of the whole training."""
        return self.recipe.training.budget.steps or 0

    @property
    def how_to_go_on(self) -> str:
        """Advice for a stopped training: the commands that continue or end it.

        That of a search goes on with its trials; those that it has dropped at its end are of no further use.
        """
        if (search := search_of(self.home)) is not None:
            dropped = was_dropped(self.home)
            does = "has dropped it, and kept no weights of it" if dropped else "goes on with it, by the same command"
            return f"its search, {search}, {does}"
        command = f"bakeoff pretrain --out {shlex.quote(str(self.home))}"
        return f"continue it with `{command} --resume`, or end it as it is with `{command} --finish-now`"

    def what_is_kept(self, given: str = "with more space, ") -> str:
        """Advice after a failure: what the run holds, and the commands that continue or end it, where it is `given`."""
        if self.finished:
            return "the run itself is whole"
        checkpoints = list_checkpoints(self.checkpoints)
        if not checkpoints:
            return "no checkpoint was kept"
        step = checkpoint_step(checkpoints[-1])
        return f"the checkpoint of step {step:,} is kept: {given}{self.how_to_go_on}"

    def _require_pretrained(self) -> None:
        if (self.path / "labels.json").is_file():
            raise UserError(
                f"{self.path}: a fine-tuned run, which `bakeoff predict` uses; give the run that it came from"
            )

    def weights_file(self) -> Path:
        """The file of a finished run's weights, or of the newest checkpoint's weights.

        Raises:
            UserError: the run has no checkpoint yet, or is fine-tuned.
        """
        self._require_pretrained()
        if self.finished or self.home != self.path:
            return self.path / "model.safetensors"
        checkpoints = list_checkpoints(self.checkpoints)
        if not checkpoints:
            raise UserError(f"{self.path}: this run has not finished and has no checkpoint yet; {self.how_to_go_on}")
        return checkpoints[-1] / "model.safetensors"

    def step(self) -> int:
        """Number of steps that `weights_file` was trained for.

        Raises:
            UserError: the run has no checkpoint yet.
        """
        return int(self.summary["steps"]) if self.finished else checkpoint_step(self.weights_file().parent)

    @cached_property
    def recipe(self) -> Recipe:
        """The complete recipe, with its budget in steps."""
        return self._parsed(read_yaml(self.home / "recipe.yaml"))

    @property
    def written_recipe(self) -> dict[str, Any]:
        """The content of recipe.yaml, checked, but without defaults for keys that recipes got later."""
        values = read_yaml(self.home / "recipe.yaml")
        self._parsed(values)
        return values

    def _parsed(self, values: Any) -> Recipe:
        try:
            return Recipe.parse(values, str(self.home / "recipe.yaml"))
        except UserError:
            require_plugins(self.path, self.environment["versions"])
            raise

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer of the training's corpus."""
        rows = rows_of(self.path / "model.safetensors", "model.embedding.tokens.weight")
        return Tokenizer.load(self.home / "tokenizer.json", rows)

    @property
    def environment(self) -> dict[str, Any]:
        """Machine, versions and settings of the training; see `PretrainingEnvironment`."""
        path = self.home / "environment.json"
        return PretrainingEnvironment.check(read_json(path), str(path))

    @cached_property
    def imported(self) -> bool:
        """Whether the model was imported; read once, for a run that is in memory may lose its directory."""
        return self.environment.get("imported") is not None

    @cached_property
    def vectors(self) -> dict[str, Any] | None:
        """What environment.json says of the vectors that `contrast` has taught, read once; None: it has taught none."""
        return self.environment.get("vectors")

    def replace_recipe(self, recipe: Recipe) -> None:
        """Replace recipe.yaml by another complete recipe."""
        checksums.write(self.home / "recipe.yaml", recipe.to_yaml())
        self.recipe = recipe

    def replace_environment(self, environment: dict[str, Any]) -> None:
        """Replace environment.json."""
        checksums.write(self.home / "environment.json", json.dumps(environment, indent=2) + "\n")

    @property
    def summary(self) -> dict[str, Any]:
        """The figures of the whole training, see `Summary`; only a finished run has them."""
        return read_summary(self.path / "summary.json")

    def require_tokenizer_of(self, corpus: AnyCorpus) -> None:
        """Refuse a corpus with other token ids.

        Raises:
            UserError: the corpus was prepared with another tokenizer.
        """
        if not same_ids(corpus.tokenizer, self.tokenizer):
            raise UserError(
                f"{corpus.path}: prepared with another tokenizer than {self.path}; prepare it with --tokenizer "
                f"{shlex.quote(str(self.home / 'tokenizer.json'))}"
            )

    def metrics(self) -> list[dict[str, Any]]:
        """The lines of metrics.jsonl; see `MetricsLine` and `ValidationLine`."""
        return read_metrics(self.home / METRICS, growing=not self.finished)

    def verify(self) -> None:
        """Compare the files of an unfinished run, snapshots included, with their checksums.

        Damage to a file that is needed only at the end of the training is thus reported before the training goes on.

        Raises:
            Damaged: a file differs from what was written, or is absent.
        """
        for folder in (self.path, self.snapshots):
            checksums.verify_all(folder)

    def finish(self, weights: Mapping[str, Tensor], summary: dict[str, Any], path: Path | None = None) -> None:
        """Write the weights, the model card and, last, the summary, which marks the run as finished.

        `path` is the final path of the run, if it will be moved; None: it will not.
        """
        partial = beside(self.path / "model.safetensors")
        save_tensors(dict(weights), partial)
        checksums.forget(self.path, [*_LAST, "summary.json"])  # left by an attempt that was killed in this method
        partial.replace(self.path / "model.safetensors")
        write_atomically(self.path / "README.md", model_card(path or self.path, self.recipe, self.environment, summary))
        checksums.record(self.path, [name for name in _LAST if (self.path / name).is_file()])
        checksums.write(self.path / "summary.json", json.dumps(summary, indent=2) + "\n")
        remove(self.checkpoints)  # three times the size of the weights, and no longer needed

    def require_sizes(self) -> None:
        """Refuse a recipe whose sizes the weights have not, before anything takes memory for them.

        Raises:
            UserError: the run has no checkpoint yet, or its weights are damaged or another recipe's.
        """
        require_sizes(self._build, self.weights_file())

    def _build(self) -> PretrainingModel:
        return PretrainingModel(self.recipe, self.tokenizer.size)

    def load(self, device: torch.device | None = None) -> PretrainingModel:
        """The trained model with its heads, in evaluation mode, from `weights_file`; `device` None: on the CPU.

        Raises:
            UserError: the run has no checkpoint yet, or its weights are damaged.
        """
        return filled(self._build, self.weights_file()).to(device or torch.device("cpu")).eval()
