"""Rotary positions: queries and keys turned by an angle that grows with their position."""

from functools import lru_cache

import torch
from torch import Tensor

from bakeoff.ops.cpu.rotary import Rotation

BASE = 10_000.0
"""The usual base of the wavelengths, which run from 2 pi to 2 pi times the base."""


def rotate(x: Tensor, start: int = 0, base: float = BASE) -> Tensor:
    """Turn the pair (x[i], x[i + d/2]) at position t by the angle t / base^(2 i / d).

    Su et al. 2021 (arXiv:2104.09864, equation 34), with pairs made across the two halves, as in GPT-NeoX and its
    followers. The product of a query and a key then depends on the distance of their positions only.

    Args:
        x: (B, H, T, d), d even.
        start: position of the first token.
        base: the base of the wavelengths; with a larger base the slowest pairs distinguish positions farther apart.

    Returns:
        (B, H, T, d).
    """
    length, width = x.shape[-2:]
    if torch.compiler.is_compiling() or type(x) is not Tensor or x.device.type != "cpu":
        cosine, sine = _waves(start, length, width, base, x.dtype, x.device)
        first, second = x.chunk(2, dim=-1)
        return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)
    result: Tensor = Rotation.apply(x, *kept_waves(start, length, width, base, x.dtype))  # type: ignore[no-untyped-call]
    return result


def _waves(
    start: int, length: int, width: int, base: float, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """(T, d / 2) the cosines and the sines of the angles."""
    # A quotient, as transformers has it: at far positions the last bit of a rate is seen.
    rates = 1.0 / base ** (torch.arange(0, width, 2, device=device, dtype=torch.float32) / width)  # (d / 2)
    positions = torch.arange(start, start + length, device=device, dtype=torch.float32)
    angles = positions[:, None] * rates  # (T, d / 2)
    return angles.cos().to(dtype), angles.sin().to(dtype)


@lru_cache(maxsize=8)
def kept_waves(start: int, length: int, width: int, base: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """(T, d / 2) cosines and sines on the CPU, kept for the next layer and the next step."""
    with torch.inference_mode(False):  # training may be next to use them
        return _waves(start, length, width, base, dtype, torch.device("cpu"))
