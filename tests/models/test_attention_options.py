"""Attention with its settings against its equations, number by number in float64.

Shapes: B batch, T length, D width, H heads, d_k and d_v widths of a head's keys and values.
"""

import math

import pytest
import torch
from tests.ops.naive import rotate_naive
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from bakeoff.errors import UserError
from bakeoff.models.context import UNKNOWN, BuildContext, Context
from bakeoff.models.mixers.attention import AttentionConfig
from bakeoff.models.mixers.attention_heads import HeadNorm
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


def naive(part, x, documents=None, first=None, share=0.0):
    """What attention gives for (B, T, D), by loops over rows, places and heads.

    Of tokens of the same document, and where the part is causal of none after, in (B, T) `documents`, 0 for padding.
    Values are mixed with (B, T, H d_v) `first` ones, of which they become this share.
    """
    length = x.shape[1]
    window = length if part.window is None else part.window
    documents = torch.ones(len(x), length, dtype=torch.long) if documents is None else documents
    projected = x @ part.query_key_value.weight.T + part.query_key_value.bias
    widths = [H * KEY, H * KEY, H * VALUE]
    if first is not None:
        projected[..., -H * VALUE :] = (1 - share) * projected[..., -H * VALUE :] + share * first
    result = torch.zeros(len(x), length, H * VALUE, dtype=x.dtype)
    if part.convolution is not None:
        projected = convolved(projected, part.convolution, documents)
    for b in range(len(x)):
        query, key, value = projected[b].split(widths, dim=-1)
        for head in range(H):
            keys = slice(head * KEY, (head + 1) * KEY)
            q = [normed(each, part.query_norm) for each in query[:, keys]]
            k = [normed(each, part.key_norm) for each in key[:, keys]]
            if part.positions == "rotary":
                q, k = (rotate_naive(torch.stack(each)[None, None], 0, part.rotary_base)[0, 0] for each in (q, k))
            v = value[:, head * VALUE : (head + 1) * VALUE]
            for t in range(length):
                near = range(max(0, t - window), min(length, t + (0 if part.causal else window) + 1))
                seen = [s for s in near if documents[b, s] == documents[b, t]]
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
        {"window": 1},
        {"window": 3, "convolution": 3},
        {"positions": "rotary", "rotary_base": 50.0},
        {"window": 2, "positions": "rotary", "rotary_base": 160_000.0},
    ],
    ids=str,
)
@torch.no_grad()
def test_attention_is_its_equation(settings, causal):
    part, x = mixer(causal, **settings), states()
    # Angles are of single precision.
    exact = {"atol": 1e-5, "rtol": 1e-5} if part.positions == "rotary" else {"atol": 1e-7, "rtol": 1e-7}
    torch.testing.assert_close(part(x, Context())[0], naive(part, x), **exact)
    documents = torch.tensor([[1, 1, 1, 1, 2, 2, 3, 0, 0], [1, 2, 2, 2, 2, 2, 2, 2, 2]])
    seen = documents[:, None, :, None] == documents[:, None, None]
    mask = seen.tril() if causal else seen
    found = part(x, Context(UNKNOWN._replace(documents=documents), attention_mask=mask))[0]
    torch.testing.assert_close(found, naive(part, x, documents), **exact)
    padding_mask = torch.arange(T) < torch.tensor([[5], [T]])
    mask = (padding_mask[:, None, None] & torch.ones(T, T).tril().bool()) if causal else padding_mask[:, None, None]
    found = part(x, Context(UNKNOWN._replace(padding_mask=padding_mask), attention_mask=mask))[0]
    for row, length in enumerate((5, T)):
        torch.testing.assert_close(found[row, :length], naive(part, x[row : row + 1, :length])[0], **exact)


@pytest.mark.parametrize("settings", [{}, {"convolution": 3}, {"convolution": 12}, {"gate": "gelu"}], ids=str)
def test_attention_costs_what_torch_counts(settings):
    part = mixer(**settings)
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        part(states(), Context())
    assert counter.get_total_flops() == B * T * part.flops_per_token(T)


@torch.no_grad()
def test_a_state_holds_no_more_than_the_window():
    part, x = mixer(causal=True, window=3, positions="rotary", convolution=3), states(length=40)
    expected = part(x, Context())[0]
    state, found = part.start(B, x), []
    for chunk in x.split([1, 2, 1, 20, 5, 11], dim=1):
        before = sum(each.shape[1] for each in found)
        y, state = part(chunk, Context(start=before), state)
        found.append(y)
        assert [each.shape[2] for each in state[:2]] == [min(3, before + chunk.shape[1])] * 2
    torch.testing.assert_close(torch.cat(found, dim=1), expected)


def test_a_window_reaches_as_far_as_the_taps_at_its_ends():
    assert mixer(window=5).reach() == (5, 5)
    assert mixer(window=5, causal=True).reach() == (5, 0)
    assert mixer(window=5, convolution=3).reach() == (6, 6)
    assert mixer(window=5, convolution=3, causal=True).reach() == (7, 0)
    assert mixer().reach() == (float("inf"), float("inf"))


@pytest.mark.parametrize("causal", [False, True])
def test_a_window_costs_the_pairs_that_it_shows(causal):
    part, whole = mixer(causal, window=2), mixer(causal)
    pairs = [(t, s) for t in range(T) for s in range(T) if abs(t - s) <= 2 and (s <= t or not causal)]
    every = [(t, s) for t in range(T) for s in range(T) if s <= t or not causal]
    spared = whole.flops_per_token(T) - part.flops_per_token(T)
    assert spared == pytest.approx((len(every) - len(pairs)) / T * part.flops_per_pair(), abs=1)
    assert part.flops_per_token(10**5) == pytest.approx(part.flops_per_token(10**6), rel=1e-3)


def test_keys_that_make_no_sense_are_refused():
    block = "model.encoder.block"
    for key, reason in {
        f"{block}.mixer.rotary_base=500": "rotary_base: it is about rotations, and positions is none; leave it out",
        f"{block}.mixer.window=0": "mixer.window: input should be greater than 0",
        f"{block}.mixer_norm=false": "mixer_norm: nothing else norms what norm: post adds up; set norm to pre",
    }.items():
        with pytest.raises(UserError, match=reason):
            load_recipe("bert-tiny", [key])
    with pytest.raises(UserError, match="norm_bias: norms have no shift with norm: rms; leave it out"):
        load_recipe("t5-tiny", ["model.norm_bias=false"])
    with pytest.raises(UserError, match="norm_bias: norms have no shift with norm_affine: false; leave it out"):
        load_recipe("ltg-bert-xs", ["model.norm_bias=false"])


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
