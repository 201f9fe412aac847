"""The recipes of Vaswani et al. 2017 and Wu et al. 2019 against their equations, written out in float64.

What the papers and their code fix is written here, not read from the recipe: places of the norms, their epsilon,
scaling, activation, kernel sizes, dropouts, label smoothing.
"""

import math
from typing import NamedTuple

import pytest
import torch
from tests.models.parity import VOCABULARY, assert_equal, loss_of, marked, sized

from bakeoff.batching.batch import Batch
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.row import Row, Source

pytestmark = pytest.mark.usefixtures("double", "marked_dropout")

WIDTH, HEADS, LAYERS, INNER, SOURCE, TARGET = 30, 5, 4, 51, 13, 9


class System(NamedTuple):
    """What a paper and its code say."""

    epsilon: float
    rate: float
    """Of embeddings and of every sublayer's output."""
    cross: float
    """Of the weights of attention to the source."""
    kernels: list[int] | None
    """None: attention."""
    taps: float = 0.0
    """Of the kernels after their softmax."""
    read: float = 0.0
    """Of what the gated map before the convolution reads."""
    dynamic: bool = False


SHORT = {"epsilon": 1e-5, "rate": 0.3, "cross": 0.1, "kernels": [3, 7, 15, 31], "taps": 0.1, "read": 0.1}
SYSTEMS = {
    "transformer-base-wmt": System(epsilon=1e-6, rate=0.1, cross=0.0, kernels=None),
    "transformer-big-wmt": System(epsilon=1e-6, rate=0.3, cross=0.0, kernels=None),
    "light-wmt": System(**SHORT),
    "dynamic-wmt": System(**SHORT, dynamic=True),
}


