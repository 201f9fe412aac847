"""Choosing the next token from its scores. Shapes: B rows, N of them, V vocabulary."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.inference.generation_config import GenerationConfig

Choose = Callable[[Tensor, list[int]], Tensor]
"""Gives the next (N,) tokens by the (N, V) scores of some rows, whose places come with them."""


class Draws(NamedTuple):
    """Which random numbers the text of a prompt is drawn by: the same ones whatever is written beside it."""

    seed: int
    """The seed."""
    number: int = 0
    """The prompt's number among those of the seed, from 0 on."""


Seeds = Sequence[int | tuple[int, int]]
"""For each prompt a seed, whose first prompt it is, or a pair of a seed and its number under that seed."""


def drawn_by(seeds: Seeds, count: int) -> list[Draws]:
    """The random numbers of so many prompts.

    Raises:
        UserError: not a seed for each, or something that is no whole number.
    """
    given = list(seeds) if isinstance(seeds, Sequence) else []
    pairs = [each if isinstance(each, tuple) else (each, 0) for each in given]
    if len(pairs) != count or not all(len(pair) == 2 and all(map(_is_whole, pair)) for pair in pairs):
        raise UserError(f"generate: seeds: a whole number, or (seed, place), for each of the {count} prompts is wanted")
    return [Draws(*pair) for pair in pairs]


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def filtered(
    log_probabilities: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0
) -> Tensor:
    """The probabilities from which a token is drawn.

    Args:
        log_probabilities: (B, V).
        temperature: divides them before they are normalised again; below 1 the likely becomes likelier.
        top_k: keep the so many most likely tokens (Fan et al. 2018).
        top_p: keep the fewest most likely tokens that have at least this share together (Holtzman et al. 2020).

    Returns:
        (B, V), adding up to 1.
    """
    scores = log_probabilities.double()
    # The largest is subtracted first, so that no temperature, however low, makes all of them minus infinity.
    probabilities = ((scores - scores.amax(-1, keepdim=True)) / temperature).softmax(-1)
    ordered, order = probabilities.sort(dim=-1, descending=True, stable=True)
    kept = ordered.cumsum(-1) - ordered < top_p
    if top_k is not None:
        kept[:, top_k:] = False
    kept[:, 0] = True
    probabilities = torch.zeros_like(probabilities).scatter_(1, order, torch.where(kept, ordered, 0.0))
    return probabilities / probabilities.sum(-1, keepdim=True)


def draw(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """(B,) tokens drawn from (B, V) probabilities by (B,) uniform numbers in [0, 1)."""
    cumulative = probabilities.cumsum(-1)
    place = torch.searchsorted(cumulative, uniform[:, None].to(cumulative) * cumulative[:, -1:], right=True)[:, 0]
    last = (probabilities > 0).long().cumsum(-1).argmax(-1)  # rounding must not lead beyond the last possible token
    return torch.minimum(place, last)


def chooser(config: GenerationConfig, draws: Sequence[Draws]) -> Choose:
    """What chooses tokens.

    Args:
        config: how.
        draws: (B,) the random numbers of each row.
    """
    seeds = [(seed * 1_000_003 + number) % 2**64 for seed, number in draws]
    drawn = [torch.Generator().manual_seed(seed) for seed in seeds]

    def choose(scores: Tensor, rows: list[int]) -> Tensor:
        if config.greedy:
            return scores.max(-1).indices  # which is quicker than torch's argmax
        # A number is used up for each token that is written, whatever the other rows do.
        uniform = torch.stack([torch.rand((), generator=drawn[row], dtype=torch.float64) for row in rows])
        return draw(filtered(scores, config.temperature, config.top_k, config.top_p), uniform.to(scores.device))

    return choose
