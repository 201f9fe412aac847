"""Attention within a window against loops over queries and keys; B batch, H heads, T queries, S keys."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from bakeoff.ops import windowed_attention as module
from bakeoff.ops.windowed_attention import seen_pairs, windowed_attention

B, H, D, V = 2, 3, 4, 5


def draw(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def naive(query, key, value, window, mask=None, bias=None, causal=False, scale=None):
    """The softmax over keys that are near enough, not hidden, and, without a mask, not after."""
    length, keys = query.shape[2], key.shape[2]
    result = torch.zeros(*query.shape[:3], value.shape[-1], dtype=torch.float64)
    mask = torch.ones(1, 1, 1, 1, dtype=torch.bool) if mask is None else mask
    mask = mask.expand(len(query), 1, length, keys)
    for b in range(len(query)):
        for t in range(length):
            place = keys - length + t
            near = [s for s in range(keys) if abs(s - place) <= window and (s <= place or not causal)]
            seen = [s for s in near if mask[b, 0, t, s] or s == place]
            for h in range(query.shape[1]):
                factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
                scores = torch.stack([query[b, h, t] @ key[b, h, s] * factor for s in seen])
                if bias is not None:
                    scores = scores + bias[0, h, t, seen]
                result[b, h, t] = scores.softmax(-1) @ value[b, h, seen]
    return result


@st.composite
def cases(draw_one):
    length = draw_one(st.integers(1, 70))
    earlier = draw_one(st.integers(0, 9))
    return {
        "length": length,
        "keys": length + earlier,
        "window": draw_one(st.integers(1, 12)),
        "mask": draw_one(st.sampled_from(["none", "keys", "square"])),
        "bias": draw_one(st.booleans()),
        "causal": draw_one(st.booleans()),
        "scale": draw_one(st.sampled_from([None, 1.0])),
    }


@settings(max_examples=25, deadline=None)
@given(case=cases(), block=st.integers(1, 8))
def test_dense_and_in_blocks_it_is_its_definition(case, block):
    length, keys, window, causal = (case[key] for key in ("length", "keys", "window", "causal"))
    query, key, value = draw(1, 2, length, D), draw(1, 2, keys, D, seed=1), draw(1, 2, keys, V, seed=2)
    mask = None
    if case["mask"] == "keys" and not causal:
        mask = torch.arange(keys)[None, None, None] < max(1, keys // 2)
    elif case["mask"] != "none":
        documents = torch.arange(keys) // 7
        mask = (documents[None, :] == documents[keys - length :, None])[None, None]
        if causal:
            mask = mask & torch.ones(length, keys, dtype=torch.bool).tril(keys - length)
    bias = draw(1, 2, length, keys, seed=3) if case["bias"] else None
    told = {"mask": mask, "bias": bias, "causal": causal, "scale": case["scale"]}
    expected = naive(query, key, value, window, **told)
    with pytest.MonkeyPatch.context() as patched:
        for worth in (0, 10**6):  # always in blocks where there are several, and never
            patched.setattr(module, "WORTH", worth)
            patched.setattr(module, "LEAST_BLOCK", block)
            found = windowed_attention(query, key, value, window, **told)
            torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_gradients_in_blocks_are_those_of_the_whole_and_finite_where_nothing_else_is_seen(causal, masked, monkeypatch):
    """Rows of few tokens and much padding, of which the last can see none of the tokens."""
    length = 150
    mask = None
    if masked:
        padding_mask = torch.arange(length) < torch.tensor([[length], [5]])
        mask = padding_mask[:, None, None] & (torch.ones(length, length, dtype=torch.bool).tril() if causal else True)
        mask = mask | torch.eye(length, dtype=torch.bool) if causal else mask
    results = []
    for worth in (0, 10**6):
        monkeypatch.setattr(module, "WORTH", worth)
        parts = [draw(B, H, length, D, seed=seed).requires_grad_() for seed in range(3)]
        found = windowed_attention(*parts, 4, mask=mask, causal=causal)
        (found * draw(*found.shape, seed=5)).sum().backward()
        results.append([found.detach(), *(part.grad for part in parts)])
    for one, other in zip(*results, strict=True):
        assert one.isfinite().all()
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_its_cost_grows_with_the_length_and_not_with_its_square():
    costs = []
    for length in (1024, 2048):
        parts = [torch.randn(1, 1, length, D) for _ in range(3)]
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            windowed_attention(*parts, 32)
        costs.append(counter.get_total_flops())
    assert costs[1] == 2 * costs[0]


@given(st.integers(1, 40), st.one_of(st.none(), st.integers(1, 50)), st.booleans())
def test_pairs_are_counted(length, window, causal):
    near = length if window is None else window
    pairs = [(t, s) for t in range(length) for s in range(length) if abs(t - s) <= near and (s <= t or not causal)]
    assert seen_pairs(length, window, causal) == len(pairs)
