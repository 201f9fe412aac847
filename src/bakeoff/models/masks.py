"""Attention masks: the tokens that each token may attend to. Shapes: B batch, T length."""

import torch
from torch import Tensor


def attention_mask(
    padding_mask: Tensor | None, documents: Tensor | None, causal: bool, shown: Tensor | None = None
) -> Tensor | None:
    """The attention mask of rows; padding always has a key to attend to, so that no softmax is over nothing.

    Args:
        padding_mask: (B, T) padding mask, True for tokens.
        documents: (B, T) document ids; tokens attend to their own document alone, and `padding_mask` is not used.
        causal: tokens attend to no later ones.
        shown: (B, T) True for tokens that earlier tokens see, too, in a causal model.

    Returns:
        (B, 1, T or 1, T) True where a token attends to another. None: every token attends to all, or, if causal, to
        itself and all earlier ones.
    """
    if documents is not None:
        mask = documents[:, :, None] == documents[:, None, :]
    elif padding_mask is not None:
        mask = attended_keys(padding_mask)
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

    The remembered tokens must not see the later ones, which begin the next chunk and are predicted there.
    """
    read = torch.arange(length, device=device) < remembered
    return (read | ~read[:, None])[None, None]


def attended_keys(padding_mask: Tensor) -> Tensor:
    """(B, 1, T) True for positions that may be attended to: tokens, and padding in a row without any token."""
    return (padding_mask | ~padding_mask.any(-1, keepdim=True))[:, None]


def inside_prefix(ids: Tensor, prefix: Tensor) -> Tensor:
    """(B, T) True for the first tokens of each row, as many as (B,) `prefix` says."""
    return torch.arange(ids.shape[1], device=ids.device) < prefix[:, None]


def gaps_mask(gaps: Tensor, start: int, length: int) -> Tensor:
    """(B, 1, T or 1, S) the tokens so far that a chunk from position `start` on sees, in a causal model.

    The first positions of each row are empty, as many as (B,) `gaps` says; S = start + T.
    """
    positions = torch.arange(start + length, device=gaps.device)
    there = (positions >= gaps[:, None])[:, None, None]
    return there if length == 1 else there & (positions <= positions[start:, None])
