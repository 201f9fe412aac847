"""What a fine-tuned run says in config.json, and its tensors."""

from typing import Any

from torch import Tensor

from bakeoff.interop.families.task_heads import CLASSES, TaskPart
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.kinds.regression import Regression
from bakeoff.tensors import load_tensors


def task_part(run: FinetunedRun) -> TaskPart:
    """What its head is."""
    return TaskPart(run.task.kind, run.task.head == "row", run.config.pooling)


def require_plain(run: FinetunedRun) -> str | None:
    """Why no class of transformers has its head; None: one may have."""
    if run.task.kind not in CLASSES:
        return f"no class of heads for {run.task.kind}"
    if run.config.layers != 1:
        return "its head reads several layers"
    if run.config.language_model:
        return "it has the head of a language model beside the task's"
    return None


def task_config(run: FinetunedRun) -> dict[str, Any]:
    """Names of the classes, and what is learned."""
    names = list(run.learned.classes)
    kind = run.task.kind
    if kind == "regression":
        return {"num_labels": 1, "id2label": {"0": "value"}, "label2id": {"value": 0}, "problem_type": "regression"}
    if not names:
        return {}
    found: dict[str, Any] = {
        "id2label": {str(number): name for number, name in enumerate(names)},
        "label2id": {name: number for number, name in enumerate(names)},
    }
    if kind in ("classification", "multilabel"):
        found["problem_type"] = "single_label_classification" if kind == "classification" else PROBLEM
    return found


PROBLEM = "multi_label_classification"


def task_tensors(run: FinetunedRun) -> dict[str, Tensor]:
    """Its tensors; a regression answers on the scale of its labels, which the last map takes over."""
    tensors = load_tensors(run.path / "model.safetensors")
    if isinstance(run.learned, Regression):
        tensors["output.weight"] = tensors["output.weight"] * run.learned.deviation
        tensors["output.bias"] = tensors["output.bias"] * run.learned.deviation + run.learned.mean
    return tensors
