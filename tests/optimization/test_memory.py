import pytest
import torch
from torch import nn

from bakeoff.optimization.optimizers import AdafactorConfig, AdamWConfig, LambConfig, MuonConfig, NagConfig, SgdConfig


@pytest.mark.parametrize(
    "config",
    [
        SgdConfig(lr=0.1),
        SgdConfig(lr=0.1, momentum=0.9),
        NagConfig(lr=0.1),
        AdafactorConfig(lr=0.1),
        AdamWConfig(lr=0.1),
        LambConfig(lr=0.1),
        MuonConfig(lr=0.1),  # whose matrices are those of stacks: here there is none
    ],
    ids=["sgd", "momentum", "nag", "adafactor", "adamw", "lamb", "muon"],
)
def test_as_many_numbers_are_kept_for_each_parameter_as_it_says(config):
    linear = nn.Linear(30, 40)
    optimizer = config.build(linear)
    linear(torch.ones(1, 30)).sum().backward()
    optimizer.step()
    kept = sum(value.numel() for value in optimizer.state[linear.weight].values())
    assert round(kept / linear.weight.numel()) == config.moments
