"""How much memory a training takes, counted with tensors that have shapes and no content."""

import gc
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bakeoff.batching.batch import Batch
from bakeoff.config import Config
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.models.inputs import Queries, Source
from bakeoff.models.model_state import ModelState
from bakeoff.objectives.masking import MaskingConfig
from bakeoff.objectives.objective import Prefixed, TwoStream
from bakeoff.recipe import Recipe
from bakeoff.resources.device import autocast, resolve_precision

BYTES_PER_NUMBER = 4
"""Weights, gradients and the optimizer's moments are float32."""

MOST_ROWS = 32
"""Rows at once that are counted where nothing is said of them: batches of thousands are the sum of many."""


class MemoryNeed(Config):
    """Bytes that a training holds at its fullest: between a forward pass and its backward pass, or in the update."""

    rows: int
    """Rows that go through the model at once."""
    device: str
    """Where: on a CPU, other operations run than on a GPU, and keep more."""
    precision: str
    """float32 or bfloat16, of the activations."""
    weights: int
    """The parameters."""
    gradients: int
    """As many numbers."""
    optimizer: int
    """What the optimizer remembers, and a running average of the weights."""
    activations: int
    """What the backward pass needs of the forward pass, of full rows without padding, without compilation.

    What oneDNN, on a CPU, keeps within an LSTM cannot be seen from here: of these it is a half to a third.
    """

    remembered: int
    """What all rows of a batch remember of the rows that they continue, those of other micro-batches too."""

    update: int = 0
    """What the optimizer's step needs for a moment, when the activations are gone."""

    @property
    def total(self) -> int:
        """All of it; what single operations need for a moment comes on top."""
        lasting = self.weights + self.gradients + self.optimizer + self.remembered
        return lasting + max(self.activations, self.update)


def memory_need(recipe: Recipe, vocabulary: int, device: torch.device, rows: int | None = None) -> MemoryNeed:
    """Count the memory of a training with that many rows at once.

    Absent: as many as the recipe's `micro_batch` has; where the recipe does not divide its batch, `MOST_ROWS` at most.
    """
    given = recipe.training.rows_at_once(recipe.input.length)
    rows = rows or (given if recipe.training.micro_batch else min(given, MOST_ROWS))
    precision = resolve_precision(recipe.training.precision, device)
    recipe = max((recipe.at(0.0), recipe.at(1.0)), key=_predicted)
    module = build_on_meta(recipe, vocabulary).train()
    weights = module.parameter_count() * BYTES_PER_NUMBER
    # Parameters come from elsewhere, and a text's positions are made as plain tensors.
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
    """The sum of the shares of tokens that masking hides, which may change on the way."""
    return sum(part.rate for part in recipe.objective if isinstance(part, MaskingConfig))


def _activations(recipe: Recipe, module: PretrainingModel, rows: int, device: torch.device, precision: str) -> int:
    """Bytes that are held behind the forward pass of so many rows.

    Two and three rows are passed: some operations loop over rows, and what does not grow with them is not to be scaled.
    """
    two, three = (_held(recipe, module, count, device, precision) for count in (2, 3))
    return two + (rows - 2) * (three - two)


def _remembered(recipe: Recipe, module: PretrainingModel, rows: int, device: torch.device, precision: str) -> int:
    """Bytes of the states of all rows of a batch."""
    state = _filled_state(recipe, module, 2, device, precision)
    if state is None:
        return 0
    assert isinstance(recipe.training.batch, int), "batches by tokens have no lanes"
    lanes = max(rows, recipe.training.batch)
    return lanes * _bytes_of(state) // 2


def _filled_state(
    recipe: Recipe, module: PretrainingModel, rows: int, device: torch.device, precision: str
) -> ModelState | None:
    """What so many rows remember when they remember as much as they can; None where they stand alone."""
    if not recipe.input.continues:
        return None
    state, before = module.model.start(rows), -1
    batch = full_batch(recipe, module, rows, device)
    with torch.no_grad(), autocast(device, precision):
        while before < (size := _bytes_of(state)):
            state, before = module.gather_on(batch, state)[1], size
    return state


def _bytes_of(state: ModelState) -> int:
    return sum(leaf.nbytes for leaf in tree_leaves(state.layers) if isinstance(leaf, Tensor))


def _held(recipe: Recipe, module: PretrainingModel, rows: int, device: torch.device, precision: str) -> int:
    state = _filled_state(recipe, module, rows, device, precision)
    with _Storages() as made:
        batch = full_batch(recipe, module, rows, device)
        with autocast(device, precision):
            gathered = module.gather(batch) if state is None else module.gather_on(batch, state)[0]
            table = module.model.embedding.table
            # Kept, because what the backward pass needs hangs on them.
            losses = [each.head.usual_loss(gathered[each.name][0], table) for each in module.objectives]
        del gathered
        held: int = made.bytes()
    del losses
    return held


def full_batch(recipe: Recipe, module: PretrainingModel, rows: int, device: torch.device) -> Batch:
    """A batch as large as the recipe's become: full rows, each one document, and as many targets as are expected."""
    source_length, length = module.row_lengths

    def zeros(*shape: int) -> Tensor:
        return torch.zeros(shape, dtype=torch.int64, device=device)

    targets = {name: round(rows * length * share) for name, share in module.targets_per_token().items()}
    stream = sum(round(length * each.queries_per_token) for each in module.objectives if isinstance(each, TwoStream))
    queries = None
    if stream:
        visible = torch.ones(rows, length + stream, length, dtype=torch.bool, device=device)
        queries = Queries(zeros(rows, stream), visible)
    return Batch(
        ids=zeros(rows, length),
        segments=zeros(rows, length) if recipe.input.pairs else None,
        real=None,
        documents=None,
        targets={name: (zeros(count), zeros(count)) for name, count in targets.items()},
        tokens=rows * (source_length + length),
        source=Source(zeros(rows, source_length)) if source_length else None,
        queries=queries,
        backwards=zeros(rows) > 0 if recipe.input.directions == 2 else None,
        prefix=zeros(rows) + length // 2 if any(isinstance(each, Prefixed) for each in module.objectives) else None,
        advance=length if recipe.input.continues else None,
    )


class _Storages(TorchDispatchMode):
    """Remembers the memory that operations take, without keeping it."""

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
        """What of it is still held."""
        gc.collect()
        held = [size for reference, size in self.made.values() if not reference.expired()]
        return sum(held)
