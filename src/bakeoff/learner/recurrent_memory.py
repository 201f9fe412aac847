"""A model's memory from one step to the next, where rows continue each other; it is kept for the whole batch."""

import torch
from torch import Tensor

from bakeoff.batching.batch import Batch
from bakeoff.distributed.processes import Processes
from bakeoff.models.model import Model
from bakeoff.models.part import ModelState, map_state


class Memory:
    """The states of all streams after the last step; B streams, one for each row of a batch.

    No gradient goes from one step to the previous one (Dai et al. 2019, arXiv:1901.02860, section 3.2).
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._states: dict[int, ModelState] = {}  # of each micro-batch of this process, by its number
        self._loaded: list[Tensor] = []  # of all streams, before it is known which micro-batches there are
        self._noted: tuple[dict[int, ModelState], list[Tensor]] = {}, []

    def before(self, batch: Batch) -> ModelState:
        """The state from which a micro-batch of the next batch continues."""
        if batch.number not in self._states:
            state = self.model.start(len(batch.row.ids))
            if self._loaded:
                rows = slice(batch.first_row, batch.first_row + len(batch.row.ids))
                state = _filled(state, [tensor[rows] for tensor in self._loaded])
            self._states[batch.number] = state
        return self._states[batch.number]

    def keep(self, number: int, state: ModelState) -> None:
        """Store the state after micro-batch `number`."""
        # Positions are relative. A number of tokens that grew with every step would have every step compiled anew. And
        # copied, because a slice of a tensor holds all of it.
        layers = map_state(state.layers, lambda tensor: tensor.detach().clone())
        self._states[number] = state._replace(tokens=0, layers=layers)

    def note(self) -> None:
        """Note the states before a step, which `go_back` puts back."""
        self._noted = dict(self._states), self._loaded

    def go_back(self, processes: Processes) -> None:
        """Put back what was noted, for streams that are cut into other micro-batches; all processes do it together."""
        (self._states, self._loaded), self._noted = self._noted, ({}, [])
        self.load(self.whole(processes))

    def whole(self, processes: Processes) -> dict[str, Tensor]:
        """The tensors of all streams, for a checkpoint; all processes ask for them together."""
        # Before the first step of what was loaded or cut anew, no micro-batch has states yet.
        return processes.joined(self.tensors()) or {str(index): each for index, each in enumerate(self._loaded)}

    def tensors(self) -> dict[str, Tensor]:
        """The tensors of this process by name, each with its streams on the first axis, in the micro-batches' order."""
        leaves = [_leaves(state) for number, state in sorted(self._states.items()) if number >= 0]  # not a spare one's
        return {str(index): torch.cat(tensors) for index, tensors in enumerate(zip(*leaves, strict=True))}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Restore the memory from the tensors of all streams, as `whole` gave them."""
        device = self.model.device
        self._states = {}
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
