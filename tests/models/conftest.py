"""What models are compared under: float64, and dropout that can be compared."""

import pytest
import torch
from tests.models.parity import marked, replace_everywhere
from torch import Tensor, nn

from bakeoff.ops.dropout import dropout
from bakeoff.ops.rotary import kept_waves


@pytest.fixture
def double(monkeypatch):
    """Float64 wherever either side asks for single precision."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    monkeypatch.setattr(torch, "float32", torch.float64)
    monkeypatch.setattr(Tensor, "float", Tensor.double)
    kept_waves.cache_clear()  # of single precision, and after the test those of this one
    yield
    kept_waves.cache_clear()
    torch.set_default_dtype(before)


@pytest.fixture
def marked_dropout(monkeypatch):
    """Every dropout of ours and of torch's modules is `marked` in training."""

    def ours(x, rate, training):
        return marked(x, rate) if training and rate else x

    def theirs(x, p=0.5, training=True, inplace=False):
        return marked(x, p) if training and p else x

    replace_everywhere(monkeypatch, dropout, ours)
    monkeypatch.setattr(nn.functional, "dropout", theirs)
