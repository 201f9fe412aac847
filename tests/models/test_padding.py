"""Rows of nothing but padding, as an empty text makes them."""

import pytest
import torch
from tests.conftest import shrink

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.row import Row, Source

ONE_OF_EACH_FAMILY = [
    "bert-tiny",
    "gpt-tiny",
    "t5-tiny",
    "xlnet-tiny",
    "conv-light-encoder-tiny",
    "conv-light-tiny",
    "lstm-encoder-tiny",
    "average-encoder-tiny",
    "gcnn-tiny",
    "cnn-lm-tiny",
]


@pytest.mark.parametrize("rate", [0.0, 0.1])
@pytest.mark.parametrize("name", ONE_OF_EACH_FAMILY)
def test_a_row_of_nothing_but_padding_leaves_gradients_finite(name, rate):
    torch.manual_seed(0)
    recipe = shrink(name, **{"model.dropout": rate})
    model = PretrainingModel(recipe, 160).model.train()
    ids = torch.randint(5, 160, (3, 12))
    padding_mask = torch.arange(12) < torch.tensor([[12], [7], [0]])
    hidden = model(
        Row(
            ids,
            padding_mask=padding_mask,
            source=Source(ids, padding_mask) if recipe.model.sequence_to_sequence else None,
        )
    )[0]
    assert hidden.isfinite().all()
    hidden[padding_mask].square().sum().backward()
    for key, parameter in model.named_parameters():
        assert parameter.grad is None or parameter.grad.isfinite().all(), key


@pytest.mark.parametrize("name", ["bert-tiny", "conv-light-tiny"])
def test_a_row_of_nothing_but_padding_changes_no_other_row(name):
    torch.manual_seed(0)
    recipe = shrink(name)
    model = PretrainingModel(recipe, 160).model.eval()
    ids, padding_mask = torch.randint(5, 160, (2, 12)), torch.arange(12) < torch.tensor([[7], [0]])

    def read(rows):
        source = Source(ids[:rows], padding_mask[:rows]) if model.decoder else None
        return model(Row(ids[:rows], padding_mask=padding_mask[:rows], source=source))[0]

    torch.testing.assert_close(read(2)[0, :7], read(1)[0, :7], atol=2e-6, rtol=1e-5)
