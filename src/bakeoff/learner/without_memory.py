"""Modules without memory for their weights, to count them and to see whether a file's tensors are theirs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from bakeoff.errors import UserError
from bakeoff.tensors import fill, require_shapes

MOST_OPERATIONS = 1 << 18
"""Largest number of torch's operations that make a model, which take some three seconds: an encoder and a decoder with
the most layers that recipes may have take 210,000."""
M = TypeVar("M", bound=nn.Module)


def without_memory(build: Callable[[], M], name: str) -> M:
    """The module that `build` makes, on the meta device; `name` says in errors what it is.

    Raises:
        UserError: it has tensors of more than 2^63 bytes, or more tensors than are made in some seconds.
    """
    try:
        with torch.device("meta"), _NoInitialWeights(name):
            return build()
    except RuntimeError as error:
        if "overflow" in str(error):
            raise UserError(f"{name}: the model is too large for any machine; give it smaller sizes") from None
        raise


def require_sizes(build: Callable[[], nn.Module], path: Path) -> None:
    """Refuse a file whose tensors are not those of the module that `build` makes, before memory is taken for it.

    Raises:
        UserError: the file cannot be read.
        Damaged: it has other tensors, or is damaged.
    """
    require_shapes(path, without_memory(build, str(path.parent)))


def filled(build: Callable[[], M], path: Path) -> M:
    """The module that `build` makes, with a file's tensors, all of them.

    A recipe may come from somebody else and ask for any size: memory is taken only for one whose sizes the file has.

    Raises:
        UserError: the file cannot be read.
        Damaged: the file is not what was written, or its tensors are not the module's.
    """
    module = without_memory(build, str(path.parent))
    require_shapes(path, module)
    # The drawing of weights that the file replaces would take more than nine tenths of the time.
    module = module.to_empty(device="cpu") if _only_what_is_saved(module) else build()
    fill(module, path)
    return module


def _only_what_is_saved(module: nn.Module) -> bool:
    """Whether all tensors of a module are in its `state_dict`, and each is held once, as memory is given to each."""
    saved = [id(tensor) for tensor in module.state_dict(keep_vars=True).values()]
    attributes = [vars(each) for each in module.modules()]
    held = [id(leaf) for leaf in tree_leaves(attributes) if isinstance(leaf, Tensor)]
    return len(held) == len({*held}) and {*held} == {*saved}


class _NoInitialWeights(TorchFunctionMode):
    """Skips the drawing of initial weights, half of the time that building a model without memory takes.

    Layers, their lists of kernels and what these have multiply, so that no bound of a single number bounds the whole.
    """

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name, self.left = name, MOST_OPERATIONS

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.left -= 1
        if self.left < 0:
            raise UserError(f"{self.name}: the model has too many layers or other parts; give it fewer")
        if func in _DRAWING:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


_DRAWING = frozenset(
    [each for name, each in vars(nn.init).items() if name.endswith("_") and callable(each)]
    + [Tensor.uniform_, Tensor.normal_]
)
