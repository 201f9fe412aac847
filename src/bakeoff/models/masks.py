"""Which tokens attend to which. Shapes: B batch, T length."""

import torch
from torch import Tensor


def attention_mask(
    real: Tensor | None, documents: Tensor | None, causal: bool, shown: Tensor | None = None
) -> Tensor | None:
    """The mask of rows, in which padding always has a key to attend to, so that no softmax is over nothing.

    Args:
        real: (B, T) True where there is a token.
        documents: (B, T) the document of each token, which attends to its own alone; `real` is then not looked at.
        causal: a token attends to none behind it.
        shown: (B, T) True for tokens that are seen by those before them, too, in a causal model.

    Returns:
        (B, 1, T or 1, T) True where a token attends to another; None: all to all, or all to those before them.
    """
    if documents is not None:
        mask = documents[:, :, None] == documents[:, None, :]
    elif real is not None:
        mask = attended_keys(real)
    elif shown is not None:
        mask = torch.ones_like(shown[:, None])
    else:
        return None
    if causal:
        length = mask.shape[-1]
        square = torch.ones(length, length, dtype=torch.bool, device=mask.device)
        seen = square.tril() if shown is None else square.tril() | shown[:, None]
        mask = (mask & seen) | torch.eye(length, dtype=torch.bool, device=mask.device)
    return mask[:, None]


def memory_mask(length: int, remembered: int, device: torch.device) -> Tensor:
    """(1, 1, T, T) the mask of a chunk whose first tokens go into a memory, for models that see both sides.

    What a memory is made of is not to know the tokens that the next chunk begins with, where they are predicted.
    """
    read = torch.arange(length, device=device) < remembered
    return (read | ~read[:, None])[None, None]


def attended_keys(real: Tensor) -> Tensor:
    """(B, 1, T) True for what may be attended to: tokens, and in a row without any the padding."""
    return (real | ~real.any(-1, keepdim=True))[:, None]


def inside_prefix(ids: Tensor, prefix: Tensor) -> Tensor:
    """(B, T) True for the first (B,) tokens of each row."""
    return torch.arange(ids.shape[1], device=ids.device) < prefix[:, None]


def gaps_mask(gaps: Tensor, start: int, length: int) -> Tensor:
    """(B, 1, T or 1, S) which of all tokens so far those of a chunk see that begins at `start`, in a causal model.

    Nothing stands in the first (B,) gaps of each row; S = start + T.
    """
    places = torch.arange(start + length, device=gaps.device)
    there = (places >= gaps[:, None])[:, None, None]
    return there if length == 1 else there & (places <= places[start:, None])
