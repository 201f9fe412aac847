"""LAMB: layer-wise adaptive moments."""

from typing import Any, Literal

import torch
from torch import Tensor, nn
from typing_extensions import override

from bakeoff.models.embedding import Embedding
from bakeoff.optimization.optimizers.base_config import MomentsConfig
from bakeoff.optimization.optimizers.moments import Moments


class LambConfig(MomentsConfig):
    """Layer-wise adaptive moments for large batches (You et al. 2020, arXiv:1904.00962, algorithm 2).

    Norms and biases have neither weight decay nor adaptation, as in ALBERT's code: a bias begins at 0, and a step that
    is proportional to its size would leave it there.
    """

    kind: Literal["lamb"] = "lamb"
    """The optimizer's name."""

    adapted_tables: Literal[True, False, "tokens"] = True
    """Tables of tokens, positions and distances are decayed and adapted as matrices are; tokens: the table of tokens
    alone is (LTG-BERT's training/train.py); false: none is, as no norm and bias (its babylm/train/train.py)."""

    @property
    def temporaries(self) -> int:
        """Numbers for each parameter that a step needs for a moment: two, see `Moments`."""
        return Moments.TEMPORARIES

    @override
    def build(self, module: nn.Module, precision: str = "float32") -> torch.optim.Optimizer:
        matrices, vectors = self.groups(module)
        spared = self._spared(module)
        vectors["params"] += [each for each in matrices["params"] if id(each) in spared]
        matrices["params"] = [each for each in matrices["params"] if id(each) not in spared]
        groups = [{**matrices, "adapted": True}, {**vectors, "adapted": False}]
        return Lamb(groups, self.rate, self.betas, self.epsilon, bias_correction=self.bias_correction)

    def _spared(self, module: nn.Module) -> set[int]:
        """The ids of the tables that are neither decayed nor adapted."""
        if self.adapted_tables is True:
            return set()
        tables = {id(part.weight) for part in module.modules() if isinstance(part, nn.Embedding)}
        if self.adapted_tables == "tokens":
            embeddings = [part for part in module.modules() if isinstance(part, Embedding)]
            tables -= {id(part.weight) for part in embeddings if part.tokens is not None}
        return tables


class Lamb(Moments):
    """x <- x - lr * |x| / |r + decay x| * (r + decay x), with r = m / (sqrt(v) + epsilon).

    Norms are taken tensor by tensor; the ratio is 1 where either norm is 0, and in groups that are not `adapted`.
    """

    def scale(self, group: dict[str, Any], parameters: list[Tensor], updates: list[Tensor]) -> None:
        """Multiply each update by its tensor's trust ratio."""
        if not group["adapted"]:
            return
        weights, lengths = torch._foreach_norm(parameters), torch._foreach_norm(updates)
        ratios = [
            torch.where((weight > 0) & (length > 0), weight / length, 1.0)
            for weight, length in zip(weights, lengths, strict=True)
        ]
        torch._foreach_mul_(updates, ratios)
