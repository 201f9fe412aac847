"""Choosing the next token from its probabilities. Shapes: B rows, V vocabulary."""

import torch
from torch import Tensor


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
