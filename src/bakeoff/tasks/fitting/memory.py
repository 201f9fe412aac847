"""How many items of a task go through a head at once: as many as fit into the memory of a device, by count."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from bakeoff.errors import UserError
from bakeoff.resources.device import Placement
from bakeoff.resources.full_batch import Storages
from bakeoff.resources.gpu_stand_in import META
from bakeoff.resources.memory_need import BYTES_PER_NUMBER, counting, largest
from bakeoff.resources.micro_batch import SHARE, equal_parts, memory_to_fit
from bakeoff.tasks.fitting.fitting import Fitting
from bakeoff.tasks.fitting.settling import Settled
from bakeoff.tasks.fitting.trials import planned_trials


def fitting_items(settled: Settled) -> int | None:
    """The largest `micro_batch` of a fine-tuning that fits, in equal parts of the batch, of its longest items.

    None: the whole batch fits, or the rows of a batch depend on each other, or the device's memory is not known.

    Raises:
        UserError: a single item does not fit.
    """
    setting, processes = settled.setting, settled.setting.processes
    device, most = setting.placement.device, min(setting.config.batch, settled.items)
    limit = memory_to_fit(device)
    if limit is None:
        return None
    lasting, held = _counted(settled, min(3, settled.items))
    if held is None:
        return None
    items = largest(most, lambda count: lasting + _extrapolated(held, count) <= limit)
    if items == 0:
        need = lasting + _extrapolated(held, 1)
        raise UserError(
            f"{settled.source.recipe.name}: a single item of the task takes {need / 1e9:,.1f} GB, and {device} has "
            f"{limit / SHARE / 1e9:,.1f} GB; give a smaller length (--option length=N), or a smaller model"
        )
    if items == most and processes.alone:
        return None
    size = equal_parts(setting.config.batch, math.ceil(most / items), processes.size)
    assert isinstance(size, int)
    return size


def _extrapolated(held: Sequence[int], count: int) -> int:
    """Bytes of a pass over `count` items, from those of one item up to all that were counted."""
    if count <= len(held):
        return held[count - 1]
    return held[-1] + (count - len(held)) * (held[-1] - held[-2] if len(held) > 1 else held[-1])


def _counted(settled: Settled, most: int) -> tuple[int, list[int] | None]:
    """Bytes of what stays, and of what passes over 1 up to `most` of the longest items hold.

    What stays are weights, gradients, the optimizer's state, the running average, and the best weights of this training
    and of those before it. The second is None where the rows of a batch depend on each other.
    """
    setting, source, train = settled.setting, settled.source, settled.splits["train"]
    config, device, precision = setting.config, setting.placement.device, setting.placement.precision
    with torch.device("meta"):
        head = setting.task.build_head(source.recipe, source.tokenizer.size, config)
    trial, on = planned_trials(config)[0], META if device.type == "cuda" else device
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    with counting(device, precision, fake):
        head = head if on == META else head.to_empty(device=on)
        # Autocast is that of `counting`.
        unit = Fitting(head, train, train, trial, setting._replace(placement=Placement(on, "float32")))
    numbers = sum(parameter.numel() for parameter in head.parameters())
    optimizer = config.optimizer_at(trial.learning_rate)
    copies = 2 + (config.average is not None) + 1 + (len(planned_trials(config)) > 1)
    lasting = BYTES_PER_NUMBER * (copies * numbers + optimizer.kept(head) + optimizer.needed(head))
    if not unit.independent_rows:
        return lasting, None
    longest = np.argsort(-train.items.lengths, kind="stable")
    held = []
    unit.begin()
    for count in range(1, most + 1):
        batch = unit.micro_batch_of(longest[:count], 0)
        with counting(device, precision, fake), Storages() as made:
            losses = unit.losses(batch, unit.counts([batch]))  # which hold what the backward pass needs
            held.append(made.bytes())
        del losses
    return lasting, held
