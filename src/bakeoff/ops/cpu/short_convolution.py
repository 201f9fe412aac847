"""Short convolution without the compiler, in pieces that fit into a CPU's cache.

Shapes: B batch, N length of the input, T of the output, P of the padded input, D width, H heads, R = D / H, K kernel
size.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from bakeoff.ops.cpu.compiled_kernels import BLOCK, run
from bakeoff.ops.taps import Taps

PIECE_BYTES = 1 << 19
"""Bytes of the input on which the loop over the taps works at once."""

PIECE_LENGTH = 128
"""Number of positions of a row that torch's depthwise convolution gets at once. For rows of 512 tokens and kernels
of 31 taps, or more, it reads each token anew from memory for every tap, and takes two to four times as long.
"""


def depthwise(x: Tensor, weight: Tensor, taps: Taps) -> Tensor:
    """(B, N, D) with kernels (H, K) to (B, T, D), by torch's depthwise convolution."""
    kernels, halo = _of_channels(weight, x.shape[-1]), taps.halo(weight.shape[-1])
    if _at_once(x, taps, halo):
        return _by_images(x, kernels, taps.before, taps.dilation)
    padded = taps.pad(x)
    length = padded.shape[1] - halo
    y = x.new_empty(len(x), length, x.shape[-1])
    for piece in _stretches(length, x):
        y[:, piece] = _by_images(padded[:, piece.start : piece.stop + halo], kernels, 0, taps.dilation)
    return y


def depthwise_gradients(x: Tensor, weight: Tensor, taps: Taps, upstream: Tensor) -> tuple[Tensor, Tensor]:
    """(B, N, D) and (H, K) gradients of `depthwise` with respect to x and weight, from the gradient of its result."""
    kernels, halo = _of_channels(weight, x.shape[-1]), taps.halo(weight.shape[-1])
    if _at_once(x, taps, halo) and weight.shape[-1] <= TAPS_AT_ONCE:
        of_image, of_kernels = _gradients(upstream, x, kernels, taps, (True, True), taps.before)
        return _rows(of_image), _of_heads(of_kernels, weight)
    if _at_once(x, taps, halo):
        of_x = _by_images(upstream, kernels.flip(-1), taps.before, taps.dilation)
        return of_x, _of_heads(_gradient_of_kernels(upstream, taps.pad(x), kernels, taps), weight)
    padded = taps.pad(x)
    of_padded, of_kernels = torch.zeros_like(padded), torch.zeros_like(kernels)
    joint = x.dtype != torch.bfloat16
    for piece in _stretches(upstream.shape[1], x):
        above, under = upstream[:, piece], slice(piece.start, piece.stop + halo)
        of_image, of_these = _gradients(above, padded[:, under], kernels, taps, (True, joint))
        of_padded[:, under] += _rows(of_image)
        of_kernels += of_these if joint else _gradient_of_kernels(above, padded[:, under], kernels, taps)
    return _unpadded(of_padded, x, taps), _of_heads(of_kernels, weight)


TAPS_AT_ONCE = 3
"""Number of taps whose gradients oneDNN makes at once in bfloat16: of five it takes 27 times as long as of three."""


def _gradient_of_kernels(upstream: Tensor, padded: Tensor, kernels: Tensor, taps: Taps) -> Tensor:
    """(D, 1, 1, K) gradient of kernels in bfloat16, a few taps at a time."""
    length, found = upstream.shape[1], []
    for first, some in zip(range(0, kernels.shape[-1], TAPS_AT_ONCE), kernels.split(TAPS_AT_ONCE, dim=-1), strict=True):
        begin = first * taps.dilation
        under = padded[:, begin : begin + length + taps.halo(some.shape[-1])]
        found.append(_gradients(upstream, under, some, taps, (False, True))[1])
    return torch.cat(found, dim=-1)


