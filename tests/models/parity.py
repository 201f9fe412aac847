"""How a recipe of ours is compared with another implementation: same weights, same loss, same gradients, in float64.

What the recipe says beside sizes is left as published; what the other implementation has by default is left as it is.
Dropout is compared too: both sides' is replaced by a factor that depends on the rate and on the channel, so that one
which is missing, has another rate, or stands elsewhere changes the result.
"""

import sys
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe

VOCABULARY = 97
SIZES = {"width": 35, "heads": 5, "layers": 3, "inner": 51}


def sized(name: str, width: int, heads: int, layers: int, inner: int, **changes: object) -> Recipe:
    """A registered recipe in another size, and the same in all else."""
    recipe = load_recipe(name)
    made = dict(changes)
    for side, stack in recipe.model.stacks().items():
        own = {"width": width, "layers": layers, "block.mixer.heads": heads, "block.ffn.width": inner}
        if stack.block.cross is not None:
            own["block.cross.heads"] = heads
        made |= {f"model.{side}.{key}": value for key, value in own.items()}
    return recipe.changed(made)


def marked(x: Tensor, rate: float) -> Tensor:
    """What stands in for dropout: a factor of its own for each rate and channel."""
    return x * (1 + rate * torch.cos(torch.arange(x.shape[-1], dtype=x.dtype)))


def replace_everywhere(monkeypatch, function, by):
    """Whatever module has taken the function by name takes the other one."""
    for name, module in list(sys.modules.items()):
        if name.startswith("bakeoff."):
            for key, value in list(vars(module).items()):
                if value is function:
                    monkeypatch.setattr(module, key, by)


def randomise(module: nn.Module, deviation: float = 0.2) -> None:
    """Weights far from their gentle start, norms and biases too, so that nothing can hide."""
    generator = torch.Generator().manual_seed(3)
    for parameter in module.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator) * deviation + (
            1.0 if parameter.dim() == 1 else 0.0
        )


Join = Callable[[Sequence[Tensor]], Tensor]


class Links:
    """Which parameters of theirs each parameter of ours is made of."""

    def __init__(self, ours: nn.Module) -> None:
        self.names = {id(parameter): name for name, parameter in ours.named_parameters()}
        self.pairs: list[tuple[nn.Parameter, tuple[nn.Parameter, ...], Join]] = []

    def tensor(self, target: nn.Parameter, *sources: nn.Parameter, join: Join = torch.cat) -> None:
        """One parameter, whose weights are loaded at once."""
        target.data = join([source.data for source in sources]).clone()
        self.pairs.append((target, sources, join))

    def linear(self, target: nn.Module, *sources: nn.Module) -> None:
        """A linear map or norm, from one or several side by side."""
        for name, parameter in target.named_parameters():
            self.tensor(parameter, *(getattr(source, name) for source in sources))

    def transposed(self, target: nn.Module, source: nn.Module) -> None:
        """A linear map from one whose weight lies the other way round."""
        self.tensor(target.weight, source.weight, join=lambda each: each[0].T.contiguous())
        self.tensor(target.bias, source.bias)

    def check_gradients(self) -> None:
        """Every parameter of ours is linked, and has the gradient of what it is made of."""
        linked = [self.names[id(target)] for target, _, _ in self.pairs]
        assert sorted(linked) == sorted(self.names.values())
        for name, (target, sources, join) in zip(linked, self.pairs, strict=True):
            assert target.grad is not None, name
            assert_equal(target.grad, join([source.grad for source in sources]), name)


def assert_equal(found: Tensor, expected: Tensor, what: str = "") -> None:
    """To what float64 leaves of it."""
    assert found.dtype == expected.dtype == torch.float64
    tolerance = 1e-11 * float(expected.detach().abs().max())
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=1e-9, msg=lambda text: f"{what}: {text}")


def loss_of(module: PretrainingModel, batch) -> Tensor:
    """The sum of the objectives' mean losses."""
    return sum(total / len(batch.targets[name][1]) for name, total in module(batch)[0].items())
