"""Choice of next tokens from their scores. Shapes: B rows, N rows that are not done, V vocabulary."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
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


Seeds = Sequence[int | tuple[int, int]] | np.ndarray
"""One seed for each prompt, which stands for (seed, 0), or a pair of a seed and the prompt's number under the seed; an
array has (N,) seeds or (N, 2) pairs."""


def drawn_by(seeds: Seeds, count: int) -> list[PromptSeed]:
    """The keys of the random numbers of `count` prompts.

    Raises:
        UserError: there is not one seed for each prompt, or a seed or number is no whole number.
    """
    seeds = np.atleast_1d(seeds).tolist() if isinstance(seeds, np.ndarray) else seeds
    given = list(seeds) if isinstance(seeds, Sequence) else []
    pairs = [tuple(each) if isinstance(each, tuple | list) else (each, 0) for each in given]
    if len(pairs) != count or not all(len(pair) == 2 and all(map(_is_whole, pair)) for pair in pairs):
        raise UserError(f"generate: seeds: give each of the {count} prompts a whole number, or (seed, number)")
    return [PromptSeed(*map(int, pair)) for pair in pairs]


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


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
    if top_k is None and top_p == 1:
        return probabilities
    ordered = _in_falling_order(probabilities, top_k)
    count = torch.full_like(ordered[:, :1], ordered.shape[1], dtype=torch.int64)
    if top_p < 1:
        shares = ordered if top_k is None else ordered / ordered.sum(-1, keepdim=True)
        kept = shares.cumsum(-1) - shares < top_p
        count = kept.sum(-1, keepdim=True).clamp(min=1)
    last = ordered.gather(1, count - 1)
    likelier, alike = probabilities > last, probabilities == last
    # Of tokens as likely as the last one the first are kept.
    first = alike & (alike.cumsum(-1) <= count - likelier.sum(-1, keepdim=True))
    probabilities = torch.where(likelier | first, probabilities, 0.0)
    return probabilities / probabilities.sum(-1, keepdim=True)


def _in_falling_order(probabilities: Tensor, most: int | None) -> Tensor:
    """(B, K) the K largest of (B, V) probabilities; `most` None: all.

    On a CPU NumPy sorts eight numbers at once, and torch, which finds their places as well, takes longer than a small
    model: 12 ms for 32 rows of 6,784.
    """
    if most is not None:
        return probabilities.topk(min(most, probabilities.shape[1])).values
    if probabilities.device.type != "cpu":
        return probabilities.sort(dim=-1, descending=True).values
    return torch.from_numpy(np.sort(-probabilities.numpy(), axis=-1)).neg_()


def draw(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """(B,) tokens drawn from (B, V) probabilities by (B,) uniform numbers in [0, 1)."""
    cumulative = probabilities.cumsum(-1)
    whole = cumulative[:, -1:]
    # A number that is rounded up to the whole would be past the last possible token.
    number = torch.minimum(uniform[:, None].to(cumulative) * whole, whole.nextafter(torch.zeros_like(whole)))
    return torch.searchsorted(cumulative, number, right=True)[:, 0]


def chooser(config: GenerationConfig, seeds: Sequence[PromptSeed]) -> Choose:
    """A function that chooses next tokens.

    Args:
        config: how tokens are chosen.
        seeds: (B,) keys of the rows' random numbers.
    """
    numbers = [(seed * 1_000_003 + number) % 2**64 for seed, number in seeds]
    generators = [torch.Generator().manual_seed(number) for number in numbers]
    drawn = torch.empty(len(seeds), 0, dtype=torch.float64)
    steps = 0

    def choose(scores: Tensor, rows: list[int]) -> Tensor:
        nonlocal drawn, steps
        if config.greedy:
            return most_likely(scores)
        # A row uses one number of its own generator a token, whatever the other rows do; it is in all steps to its end.
        if steps % NUMBERS_AT_ONCE == 0:
            blocks = [torch.rand(NUMBERS_AT_ONCE, generator=each, dtype=torch.float64) for each in generators]
            drawn = torch.stack(blocks)
        uniform = drawn[rows, steps % NUMBERS_AT_ONCE].to(scores.device)
        steps += 1
        return draw(filtered(scores, config.temperature, config.top_k, config.top_p), uniform)

    return choose


NUMBERS_AT_ONCE = 64
"""Number of random numbers that are drawn at once for each row."""


def most_likely(scores: Tensor) -> Tensor:
    """(B,) the tokens with the largest of (B, V) scores, the first of equal ones."""
    if scores.device.type != "cpu":
        return scores.argmax(-1)
    # NumPy compares 16 numbers at once: 32 rows of 6,784 take a fifth of torch's time.
    return torch.from_numpy(scores.float().numpy().argmax(-1))
