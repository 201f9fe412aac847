"""Bakeoff pre-trains language models on your own text and measures which architecture and objective to use."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bakeoff.challenge.entry import babylm
    from bakeoff.checking import check
    from bakeoff.comparison.execution import compare
    from bakeoff.contrastive.config import ContrastConfig
    from bakeoff.contrastive.contrast import contrast
    from bakeoff.generation.config import GenerationConfig
    from bakeoff.generation.generate import generate
    from bakeoff.inspection.inspect import inspect
    from bakeoff.inspection.peek import peek
    from bakeoff.interop.export import export
    from bakeoff.interop.hugging_face.importing import import_model
    from bakeoff.models.context import BuildContext, Context
    from bakeoff.models.mixers.mixer import MixerBaseConfig
    from bakeoff.models.part import Part, State
    from bakeoff.optimization.budget import Budget
    from bakeoff.optimization.early_stopping import EarlyStopping
    from bakeoff.optimization.save_points import SavePoints
    from bakeoff.overview.listing import list_runs
    from bakeoff.overview.watch import watch
    from bakeoff.plugins import load_plugin
    from bakeoff.preparation.prepare import merge_shards, prepare, prepare_shard
    from bakeoff.preparation.prepare_pairs import prepare_pairs
    from bakeoff.preparation.ray_cluster import prepare_on_ray
    from bakeoff.recipe_files import load_recipe
    from bakeoff.runs.finding import find_checkpoint
    from bakeoff.runs.run import Run
    from bakeoff.tasks.checks.examine import check_task
    from bakeoff.tasks.datasets.named import dataset_task
    from bakeoff.tasks.distill import distill_classifier
    from bakeoff.tasks.evaluate import evaluate
    from bakeoff.tasks.finetune import finetune
    from bakeoff.tasks.finetune_config import FinetuneConfig
    from bakeoff.tasks.kinds.choice import ChoiceConfig
    from bakeoff.tasks.kinds.classification import ClassificationConfig
    from bakeoff.tasks.kinds.multilabel import MultilabelConfig
    from bakeoff.tasks.kinds.question_answering import QuestionAnsweringConfig
    from bakeoff.tasks.kinds.regression import RegressionConfig
    from bakeoff.tasks.kinds.sequence_to_sequence import SequenceToSequenceConfig
    from bakeoff.tasks.kinds.tagging import TaggingConfig
    from bakeoff.tasks.predict import predict
    from bakeoff.throughput.measure import speed
    from bakeoff.tracking.track import track
    from bakeoff.training.initial_weights import Start
    from bakeoff.training.pretrain import pretrain
    from bakeoff.tuning.tune import tune
    from bakeoff.using.loaded_run import LoadedRun, load
    from bakeoff.vectors.embed import embed
    from bakeoff.vectors.similarity import similarity
    from bakeoff.web.serve import serve

_HOMES = {
    "Budget": "bakeoff.optimization.budget",
    "BuildContext": "bakeoff.models.context",
    "ChoiceConfig": "bakeoff.tasks.kinds.choice",
    "ClassificationConfig": "bakeoff.tasks.kinds.classification",
    "Context": "bakeoff.models.context",
    "ContrastConfig": "bakeoff.contrastive.config",
    "EarlyStopping": "bakeoff.optimization.early_stopping",
    "FinetuneConfig": "bakeoff.tasks.finetune_config",
    "GenerationConfig": "bakeoff.generation.config",
    "LoadedRun": "bakeoff.using.loaded_run",
    "MixerBaseConfig": "bakeoff.models.mixers.mixer",
    "MultilabelConfig": "bakeoff.tasks.kinds.multilabel",
    "Part": "bakeoff.models.part",
    "QuestionAnsweringConfig": "bakeoff.tasks.kinds.question_answering",
    "RegressionConfig": "bakeoff.tasks.kinds.regression",
    "Run": "bakeoff.runs.run",
    "SavePoints": "bakeoff.optimization.save_points",
    "SequenceToSequenceConfig": "bakeoff.tasks.kinds.sequence_to_sequence",
    "Start": "bakeoff.training.initial_weights",
    "State": "bakeoff.models.part",
    "TaggingConfig": "bakeoff.tasks.kinds.tagging",
    "babylm": "bakeoff.challenge.entry",
    "check": "bakeoff.checking",
    "check_task": "bakeoff.tasks.checks.examine",
    "compare": "bakeoff.comparison.execution",
    "contrast": "bakeoff.contrastive.contrast",
    "dataset_task": "bakeoff.tasks.datasets.named",
    "distill_classifier": "bakeoff.tasks.distill",
    "embed": "bakeoff.vectors.embed",
    "evaluate": "bakeoff.tasks.evaluate",
    "export": "bakeoff.interop.export",
    "find_checkpoint": "bakeoff.runs.finding",
    "finetune": "bakeoff.tasks.finetune",
    "generate": "bakeoff.generation.generate",
    "import_model": "bakeoff.interop.hugging_face.importing",
    "inspect": "bakeoff.inspection.inspect",
    "load": "bakeoff.using.loaded_run",
    "list_runs": "bakeoff.overview.listing",
    "load_plugin": "bakeoff.plugins",
    "load_recipe": "bakeoff.recipe_files",
    "merge_shards": "bakeoff.preparation.prepare",
    "peek": "bakeoff.inspection.peek",
    "predict": "bakeoff.tasks.predict",
    "prepare": "bakeoff.preparation.prepare",
    "prepare_on_ray": "bakeoff.preparation.ray_cluster",
    "prepare_pairs": "bakeoff.preparation.prepare_pairs",
    "prepare_shard": "bakeoff.preparation.prepare",
    "pretrain": "bakeoff.training.pretrain",
    "serve": "bakeoff.web.serve",
    "similarity": "bakeoff.vectors.similarity",
    "speed": "bakeoff.throughput.measure",
    "track": "bakeoff.tracking.track",
    "tune": "bakeoff.tuning.tune",
    "watch": "bakeoff.overview.watch",
}

_FORMER_NAMES = {"merge_parts": "merge_shards", "prepare_part": "prepare_shard"}
"""Functions that programs may still call by an older name."""

__all__ = [
    "Budget",
    "BuildContext",
    "ChoiceConfig",
    "ClassificationConfig",
    "Context",
    "ContrastConfig",
    "EarlyStopping",
    "FinetuneConfig",
    "GenerationConfig",
    "LoadedRun",
    "MixerBaseConfig",
    "MultilabelConfig",
    "Part",
    "QuestionAnsweringConfig",
    "RegressionConfig",
    "Run",
    "SavePoints",
    "SequenceToSequenceConfig",
    "Start",
    "State",
    "TaggingConfig",
    "babylm",
    "check",
    "check_task",
    "compare",
    "contrast",
    "dataset_task",
    "distill_classifier",
    "embed",
    "evaluate",
    "export",
    "find_checkpoint",
    "finetune",
    "generate",
    "import_model",
    "inspect",
    "list_runs",
    "load",
    "load_plugin",
    "load_recipe",
    "merge_shards",
    "peek",
    "predict",
    "prepare",
    "prepare_on_ray",
    "prepare_pairs",
    "prepare_shard",
    "pretrain",
    "serve",
    "similarity",
    "speed",
    "track",
    "tune",
    "watch",
]


def __dir__() -> list[str]:
    """The public names, imported yet or not."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})


def __getattr__(name: str) -> Any:
    """Import a part of the public API when it is first used: `bakeoff --help` shall not wait for torch."""
    name = _FORMER_NAMES.get(name, name)
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'bakeoff' has no attribute '{name}'")
