"""Models that are used, and no more trained: the precision and the layout of their weights."""

from typing import TypeVar

import torch
from torch import nn

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.ops.cpu.matrix_products import Float32Products, laid_out_for_few_rows
from bakeoff.ops.cpu.packed_linear import pack_linear_layers
from bakeoff.resources.device import Placement

Module = TypeVar("Module", bound=nn.Module)


def for_inference(module: Module, placement: Placement) -> Module:
    """The module with its weights as its computations without gradients read them most quickly.

    In bfloat16 the weights of linear layers are rounded once, and not in every call of autocast, which gives the same
    numbers; on a CPU they are packed, too. In float32 a CPU has the weights of a model that generates column by column.
    The weights that a run's files hold are no more in the module, or lie otherwise.

    Args:
        module: a model with or without heads, on the device of the placement, in evaluation mode.
        placement: the device, and the precision of its products.
    """
    module.requires_grad_(False)
    model = module if isinstance(module, PretrainingModel) else None
    on_cpu = placement.device.type == "cpu"
    if placement.precision == "bfloat16":
        for part in module.modules():
            if isinstance(part, nn.Linear):
                part.to(torch.bfloat16)
        if on_cpu:
            pack_linear_layers(module)
        if model is not None:
            model.scoring_weight = model.model.embedding.weight.bfloat16()
    elif model is not None and model.writing is not None and on_cpu and not Float32Products.by_onednn:
        for part in module.modules():
            if isinstance(part, nn.Linear):
                part.weight.data = laid_out_for_few_rows(part.weight.data)
        model.scoring_weight = laid_out_for_few_rows(model.model.embedding.weight.data)
    return module
