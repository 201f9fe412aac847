"""The choice of next tokens, against a whole sort and one random number at a time."""

import pytest
import torch

from bakeoff.generation.config import GenerationConfig
from bakeoff.generation.sampling import NUMBERS_AT_ONCE, PromptSeed, chooser, filtered, most_likely

ROWS, VOCABULARY = 5, 40


def scores(ties):
    """Log-probabilities, some of minus infinity; with ties few different ones."""
    drawn = torch.randn(ROWS, VOCABULARY, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 2
    drawn = drawn.round() if ties else drawn
    return drawn.index_fill(1, torch.tensor([0, 7]), float("-inf")).log_softmax(-1)


def by_sorting(log_probabilities, temperature, top_k, top_p):
    """All tokens sorted, equal ones in their order, and those that are kept brought back to their places."""
    probabilities = (log_probabilities / temperature).softmax(-1)
    ordered, order = probabilities.sort(dim=-1, descending=True, stable=True)
    if top_k is not None:
        ordered[:, top_k:] = 0.0
        ordered /= ordered.sum(-1, keepdim=True)
    kept = ordered.cumsum(-1) - ordered < top_p
    kept[:, 0] = True
    found = torch.zeros_like(probabilities).scatter_(1, order, torch.where(kept, ordered, 0.0))
    return found / found.sum(-1, keepdim=True)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("temperature", [0.5, 1.0])
@pytest.mark.parametrize("top_k", [None, 1, 6, 39, 100])
@pytest.mark.parametrize("top_p", [1e-9, 0.4, 0.95, 1.0])
def test_filters_keep_the_tokens_that_stand_first_in_a_whole_sort(ties, temperature, top_k, top_p):
    given = scores(ties)
    found, expected = filtered(given, temperature, top_k, top_p), by_sorting(given, temperature, top_k, top_p)
    assert torch.equal(found > 0, expected > 0)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)


def test_a_row_uses_one_number_of_its_own_generator_a_token():
    config, seeds = GenerationConfig(), [PromptSeed(3), PromptSeed(3, 1), PromptSeed(4)]
    generators = [torch.Generator().manual_seed(seed * 1_000_003 + number) for seed, number in seeds]
    choose = chooser(config, seeds)
    cumulative = scores(False)[:3].exp().cumsum(-1)
    left = [0, 1, 2]
    for step in range(2 * NUMBERS_AT_ONCE + 3):
        if step == 5:
            left = [0, 2]  # a text has ended
        uniform = torch.stack([torch.rand((), generator=generators[row], dtype=torch.float64) for row in left])
        expected = torch.searchsorted(cumulative[left], uniform[:, None], right=True)[:, 0]
        assert torch.equal(choose(scores(False)[left], left), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_most_likely_token_is_the_first_of_equal_ones(dtype):
    given = scores(True).to(dtype)
    expected = [row.index(max(row)) for row in given.tolist()]
    assert most_likely(given).tolist() == expected
    assert (
        chooser(GenerationConfig(temperature=0), [PromptSeed(0)] * ROWS)(given, list(range(ROWS))).tolist() == expected
    )
