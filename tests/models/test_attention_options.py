"""Attention with its settings against its equations, number by number in float64.

Shapes: B batch, T length, D width, H heads, d_k and d_v widths of a head's keys and values.
"""

import math

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from bakeoff.errors import UserError
from bakeoff.models.context import BuildContext, Context
from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.models.mixers.head_norm import HeadNorm
from bakeoff.recipe_files import load_recipe

B, T, D, H, KEY, VALUE, EPSILON = 2, 9, 6, 2, 4, 3, 1e-3


def place(causal):
    return BuildContext(width=D, causal=causal, dropout=0.0, norm_epsilon=EPSILON)


def mixer(causal=False, seed=0, **settings):
    """Attention in float64, with weights of any size."""
    config = AttentionConfig(heads=H, key_width=KEY, value_width=VALUE, **settings)
    made = config.build(place(causal)).double()
    generator = torch.Generator().manual_seed(seed)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    return made


def states(seed=1, length=T):
    return torch.randn(B, length, D, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def naive(part, x, documents=None):
    """What attention gives for (B, T, D), by loops over rows, places and heads.

    Of tokens of the same document, and where the part is causal of none behind, in (B, T) `documents`, 0 for padding.
    """
    length = x.shape[1]
    documents = torch.ones(len(x), length, dtype=torch.long) if documents is None else documents
    projected = x @ part.query_key_value.weight.T + part.query_key_value.bias
    widths = [H * KEY, H * KEY, H * VALUE]
    result = torch.zeros(len(x), length, H * VALUE, dtype=x.dtype)
    if part.convolution is not None:
        projected = convolved(projected, part.convolution, documents)
    for b in range(len(x)):
        query, key, value = projected[b].split(widths, dim=-1)
        for head in range(H):
            keys = slice(head * KEY, (head + 1) * KEY)
            q = [normed(each, part.query_norm) for each in query[:, keys]]
            k = [normed(each, part.key_norm) for each in key[:, keys]]
            v = value[:, head * VALUE : (head + 1) * VALUE]
            for t in range(length):
                seen = [s for s in range(length) if documents[b, s] == documents[b, t] and (s <= t or not part.causal)]
                scores = [float(q[t] @ k[s]) / math.sqrt(KEY) for s in seen]
                weights = [math.exp(score - max(scores)) for score in scores]
                mean = sum(weight * v[s] for weight, s in zip(weights, seen, strict=True)) / sum(weights)
                result[b, t, head * VALUE : (head + 1) * VALUE] = mean
    if part.gate is not None:
        opened = x @ part.gate.weight.T + part.gate.bias
        result = result * opened.apply_(lambda z: z * (1 + math.erf(z / math.sqrt(2))) / 2)
    return result @ part.output.weight.T + part.output.bias


def convolved(x, convolution, documents):
    """y[t] = sum_j w_j x[t + offset_j], where the taps that fall outside or into another document are zero."""
    taps = convolution.taps
    kernel = taps.shape[1]
    before = kernel - 1 if convolution.causal else kernel // 2
    y = torch.zeros_like(x)
    for b in range(len(x)):
        for t in range(x.shape[1]):
            for tap in range(kernel):
                s = t - before + tap
                if 0 <= s < x.shape[1] and documents[b, s] == documents[b, t]:
                    y[b, t] += taps[:, tap] * x[b, s]
    return y


def normed(vector, norm):
    """g x / sqrt(mean(x^2) + epsilon)."""
    if norm is None:
        return vector
    return norm.weight * vector / math.sqrt(sum(float(each) ** 2 for each in vector) / len(vector) + EPSILON)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"query_key_norm": True},
        {"convolution": 3},
        {"convolution": 4},
        {"convolution": 12},
        {"gate": "gelu"},
        {"convolution": 3, "query_key_norm": True, "gate": "gelu"},
    ],
    ids=str,
)
@torch.no_grad()
def test_attention_is_its_equation(settings, causal):
    part, x = mixer(causal, **settings), states()
    torch.testing.assert_close(part(x, Context())[0], naive(part, x))
    documents = torch.tensor([[1, 1, 1, 1, 2, 2, 3, 0, 0], [1, 2, 2, 2, 2, 2, 2, 2, 2]])
    seen = documents[:, None, :, None] == documents[:, None, None]
    mask = seen.tril() if causal else seen
    found = part(x, Context(documents=documents, attention_mask=mask))[0]
    torch.testing.assert_close(found, naive(part, x, documents))
    real = torch.arange(T) < torch.tensor([[5], [T]])
    mask = (real[:, None, None] & torch.ones(T, T).tril().bool()) if causal else real[:, None, None]
    found = part(x, Context(real=real, attention_mask=mask))[0]
    for row, length in enumerate((5, T)):
        torch.testing.assert_close(found[row, :length], naive(part, x[row : row + 1, :length])[0])


@pytest.mark.parametrize("settings", [{}, {"convolution": 3}, {"convolution": 12}, {"gate": "gelu"}], ids=str)
def test_attention_costs_what_torch_counts(settings):
    part = mixer(**settings)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        part(states(), Context())
    assert counter.get_total_flops() == B * T * part.flops_per_token(T)


def test_a_convolution_is_of_two_taps_at_least():
    with pytest.raises(UserError, match=r"mixer\.convolution: input should be greater than or equal to 2"):
        load_recipe("bert-tiny", ["model.encoder.block.mixer.convolution=1"])


def test_norms_under_autocast_are_computed_in_single_precision(recwarn):
    norm = HeadNorm(8, EPSILON)
    torch.nn.init.normal_(norm.weight, generator=torch.Generator().manual_seed(0))
    x = torch.randn(B, H, T, 8, generator=torch.Generator().manual_seed(1)).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        found = norm(x)
    assert found.dtype == torch.float32
    assert torch.equal(found, norm(x.float()))
    assert not recwarn.list
