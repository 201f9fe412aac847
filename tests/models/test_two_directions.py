"""Models of two directions against two causal models with the same weights, one of which reads each text reversed."""

import pytest
import torch

from bakeoff.models.model import ModelConfig
from bakeoff.row import Row

VOCABULARY, LENGTH, WIDTH = 40, 9, 8
FFN = {"width": 12}
MIXERS = {
    "lstm": {"kind": "lstm", "units": 10},
    "gru": {"kind": "gru"},
    "attention": {"kind": "attention", "heads": 2},
    "rotary": {"kind": "attention", "heads": 2, "positions": "rotary"},
    "t5": {"kind": "attention", "heads": 2, "positions": "t5", "buckets": 4, "distance": 6},
    "light_conv": {"kind": "light_conv", "heads": 2, "kernel": 4},
    "dynamic_conv": {"kind": "dynamic_conv", "heads": 2, "kernel": 4},
    "average": {"kind": "average"},
}
BLOCKS = {name: {"kind": "transformer", "mixer": mixer, "ffn": FFN} for name, mixer in MIXERS.items()}
BLOCKS["plain"] = {"kind": "plain", "mixer": MIXERS["lstm"], "residual": True}
BLOCKS["tcn"] = {"kind": "tcn", "kernel": 3}
OWNERS = {
    "whole": [[1] * LENGTH] * 3,
    "padding_mask": [[1] * LENGTH, [1, 1, 1, 1, 0, 0, 0, 0, 0], [0, 0, 1, 1, 1, 1, 1, 1, 1]],
    "documents": [[1, 1, 1, 1, 2, 2, 2, 2, 2], [1, 2, 2, 3, 3, 3, 0, 0, 0], [1, 1, 1, 1, 1, 1, 1, 1, 0]],
}


def build(block, directions, positions="none"):
    embedding = {"positions": positions, "length": LENGTH}
    decoder = {"width": WIDTH, "layers": 2, "block": block}
    config = ModelConfig.parse({"embedding": embedding, "decoder": decoder, "directions": directions}, "test")
    return config.build(VOCABULARY).double().eval()


def one_direction(block, both, name):
    """A causal model with the weights of the decoder of that name."""
    model = build(block, directions=1)
    weights = both.state_dict()
    model.load_state_dict({key: weights[key.replace("decoder.", f"{name}.")] for key in model.state_dict()})
    return model


@pytest.mark.parametrize("told", OWNERS)
@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_each_direction_is_a_causal_model_that_reads_each_text_from_its_end(block, told):
    torch.manual_seed(0)
    both = build(block, directions=2)
    for parameter in both.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    ahead, back = (one_direction(block, both, name) for name in ("decoder", "backward_decoder"))
    ids = torch.randint(VOCABULARY, (3, LENGTH))
    owners = torch.tensor(OWNERS[told])
    context = {"whole": {}, "padding_mask": {"padding_mask": owners > 0}, "documents": {"documents": owners}}[told]
    found, _ = both(Row(ids, **context))
    assert found.shape == (3, LENGTH, 2 * WIDTH)
    for b in range(3):
        for owner in set(OWNERS[told][b]) - {0}:
            places = [t for t in range(LENGTH) if OWNERS[told][b][t] == owner]
            text = ids[b, places]
            behind = back(Row(text.flip(0)[None]))[0][0].flip(0)
            expected = torch.cat([ahead(Row(text[None]))[0][0], behind], dim=-1)
            torch.testing.assert_close(found[b, places], expected, atol=1e-9, rtol=1e-8)


def test_a_token_has_one_position_in_both_directions():
    """With one set of weights and nothing that mixes tokens, both halves are the same."""
    torch.manual_seed(0)
    model = build({"kind": "transformer", "mixer": {"kind": "none"}, "ffn": FFN}, directions=2, positions="learned")
    model.backward_decoder.load_state_dict(model.decoder.state_dict())
    ahead, back = model(Row(torch.randint(VOCABULARY, (3, LENGTH))))[0].chunk(2, dim=-1)
    torch.testing.assert_close(back, ahead, atol=1e-10, rtol=1e-10)


def test_the_second_direction_has_its_own_layers_and_the_one_table():
    one, two = (build(BLOCKS["plain"], directions) for directions in (1, 2))
    layers = sum(parameter.numel() for parameter in one.decoder.parameters())
    total = sum(parameter.numel() for parameter in one.parameters())
    assert sum(parameter.numel() for parameter in two.parameters()) == total + layers
    assert two.row_flops(LENGTH) == 2 * one.row_flops(LENGTH)
