"""One optimizer step over the micro-batches of a batch."""

import math
from collections.abc import Sequence

import torch

from bakeoff.randomness.seeding import seed_torch
from bakeoff.trainer.unit import M, Unit

NORM = "gradient_norm"
"""The name of the gradient's norm among the figures of a step."""


def step_seed(seed: int, step: int, micro_batch: int) -> int:
    """The seed of the model's randomness in one micro-batch of one step; no state of a generator has to be saved."""
    return (
        seed * 0x9E3779B97F4A7C15 + step * 0xBF58476D1CE4E5B9 + micro_batch * 0x94D049BB133111EB
    ) & 0x7FFFFFFFFFFFFFFF


def optimize(unit: Unit[M], micro_batches: Sequence[M], step: int) -> dict[str, torch.Tensor]:
    """One optimizer step over the micro-batches of a batch.

    Each loss is its sum over the whole batch divided once by its number of targets, however the batch is cut into
    micro-batches. A group of the optimizer may have a multiple of the rate (`lr_multiple` of the optimizer itself,
    `factor` of the layer's depth) and of the clipped gradient (`gradient_factor`).

    Returns:
        Each mean loss and the norm of the gradient before clipping, as scalars on the device.
    """
    module, optimizer, device = unit.module, unit.optimizer, unit.placement.device
    factor = unit.factor(step)
    for group in optimizer.param_groups:
        group["lr"] = unit.learning_rate * group.get("lr_multiple", 1.0) * factor * group.get("factor", 1.0)
    counts, weights = unit.counts(micro_batches), unit.weights(step)
    means = {name: torch.zeros((), device=device) for name in counts}
    for number, batch in enumerate(micro_batches):
        seed_torch(step_seed(unit.seed, step, number), device)
        loss = torch.zeros((), device=device)
        for name, share in unit.losses(batch, number, counts).items():
            loss = loss + weights[name] * share
            means[name] += share.detach()
        loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(module.parameters(), unit.clip or math.inf)
    for group in optimizer.param_groups:
        gradients = [parameter.grad for parameter in group["params"] if parameter.grad is not None]
        if gradients and (multiple := group.get("gradient_factor", 1.0)) != 1:
            torch._foreach_mul_(gradients, multiple)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return {**means, NORM: norm}
