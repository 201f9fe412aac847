"""The conformance suite is worth nothing if it cannot fail: each planted bug makes its contract fail."""

import pytest
import torch
from tests.conformance import test_every_recipe as contracts
from tests.conftest import shrink

from bakeoff.models.blocks import convolution
from bakeoff.models.mixers import short_convolution
from bakeoff.models.model import Model
from bakeoff.training.pretraining_model import PretrainingModel


def build(name):
    torch.manual_seed(0)
    recipe = shrink(name)
    return recipe, PretrainingModel(recipe, contracts.VOCABULARY).eval()


def test_a_leak_between_documents_is_found(monkeypatch):
    monkeypatch.setattr(Model, "_mask", lambda self, real, documents, causal: None)
    with pytest.raises(AssertionError):
        contracts.test_a_packed_document_does_not_depend_on_its_neighbours(build("bert-tiny")[1])


@pytest.mark.parametrize(
    ("module", "operation", "name"),
    [(short_convolution, "short_convolution", "conv-light-encoder-tiny"), (convolution, "convolution", "gcnn-tiny")],
)
def test_a_leak_through_a_convolution_is_found(monkeypatch, module, operation, name):
    exact = getattr(module, operation)
    monkeypatch.setattr(
        module, operation, lambda *tensors, documents, **options: exact(*tensors, documents=None, **options)
    )
    with pytest.raises(AssertionError):
        contracts.test_a_packed_document_does_not_depend_on_its_neighbours(build(name)[1])


def test_a_tap_into_the_future_is_found(monkeypatch):
    recipe, module = build("gpt-tiny")
    for part in module.model.stack.parts["mixer"]:
        part.function.causal = False
    with pytest.raises(AssertionError):
        contracts.test_a_causal_model_does_not_see_what_comes_after(recipe, module)


def test_padding_that_is_seen_is_found(monkeypatch):
    exact = Model.forward
    monkeypatch.setattr(
        Model,
        "forward",
        lambda self, ids, segments=None, real=None, documents=None, source=None: exact(self, ids, segments),
    )
    for name in ("bert-tiny", "conv-light-encoder-tiny", "tcn-encoder-tiny"):
        with pytest.raises(AssertionError):
            contracts.test_more_padding_changes_nothing(build(name)[1])
