"""How many rows go through a model at once: as many as fit into the memory of a device, by count."""

import math
from collections.abc import Sequence
from functools import partial

import torch

from bakeoff.batching.token_batches import TokenBatch
from bakeoff.errors import UserError
from bakeoff.machine.capacity import free_memory
from bakeoff.recipe import Recipe
from bakeoff.resources.enough_memory import memory_of
from bakeoff.resources.memory_need import BYTES_PER_NUMBER, MemoryCount, largest

SHARE = 0.9
"""The share of a device's memory that counted memory may take; the rest is for temporary memory of operations, for
memory that is cut into pieces, and for the device's own libraries."""

GPUS = (16, 24, 80, 141)
"""Memory of usual GPUs in GB: T4 and V100, RTX 4090 and L4, A100 and H100, H200."""

MOST = 65_536
"""The largest number of rows at once that is looked for."""

Size = int | TokenBatch


def rows_that_fit(recipe: Recipe, vocabulary: int) -> dict[int, int]:
    """The largest number of full rows at once on each of the usual `GPUS`, in every stage, in bfloat16; 0: none."""
    stages = recipe.changed({"training.micro_batch": "auto"}).stages()
    counts = [MemoryCount(each, vocabulary, torch.device("cuda"), "bfloat16") for each in stages]
    return {size: min(count.most_rows(SHARE * size * 1e9, MOST) for count in counts) for size in GPUS}


def fitting_micro_batch(
    recipe: Recipe, vocabulary: int, device: torch.device, processes: int = 1, teachers: Sequence[Recipe] = ()
) -> Size | None:
    """The largest `micro_batch` with which each stage of a training fits, in equal parts of the batch.

    None: the whole batch fits, or the rows of a batch depend on each other, or the device's memory is not known.

    Args:
        recipe: the recipe.
        vocabulary: the number of tokens.
        device: the device of each process.
        processes: the number of processes that share the parts of a batch evenly.
        teachers: the recipes of the models that read the same rows before the model does, without a backward pass.

    Raises:
        UserError: a single row does not fit.
    """
    limit = memory_to_fit(device)
    if limit is None:
        return None
    sizes: list[Size] = []
    for stage in recipe.stages():
        whole, length = stage.training.batch, stage.input.length
        most = whole if isinstance(whole, int) else max(1, whole.tokens // length)
        count = MemoryCount(stage, vocabulary, device)
        if not count.module.model.independent_rows:
            return None
        readers = [MemoryCount(_reading(each, length), vocabulary, device) for each in teachers]
        rows = largest(most, partial(_fits, count, readers, limit))
        if rows == 0:
            need = _needed(count, readers, 1)
            raise UserError(
                f"{recipe.name}: a single row of {length:,} tokens takes {need / 1e9:,.1f} GB, and {device} has "
                f"{limit / SHARE / 1e9:,.1f} GB; try training.activation_checkpointing=true, a smaller input.length "
                "or model"
            )
        if rows < most or processes > 1:
            sizes.append(equal_parts(whole, math.ceil(most / rows), processes))
    return min(sizes, key=_number, default=None)


def _fits(count: MemoryCount, readers: Sequence[MemoryCount], limit: float, rows: int) -> bool:
    return _needed(count, readers, rows) <= limit


def _needed(count: MemoryCount, readers: Sequence[MemoryCount], rows: int) -> int:
    """Bytes of a training with `rows` rows at once and of its teachers, which read the rows first, one after another.

    Of what a teacher reads, its states at the targets stay until the student's backward pass.
    """
    need, length = count.need(rows), count.module.row_lengths[1]
    targets = rows * length * sum(count.module.targets_per_token().values())
    weights = sum(each.module.parameter_count() for each in readers)
    states = round(targets * sum(each.recipe.model.stack.output_width for each in readers))
    beside = BYTES_PER_NUMBER * (weights + states)
    without = need.total - max(need.activations, need.update)
    return beside + max([need.total, *(without + each.reading(rows) for each in readers)])


def _reading(teacher: Recipe, length: int) -> Recipe:
    """The recipe of a teacher with a student's rows, without what was said of the rows that it learned from."""
    rows = {"curriculum": [], "batch": 1, "micro_batch": None, "first_batch": 1.0}
    return teacher.changed({"input.length": length, **{f"training.{key}": value for key, value in rows.items()}})


def halved(size: Size) -> Size | None:
    """Half a micro-batch; None: it cannot be divided."""
    number = _number(size)
    return None if number == 1 else _of(size, -(-number // 2))


def plain_size(size: Size | None) -> int | dict[str, int] | None:
    """A size as a file has it."""
    return size.model_dump() if isinstance(size, TokenBatch) else size


def memory_to_fit(device: torch.device) -> float | None:
    """The bytes that counted memory may take: a share of a GPU's, or of what is free on a CPU; None: not known."""
    limit = memory_of(device) if device.type == "cuda" else free_memory() if device.type == "cpu" else None
    return None if limit is None else SHARE * limit


def equal_parts(batch: Size, least: int, processes: int) -> Size:
    """The size of the fewest equal parts of a batch, at least so many, of which all processes have as many."""
    return _of(batch, math.ceil(_number(batch) / (math.ceil(least / processes) * processes)))


def _of(like: Size, number: int) -> Size:
    return number if isinstance(like, int) else like.model_copy(update={"tokens": number})


def _number(size: Size) -> int:
    return size if isinstance(size, int) else size.tokens
