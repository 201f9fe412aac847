"""What a fine-tuned run says in config.json, and its tensors."""

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
"""transformers' `problem_type` of what is learned for rows."""
EXACT = 1e-9
"""What is left of a bias that another tensor has taken over, as a share of it."""


def head_form(run: FinetunedRun) -> HeadForm:
    """What its head is."""
    return HeadForm(run.task.kind, run.task.head == "row", run.config.pooling, run.config.layers, run.config.pooler)


def require_plain(run: FinetunedRun) -> str | None:
    """Why no class of transformers has its head; None: one may have."""
    if run.task.kind not in CLASSES:
        return f"no class of heads for {run.task.kind}"
    if run.config.layers != 1:
        return "its head reads several layers"
    if run.config.language_model:
        return "it has the head of a language model beside the task's"
    return None


def require_bias(run: FinetunedRun, head: TaskHead) -> str | None:
    """Why a class without a bias does not give the run's numbers; None: it does, or has a bias."""
    if not head.bias_in:
        return None
    if run.tokenizer.pad == run.tokenizer.separator:
        return "its padding is a token of texts, behind which the class would not find the last one"
    if without_bias(load_tensors(run.path / "model.safetensors"), head.bias_in) is None:
        return "the class has no bias, and the norm before it cannot take it over"
    return None


def task_config(run: FinetunedRun) -> dict[str, Any]:
    """Names of the classes, and what is learned."""
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
    """Its tensors; a regression answers on the scale of its labels, which the last map takes over."""
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
    """The tensors with a bias b of the last map W that is zero: W (h + W^+ b) = W h + b.

    The norm's bias becomes so much more; the map reads what the norm gives, and nothing else does.

    Returns:
        None where there is no such sum, as for more outputs than the model is wide.
    """
    weight, bias = tensors["output.weight"].double(), tensors["output.bias"].double()
    if not bool(bias.any()):
        return tensors
    more = torch.linalg.pinv(weight) @ bias
    if float((weight @ more - bias).abs().max()) > EXACT * float(bias.abs().max()):
        return None
    changed = (tensors[norm].double() + more).to(tensors[norm].dtype)
    return tensors | {norm: changed, "output.bias": torch.zeros_like(tensors["output.bias"])}