def _gradients(
    upstream: Tensor, x: Tensor, kernels: Tensor, taps: Taps, wanted: tuple[bool, bool], padding: int = 0
) -> tuple[Tensor, Tensor]:
    """The gradients of an image, (B, D, 1, P), and of (D, 1, 1, K) kernels, as far as they are wanted."""
    of_image, of_kernels, _ = torch.ops.aten.convolution_backward(
        _image(upstream),
        _image(x),
        kernels,
        None,  # no bias
        stride=[1, 1],
        padding=[0, padding],
        dilation=[1, taps.dilation],
        transposed=False,
        output_padding=[0, 0],
        groups=len(kernels),
        output_mask=[*wanted, False],
    )
    return of_image, of_kernels


def _at_once(x: Tensor, taps: Taps, halo: int) -> bool:
    """Whether torch may pad and write the result itself: bfloat16 in short rows, with as many taps on both sides."""
    short = x.dtype == torch.bfloat16 and x.shape[1] <= PIECE_LENGTH
    return short and taps.before == taps.after and taps.before + taps.after == halo


def _by_images(x: Tensor, kernels: Tensor, padding: int, dilation: int) -> Tensor:
    """(B, N, D) with (D, 1, 1, K) kernels to (B, T, D), after so many zeros on both sides."""
    image = F.conv2d(_image(x), kernels, padding=(0, padding), dilation=(1, dilation), groups=len(kernels))
    return _rows(image)


def by_kernel(x: Tensor, weight: Tensor, same: Tensor | None, taps: Taps) -> Tensor:
    """(B, N, D) of bfloat16 with kernels (H, K) to (B, T, D) in one pass; `same`, (B, T, K), are factors of taps."""
    rows, length, width = x.shape
    kernel = weight.shape[-1]
    y = x.new_empty(rows, length + taps.before + taps.after - taps.halo(kernel), width)
    given = x.contiguous(), _by_tap(weight, width), _factors(same, x)
    shape = length, y.shape[1], width, taps.before, taps.dilation, kernel
    run("short_convolution", rows * y.shape[1], kernel * width, *given, y, *shape)
    return y


