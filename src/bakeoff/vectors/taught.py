"""The vectors of texts that a run was taught without labels: from the states of its tokens to one vector.

Shapes: B rows, T length, D width, V vocabulary.
"""

from typing import NamedTuple, Self

import torch
from torch import Tensor
from torch.nn.functional import linear

from bakeoff import checksums
from bakeoff.errors import UserError
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.heads.heads import pooled
from bakeoff.tasks.pooling import Pooling
from bakeoff.tensors import load_tensors, save_tensors
from bakeoff.vectors.layer_states import layer_index, layer_width, pooled_stack

FILE = "vectors.safetensors"
"""The file with the tensors of the vectors, beside a run's weights."""


def require_last_layer(taught: "Taught", run: Run, reader: str) -> None:
    """Refuse vectors of other layers than the last.

    Args:
        taught: the vectors.
        run: the run that has them.
        reader: what reads no others, with its verb, for the message.

    Raises:
        UserError: they are of other layers.
    """
    if taught.layers not in ((-1,), (pooled_stack(run.recipe.model).layers,)):
        layers = ",".join(map(str, taught.layers))
        raise UserError(f"{run.path}: its vectors are of the layers {layers}; {reader} the last alone")


class Taught(NamedTuple):
    """How the states of a row's tokens become a vector: pooled, perhaps with weights, and through a linear layer."""

    pooling: Pooling = "mean"
    """How token vectors become one vector."""
    layers: tuple[int, ...] = (-1,)
    """The layers whose states are pooled, averaged if several."""
    token_weights: Tensor | None = None
    """(V,) the weight of each token in the mean; None: all are alike."""
    weight: Tensor | None = None
    """(D, D) W of the linear layer W x + b after the pooling; None: there is none."""
    bias: Tensor | None = None
    """(D,) b of the linear layer."""

    @classmethod
    def of(cls, run: Run | FinetunedRun) -> Self | None:
        """What `contrast` has taught a run; None: it has not.

        Raises:
            UserError: its file is damaged, or does not fit the run.
        """
        said = None if isinstance(run, FinetunedRun) else run.vectors
        if said is None:
            return None
        path = run.path / FILE
        checksums.require_present(path)
        tensors = load_tensors(path) if path.is_file() else {}
        made = cls(said["pooling"], tuple(said["layers"]), *(tensors.get(name) for name in cls._fields[2:]))
        model, vocabulary = run.recipe.model, run.tokenizer.size
        width = layer_width(model, layer_index(made.layers[0], pooled_stack(model).layers, str(run.path)))
        wanted = {"token_weights": (vocabulary,), "weight": (width, width), "bias": (width,)}
        for name, tensor in tensors.items():
            if name not in wanted or tensor.shape != wanted[name]:
                raise UserError(f"{path}: {name} is {tuple(tensor.shape)}, which does not fit this run")
        return made

    def save(self, run: Run) -> None:
        """Write the tensors beside a run's weights."""
        tensors = {name: tensor for name, tensor in self._asdict().items() if isinstance(tensor, Tensor)}
        if tensors:
            save_tensors(tensors, run.path / FILE)

    def to(self, device: torch.device) -> Self:
        """The same with its tensors on a device."""
        tensors = (None if each is None else each.to(device) for each in (self.token_weights, self.weight, self.bias))
        return type(self)(self.pooling, self.layers, *tensors)

    def vectors(self, states: Tensor, ids: Tensor, padding_mask: Tensor, start_last: bool) -> Tensor:
        """(B, D) vectors of rows.

        Args:
            states: (B, T, D) float32 states.
            ids: (B, T) token ids.
            padding_mask: (B, T) True for tokens.
            start_last: whether [CLS] is the last token.
        """
        if self.token_weights is None:
            made = pooled(states, padding_mask, self.pooling, start_last)
        else:
            weights = self.token_weights[ids] * padding_mask
            made = (states.masked_fill(~padding_mask[..., None], 0.0) * weights[..., None]).sum(1)
            made = made / weights.sum(1, keepdim=True)
        return made if self.weight is None else linear(made, self.weight, self.bias)
