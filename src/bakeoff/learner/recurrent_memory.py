"""A model's memory from one step to the next, where rows continue each other; it is kept for the whole batch."""

import torch
from torch import Tensor

from bakeoff.batching.batch import Batch
from bakeoff.models.model import Model
from bakeoff.models.part import ModelState, map_state


class Memory:
    """The states of all streams after the last step; B streams, one for each row of a batch.

    No gradient goes from one step to the previous one (Dai et al. 2019, arXiv:1901.02860, section 3.2).
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._states: list[ModelState] = []  # of each micro-batch
        self._loaded: list[Tensor] = []  # of all streams, before it is known which micro-batches there are
        self._taken = 0  # streams of these

    def before(self, number: int, batch: Batch) -> ModelState:
        """The state from which micro-batch `number` of the next batch continues."""
        if number == len(self._states):
            state = self.model.start(len(batch.row.ids))
            if self._loaded:
                rows = slice(self._taken, self._taken + len(batch.row.ids))
                state, self._taken = _filled(state, [tensor[rows] for tensor in self._loaded]), rows.stop
            self._states.append(state)
        return self._states[number]

    def keep(self, index: int, state: ModelState) -> None:
        """Store the state after micro-batch `index`."""
        # Positions are relative. A number of tokens that grew with every step would have every step compiled anew. And
        # copied, because a slice of a tensor holds all of it.
        layers = map_state(state.layers, lambda tensor: tensor.detach().clone())
        self._states[index] = state._replace(tokens=0, layers=layers)

    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name, each with its B streams on the first axis, whatever the size of the micro-batches."""
        if not self._states:
            return {}
        leaves = [_leaves(state) for state in self._states]
        return {str(index): torch.cat(tensors) for index, tensors in enumerate(zip(*leaves, strict=True))}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore the memory from the tensors of a checkpoint, as `tensors` gave them."""
        device = self.model.device
        self._states, self._taken = [], 0
        self._loaded = [tensors[str(index)].to(device) for index in range(len(tensors))]


def _filled(state: ModelState, tensors: list[Tensor]) -> ModelState:
    """The tree with new tensors, given in the order of `_leaves`."""
    following = iter(tensors)
    return state._replace(layers=map_state(state.layers, lambda _: next(following)))


def _leaves(state: ModelState) -> list[Tensor]:
    tensors: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        tensors.append(tensor)
        return tensor

    map_state(state.layers, note)
    return tensors