def gradients_by_kernel(
    x: Tensor, weight: Tensor, same: Tensor | None, taps: Taps, upstream: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of `by_kernel` with respect to x and weight, from the gradient of its result."""
    rows, length, width = x.shape
    kernel, count = weight.shape[-1], rows * length
    blocks = -(-count // BLOCK)
    of_x, of_taps = x.new_empty(x.shape), x.new_empty(blocks, kernel, width, dtype=torch.float32)
    given = x.contiguous(), _by_tap(weight, width), _factors(same, x), upstream.contiguous()
    shape = length, upstream.shape[1], width, taps.before, taps.dilation, kernel
    run("short_convolution_gradient", blocks, BLOCK * kernel * width, count, *given, of_x, of_taps, *shape)
    of_heads = of_taps.sum(0).t().unflatten(0, (len(weight), -1)).sum(1)  # (H, K)
    return of_x, of_heads.to(weight.dtype)


def _by_tap(weight: Tensor, width: int) -> Tensor:
    """(H, K) kernels of heads as (K, D) float32."""
    return weight.float().t().repeat_interleave(width // len(weight), dim=1).contiguous()


def _factors(same: Tensor | None, x: Tensor) -> Tensor | None:
    return None if same is None else same.to(x.dtype).contiguous()


def sum_by_tap(x: Tensor, weight: Tensor, same: Tensor | None, taps: Taps) -> Tensor:
    """(B, N, D) with kernels (H, K) or (B, T, H, K) to (B, T, D); `same`, (B, T, K), is a factor of the taps."""
    heads, kernel = weight.shape[-2:]
    padded = taps.pad(x)
    y = x.new_zeros(len(x), padded.shape[1] - taps.halo(kernel), x.shape[-1])
    for rows, piece in _pieces(y):
        part = y[rows, piece].unflatten(-1, (heads, -1))  # (B, T, H, R)
        for tap in range(kernel):
            term = padded[rows, _under(piece, tap, taps)].unflatten(-1, (heads, -1))
            part.addcmul_(_weights_of_tap(weight, same, rows, piece, tap), term)
    return y


def gradients_by_tap(
    x: Tensor, weight: Tensor, same: Tensor | None, taps: Taps, upstream: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients of `sum_by_tap` with respect to x and weight, from the gradient of its result."""
    heads, kernel = weight.shape[-2:]
    padded = taps.pad(x)
    of_padded, of_weight = torch.zeros_like(padded), torch.zeros_like(weight)
    for rows, piece in _pieces(upstream):
        above = upstream[rows, piece]
        by_head = above.unflatten(-1, (heads, -1))
        for tap in range(kernel):
            under = _under(piece, tap, taps)
            weights = _weights_of_tap(weight, same, rows, piece, tap)
            of_padded[rows, under].unflatten(-1, (heads, -1)).addcmul_(weights, by_head)
            product = padded[rows, under] * above
            if same is not None:
                product *= same[rows, piece, tap, None]
            if weight.dim() == 2:
                of_weight[:, tap] += product.sum((0, 1)).unflatten(0, (heads, -1)).sum(-1)
            else:
                of_weight[rows, piece, :, tap] = product.unflatten(-1, (heads, -1)).sum(-1)
    return _unpadded(of_padded, x, taps), of_weight


def _of_channels(weight: Tensor, width: int) -> Tensor:
    """(H, K) kernels of heads as (D, 1, 1, K) kernels of channels."""
    return weight.repeat_interleave(width // len(weight), dim=0)[:, None, None]


def _of_heads(of_kernels: Tensor, weight: Tensor) -> Tensor:
    """The (H, K) gradient of the weight from the (D, 1, 1, K) one of the channels' kernels."""
    of_channels = of_kernels[:, 0, 0]
    summed: Tensor = of_channels.unflatten(0, (len(weight), -1)).sum(1)
    return summed


def _image(x: Tensor) -> Tensor:
    """(B, T, D) as an image of height 1, (B, D, 1, T), whose channels lie side by side in memory already."""
    return x.transpose(1, 2)[:, :, None]


def _rows(image: Tensor) -> Tensor:
    return image[:, :, 0].transpose(1, 2)


def _unpadded(padded: Tensor, x: Tensor, taps: Taps) -> Tensor:
    return padded[:, taps.before : taps.before + x.shape[1]]


def _stretches(length: int, x: Tensor) -> Iterator[slice]:
    """Stretches of a row of `length` positions, each of `PIECE_LENGTH` at most on a CPU."""
    size = PIECE_LENGTH if x.device.type == "cpu" else length
    for start in range(0, length, size):
        yield slice(start, min(start + size, length))


def _pieces(y: Tensor) -> Iterator[tuple[slice, slice]]:
    """Pieces of y, as slices of rows and of positions: a few whole rows, or a stretch of a long row."""
    rows, length = y.shape[:2]
    if y.device.type == "cpu":
        tokens = max(1, PIECE_BYTES // (y.shape[2] * y.element_size()))
        rows, length = max(1, tokens // length), min(length, tokens)
    for row in range(0, len(y), rows):
        for start in range(0, y.shape[1], length):
            yield slice(row, row + rows), slice(start, min(start + length, y.shape[1]))


def _under(piece: slice, tap: int, taps: Taps) -> slice:
    """The positions of the padded input that a tap reads for a stretch of the output."""
    return slice(piece.start + tap * taps.dilation, piece.stop + tap * taps.dilation)


def _weights_of_tap(weight: Tensor, same: Tensor | None, rows: slice, piece: slice, tap: int) -> Tensor:
    """(H, 1), or (B, T, H, 1) where the weights differ by token or taps fall into other documents."""
    of_tap = weight[..., tap, None] if weight.dim() == 2 else weight[rows, piece, :, tap, None]
    return of_tap if same is None else of_tap * same[rows, piece, tap, None, None]
