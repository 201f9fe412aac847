"""Meta tensors in place of those of a GPU: products in bfloat16 and fused attention, to count their memory.

They need no GPU, and give the same counts wherever they are made.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from bakeoff.ops.document_attention import PRODUCTS_ON_META

META = torch.device("meta")

PRODUCTS = frozenset(
    (
        *(F.linear, F.conv1d, F.conv2d, torch.matmul, torch.mm, torch.bmm, torch.addmm, torch.baddbmm, torch.einsum),
        *(Tensor.matmul, Tensor.__matmul__, Tensor.mm, Tensor.bmm, Tensor.addmm, Tensor.baddbmm),
    )
)
"""Functions that autocast makes in bfloat16 on a GPU."""

PRECISE = frozenset(
    (
        *(
            F.layer_norm,
            F.rms_norm,
            F.softmax,
            F.log_softmax,
            F.cross_entropy,
            F.nll_loss,
            torch.softmax,
            torch.log_softmax,
        ),
        *(Tensor.softmax, Tensor.log_softmax, Tensor.logsumexp, Tensor.exp, Tensor.log, Tensor.pow, Tensor.cumsum),
    )
)
"""Functions that autocast makes in float32 on a GPU."""


class GpuStandIn(TorchFunctionMode):
    """A mode in which functions of meta tensors keep for the backward pass what they keep on a GPU.

    Autocast knows no meta tensors, and torch's attention takes them for those of a device without fused kernels. As
    under autocast a weight is cast once.

    Args:
        precision: float32 or bfloat16, the precision of products.
    """

    def __init__(self, precision: str) -> None:
        super().__init__()
        self.lower = precision == "bfloat16"
        self.cast: dict[int, tuple[Tensor, Tensor]] = {}

    def __enter__(self) -> Self:
        PRODUCTS_ON_META.append(torch.bfloat16 if self.lower else torch.float32)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)  # type: ignore[no-untyped-call]
        PRODUCTS_ON_META.pop()

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention:
            return self._attention(*args, **kwargs)
        if self.lower and func in PRODUCTS:
            args, kwargs = (
                self._in(torch.bfloat16, args),
                {key: self._in(torch.bfloat16, kwargs[key]) for key in kwargs},
            )
        elif self.lower and func in PRECISE:
            args, kwargs = self._in(torch.float32, args), {key: self._in(torch.float32, kwargs[key]) for key in kwargs}
        return func(*args, **kwargs)

    def _in(self, dtype: torch.dtype, value: Any) -> Any:
        if isinstance(value, tuple | list):
            return type(value)(self._in(dtype, each) for each in value)
        if not isinstance(value, Tensor) or value.dtype not in (torch.float32, torch.bfloat16) or value.dtype == dtype:
            return value
        if not value.is_leaf or not value.requires_grad:
            return value.to(dtype)
        if id(value) not in self.cast:
            self.cast[id(value)] = value, value.to(dtype)
        return self.cast[id(value)][1]

    def _attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
    ) -> Tensor:
        if self.lower:
            query, key, value = self._in(torch.bfloat16, (query, key, value))
        kernels = torch.ops.aten
        if attn_mask is None and self.lower:
            mixed = kernels._scaled_dot_product_flash_attention(
                query, key, value, dropout_p, is_causal, False, scale=scale
            )
        else:
            bias = attn_mask
            if bias is not None and bias.dtype == torch.bool:
                bias = torch.zeros_like(bias, dtype=query.dtype)
            if bias is not None:
                bias = bias.to(query.dtype).expand(*query.shape[:3], key.shape[2])
            mixed = kernels._scaled_dot_product_efficient_attention(
                query, key, value, bias, True, dropout_p, is_causal, scale=scale
            )
        joined: Tensor = mixed[0]
        return joined
