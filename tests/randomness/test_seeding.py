"""The seed of torch's own draws."""

import torch

from bakeoff.randomness.seeding import seed_torch


def test_draws_are_those_of_torch_seeded_by_its_own_function():
    torch.manual_seed(2**63 - 5)
    expected = torch.rand(7), torch.nn.functional.dropout(torch.ones(64), 0.5)
    seed_torch(2**63 - 5, torch.device("cpu"))
    found = torch.rand(7), torch.nn.functional.dropout(torch.ones(64), 0.5)
    assert all(torch.equal(*pair) for pair in zip(expected, found, strict=True))
