"""Numbers of a recipe by which lists are made or modules built one by one: refused before time or memory goes there."""

import resource

import pytest
from tests.conftest import shrink

from bakeoff.errors import UserError
from bakeoff.learner import without_memory
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.models.stack import MOST_LAYERS

MOST_KILOBYTES = 300_000
T5, CNN, BERT = "t5-tiny", "cnn-lm-tiny", "bert-tiny"
REFUSED = [
    (T5, {"objective.0.marks": 10**9}, "objective.0.marks: 1000000000 is too large"),
    (T5, {"objective.0.marks": 2**63}, "marks: 9223372036854775808 is too large"),
    (T5, {"objective.0.marks": 10_001, "objective.0.mark_names": "<extra_id_{}>"}, "less than or equal to 10000"),
    (T5, {"objective.0.span": 1.0, "objective.0.marks": 2**24}, "less than or equal to 10000"),
    ("roberta-tiny", {"objective.0.copies": 10**12}, "objective.0.copies: 1000000000000 is too large"),
    ("roberta-tiny", {"objective.0.ngram": 10**9}, "objective.0.ngram: 1000000000 is too large"),
    (BERT, {"model.encoder.layers": 1025}, "less than or equal to 1024"),
    (BERT, {"model.encoder.layers": 10**9}, "model.encoder.layers: 1000000000 is too large"),
    (BERT, {"model.encoder.groups": 10**9}, "model.encoder.groups: 1000000000 is too large"),
    (BERT, {"model.encoder.block.mixer.heads": 10**9}, "heads: 1000000000 is too large"),
    (BERT, {"model.encoder.block.repeat": 10**9}, "repeat: 1000000000 is too large"),
    (CNN, {"model.decoder.block.kernels": [3] * 20_000}, "at most 64 items"),
    (CNN, {"model.decoder.block.convolutions": 10_000}, "less than or equal to 64"),
]
TAKEN = [
    (BERT, {"model.encoder.block.ffn.convolution": 2**24}),
    (BERT, {"model.encoder.block.mixer.convolution": 2**24}),
    ("gpt-tiny", {"model.decoder.block.mixer.convolution": 2**24 - 1}),
]
"""Large, and of one tensor more for each part."""


@pytest.fixture(autouse=True)
def _in_little_memory():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_KILOBYTES


@pytest.mark.parametrize(("name", "changes", "message"), REFUSED, ids=lambda part: str(part)[:60])
def test_too_many_are_refused_in_one_line(name, changes, message):
    with pytest.raises(UserError) as caught:
        build_on_meta(shrink(name).changed(changes), 300)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_numbers_that_multiply_are_bounded_together(monkeypatch):
    many = {"model.decoder.block.kernels": [3] * 60, "model.decoder.block.convolutions": 60}
    monkeypatch.setattr(without_memory, "MOST_OPERATIONS", 10_000)
    assert build_on_meta(shrink(CNN), 300)
    with pytest.raises(UserError, match="cnn-lm-tiny: the model has too many layers or other parts; give it fewer"):
        build_on_meta(shrink(CNN).changed(many), 300)


@pytest.mark.slow
def test_the_deepest_models_are_made():
    """An encoder and a decoder of as many layers as there may be."""
    deepest = {f"model.{side}.layers": MOST_LAYERS for side in ("encoder", "decoder")}
    model = build_on_meta(shrink("bart-tiny").changed(deepest), 300)
    assert len(model.model.decoder.layers) == MOST_LAYERS


@pytest.mark.parametrize(("name", "changes"), TAKEN, ids=lambda part: str(part)[:60])
def test_wide_kernels_are_counted_and_not_listed(name, changes):
    assert build_on_meta(shrink(name).changed(changes), 300).parameter_count() > 2**24
