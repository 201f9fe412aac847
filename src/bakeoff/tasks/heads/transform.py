"""The linear layer, activation and norm of mlm's head, before the last linear layer of a task's head (ModernBERT).

Shapes: D width of the model, E width of the embedding's table; any dimensions before them.
"""

from collections.abc import Collection

from torch import Tensor, nn
from typing_extensions import override

from bakeoff.errors import UserError
from bakeoff.models.blocks.feed_forward import activate
from bakeoff.models.initialisation import initialise
from bakeoff.objectives.heads import HeadTransform
from bakeoff.objectives.masking import HiddenTokensConfig
from bakeoff.recipe import Recipe


class Transform(nn.Module):
    """norm(activation(W h + b)): (..., E) from (..., D) states."""

    def __init__(self, width: int, embedding_width: int, settings: HeadTransform) -> None:
        super().__init__()
        self.activation = settings.activation
        self.map = nn.Linear(width, embedding_width, settings.map_bias)
        self.norm = nn.LayerNorm(embedding_width, settings.norm_epsilon, settings.norm_affine, settings.norm_bias)
        initialise(self)

    @override
    def forward(self, states: Tensor) -> Tensor:
        output: Tensor = self.norm(activate(self.map(states), self.activation))
        return output


def _masking(recipe: Recipe) -> HiddenTokensConfig:
    """The recipe's objective with a transform in its head; of several, one that is trained until the end.

    Raises:
        UserError: the recipe has no such objective.
    """
    masking = next((part for part in recipe.trained_first if isinstance(part, HiddenTokensConfig)), None)
    if masking is None:
        raise UserError(
            f"transform: it is a part of the head of mlm, and {recipe.name} learns "
            f"{', '.join(part.kind for part in recipe.objective)}; leave it out"
        )
    return masking


def transform_of(recipe: Recipe) -> HeadTransform:
    """The settings of the transform in the head of a recipe's objective.

    Raises:
        UserError: no objective of the recipe has one.
    """
    return _masking(recipe).transform(recipe.model)


def pretrained_transform(names: Collection[str], recipe: Recipe) -> dict[str, str]:
    """The names of a run's tensors with which a head's transform begins, by the names in the head.

    Args:
        names: the names of the tensors of a run, pre-trained or fine-tuned with a transform.
        recipe: the recipe of the run.
    """
    head = f"heads.{_masking(recipe).kind}."
    sources: dict[str, str] = {}
    for there, here in ((f"{head}transform.", "map."), (f"{head}norm.", "norm."), ("transform.", "")):
        prefix = f"transform.{here}"
        sources |= {f"{prefix}{name.removeprefix(there)}": name for name in names if name.startswith(there)}
    return sources
