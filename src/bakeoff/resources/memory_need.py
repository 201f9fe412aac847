"""The memory of a training, counted with fake tensors, which have shapes and no content."""

import gc
import os
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bakeoff.batching.batch import Batch
from bakeoff.config import Config
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.models.part import ModelState
from bakeoff.objectives.heads import Head
from bakeoff.objectives.masking import MaskingConfig
from bakeoff.objectives.objective import Prefixed, TwoStream
from bakeoff.recipe import Recipe
from bakeoff.resources.device import autocast, resolve_precision
from bakeoff.row import Queries, Row, Source

BYTES_PER_NUMBER = 4
"""Bytes of a number: weights, gradients and the optimizer's moments are float32."""

MOST_ROWS = 32
"""Largest number of rows at once that is assumed for a recipe without `micro_batch`; larger batches can be divided."""


class MemoryNeed(Config):
    """Peak memory of a training in bytes, reached between forward and backward pass or in the optimizer's step."""

    rows: int
    """Number of rows that go through the model at once."""
    device: str
    """The kind of device; operations on a CPU differ from those on a GPU, and keep more."""
    precision: str
    """The precision of activations, float32 or bfloat16."""
    weights: int
    """Bytes of the parameters."""
    gradients: int
    """Bytes of the gradients."""
    optimizer: int
    """Bytes of the optimizer's state, and of a running average of the weights."""
    activations: int
    """Bytes that the forward pass keeps for the backward pass, for full rows without padding, without compilation.

    The memory that oneDNN keeps inside an LSTM on a CPU is missing: the figure is a half to a third of the real need.
    """

    remembered: int
    """Bytes of the memories of all rows of a batch that continue other rows, other micro-batches included."""

    update: int = 0
    """Bytes that the optimizer's step needs temporarily, when activations are freed."""

    @property
    def total(self) -> int:
        """The sum in bytes, without the temporary memory of single operations."""
        lasting = self.weights + self.gradients + self.optimizer + self.remembered
        return lasting + max(self.activations, self.update)


def memory_need(recipe: Recipe, vocabulary: int, device: torch.device, rows: int | None = None) -> MemoryNeed:
    """Count the memory of a training with `rows` rows at once.

    None: the recipe's `micro_batch`, or for a recipe without one its batch, but at most `MOST_ROWS`.
    """
    default = recipe.training.rows_at_once(recipe.input.length)
    rows = rows or (default if recipe.training.micro_batch else min(default, MOST_ROWS))
    precision = resolve_precision(recipe.training.precision, device)
    recipe = max((recipe.at(0.0), recipe.at(1.0)), key=_predicted)
    module = build_on_meta(recipe, vocabulary).train()
    weights = module.parameter_count() * BYTES_PER_NUMBER
    # Parameters are made outside of this mode, and positions are plain tensors.
    with FakeTensorMode(allow_non_fake_inputs=True):
        module = module.to_empty(device=device)
        activations = _activations(recipe, module, rows, device, precision)
        remembered = _remembered(recipe, module, rows, device, precision)
    return MemoryNeed(
        rows=rows,
        device=device.type,
        precision=precision,
        weights=weights,
        gradients=weights,
        optimizer=recipe.training.optimizer.kept(module) * BYTES_PER_NUMBER
        + (weights if recipe.training.running_average else 0),
        activations=activations,
        remembered=remembered,
        update=recipe.training.optimizer.needed(module) * BYTES_PER_NUMBER,
    )


def _predicted(recipe: Recipe) -> float:
    """The sum of the masking rates, which may change during the training."""
    return sum(part.rate for part in recipe.objective if isinstance(part, MaskingConfig))


def _activations(recipe: Recipe, module: PretrainingModel, rows: int, device: torch.device, precision: str) -> int:
    """Bytes that are held after the forward pass of `rows` rows.

    They are extrapolated from two and three rows: some operations loop over rows, and the constant part must not be
    scaled.
    """
    two, three = (_held(recipe, module, count, device, precision) for count in (2, 3))
    return two + (rows - 2) * (three - two)


