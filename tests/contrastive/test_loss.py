"""The contrastive loss and the figures of held-out views, against naive sums in float64."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.contrastive.loss import alignment, contrastive_losses, partners_first, uniformity


def drawn(seed, count, width=6):
    draw = np.random.default_rng(seed)
    first, second = draw.normal(size=(2, count, width))
    same = draw.random((count, count)) < 0.2
    same = same | same.T
    np.fill_diagonal(same, True)
    return first, second, same


def unit(vector):
    return vector / math.sqrt(sum(float(each) ** 2 for each in vector))


def naive_loss(first, second, same, temperature, index):
    """The two sides of one text, written out."""
    sides = []
    for mine, others in ((first, second), (second, first)):
        scores = [float(unit(mine[index]) @ unit(other)) / temperature for other in others]
        allowed = [s for j, s in enumerate(scores) if j == index or not same[index, j]]
        sides.append(-math.log(math.exp(scores[index]) / sum(math.exp(each) for each in allowed)))
    return sum(sides) / 2


@given(st.integers(0, 1 << 20), st.integers(1, 7), st.sampled_from([0.05, 0.3, 1.0]))
def test_each_text_is_told_from_all_others_but_its_like(seed, count, temperature):
    first, second, same = drawn(seed, count)
    found = contrastive_losses(*(torch.from_numpy(each) for each in (first, second, same)), temperature)
    wanted = [naive_loss(first, second, same, temperature, index) for index in range(count)]
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-4, atol=1e-4)


def test_a_repetition_changes_no_loss():
    """A text that stands in a batch twice is not pushed from itself."""
    first, second, _ = (torch.from_numpy(each) for each in drawn(3, 5))
    alone = contrastive_losses(first, second, torch.eye(5, dtype=torch.bool), 0.1)
    twice = [*range(5), 2]
    same = torch.eye(6, dtype=torch.bool)
    same[2, 5] = same[5, 2] = True
    doubled = contrastive_losses(first[twice], second[twice], same, 0.1)
    torch.testing.assert_close(doubled[2], alone[2])
    assert doubled[2] == doubled[5]
    assert (doubled[[0, 1, 3, 4]] > alone[[0, 1, 3, 4]]).all()


@given(st.integers(0, 1 << 20), st.integers(2, 7))
def test_partners_first_counts_the_nearest_views(seed, count):
    first, second, same = drawn(seed, count)
    found = partners_first(*(torch.from_numpy(each) for each in (first, second, same)))
    for index in range(count):
        hits = []
        for mine, others in ((first, second), (second, first)):
            allowed = [j for j in range(count) if j == index or not same[index, j]]
            hits.append(max(allowed, key=lambda j: float(unit(mine[index]) @ unit(others[j]))) == index)
        assert float(found[index]) == sum(hits) / 2


def test_vectors_that_are_all_alike_are_chance():
    flat, none = torch.ones(4, 3), torch.zeros(4, 4, dtype=torch.bool)
    assert partners_first(flat, flat, none).tolist() == [0.5] * 4
    torch.testing.assert_close(contrastive_losses(flat, flat, none, 0.05), torch.full((4,), math.log(4)))


@pytest.mark.parametrize("seed", range(3))
def test_alignment_and_uniformity_as_in_their_paper(seed):
    first, second, _ = drawn(seed, 6)
    ones, others = ([unit(each) for each in side] for side in (first, second))
    wanted = np.mean([((a - b) ** 2).sum() for a, b in zip(ones, others, strict=True)])
    assert float(alignment(torch.from_numpy(first), torch.from_numpy(second))) == pytest.approx(wanted, rel=1e-5)
    apart = [math.exp(-2 * ((ones[i] - ones[j]) ** 2).sum()) for i in range(6) for j in range(i)]
    assert float(uniformity(torch.from_numpy(first))) == pytest.approx(math.log(np.mean(apart)), rel=1e-5)
