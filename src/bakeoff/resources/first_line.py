"""The first line of a training: its device, its precision, and how its layers attend, so that no slow way is silent."""

from collections.abc import Sequence

import torch

from bakeoff.display.wording import counted
from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.models.attention_needs import AttentionNeeds
from bakeoff.models.mixers.attention_heads import HEADS
from bakeoff.models.model import Model
from bakeoff.ops.attention import UNFUSED_KEYS
from bakeoff.ops.cpu.compiled_kernels import multiplies_matrices
from bakeoff.ops.cpu.matrix_products import Float32Products
from bakeoff.ops.document_attention import why_not
from bakeoff.resources.device import Placement, device_name


def first_line(
    model: Model,
    placement: Placement,
    processes: Processes = ALONE,
    generator: Model | None = None,
    prefixes: bool = False,
) -> str:
    """The device, the precision of products, and the attention of a model that is trained there; and by how many.

    Args:
        model: the model.
        placement: the device, and the precision.
        processes: the processes that train it together.
        generator: a model that is trained with it.
        prefixes: whether rows begin with a prefix that is read from both sides.
    """
    device, precision = placement
    each = "a part" if processes.shards else "a copy"
    together = "" if processes.alone else f", {processes.size:,} processes with {each} of the model each"
    threads = f", {counted(torch.get_num_threads(), 'thread')}" if device.type == "cpu" else ""
    products = f"{precision}, products in TF32" if (device.type, precision) == ("cuda", "float32") else precision
    where = f"{device} ({device_name(device)}){threads}{together}"
    used = attention_used(model, placement, prefixes)
    beside = "" if generator is None else attention_used(generator, placement)
    of_generator = f"; of the generator: {beside}" if generator is not None and beside != used else ""
    return f"{where}, {products}; {used}{of_generator}{_compiled(model)}"


def _compiled(model: Model) -> str:
    """What is made of the layers of a model before they are applied; empty: nothing."""
    if not any(stack.compiled for stack in model.stacks().values()):
        return ""
    replayed = any(stack.replayed for stack in model.stacks().values())
    return "; layers compiled" + (", and replayed as CUDA graphs" if replayed else "")


def attention_used(model: Model, placement: Placement, prefixes: bool = False) -> str:
    """How the layers of a model attend in training, and why not faster."""
    needs = [stack.attention_needs for stack in model.stacks().values()]
    needs = [each for each in needs if each.attends or each.source is not None]
    if not needs:
        return "no layer attends"
    device, precision = placement
    if device.type == "cpu":
        return _on_cpu(model, precision, needs)
    products = torch.bfloat16 if precision == "bfloat16" else torch.float32
    within = _within(model, [each for each in needs if each.attends], device, products, prefixes)
    to_source = next((each for each in needs if each.source is not None), None)
    if to_source is None or to_source.source is None:
        return within
    reason = f"of {to_source.source_mask_reason}" if to_source.source_mask_reason else None
    reason = reason or why_not(device, products, to_source.source)
    if within == FAST and reason is None:
        return f"{FAST}, to the source as well"
    with_mask = "FlashAttention" if reason is None else f"with a mask where it is padded, because {reason}"
    return f"{within}; to the source {with_mask}"


FAST = "FlashAttention, within documents and without masks"


def _within(
    model: Model, needs: Sequence[AttentionNeeds], device: torch.device, products: torch.dtype, prefixes: bool
) -> str:
    """How layers attend to their own rows, on a GPU."""
    if not needs:
        return "no layer attends to its own row"
    if model.config.two_streams:
        return "attention with masks, because of a second stream"
    if prefixes:
        return "attention with masks, because of prefixes that are read from both sides"
    static = [each.mask_reason for each in needs if each.mask_reason is not None]
    if static:
        rest = "; whole rows without padding need none" if static[0].startswith(HEADS) else ""
        return f"attention with masks, because of {static[0]}{rest}"
    reasons = [why for each in needs if (why := why_not(device, products, each.demands)) is not None]
    if reasons:
        return f"attention with masks, because {reasons[0]}; whole rows without padding need none"
    return FAST


def _on_cpu(model: Model, precision: str, needs: Sequence[AttentionNeeds]) -> str:
    masked = any(each.mask_reason is not None or each.source_mask_reason is not None for each in needs)
    in_steps = masked or any(stack.compiled for stack in model.stacks().values())
    if precision == "bfloat16" and not in_steps and multiplies_matrices(torch.empty(0, dtype=torch.bfloat16)):
        return "attention by one kernel forward and one backward"
    if model.config.dropout:
        return "attention by plain products, and in evaluation by torch's fused kernel"
    if precision == "bfloat16" or Float32Products.by_onednn:
        return f"attention by plain products up to {UNFUSED_KEYS} tokens, else by torch's fused kernel"
    return "attention by torch's fused kernel"