def _remembered(recipe: Recipe, module: PretrainingModel, rows: int, device: torch.device, precision: str) -> int:
    """Bytes of the memories of all rows of a batch."""
    state = _filled_state(recipe, module, 2, device, precision)
    if state is None:
        return 0
    assert isinstance(recipe.training.batch, int), "batches by tokens have no streams"
    streams = max(rows, recipe.training.batch)
    return streams * _bytes_of(state) // 2


def _filled_state(
    recipe: Recipe, module: PretrainingModel, rows: int, device: torch.device, precision: str
) -> ModelState | None:
    """The state of `rows` rows with full memories; None: rows do not continue each other."""
    if not recipe.input.continues:
        return None
    state, before = module.model.start(rows), -1
    batch = full_batch(recipe, module, rows, device)
    with torch.no_grad(), autocast(device, precision):
        while before < (size := _bytes_of(state)):
            state, before = module(batch, state, _usual_loss)[1], size
    return state


def _bytes_of(state: ModelState) -> int:
    return sum(leaf.nbytes for leaf in tree_leaves(state.layers) if isinstance(leaf, Tensor))


def _held(recipe: Recipe, module: PretrainingModel, rows: int, device: torch.device, precision: str) -> int:
    state = _filled_state(recipe, module, rows, device, precision)
    with _Storages() as made:
        batch = full_batch(recipe, module, rows, device)
        with autocast(device, precision):
            losses, _ = module(batch, state, _usual_loss)  # which hold what the backward pass needs
        held: int = made.bytes()
    del losses
    return held


def _usual_loss(head: Head, rows: Tensor, labels: Tensor, table: Tensor) -> Tensor:
    return head.usual_loss(rows, table)


def full_batch(recipe: Recipe, module: PretrainingModel, rows: int, device: torch.device) -> Batch:
    """A batch of the recipe's full size: full rows of one document each, with the expected number of targets."""
    source_length, length = module.row_lengths

    def zeros(*shape: int) -> Tensor:
        return torch.zeros(shape, dtype=torch.int64, device=device)

    targets = {name: round(rows * length * share) for name, share in module.targets_per_token().items()}
    stream = sum(round(length * each.queries_per_token) for each in module.objectives if isinstance(each, TwoStream))
    queries = None
    if stream:
        visible = torch.ones(rows, length + stream, length, dtype=torch.bool, device=device)
        queries = Queries(zeros(rows, stream), visible)
    row = Row(
        zeros(rows, length),
        segments=zeros(rows, length) if recipe.input.pairs else None,
        source=Source(zeros(rows, source_length)) if source_length else None,
        queries=queries,
        backwards=zeros(rows) > 0 if recipe.input.directions == 2 else None,
        prefix=zeros(rows) + length // 2 if any(isinstance(each, Prefixed) for each in module.objectives) else None,
    )
    return Batch(
        row,
        targets={name: (zeros(count), zeros(count)) for name, count in targets.items()},
        tokens=rows * (source_length + length),
        advance=length if recipe.input.continues else None,
    )


class _Storages(TorchDispatchMode):
    """Recorder of the memory that operations allocate, by weak references."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.made: dict[int, tuple[StorageWeakRef, int]] = {}
        self.given: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves((args, kwargs)):
            if isinstance(tensor, Tensor):
                key = StorageWeakRef(tensor.untyped_storage()).cdata
                if key not in self.made:
                    self.given.add(key)
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor):
                reference = StorageWeakRef(tensor.untyped_storage())
                if reference.cdata not in self.given:
                    self.made[reference.cdata] = reference, tensor.untyped_storage().nbytes()
        return result

    def bytes(self) -> int:
        """Bytes of recorded memory that are still held."""
        gc.collect()
        held = [size for reference, size in self.made.values() if not reference.expired()]
        return sum(held)


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
    limit = _memory_of(device)
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


def _memory_of(device: torch.device) -> int | None:
    """The memory of a device in bytes; None: unknown."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    if device.type == "cpu" and hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"
