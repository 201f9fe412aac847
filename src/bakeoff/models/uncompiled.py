"""Methods that the compiler leaves as they are, for example because shapes in them depend on the text."""

import torch
from torch import nn

UNCOMPILED: list[tuple[type[nn.Module], str]] = []
"""Classes, and the names of their methods.

They are `torch.compiler.disable`d when something is first compiled. As a decorator that would import the compiler with
the class, which takes every process longer than torch itself, and few compile.
"""


def leave_uncompiled() -> None:
    """Have the compiler leave them as they are from now on; to be called once."""
    for owner, name in UNCOMPILED:
        setattr(owner, name, torch.compiler.disable(getattr(owner, name)))
