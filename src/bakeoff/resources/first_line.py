"""The first line of a training: its device, its precision, and how its layers attend, so that no slow way is silent."""

import torch

from bakeoff.display.wording import counted
from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.models.model import Model
from bakeoff.ops.attention import UNFUSED_KEYS
from bakeoff.ops.cpu.matrix_products import Float32Products
from bakeoff.ops.document_attention import why_not
from bakeoff.resources.device import Placement, device_name


def first_line(model: Model, placement: Placement, processes: Processes = ALONE) -> str:
    """The device, the precision of products, and the attention of a model that is trained there; and by how many."""
    device, precision = placement
    each = "a part" if processes.shards else "a copy"
    together = "" if processes.alone else f", {processes.size:,} processes with {each} of the model each"
    threads = f", {counted(torch.get_num_threads(), 'thread')}" if device.type == "cpu" else ""
    products = f"{precision}, products in TF32" if (device.type, precision) == ("cuda", "float32") else precision
    where = f"{device} ({device_name(device)}){threads}{together}"
    return f"{where}, {products}; {attention_used(model, placement)}"


def attention_used(model: Model, placement: Placement) -> str:
    """How the layers of a model attend in training, and why not faster."""
    needs = [stack.attention_needs for stack in model.stacks().values() if stack.attention_needs.attends]
    if not needs:
        return "no layer attends"
    device, precision = placement
    if device.type == "cpu":
        return _on_cpu(model, precision)
    if model.config.two_streams:
        return "attention with masks, because of a second stream"
    products = torch.bfloat16 if precision == "bfloat16" else torch.float32
    static = [f"of {each.mask_reason}" for each in needs if each.mask_reason is not None]
    reasons = static or [why for each in needs if (why := why_not(device, products, each.demands)) is not None]
    if reasons:
        return f"attention with masks, because {reasons[0]}; whole rows without padding need none"
    return "FlashAttention, within documents and without masks"


def _on_cpu(model: Model, precision: str) -> str:
    if model.config.dropout:
        return "attention by plain products, and in evaluation by torch's fused kernel"
    if precision == "bfloat16" or Float32Products.by_onednn:
        return f"attention by plain products up to {UNFUSED_KEYS} tokens, else by torch's fused kernel"
    return "attention by torch's fused kernel"