class Reference:
    """y = LN(x + dropout(f(x))) for f self-attention or convolution, attention to the source, W relu(V x)."""

    def __init__(self, system: System, module: PretrainingModel, training: bool) -> None:
        self.system, self.module, self.training = system, module, training

    def drop(self, x, rate):
        return marked(x, rate) if self.training else x

    def norm(self, x, norm):
        centred = x - x.mean(-1, keepdim=True)
        return (
            centred / (centred.square().mean(-1, keepdim=True) + self.system.epsilon).sqrt() * norm.weight + norm.bias
        )

    def sublayer(self, x, part, y):
        return self.norm(x + self.drop(y, self.system.rate), part.norm)

    def embed(self, ids):
        """sqrt(D) E[id] + PE, section 3.4 and 3.5."""
        table = self.module.model.embedding.tokens.weight
        waves = torch.zeros(ids.shape[1], WIDTH)
        for t in range(ids.shape[1]):
            for i in range(0, WIDTH, 2):
                angle = t / 10_000 ** (i / WIDTH)
                waves[t, i], waves[t, i + 1] = math.sin(angle), math.cos(angle)
        return self.drop(table[ids] * math.sqrt(WIDTH) + waves, self.system.rate)

    def attend(self, query, key, value, output, seen, rate):
        """Equation 1, head by head; `seen` is (B, T, S)."""
        mixed, width = [], WIDTH // HEADS
        for head in range(HEADS):
            own = slice(head * width, (head + 1) * width)
            scores = query[..., own] @ key[..., own].transpose(1, 2) / math.sqrt(width)
            weights = torch.exp(scores.masked_fill(~seen, -torch.inf))
            mixed.append(self.drop(weights / weights.sum(-1, keepdim=True), rate) @ value[..., own])
        return output(torch.cat(mixed, dim=-1))

    def convolve(self, function, x, padding_mask, kernel, causal):
        """Wu et al. 2019, equations 3 to 6, after the gated linear unit."""
        read = self.drop(x, self.system.read) @ function.input.weight.T + function.input.bias
        u = read[..., :WIDTH] / (1 + torch.exp(-read[..., WIDTH:])) * padding_mask[..., None]
        if self.system.dynamic:
            raw = (u @ function.prediction.weight.T).unflatten(-1, (HEADS, kernel))
        else:
            raw = function.taps.expand(*u.shape[:2], HEADS, kernel)
        weights = torch.exp(raw) / torch.exp(raw).sum(-1, keepdim=True)
        weights = self.drop(weights, self.system.taps).repeat_interleave(WIDTH // HEADS, dim=2)  # (B, T, D, K)
        y = []
        for t in range(u.shape[1]):
            total = torch.zeros_like(u[:, 0])
            for j in range(kernel):
                s = t + j - (kernel - 1 if causal else kernel // 2)
                if 0 <= s < u.shape[1]:
                    total = total + weights[:, t, :, j] * u[:, s]
            y.append(total)
        return torch.stack(y, dim=1) @ function.output.weight.T + function.output.bias

    def mix(self, function, x, padding_mask, layer, causal):
        if self.system.kernels is not None:
            return self.convolve(function, x, padding_mask, self.system.kernels[layer], causal)
        query, key, value = function.query_key_value(x).chunk(3, dim=-1)
        seen = padding_mask[:, None, :].expand(-1, x.shape[1], -1)
        return self.attend(query, key, value, function.output, seen.tril() if causal else seen, 0.0)

    def stack(self, stack, x, padding_mask, source=None, source_padding_mask=None):
        for layer, parts in enumerate(stack.layers):
            mixer, *cross, network = parts
            x = self.sublayer(x, mixer, self.mix(mixer.function, x, padding_mask, layer, causal=source is not None))
            for part in cross:
                own = part.function
                key, value = own.key_value(source).chunk(2, dim=-1)
                seen = source_padding_mask[:, None, :].expand(-1, x.shape[1], -1)
                y = self.attend(own.query(x), key, value, own.output, seen, self.system.cross)
                x = self.sublayer(x, part, y)
            own = network.function
            inner = own.input(x)
            x = self.sublayer(x, network, own.output(inner * (inner > 0)))
        return x

    def scores(self, batch):
        model = self.module.model
        encoded = self.stack(model.encoder, self.embed(batch.row.source.ids), batch.row.source.padding_mask)
        everything = torch.ones_like(batch.row.ids, dtype=torch.bool)
        decoded = self.stack(
            model.decoder, self.embed(batch.row.ids), everything, encoded, batch.row.source.padding_mask
        )
        return decoded @ model.embedding.tokens.weight.T


@pytest.mark.parametrize("mode", ["evaluation", "training"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_recipe_is_its_papers_equations(name, mode):
    """Scores, the loss with labels smoothed by 0.1, and the gradient of every parameter."""
    recipe = sized(name, width=WIDTH, heads=HEADS, layers=LAYERS, inner=INNER)
    torch.manual_seed(0)
    module = PretrainingModel(recipe, VOCABULARY).train(mode == "training")
    for key, parameter in module.named_parameters():
        parameter.data = torch.randn(parameter.shape) * 0.2 + (1.0 if key.endswith("norm.weight") else 0.0)
    ids, labels = (torch.randint(5, VOCABULARY, (2, TARGET)) for _ in range(2))
    padding_mask = torch.arange(SOURCE) < torch.tensor([[SOURCE], [8]])
    targets = {"translation": (torch.arange(2 * TARGET), labels.flatten())}
    source = Source(torch.randint(5, VOCABULARY, (2, SOURCE)), padding_mask)
    batch = Batch(Row(ids, source=source), targets, tokens=ids.numel())
    expected = Reference(SYSTEMS[name], module, mode == "training").scores(batch)
    found = module.heads["translation"].scores(module.model(batch.row)[0], module.model.embedding.weight)
    assert_equal(found, expected, "scores")
    logarithms = expected - torch.log(torch.exp(expected).sum(-1, keepdim=True))
    right = logarithms.gather(-1, labels[..., None])[..., 0]
    expected_loss = -(0.9 * right + 0.1 * logarithms.mean(-1)).mean()
    loss = loss_of(module, batch)
    assert_equal(loss, expected_loss, "loss")
    parameters = dict(module.named_parameters())
    ours = torch.autograd.grad(loss, list(parameters.values()))
    theirs = torch.autograd.grad(expected_loss, list(parameters.values()))
    for key, mine, their in zip(parameters, ours, theirs, strict=True):
        assert_equal(mine, their, key)
