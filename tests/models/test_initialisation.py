"""The settings of a model's initial weights."""

import pytest
import torch
from torch import nn

from bakeoff.errors import UserError
from bakeoff.recipe_files import load_recipe
from bakeoff.row import Row

WIDE = {"model.encoder.width": 256, "model.encoder.block.ffn.width": 1024}


def built(name="bert-tiny", **changes):
    torch.manual_seed(0)
    return load_recipe(name, changes).model.build(300)


@pytest.mark.parametrize(("linear", "deviation"), [("fan_in", None), (0.05, 0.05), (0.02, 0.02)])
def test_linear_maps_have_the_deviation_that_is_set_and_tables_keep_theirs(linear, deviation):
    model = built(**WIDE, **{"model.initial.linear": linear})
    cut = 0.8796  # what is left of a normal distribution's deviation between two of them
    for part in model.encoder.modules():
        if isinstance(part, nn.Linear):
            assert part.weight.std().item() == pytest.approx(cut * (deviation or part.in_features**-0.5), rel=0.03)
            assert not part.bias.any()
    assert model.embedding.tokens.weight.std().item() == pytest.approx(cut * 0.02, rel=0.03)


def test_a_model_of_zero_branches_passes_on_what_it_is_given():
    ids = torch.arange(20)[None] + 10
    for name, stack in (("gpt-tiny", "decoder"), ("conv-light-encoder-tiny", "encoder"), ("albert-tiny", "encoder")):
        changes = {f"model.{stack}.block.norm": "pre", f"model.{stack}.layers": 2, "model.initial.zero_branches": True}
        model = built(name, **changes).eval()
        given, _ = model.stack_inputs(Row(ids))
        torch.testing.assert_close(model(Row(ids))[0], model.stack.norm(given))
        changes["model.initial.zero_branches"] = False
        assert not torch.allclose(built(name, **changes).eval()(Row(ids))[0], model.stack.norm(given))


def test_what_has_no_branches_to_begin_at_zero_refuses():
    with pytest.raises(UserError, match=r"initial\.zero_branches: blocks of kind \w+ do not have it"):
        built("tcn-encoder-tiny", **{"model.initial.zero_branches": True})
    with pytest.raises(UserError, match="a recurrent mixer has no last map; leave them out"):
        built("lstm-encoder-tiny", **{"model.initial.zero_branches": True})
