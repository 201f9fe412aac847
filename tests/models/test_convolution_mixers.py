"""Convolutional mixers and controls against the papers' equations, in float64 and with a loop for every index."""

import math

import pytest
import torch

from bakeoff.errors import UserError
from bakeoff.models.context import UNKNOWN, BuildContext, Context
from bakeoff.models.mixers.average import AverageConfig
from bakeoff.models.mixers.conv import ConvConfig
from bakeoff.models.mixers.depthwise_conv import DepthwiseConvConfig
from bakeoff.models.mixers.dynamic_conv import DynamicConvConfig
from bakeoff.models.mixers.light_conv import LightConvConfig

WIDTH, HEADS, LENGTH = 6, 3, 7
PADDING_MASK = [[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0]]
DOCUMENTS = [[1, 1, 2, 2, 2, 3, 3], [1, 2, 2, 2, 2, 0, 0]]
CONFIGS = {
    "light": LightConvConfig(kernel=3, heads=HEADS),
    "light even": LightConvConfig(kernel=4, heads=HEADS),
    "dynamic": DynamicConvConfig(kernel=3, heads=HEADS),
    "dilated": DepthwiseConvConfig(kernel=3, dilation=2),
    "dense": ConvConfig(kernel=3),
    "no gate": LightConvConfig(kernel=3, heads=HEADS, gate=False),
}


def built(config, causal):
    torch.manual_seed(0)
    mixer = config.build(BuildContext(width=WIDTH, causal=causal, dropout=0.0)).double()
    for parameter in mixer.parameters():
        torch.nn.init.normal_(parameter)
    return mixer


def affine(linear, vector):
    rows = linear.weight.tolist()
    bias = [0.0] * len(rows) if linear.bias is None else linear.bias.tolist()
    return [b + sum(w * v for w, v in zip(row, vector, strict=True)) for row, b in zip(rows, bias, strict=True)]


def softmax(values):
    powers = [math.exp(value) for value in values]
    return [power / sum(powers) for power in powers]


def row_by_equation(config, mixer, x, causal, padding_mask, documents):
    """W_O Conv(W_I x * sigmoid(W_S x)) of Tay et al. 2021, 3.2; the kernels of Wu et al. 2019, 3.1 and 3.2."""
    hidden = []
    for t in range(LENGTH):
        both = affine(mixer.input, x[t])
        gates = [1 / (1 + math.exp(-s)) for s in both[WIDTH:]] if config.gate else [1.0] * WIDTH
        hidden.append([value * gate * padding_mask[t] for value, gate in zip(both, gates, strict=False)])
    size = config.kernel
    result = []
    for t in range(LENGTH):
        mixed = []
        for c in range(WIDTH):
            h = -(-(c + 1) * HEADS // WIDTH) - 1  # ceil(c H / d), counted from 1
            if config.kind == "light_conv":
                kernel = softmax(mixer.taps[h].tolist())
            elif config.kind == "dynamic_conv":
                predicted = affine(mixer.prediction, hidden[t])
                kernel = softmax(predicted[h * size : (h + 1) * size])
            elif config.kind == "depthwise_conv":
                kernel = mixer.taps[c].tolist()
            total = 0.0
            for j in range(1, size + 1):
                back = size if causal else -(-(size + 1) // 2)  # X[i + j - ceil((k + 1) / 2)] where it is centred
                source = t + (j - back) * config.dilation
                if not 0 <= source < LENGTH or documents[source] != documents[t]:
                    continue
                if config.kind == "conv":
                    row = mixer.taps[c, j - 1].tolist()
                    total += sum(w * v for w, v in zip(row, hidden[source], strict=True))
                else:
                    total += kernel[j - 1] * hidden[source][c]
            mixed.append(total)
        result.append(affine(mixer.output, mixed))
    return result


@pytest.mark.parametrize("packing", ["whole", "padded", "packed"])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", CONFIGS)
def test_a_mixer_is_its_equation(name, causal, packing):
    config = CONFIGS[name]
    mixer = built(config, causal)
    x = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64)
    padding_mask = PADDING_MASK if packing == "padded" else [[1] * LENGTH] * 2
    documents = DOCUMENTS if packing == "packed" else [[1] * LENGTH] * 2
    row = UNKNOWN._replace(
        padding_mask=torch.tensor(padding_mask).bool() if packing == "padded" else None,
        documents=torch.tensor(documents) if packing == "packed" else None,
    )
    rows = [row_by_equation(config, mixer, x[b].tolist(), causal, padding_mask[b], documents[b]) for b in range(2)]
    expected = torch.tensor(rows, dtype=torch.float64)
    torch.testing.assert_close(mixer(x, Context(row))[0], expected, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("name", ["light", "dynamic", "dense"])
@pytest.mark.parametrize("packing", ["whole", "packed"])
def test_gradients_are_those_of_the_function(name, packing):
    mixer = built(CONFIGS[name], causal=True)
    documents = torch.tensor(DOCUMENTS) if packing == "packed" else None
    x = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda x, *_: mixer(x, Context(UNKNOWN._replace(documents=documents)))[0], (x, *mixer.parameters())
    )


def test_weight_dropout_takes_taps_behind_the_softmax():
    mixer = LightConvConfig(kernel=3, heads=2, weight_dropout=0.5).build(
        BuildContext(width=4, causal=True, dropout=0.0)
    )
    torch.manual_seed(1)
    drawn = torch.stack([mixer.weight(torch.zeros(1)) for _ in range(200)]).detach()
    kept = mixer.taps.softmax(-1).detach() / 0.5
    assert ((drawn == 0) | torch.isclose(drawn, kept)).all()
    assert 0.4 < (drawn == 0).float().mean() < 0.6


@pytest.mark.parametrize("causal", [False, True])
def test_the_average_is_over_what_attention_would_see(causal):
    mixer = built(AverageConfig(), causal)
    x = torch.randn(2, LENGTH, WIDTH, dtype=torch.float64)
    value = mixer.value(x)
    for context, owners in (
        (Context(), [[1] * LENGTH] * 2),
        (Context(UNKNOWN._replace(padding_mask=torch.tensor(PADDING_MASK).bool())), PADDING_MASK),
        (Context(UNKNOWN._replace(documents=torch.tensor(DOCUMENTS))), DOCUMENTS),
    ):
        found = mixer(x, context)[0]
        for b in range(2):
            for t in range(LENGTH):
                seen = [s for s in range(LENGTH) if owners[b][s] == owners[b][t] and (s <= t or not causal)]
                expected = mixer.output(sum(value[b, s] for s in seen) / len(seen))
                if owners[b][t]:
                    torch.testing.assert_close(found[b, t], expected, atol=1e-10, rtol=1e-10)


def test_a_kernel_must_be_positive():
    with pytest.raises(UserError, match=r"mixer.kernel: 0 is not a positive number"):
        LightConvConfig(kernel=0, heads=2).build(BuildContext(width=4, causal=True, dropout=0.0))
