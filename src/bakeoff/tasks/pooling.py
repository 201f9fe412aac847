"""How the vectors of a row's tokens become one; without torch, for the command line."""

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from bakeoff.recipe import Recipe

Pooling = Literal["cls", "mean", "max", "last"]
"""How token vectors become one vector."""


def natural_pooling(recipe: "Recipe") -> Pooling:
    """The pooling for which pre-training has prepared a model.

    last for a causal model, whose last position alone has seen the whole row; but not for one that has read rows from
    both sides. Else cls where an objective of sentence pairs has trained the first position, and mean otherwise.
    """
    if recipe.model.causal and not any(part.reads_rows for part in recipe.objective):
        return "last"
    return "cls" if any(part.relates_segments for part in recipe.objective) else "mean"
