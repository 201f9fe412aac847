"""A batch of a recipe's full size on a device, and the memory that a pass over it holds."""

import gc
from typing import Any

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bakeoff.batching.batch import Batch
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.objectives.objective import Prefixed, TwoStream
from bakeoff.recipe import Recipe
from bakeoff.row import Queries, Row, Source


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


class Storages(TorchDispatchMode):
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
