"""A spy on operations: it notices what a GPU would be waited for, on tensors that have no content."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

META = torch.device("meta")

ASKED = ("_local_scalar_dense", "is_nonzero", "equal", "allclose")
"""Operations whose result the processor has to know: `.item()`, a tensor's truth, whether two tensors are equal."""

COUNTED = (
    *("nonzero", "nonzero_numpy", "argwhere", "masked_select", "unique_dim", "unique_consecutive", "_unique2"),
    *("unique_dim_consecutive", "bincount", "repeat_interleave.Tensor", "_pack_padded_sequence"),
)
"""Operations whose result has a shape that depends on the content of a tensor."""

WITHOUT_META = ("_fused_sgd_",)
"""Operations in place that torch has not for meta tensors; nothing comes of leaving them out."""

LISTED = ("_foreach_", "_fused_")
"""Beginnings of the names of operations that take lists of tensors, scalars too, on one device."""


class KnownResults:
    """Results of operations on meta tensors by the form of their arguments: torch derives each anew, slowly, in Python.

    A result is made of its shape, strides and type; that of an operation in place is its first argument. Operations
    that give views, and those whose first argument has another shape afterwards, are called each time.
    """

    def __init__(self) -> None:
        self._results: dict[Any, Any] = {}

    def call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Call an operation, or give what it gave for arguments of this form."""
        key = func, form_of(args), tuple((name, form_of(value)) for name, value in kwargs.items())
        if key in self._results:
            return _from(self._results[key], args)
        result = func(*args, **kwargs)
        kept = self._kept(func, args, result)
        if kept is not None and form_of(args) == key[1]:
            self._results[key] = kept
        return result

    @staticmethod
    def _kept(func: Any, args: Any, result: Any) -> Any:
        if func._schema.is_mutable:
            return _NOTHING if result is None else _FIRST if args and result is args[0] else None
        if any(each.alias_info is not None for each in func._schema.returns):
            return None
        tensors = result if isinstance(result, tuple) else (result,)
        if not all(isinstance(each, Tensor) and each.device == META for each in tensors):
            return None
        return type(result) is tuple, [(each.shape, each.stride(), each.dtype) for each in tensors]


_NOTHING, _FIRST = "nothing", "the first argument"


def _from(kept: Any, args: Any) -> Any:
    if kept is _NOTHING:
        return None
    if kept is _FIRST:
        return args[0]
    several, forms = kept
    tensors = tuple(torch.empty_strided(*form[:2], dtype=form[2], device=META) for form in forms)
    return tensors if several else tensors[0]


def form_of(value: Any) -> Any:
    """The shape, strides, type and device of a tensor; other values with their type, since 1 and 1.0 are unlike."""
    if isinstance(value, Tensor):
        return value.shape, value.stride(), value.dtype, value.device.type
    if isinstance(value, tuple | list):
        return tuple(map(form_of, value))
    return type(value), value


KNOWN = KnownResults()


class DeviceSpy(TorchDispatchMode):
    """A mode in which an operation on meta tensors fails where it would make the processor wait for a GPU.

    Meta tensors take the branches that are not the CPU's. Operations on tensors of the CPU alone are free, and so are
    copies to the device that are not waited for.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        here = [each for each in tensors if each.device.type == "cpu"]
        name = str(func).removeprefix("aten.").removesuffix(".default")
        if len(here) < len(tensors):
            self._require_free(name, args, kwargs, here)
        elif here and name == "_to_copy" and torch.device(kwargs.get("device") or "cpu") == META:
            assert kwargs.get("non_blocking"), f"{name}: a copy to the device that is waited for"
        if name in WITHOUT_META:
            return None
        return func(*args, **kwargs) if len(here) == len(tensors) else KNOWN.call(func, args, kwargs)

    @staticmethod
    def _require_free(name: str, args: Any, kwargs: Any, here: list[Tensor]) -> None:
        short = name.partition(".")[0]
        assert short not in ASKED, f"{name}: the processor asks the device for a value"
        assert not {short, name} & set(COUNTED), f"{name}: the shape of the result depends on the content"
        if short in ("index", "index_put", "index_put_", "_unsafe_index"):
            indices = [each for each in args[1] if each is not None]
            assert all(each.dtype not in (torch.bool, torch.uint8) for each in indices), f"{name}: by a mask"
        if short in ("_to_copy", "copy_", "_copy_from"):
            target = kwargs.get("device") or (args[0].device if short == "copy_" else META)
            assert torch.device(target) == META, f"{name}: a copy to the processor"
            assert not here or kwargs.get("non_blocking") or args[2:] == (True,), f"{name}: a copy that is waited for"
            return
        scalars = not name.startswith(LISTED)
        mixed = [each for each in here if each.dim() or not scalars]
        assert not mixed, f"{name}: a tensor of the CPU among those of the device, of shape {tuple(mixed[0].shape)}"


class _Made(TorchFunctionMode):
    """A mode in which a tensor made of values on the device fails: its values are copied, which is waited for."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in (torch.tensor, torch.as_tensor, torch.asarray):
            device = torch.device(kwargs.get("device") or "cpu")
            assert device != META, "torch.tensor: values are copied to the device, which is waited for"
        return func(*args, **kwargs)


@contextlib.contextmanager
def spying() -> Iterator[None]:
    """A context in which an operation fails that a GPU would be waited for; optimizers take meta tensors for its."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (sys.modules[torch.optim.Optimizer.__module__], torch.utils._foreach_utils):
            for kernels in ("_get_fused_kernels_supported_devices", "_get_foreach_kernels_supported_devices"):
                devices = [*getattr(module, kernels)(), META.type]
                patch.setattr(module, kernels, devices.copy)
        with DeviceSpy(), _Made():  # type: ignore[no-untyped-call]
            yield
