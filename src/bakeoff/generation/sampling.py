"""Choice of next tokens from their scores. Shapes: B rows, N rows that are not done, V vocabulary."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from bakeoff.errors import UserError
from bakeoff.generation.config import GenerationConfig

Choose = Callable[[Tensor, list[int]], Tensor]
"""A function from the (N, V) scores of rows, and the indices of these rows, to their (N,) next tokens."""


class PromptSeed(NamedTuple):
    """The key of a prompt's random numbers, which are the same whatever the batch."""

    seed: int
    """The seed of the user."""
    number: int = 0
    """The number of the prompt under the seed, from 0 on."""


Seeds = Sequence[int | tuple[int, int]]
"""One seed for each prompt, which stands for (seed, 0), or a pair of a seed and the prompt's number under the seed."""


def drawn_by(seeds: Seeds, count: int) -> list[PromptSeed]:
    """The keys of the random numbers of `count` prompts.

    Raises:
        UserError: there is not one seed for each prompt, or a seed or number is no whole number.
    """
    given = list(seeds) if isinstance(seeds, Sequence) else []
    pairs = [each if isinstance(each, tuple) else (each, 0) for each in given]
    if len(pairs) != count or not all(len(pair) == 2 and all(map(_is_whole, pair)) for pair in pairs):
        raise UserError(f"generate: seeds: give each of the {count} prompts a whole number, or (seed, number)")
    return [PromptSeed(*pair) for pair in pairs]


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def filtered(
    log_probabilities: Tensor, temperature: float = 1.0, top_k: int | None = None, top_p: float = 1.0
) -> Tensor:
    """The probabilities from which tokens are drawn.

    The temperature acts first, then `top_k`, then `top_p` on the probabilities of those that are left, normalised
    again: the order of transformers' generation.

    Args:
        log_probabilities: (B, V) log-probabilities.
        temperature: divisor of the log-probabilities before they are normalised again.
        top_k: keep this number of most likely tokens (Fan et al. 2018); None: all.
        top_p: of these keep the fewest most likely ones whose probabilities add up to at least this share of all of
            these (Holtzman et al. 2020).

    Returns:
        (B, V) probabilities, whose rows add up to 1.
    """
    scores = log_probabilities.double()
    # The largest score is subtracted first, so that a low temperature does not make all of them minus infinity.
    probabilities = ((scores - scores.amax(-1, keepdim=True)) / temperature).softmax(-1)
    ordered, order = probabilities.sort(dim=-1, descending=True, stable=True)
    if top_k is not None:
        ordered[:, top_k:] = 0.0
        ordered /= ordered.sum(-1, keepdim=True)
    kept = ordered.cumsum(-1) - ordered < top_p
    kept[:, 0] = True
    probabilities = torch.zeros_like(probabilities).scatter_(1, order, torch.where(kept, ordered, 0.0))
    return probabilities / probabilities.sum(-1, keepdim=True)


def draw(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """(B,) tokens drawn from (B, V) probabilities by (B,) uniform numbers in [0, 1)."""
    cumulative = probabilities.cumsum(-1)
    number = torch.searchsorted(cumulative, uniform[:, None].to(cumulative) * cumulative[:, -1:], right=True)[:, 0]
    last = (probabilities > 0).long().cumsum(-1).argmax(-1)  # rounding must not exceed the last possible token
    return torch.minimum(number, last)


def chooser(config: GenerationConfig, seeds: Sequence[PromptSeed]) -> Choose:
    """A function that chooses next tokens.

    Args:
        config: how tokens are chosen.
        seeds: (B,) keys of the rows' random numbers.
    """
    numbers = [(seed * 1_000_003 + number) % 2**64 for seed, number in seeds]
    drawn = [torch.Generator().manual_seed(number) for number in numbers]

    def choose(scores: Tensor, rows: list[int]) -> Tensor:
        if config.greedy:
            return scores.max(-1).indices  # faster than argmax
        # Each row uses one number of its own generator a token, whatever the other rows do.
        uniform = torch.stack([torch.rand((), generator=drawn[row], dtype=torch.float64) for row in rows])
        return draw(filtered(scores, config.temperature, config.top_k, config.top_p), uniform.to(scores.device))

    return choose
