"""One optimizer step over the micro-batches of a batch."""

import math
from collections.abc import Sequence

import torch

from bakeoff.distributed.shards import whole_tensor
from bakeoff.models.replays import ReplayedPasses
from bakeoff.randomness.seeding import seed_torch
from bakeoff.trainer.unit import SPARE, M, Unit

NORM = "gradient_norm"
"""The name of the gradient's norm among the figures of a step."""


def step_seed(seed: int, step: int, micro_batch: int) -> int:
    """The seed of the model's randomness in one micro-batch of one step; no state of a generator has to be saved."""
    return (
        seed * 0x9E3779B97F4A7C15 + step * 0xBF58476D1CE4E5B9 + micro_batch * 0x94D049BB133111EB
    ) & 0x7FFFFFFFFFFFFFFF


def whole_batch(unit: Unit[M], micro_batches: Sequence[M]) -> tuple[Sequence[M], dict[str, float]]:
    """This process's micro-batches as parts of the whole batch, and the number of targets of each loss in all of it.

    Where all processes have to make the same number of passes, micro-batches that count for nothing are among them.
    """
    counts, widths = unit.counts(micro_batches), unit.widths(micro_batches)
    everywhere = unit.processes.gathered([*counts.values(), len(micro_batches), *widths])
    sums, most = ([function(column) for column in zip(*everywhere, strict=True)] for function in (sum, max))
    if not unit.processes.alone:
        passes, *wide = map(int, most[len(counts) :])
        lacking = passes - len(micro_batches) if unit.distribution.equal_passes else 0
        micro_batches = [*micro_batches, *([unit.spare(micro_batches)] * lacking)]
        micro_batches = [unit.widened(batch, tuple(wide)) for batch in micro_batches]
    return micro_batches, {name: count or 1 for name, count in zip(counts, sums, strict=False)}


def optimize(unit: Unit[M], micro_batches: Sequence[M], step: int) -> dict[str, torch.Tensor]:
    """One optimizer step over the micro-batches of a batch, of which each process takes its share.

    Returns:
        This process's share of each mean loss, and the norm of the gradient before clipping, as scalars on the device.
    """
    means = add_gradients(unit, micro_batches, step)
    unit.distribution.end_step()
    return {**means, NORM: move_weights(unit, step)}


def add_gradients(unit: Unit[M], micro_batches: Sequence[M], step: int) -> dict[str, torch.Tensor]:
    """The forward and backward passes of a step, whose gradients are left in the weights.

    Each loss is its sum over the whole batch divided once by its number of targets, however the batch is cut into
    micro-batches, and on however many processes.

    Returns:
        This process's share of each mean loss, as scalars on the device.
    """
    device, distribution = unit.placement.device, unit.distribution
    micro_batches, counts = whole_batch(unit, micro_batches)
    unit.enter(step)
    weights = unit.weights(step)
    means = {name: torch.zeros((), device=device) for name in counts}
    distribution.begin_step()
    passes = ReplayedPasses(unit.module) if unit.replayed else None
    for batch in micro_batches:
        if passes is not None:
            passes.begin()
        seed_torch(step_seed(unit.seed, step, batch.number), device)
        counted = float(batch.number != SPARE)
        loss = torch.zeros((), device=device)
        with distribution.passing(counts=bool(counted)):
            for name, share in unit.losses(batch, counts).items():
                loss = loss + counted * weights[name] * share
                means[name] += counted * share.detach()
            loss.backward()
    return means


def move_weights(unit: Unit[M], step: int) -> torch.Tensor:
    """Clip the gradients, move the weights by them, and drop them.

    A group of the optimizer may have a multiple of the rate (`lr_multiple` of the optimizer itself, `factor` of the
    layer's depth) and of the clipped gradient (`gradient_factor`). Where the weight decay has a course of its own, each
    group keeps the decay that it began with as `whole_decay`.

    Returns:
        () the norm of the gradient before clipping, on the device.
    """
    optimizer, factor, decay = unit.optimizer, unit.factor(step), unit.decay_factor(step)
    for group in optimizer.param_groups:
        if decay != 1 or "whole_decay" in group:
            group["weight_decay"] = group.setdefault("whole_decay", group["weight_decay"]) * decay
        group["lr"] = unit.learning_rate * group.get("lr_multiple", 1.0) * factor * group.get("factor", 1.0)
    norm = whole_tensor(torch.nn.utils.clip_grad_norm_(unit.module.parameters(), unit.clip or math.inf))
    for group in optimizer.param_groups:
        gradients = [parameter.grad for parameter in group["params"] if parameter.grad is not None]
        if gradients and (multiple := group.get("gradient_factor", 1.0)) != 1:
            torch._foreach_mul_(gradients, multiple)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return norm
