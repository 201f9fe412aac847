"""Rotary positions: queries and keys turned by an angle that grows with their position."""

import cmath

import torch
from torch import Tensor

BASE = 10_000.0
"""Of the wavelengths, which run from 2 pi to 2 pi times this."""


def rotate(x: Tensor, start: int = 0) -> Tensor:
    """Turn the pair (x[i], x[i + d/2]) at position t by the angle t / BASE^(2 i / d).

    Su et al. 2021 (arXiv:2104.09864, equation 34), with the halves as pairs, as GPT-NeoX and its followers have it.
    The product of a query and a key then depends on the distance of their positions only.

    Args:
        x: (B, H, T, d), d even.
        start: position of the first token.

    Returns:
        (B, H, T, d).
    """
    length, width = x.shape[-2:]
    rates = BASE ** (-torch.arange(0, width, 2, device=x.device, dtype=torch.float32) / width)  # (d / 2)
    places = torch.arange(start, start + length, device=x.device, dtype=torch.float32)
    angles = places[:, None] * rates  # (T, d / 2)
    cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


def rotate_naive(x: Tensor, start: int = 0) -> Tensor:
    """The same function as a complex multiplication in float64."""
    length, width = x.shape[-2:]
    pairs = torch.complex(*x.double().chunk(2, dim=-1))
    turned = [
        pairs[..., t, i] * cmath.exp(1j * (start + t) / BASE ** (2 * i / width))
        for t in range(length)
        for i in range(width // 2)
    ]
    result = torch.stack(turned, dim=-1).unflatten(-1, (length, width // 2))
    return torch.cat([result.real, result.imag], dim=-1).to(x.dtype)
