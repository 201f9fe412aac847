"""Short convolution without the compiler, in pieces that fit into a CPU's cache.

Shapes: B batch, N length of the input, T of the output, P of the padded input, D width, H heads, R = D / H, K kernel
size.
"""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from bakeoff.ops.taps import Taps

PIECE_BYTES = 1 << 19
"""Bytes of the input on which the loop over the taps works at once."""

PIECE_LENGTH = 128
"""Number of positions of a row that torch's depthwise convolution gets at once. For rows of 512 tokens and kernels
of 31 taps, or more, it reads each token anew from memory for every tap, and takes two to four times as long.
"""


def depthwise(x: Tensor, weight: Tensor, taps: Taps) -> Tensor:
    """(B, N, D) with kernels (H, K) to (B, T, D), by torch's depthwise convolution."""
    padded, kernels, halo = taps.pad(x), _of_channels(weight, x.shape[-1]), taps.halo(weight.shape[-1])
    length = padded.shape[1] - halo
    y = x.new_empty(len(x), length, x.shape[-1])
    for piece in _stretches(length, x):
        image = _image(padded[:, piece.start : piece.stop + halo])
        mixed = F.conv2d(image, kernels, dilation=(1, taps.dilation), groups=len(kernels))
        y[:, piece] = _rows(mixed)
    return y


def depthwise_gradients(x: Tensor, weight: Tensor, taps: Taps, upstream: Tensor) -> tuple[Tensor, Tensor]:
    """(B, N, D) and (H, K) gradients of `depthwise` with respect to x and weight, from the gradient of its result."""
    padded, kernels, halo = taps.pad(x), _of_channels(weight, x.shape[-1]), taps.halo(weight.shape[-1])
    of_padded, of_kernels = torch.zeros_like(padded), torch.zeros_like(kernels)
    for piece in _stretches(upstream.shape[1], x):
        under = slice(piece.start, piece.stop + halo)
        of_image, of_these, _ = torch.ops.aten.convolution_backward(
            _image(upstream[:, piece]),
            _image(padded[:, under]),
            kernels,
            None,  # no bias
            stride=[1, 1],
            padding=[0, 0],
            dilation=[1, taps.dilation],
            transposed=False,
            output_padding=[0, 0],
            groups=len(kernels),
            output_mask=[True, True, False],
        )
        of_padded[:, under] += _rows(of_image)
        of_kernels += of_these
    return _unpadded(of_padded, x, taps), of_kernels[:, 0, 0].unflatten(0, (len(weight), -1)).sum(1)


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
