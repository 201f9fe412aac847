"""The matrices of a model: the weights that map vectors to vectors, which an optimizer like Muon treats as such.

Every module declares which of its parameters are matrices, as a class attribute `matrices`: their names, or `()`.
Where a module declares nothing, its parameters of two dimensions are matrices and all others are not, as torch's linear
maps and recurrent cells have them. Tables of torch's `nn.Embedding` are none: a row of a table is looked up, and not
multiplied.
"""

from collections.abc import Iterator

from torch import nn


def matrices(module: nn.Module) -> Iterator[nn.Parameter]:
    """The matrices of a module and of all modules inside it, each once, with two dimensions or more.

    Of a matrix with more dimensions all but the first count as one, as in a convolution's weight of (O, K, D).
    """
    parameters: dict[nn.Parameter, None] = {}
    for part in module.modules():
        if not isinstance(part, nn.ParameterList | nn.ParameterDict):  # whose parameters are those of their owner
            parameters |= dict.fromkeys(_own_matrices(part))
    return iter(parameters)


def declared_matrices(module: nn.Module) -> tuple[str, ...] | None:
    """The names of its parameters that a module declares to be matrices; None: it declares nothing."""
    if isinstance(module, nn.Embedding):
        return ()
    names: tuple[str, ...] | None = getattr(type(module), "matrices", None)
    return names


def own_parameters(module: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """The parameters of a module itself with their names, those of a list under the name of the list."""
    yield from module.named_parameters(recurse=False)
    for name, child in module.named_children():
        if isinstance(child, nn.ParameterList | nn.ParameterDict):
            yield from ((name, parameter) for parameter in child.parameters(recurse=False))


def _own_matrices(module: nn.Module) -> Iterator[nn.Parameter]:
    names = declared_matrices(module)
    for name, parameter in own_parameters(module):
        if parameter.dim() == 2 if names is None else name in names:
            yield parameter
