"""Hot functions as their definitions say them, in loops, for the tests to compare with."""

import cmath
from itertools import pairwise

import torch
from torch import Tensor

from bakeoff.ops.rotary import BASE
from bakeoff.ops.short_convolution import tap_offsets


def short_convolution_naive(
    x: Tensor, weight: Tensor, *, causal: bool, dilation: int = 1, documents: Tensor | None = None
) -> Tensor:
    """`short_convolution` written as its definition: loops over batch, position, channel and tap."""
    batch, length, width = x.shape
    heads, kernel = weight.shape[-2:]
    rows = []
    for b in range(batch):
        for t in range(length):
            for channel in range(width):
                head = channel // (width // heads)
                value = x.new_zeros(())
                for tap, offset in enumerate(tap_offsets(kernel, causal, dilation)):
                    source = t + offset
                    inside = 0 <= source < length
                    if inside and (documents is None or documents[b, source] == documents[b, t]):
                        tap_weight = weight[head, tap] if weight.dim() == 2 else weight[b, t, head, tap]
                        value = value + tap_weight * x[b, source, channel]
                rows.append(value)
    return torch.stack(rows).view(batch, length, width)


def varlen_attn_naive(query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, *, scale=None, window_size=(-1, -1)):
    """torch's `varlen_attn` by its documentation: a loop over sequences, of (tokens, heads, width)."""
    assert cu_seq_q.dtype == cu_seq_k.dtype == torch.int32
    assert cu_seq_q[0] == cu_seq_k[0] == 0
    assert (cu_seq_q[-1], cu_seq_k[-1]) == (len(query), len(key))
    assert len(cu_seq_q) == len(cu_seq_k)
    mixed = []
    for (begin, end), (first, last) in zip(pairwise(cu_seq_q.tolist()), pairwise(cu_seq_k.tolist()), strict=True):
        assert 0 <= end - begin <= max_q
        assert 0 <= last - first <= max_k
        q, k, v = query[begin:end].transpose(0, 1), *(each[first:last].transpose(0, 1) for each in (key, value))
        distance = torch.arange(last - first) - torch.arange(end - begin)[:, None]
        left, right = (max(end - begin, last - first) if side < 0 else side for side in window_size)
        seen = (distance >= -left) & (distance <= right)
        scores = (q @ k.mT) * (q.shape[-1] ** -0.5 if scale is None else scale)
        mixed.append((scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v).transpose(0, 1))
    return torch.cat(mixed)


def convolution_naive(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    causal: bool,
    dilation: int = 1,
    documents: Tensor | None = None,
) -> Tensor:
    """`convolution` written as its definition: loops over batch, position and tap."""
    batch, length, _ = x.shape
    rows = []
    for b in range(batch):
        for t in range(length):
            value = x.new_zeros(weight.shape[0]) if bias is None else bias
            for tap, offset in enumerate(tap_offsets(weight.shape[1], causal, dilation)):
                source = t + offset
                inside = 0 <= source < length
                if inside and (documents is None or documents[b, source] == documents[b, t]):
                    value = value + weight[:, tap] @ x[b, source]
            rows.append(value)
    return torch.stack(rows).view(batch, length, -1)


def last_tokens_naive(x: Tensor, slots: int, ages: Tensor | None = None) -> Tensor:
    """`last_tokens` written as its definition: loops over slot, row and position."""
    batch, length, _ = x.shape
    zero = torch.zeros_like(x[0, 0])
    windows = []
    for slot in range(slots):
        back = slots - 1 - slot
        for b in range(batch):
            for t in range(length):
                seen = back <= t and (ages is None or back <= int(ages[b, t]))
                windows.append(x[b, t - back] if seen else zero)
    return torch.stack(windows).view(slots, batch, length, -1)


def rotate_naive(x: Tensor, start: int = 0, base: float = BASE) -> Tensor:
    """`rotate` as a complex multiplication in float64."""
    length, width = x.shape[-2:]
    pairs = torch.complex(*x.double().chunk(2, dim=-1))
    turned = [
        pairs[..., t, i] * cmath.exp(1j * (start + t) / base ** (2 * i / width))
        for t in range(length)
        for i in range(width // 2)
    ]
    result = torch.stack(turned, dim=-1).unflatten(-1, (length, width // 2))
    return torch.cat([result.real, result.imag], dim=-1).to(x.dtype)
