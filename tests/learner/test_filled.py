"""Modules that are filled from a file: without drawing weights that the file replaces, and whatever else they hold."""

import pytest
import torch
from torch import nn

from bakeoff.conformance.narrow import ALIKE, EVERY_CHOICE, narrow
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.learner.without_memory import filled
from bakeoff.tensors import save_tensors


def tensors_of(module):
    return dict([*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)])


def same_places(tensors):
    """The names that one tensor has, for each name."""
    return [[other for other in tensors if tensors[other] is tensors[name]] for name in tensors]


@pytest.mark.parametrize(
    "name", [each if each in EVERY_CHOICE else pytest.param(each, marks=pytest.mark.slow) for each in ALIKE]
)
def test_it_is_the_model_that_was_saved(name, tmp_path):
    recipe = narrow(name)
    model = PretrainingModel(recipe, 200)
    save_tensors(model.state_dict(), tmp_path / "model.safetensors")
    expected = tensors_of(model)
    found = tensors_of(filled(lambda: PretrainingModel(recipe, 200), tmp_path / "model.safetensors"))
    assert found.keys() == expected.keys()
    assert same_places(found) == same_places(expected)
    for key, tensor in found.items():
        assert tensor.requires_grad == expected[key].requires_grad
        torch.testing.assert_close(tensor, expected[key], rtol=0, atol=0)


def test_weights_that_the_file_replaces_are_not_drawn(tmp_path):
    recipe = narrow("bert-tiny")
    save_tensors(PretrainingModel(recipe, 200).state_dict(), tmp_path / "model.safetensors")
    before = torch.get_rng_state()
    filled(lambda: PretrainingModel(recipe, 200), tmp_path / "model.safetensors")
    assert torch.equal(torch.get_rng_state(), before)


class Part(nn.Module):
    """A module of a plugin, which holds more than its file."""

    def __init__(self, what):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))
        if what == "a buffer that is not saved":
            self.register_buffer("slopes", torch.arange(3.0), persistent=False)
        elif what == "a tensor in a list":
            self.slopes = torch.arange(3.0)
            self.lists = [torch.arange(3.0)]
        elif what == "a tied weight":
            self.inner = nn.Linear(3, 1, bias=False)
            self.inner.weight = nn.Parameter(torch.randn(1, 3))
            self.outer = nn.Linear(3, 1, bias=False)
            self.outer.weight = self.inner.weight


@pytest.mark.parametrize("what", ["a buffer that is not saved", "a tensor in a list", "a tied weight"])
def test_what_no_file_has_is_made(what, tmp_path):
    part = Part(what)
    save_tensors({name: tensor.clone() for name, tensor in part.state_dict().items()}, tmp_path / "model.safetensors")
    found = filled(lambda: Part(what), tmp_path / "model.safetensors")
    assert same_places(tensors_of(found)) == same_places(tensors_of(part))
    assert torch.equal(found.weight, part.weight)
    if hasattr(part, "slopes"):
        assert torch.equal(found.slopes, torch.arange(3.0))
    if hasattr(part, "lists"):
        assert torch.equal(found.lists[0], torch.arange(3.0))
