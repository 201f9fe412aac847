"""The last tokens before every position at once, for models that read a window of fixed size.

Shapes: B batch, T length, D width, S slots of a window.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def document_ages(documents: Tensor) -> Tensor:
    """(B, T) number of tokens of its own document before each token, from (B, T) document ids."""
    positions = torch.arange(documents.shape[1], device=documents.device)
    begun = torch.where(F.pad(documents[:, 1:] != documents[:, :-1], (1, 0)), positions, 0)
    if torch.compiler.is_exporting():  # ONNX has no running maximum
        return positions - torch.where(positions <= positions[:, None], begun[:, None], 0).amax(2)
    return positions - begun.cummax(dim=1).values


def last_tokens(x: Tensor, slots: int, ages: Tensor | None = None, left: Tensor | None = None) -> Tensor:
    """The window that ends at each position: slot s of position t holds x[t - S + 1 + s].

    The slots come first, so that a convolution over them adds up products of slices that lie in one piece in memory.

    Args:
        x: (B, T, D).
        slots: S, the size of the windows.
        ages: (B, T) largest number of tokens that each position may look back; tokens further back count as zero.
        left: (B, S - 1, D) the inputs before x; zeros where absent.

    Returns:
        (S, B, T, D).
    """
    padded = F.pad(x, (0, 0, slots - 1, 0)) if left is None else torch.cat([left, x], dim=1)
    windows = padded.unfold(1, slots, 1).permute(3, 0, 1, 2)
    if ages is None:
        return windows.contiguous()
    distances = torch.arange(slots - 1, -1, -1, device=x.device)
    return torch.where((distances[:, None, None] <= ages)[..., None], windows, 0.0)
