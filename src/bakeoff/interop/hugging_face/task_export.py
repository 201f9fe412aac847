"""The config.json and the tensors of an exported fine-tuned run."""

from typing import Any

import torch
from torch import Tensor

from bakeoff.interop.families.task_heads import SEQUENCE, TOKENS, HeadForm, TaskHead
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tensors import load_tensors

NAMED = (SEQUENCE, TOKENS)
"""The classes whose outputs have names in config.json, and a number that follows from these."""
EXACT = 1e-9
"""Largest allowed error of a bias that a norm has taken over, as a share of the largest bias."""


def head_form(run: FinetunedRun) -> HeadForm:
    """The form of the head of a run for which `require_plain` has no reason."""
    config, exported = run.config, run.task.exported
    assert exported is not None
    of_rows = run.task.head == "row"
    return HeadForm(exported.ending, of_rows, config.pooling, config.layers, config.pooler, config.transform)


def require_plain(run: FinetunedRun) -> str | None:
    """The reason why no class of transformers has such a head; None: a class may have it."""
    if run.task.exported is None:
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
        return "its padding is a token of texts, after which the class would not find the last one"
    if without_bias(load_tensors(run.path / "model.safetensors"), head.bias_in) is None:
        return "the class has no bias, and the norm before it cannot take it over"
    return None


def remarks_of_labels(run: FinetunedRun) -> list[str]:
    """Remarks on what the pipelines of transformers do otherwise with a run that answers with labels or numbers."""
    exported, truncate = run.task.exported, run.config.truncate
    remarks = [f"of texts that are too long pipelines read the beginning, and not {truncate}"]
    return [*(remarks if truncate != "head" else []), *([exported.remark] if exported and exported.remark else [])]


def task_config(run: FinetunedRun) -> dict[str, Any]:
    """The keys `id2label`, `label2id` and `problem_type`, as far as the class and the kind of task have them."""
    exported = run.task.exported
    if exported is None or exported.ending not in NAMED:
        return {}
    names = run.learned.output_names
    labels: dict[str, Any] = {
        "id2label": dict(enumerate(names)),
        "label2id": {name: number for number, name in enumerate(names)},
    }
    return labels | ({} if exported.problem_type is None else {"problem_type": exported.problem_type})


def task_tensors(run: FinetunedRun, head: TaskHead) -> dict[str, Tensor]:
    """The run's tensors; the last linear layer takes over the scale of the labels."""
    tensors = on_scale(load_tensors(run.path / "model.safetensors"), run.learned.output_scale)
    if head.bias_in:
        unbiased = without_bias(tensors, head.bias_in)
        assert unbiased is not None, "`require_plain` has looked"
        tensors = unbiased
    return tensors


def on_scale(tensors: dict[str, Tensor], scale: tuple[float, float]) -> dict[str, Tensor]:
    """The tensors of a head with the factor and the shift of `Task.output_scale` in its last linear layer."""
    factor, shift = scale
    if scale == (1.0, 0.0):
        return tensors
    weight, bias = tensors["output.weight"] * factor, tensors["output.bias"] * factor + shift
    return tensors | {"output.weight": weight, "output.bias": bias}


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
