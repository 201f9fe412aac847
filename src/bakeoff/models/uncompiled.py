"""Methods that the compiler leaves as they are, for example because shapes in them depend on the text."""

import torch
from torch import nn

UNCOMPILED: list[tuple[type[nn.Module], str]] = []
"""Classes, and the names of their methods.

They are `torch.compiler.disable`d when something is first compiled. A decorator would import the compiler with the
class, which takes longer than importing torch itself, and few processes compile.
"""


def leave_uncompiled() -> None:
    """Make the compiler leave the methods in `UNCOMPILED` as they are from now on; to be called once."""
    for owner, name in UNCOMPILED:
        setattr(owner, name, torch.compiler.disable(getattr(owner, name)))
