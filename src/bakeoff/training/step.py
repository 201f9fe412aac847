"""One optimizer step over the micro-batches of a batch."""

import math
from collections.abc import Sequence

import torch

from bakeoff.batching.batch import Batch
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.learner.recurrent_memory import Memory
from bakeoff.randomness.seeding import seed_torch
from bakeoff.recipe import Recipe
from bakeoff.resources.device import Placement


def step_seed(seed: int, step: int, micro_batch: int) -> int:
    """The seed of the model's randomness in one micro-batch of one step; no state of a generator has to be saved."""
    return (
        seed * 0x9E3779B97F4A7C15 + step * 0xBF58476D1CE4E5B9 + micro_batch * 0x94D049BB133111EB
    ) & 0x7FFFFFFFFFFFFFFF


def optimize(
    module: PretrainingModel,
    optimizer: torch.optim.Optimizer,
    micro_batches: list[Batch],
    recipe: Recipe,
    seed: int,
    step: int,
    placement: Placement,
    losses: Sequence[float] = (),
    memory: Memory | None = None,
) -> dict[str, torch.Tensor]:
    """One optimizer step over the micro-batches of a batch.

    Each objective's loss is its sum over the whole batch divided once by its number of targets, however the batch is
    cut into micro-batches. `losses` are the held-out losses so far, for schedules that look at them. `memory` holds the
    states after the previous batch, if batches continue each other; the step replaces them by its own states.

    Returns:
        Each objective's mean loss and the norm of the gradient before clipping, as scalars on the device.
    """
    training = recipe.training
    factor = training.schedule.factor(step, training.budget.steps or 1, losses)
    for group in optimizer.param_groups:
        group["lr"] = training.optimizer.rate * group.get("lr_multiple", 1.0) * factor
    counts = {name: max(1, sum(len(each.targets[name][0]) for each in micro_batches)) for name in module.weights}
    means = {name: torch.zeros((), device=placement.device) for name in counts}
    weights = recipe.weights_at(step)
    states = None if memory is None else memory.before(micro_batches)
    for index, batch in enumerate(micro_batches):
        seed_torch(step_seed(seed, step, index), placement.device)
        with placement.autocast():
            if memory is None or states is None:
                results = module(batch.to(placement.device))
            else:
                results, after = module.forward_on(batch.to(placement.device), states[index])
                memory.keep(index, after)
        loss = torch.zeros((), device=placement.device)
        for name, total in results.items():
            mean = total / counts[name]
            loss = loss + weights[name] * mean
            means[name] += mean.detach()
        loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(module.parameters(), training.clip or math.inf)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    return {**means, "gradient_norm": norm}
