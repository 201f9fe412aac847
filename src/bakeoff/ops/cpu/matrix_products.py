"""The choice of the library that multiplies matrices of float32 on a CPU."""

from typing import Any

import torch
from torch import Tensor


class Float32Products:
    """The library that multiplies matrices of float32.

    Attributes:
        by_onednn: oneDNN multiplies, in place of the library that torch was built with.
    """

    by_onednn = False

    @classmethod
    def ask_onednn(cls) -> None:
        """Let oneDNN multiply in float32 instead of Intel's MKL, from now on and in the whole process.

        On processors that are not Intel's, MKL keeps to AVX2, which does at most half of what AVX-512 can do. torch
        hands products to oneDNN if they may round to bfloat16, and oneDNN does round on machines with matrix units. A
        product of numbers that bfloat16 lacks shows whether it rounds here.
        """
        setting: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
        before, of_all = setting.fp32_precision, _precision_of_all()
        # torch answers `get_float32_matmul_precision` with an error, also to other libraries, where oneDNN alone may
        # round. The setting of all would make products on a GPU in TF32, though, which nobody asked for.
        if of_all == "highest" and torch.cuda.is_available():
            of_all = None
        if of_all is not None:
            torch.set_float32_matmul_precision("medium")
        else:
            setting.fp32_precision = "bf16"
        cls.by_onednn = _float32_is_kept()
        if not cls.by_onednn:
            if of_all is not None:
                torch.set_float32_matmul_precision(of_all)
            setting.fp32_precision = before


def _precision_of_all() -> str | None:
    """The setting of torch for products of float32 on all devices; None: devices have settings that contradict it."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return None


def laid_out_for_few_rows(weight: Tensor) -> Tensor:
    """An (O, I) weight of float32, stored column by column, for a CPU on which MKL multiplies.

    With such weights MKL multiplies few rows more quickly (8 rows in 0.6 of the time, 32 in 0.8) and many rows as
    quickly; generation multiplies one row for each text that it writes. The weight is no longer contiguous, which files
    require.
    """
    return weight.t().contiguous().t()


def _float32_is_kept() -> bool:
    """Whether products of matrices, single and batched, have no error beyond that of float32."""
    number = 1 + 2.0**-12
    x = torch.full((2, 64, 64), number, device="cpu")
    errors = [float((product / (64 * number**2) - 1).abs().max()) for product in (x[0] @ x[0], x @ x)]
    return max(errors) < 2.0**-20
