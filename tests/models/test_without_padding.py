"""Rows without their padding, and states at chosen places, against whole passes that compute everything.

With gradients a model computes all places of padded rows; without them tokens alone.
"""

import pytest
import torch
from tests.conftest import shrink

from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.recipe_files import recipe_names
from bakeoff.row import Queries, Row, Source
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.heads.heads import RowHead

VOCABULARY = 60
LENGTHS = torch.tensor([11, 1, 6, 9])
NAMES = [name for name in recipe_names() if name.endswith(("-tiny", "gcnn-8", "tcn-ptb", "modernbert-base"))]


@pytest.fixture(scope="module", params=NAMES)
def module(request):
    torch.manual_seed(0)
    module = PretrainingModel(shrink(request.param), VOCABULARY).eval()
    for parameter in module.parameters():  # with initial weights much of a model is almost linear
        if parameter.dim() > 1:
            parameter.data *= 3
    return module


def inputs_of(module):
    drawn = torch.Generator().manual_seed(1)
    ids = torch.randint(5, VOCABULARY, (4, 11), generator=drawn)
    source = None
    if module.model.config.sequence_to_sequence:
        lengths = torch.tensor([3, 8, 5, 1])
        read = torch.arange(8) < lengths[:, None]
        source = Source(torch.randint(5, VOCABULARY, (4, 8), generator=drawn), read)
    return Row(ids, padding_mask=torch.arange(11) < LENGTHS[:, None], source=source)


def assert_close(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_states_of_tokens_do_not_depend_on_whether_padding_is_computed(module):
    inputs = inputs_of(module)
    expected = module.model(inputs)[0].detach()
    with torch.inference_mode():
        found = module.model(inputs)[0]
    assert found.shape == expected.shape
    assert_close(found[inputs.padding_mask], expected[inputs.padding_mask])


@pytest.mark.parametrize("padded", [True, False])
def test_wanted_places_have_the_states_that_a_whole_pass_gives_them(module, padded):
    inputs = inputs_of(module)._replace(wanted=torch.tensor([[10, 3, 0], [0, 0, 0], [5, 5, 1], [8, 2, 4]]))
    if not padded:
        inputs = inputs._replace(padding_mask=None)
    everything = module.model(inputs._replace(wanted=None))[0].detach()
    expected = everything.gather(1, inputs.wanted[..., None].expand(-1, -1, everything.shape[-1]))
    with torch.inference_mode():
        assert_close(module.model(inputs)[0], expected)
    assert_close(module.model(inputs)[0].detach(), expected)


def test_a_second_stream_can_be_all_that_is_wanted():
    torch.manual_seed(0)
    module = PretrainingModel(shrink("xlnet-tiny"), VOCABULARY).eval()
    inputs = inputs_of(module)
    places = torch.tensor([[2, 4], [0, 0], [5, 3], [7, 8]])
    visible = torch.ones(4, 13, 11, dtype=torch.bool).scatter(2, places[:, None].expand(-1, 13, -1), False)
    inputs = inputs._replace(queries=Queries(places, visible))
    with torch.inference_mode():
        found = module.model(inputs._replace(wanted=torch.tensor([[11, 12]]).expand(4, -1)))[0]
    assert_close(found, module.model(inputs)[0][:, 11:].detach())


def test_prefixes_are_seen_from_both_sides_at_wanted_places():
    torch.manual_seed(0)
    module = PretrainingModel(shrink("prefix-lm-tiny"), VOCABULARY).eval()
    inputs = inputs_of(module)._replace(padding_mask=None, prefix=torch.tensor([11, 4, 6, 2]))
    with torch.inference_mode():
        found = module.model(inputs._replace(wanted=torch.tensor([[0, 10]]).expand(4, -1)))[0]
    assert_close(found, module.model(inputs)[0][:, [0, 10]].detach())


@pytest.mark.parametrize("pooling", ["cls", "last", "mean"])
@pytest.mark.parametrize(
    "name", ["bert-tiny", "xlnet-tiny", "gpt2-tiny", "bart-tiny", "elmo-tiny", "conv-light-encoder-tiny"]
)
def test_a_classifier_that_reads_one_place_says_what_it_does_of_all(name, pooling):
    torch.manual_seed(0)
    config = FinetuneConfig(pooling=pooling, learning_rate=[1e-3])
    head = RowHead(shrink(name), VOCABULARY, 3, config).eval()
    ids = torch.randint(5, VOCABULARY, (4, 11), generator=torch.Generator().manual_seed(1))
    for padding_mask in (torch.arange(11) < LENGTHS.clamp(min=2)[:, None], None):
        batch = Row(ids, None, padding_mask)
        expected = head.scores(head.hidden(batch), batch).detach()
        with torch.inference_mode():
            assert_close(head(batch), expected)
