"""A refusal of trainings that no device of this size can hold, before anything is built."""

import os

import torch

from bakeoff.errors import UserError
from bakeoff.recipe import Recipe
from bakeoff.resources.memory_need import BYTES_PER_NUMBER

BYTES_OF_AN_ID = 8
"""Bytes of a token id in a batch."""


def require_memory(recipe: Recipe, parameters: int, device: torch.device) -> None:
    """Refuse a training whose lower bound of memory exceeds the device's; `memory_need` counts the real need.

    Args:
        recipe: the recipe.
        parameters: number of parameters of its model and heads.
        device: the device of the training.

    Raises:
        UserError: weights and gradients, or these with the rows of a batch, exceed the device's memory.
    """
    limit = memory_of(device)
    if limit is None:
        return
    model = 2 * BYTES_PER_NUMBER * parameters
    if model > limit:
        raise UserError(
            f"{recipe.name}: weights and gradients of {parameters:,} parameters take {_gigabytes(model)}, and "
            f"{device} has {_gigabytes(limit)}; give the model smaller sizes"
        )
    for stage in recipe.stages():
        length, training = stage.input.length, stage.training
        rows, width = training.rows_at_once(length), recipe.model.stack.width
        together = training.batch if isinstance(training.batch, int) else rows
        batch = rows * length * width * BYTES_PER_NUMBER + together * length * BYTES_OF_AN_ID
        if model + batch > limit:
            raise UserError(
                f"{recipe.name}: a batch of {together:,} rows of {length:,} tokens takes {_gigabytes(batch)} at least, "
                f"and {device} has {_gigabytes(limit)}; give a smaller training.batch or training.micro_batch"
            )


def memory_of(device: torch.device) -> int | None:
    """The memory of a device in bytes; None: unknown."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    if device.type == "cpu" and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"
