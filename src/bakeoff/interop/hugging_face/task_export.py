"""The config.json and the tensors of an exported fine-tuned run."""

from typing import Any

import torch
from torch import Tensor

from bakeoff.interop.families.task_heads import CLASSES, HeadForm, TaskHead
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.kinds.regression import Regression
from bakeoff.tensors import load_tensors

PROBLEMS = {
    "classification": "single_label_classification",
    "multilabel": "multi_label_classification",
    "regression": "regression",
}
"""transformers' `problem_type` by kind of task."""
EXACT = 1e-9
"""Largest allowed error of a bias that a norm has taken over, as a share of the largest bias."""


def head_form(run: FinetunedRun) -> HeadForm:
    """The form of the run's head."""
    config = run.config
    return HeadForm(
        run.task.kind, run.task.head == "row", config.pooling, config.layers, config.pooler, config.transform
    )


def require_plain(run: FinetunedRun) -> str | None:
    """The reason why no class of transformers has such a head; None: a class may have it."""
    if run.task.kind not in CLASSES:
        return f"no class of heads for {run.task.kind}"
    if run.config.layers != 1:
        return "its head reads several layers"
    if run.config.language_model:
        return "it has the head of a language model beside the task's"
    return None


def require_bias(run: FinetunedRun, head: TaskHead) -> str | None:
    """The reason why a class without a bias would compute other logits; None: it does not, or has a bias."""
    if not head.bias_in:
        return None
    if run.tokenizer.pad == run.tokenizer.separator:
        return "its padding is a token of texts, behind which the class would not find the last one"
    if without_bias(load_tensors(run.path / "model.safetensors"), head.bias_in) is None:
        return "the class has no bias, and the norm before it cannot take it over"
    return None


def task_config(run: FinetunedRun) -> dict[str, Any]:
    """The keys `id2label`, `label2id` and `problem_type`, as far as the kind of task has them."""
    names = list(run.learned.classes)
    kind = run.task.kind
    if kind == "regression":
        names = ["value"]
    if not names:
        return {}
    found: dict[str, Any] = {
        "id2label": dict(enumerate(names)),
        "label2id": {name: number for number, name in enumerate(names)},
    }
    return found | ({"problem_type": PROBLEMS[kind]} if kind in PROBLEMS else {})


def task_tensors(run: FinetunedRun, head: TaskHead) -> dict[str, Tensor]:
    """The run's tensors; the last linear layer of a regression takes over the scale of the labels."""
    tensors = load_tensors(run.path / "model.safetensors")
    learned = run.learned
    if isinstance(learned, Regression) and (learned.deviation, learned.mean) != (1.0, 0.0):
        tensors["output.weight"] = tensors["output.weight"] * learned.deviation
        tensors["output.bias"] = tensors["output.bias"] * learned.deviation + learned.mean
    if head.bias_in:
        found = without_bias(tensors, head.bias_in)
        assert found is not None, "`require_plain` has looked"
        tensors = found
    return tensors


def without_bias(tensors: dict[str, Tensor], norm: str) -> dict[str, Tensor] | None:
    """The tensors with the bias b of the last linear layer W moved into the norm before it: W (h + W^+ b) = W h + b.

    W^+ b is added to the bias of `norm`, whose output nothing but the last layer reads.

    Returns:
        None if W W^+ b is not b, as with more outputs than the model's width.
    """
    weight, bias = tensors["output.weight"].double(), tensors["output.bias"].double()
    if not bool(bias.any()):
        return tensors
    more = torch.linalg.pinv(weight) @ bias
    if float((weight @ more - bias).abs().max()) > EXACT * float(bias.abs().max()):
        return None
    changed = (tensors[norm].double() + more).to(tensors[norm].dtype)
    return tensors | {norm: changed, "output.bias": torch.zeros_like(tensors["output.bias"])}
