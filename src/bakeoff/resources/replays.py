"""Where the layers of a recipe may be replayed as CUDA graphs, which need the same shapes in every step."""

import torch

from bakeoff.distributed.processes import ALONE, Processes
from bakeoff.errors import UserError
from bakeoff.recipe import Recipe


def why_no_replays(recipe: Recipe, device: torch.device, processes: Processes = ALONE) -> str | None:
    """The reason why layers cannot be replayed, with what to do about it; None: they can."""
    training = recipe.training
    reasons = {
        f"CUDA graphs are for GPUs of CUDA, and the device is {device}": device.type != "cuda",
        "with --shard, weights that are gathered anew have no lasting place; leave either out": processes.shards,
        "activation checkpointing applies layers anew in the backward pass; set training.activation_checkpointing to "
        "false": training.activation_checkpointing,
        "a graph that ran out of memory cannot be recorded anew; give training.micro_batch a number": (
            training.micro_batch == "auto"
        ),
        "the rows of a batch have many lengths; that needs training.batch in rows": not isinstance(training.batch, int),
        "batches that grow have micro-batches of many sizes; set training.first_batch to 1": training.first_batch != 1,
        "rows of a curriculum have many lengths; set training.curriculum to []": bool(training.curriculum),
        f"rows of the format {recipe.input.format} have many lengths; that needs the format blocks": (
            recipe.input.format != "blocks"
        ),
        "rows that continue each other have memories that grow; set input.recurrent to false": recipe.input.continues,
        "rows hold documents in changing numbers; set input.isolate to false": recipe.input.isolates,
        **{
            f"the objective {each.kind} makes rows of many lengths": each.rewrites or each.scoring == "query"
            for each in recipe.objective
        },
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def require_replays(recipe: Recipe, device: torch.device, processes: Processes = ALONE) -> None:
    """Refuse a recipe whose layers are to be replayed, and cannot be.

    Raises:
        UserError: they cannot.
    """
    if recipe.training.compile == "graphs" and (reason := why_no_replays(recipe, device, processes)) is not None:
        raise UserError(f"{recipe.name}: training.compile=graphs: {reason}")
