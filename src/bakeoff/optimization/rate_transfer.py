"""The learning rate of short trainings, transferred to longer ones: lr* = B D^-beta.

D is the length of the training, B the recipe's own constant, which the search finds, and beta belongs to the optimizer,
whose config declares it (`length_exponent`; 2409.19913 measured such a law). Only the ratio of two lengths is needed,
so that these may be steps or tokens.
"""

from typing import NamedTuple

from pydantic import Field

from bakeoff.config import Config

SHORTEST = 0.25
"""A rate that follows the length of the training rises no further in trainings below this share of the length for which
it was found: the warm-up of so few steps does not bear more (docs/learning.md)."""


class FollowingRate(Config):
    """A learning rate that follows the length of the training: `rate` (`steps` / length)^beta.

    The length counts as a quarter of `steps` at least.
    """

    rate: float = Field(gt=0)
    """The learning rate in trainings of `steps`."""
    steps: int = Field(gt=0)
    """The optimizer steps of the training for which the rate was found."""

    def at(self, steps: int, exponent: float | None) -> float:
        """The rate in a training of `steps` with an optimizer of that exponent."""
        return transferred(self.rate, exponent, max(SHORTEST, steps / self.steps)).rate


class TransferredRate(NamedTuple):
    """A rate for a training of another length than the one at which the rate was found."""

    rate: float
    """The rate at the other length."""
    ratio: float
    """The other length, in multiples of the length at which the rate was found."""
    exponent: float | None
    """beta; None: there is none for the optimizer, and the rate is unchanged."""
    searched: bool = True
    """Whether the rate was found; one that was given is unchanged."""

    @property
    def rule(self) -> str:
        """The change of the rate, in words."""
        if self.ratio == 1:
            return "unchanged, the length being the same"
        if not self.searched:
            return "unchanged, for it was given and not searched"
        longer = f"{self.ratio:.3g} times the length"
        if self.exponent is None:
            return f"unchanged to {longer}, for which no rule is known with this optimizer"
        if self.exponent == 0:
            return f"unchanged to {longer} (length to the power of 0)"
        return f"by length to the power of {-self.exponent:g} to {longer}"


def transferred(rate: float, exponent: float | None, ratio: float, searched: bool = True) -> TransferredRate:
    """A rate for a training of another length.

    Args:
        rate: the best rate in trainings of some length.
        exponent: beta, the `length_exponent` of the optimizer; None: it has no rule.
        ratio: the other length, in units of the first.
        searched: whether the rate is the best of several.
    """
    if exponent is None or exponent == 0 or ratio == 1 or not searched:
        return TransferredRate(rate, ratio, exponent, searched)
    return TransferredRate(rate * ratio**-exponent, ratio, exponent)
