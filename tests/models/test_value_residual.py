"""Values of later layers mixed with those of the first: against the equation, and in whatever holds layers."""

import pytest
import torch
from tests.conftest import shrink
from tests.models.test_attention_options import VALUE, D, H, mixer, naive, place, states
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from bakeoff.errors import UserError
from bakeoff.models.context import UNKNOWN, BuildContext, Context
from bakeoff.models.layer_map import grown, model_sources, unshared
from bakeoff.models.stack import StackConfig
from bakeoff.recipe_files import load_recipe
from bakeoff.row import Row

KEY = 4
IDS = torch.arange(5, 29).view(2, 12)
MIXED = {"model.encoder.layers": 3, "model.encoder.block.mixer.value_residual": True}


def block(**settings):
    return {"kind": "plain", "mixer": {"kind": "attention", "heads": H, "value_residual": True, **settings}}


def drawn(module):
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    return module


def by_layers(stack, x, layers):
    """What the equation gives where the layers of these indices are connected, the first of which gives its values."""
    first = None
    for number, layer in enumerate(stack.layers):
        part = layer[0].function
        share = stack.value_residual.shares[str(number)] if number in layers[1:] else 0.0
        if number == layers[0]:
            first = (x @ part.query_key_value.weight.T + part.query_key_value.bias)[..., -H * VALUE :]
        x = naive(part, x, first=first if number in layers else None, share=share)
    return x


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("options", [{}, {"convolution": 3, "query_key_norm": True}, {"window": 3}], ids=str)
@torch.no_grad()
def test_values_are_mixed_with_those_of_the_first_layer_that_has_it(options, causal):
    """Of the second of five, here: the first and the fourth do without."""
    own = block(key_width=KEY, value_width=VALUE, **options)
    without = {"kind": "plain", "mixer": {**own["mixer"], "value_residual": False}}
    blocks = [{**without, "at": 1}, {**without, "at": 4}, own]
    stack = StackConfig.parse({"width": D, "layers": 5, "block": blocks}, "test").build(place(causal)).double()
    x = states()
    torch.testing.assert_close(drawn(stack)(x, Context())[0], by_layers(stack, x, [1, 2, 4]))
    assert [len(each) for each in stack.steps(x, Context())[0]] == [2] * 5
    torch.testing.assert_close(stack.outputs(x, Context())[-1], stack(x, Context())[0])


@pytest.mark.parametrize("convolved", [0, 1])
@torch.no_grad()
def test_rows_without_their_padding_are_mixed_whichever_layers_read_them_so(convolved):
    """A layer with a convolution reads rows with their padding, and one without reads them packed."""
    blocks = [block(key_width=KEY, value_width=VALUE) for _ in range(3)]
    blocks[convolved]["mixer"]["convolution"] = 3
    stack = StackConfig.parse({"width": D, "layers": 3, "block": blocks}, "test").build(place(causal=False)).double()
    x, padding_mask = states(), torch.arange(9) < torch.tensor([[4], [9]])
    context = Context(UNKNOWN._replace(padding_mask=padding_mask), attention_mask=padding_mask[:, None, None])
    found = drawn(stack)(x, context)[0]
    for row, length in enumerate((4, 9)):
        torch.testing.assert_close(found[row, :length], by_layers(stack, x[row : row + 1, :length], [0, 1, 2])[0])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"layers": 1}, "one layer alone has it, and needs another's values; leave it out"),
        ({"block": [block(), block(value_width=5)]}, "give all layers that have it values of one width"),
    ],
)
def test_values_that_cannot_be_mixed_are_refused(changes, reason):
    values = {"width": 8, "layers": 2, "block": [block()], **changes}
    with pytest.raises(UserError, match=rf"mixer\.value_residual: {reason}"):
        StackConfig.parse(values, "test").build(BuildContext(width=8, causal=False, dropout=0.0))


OTHERS = {"xlnet-tiny": "encoder.block.mixer", "ltg-bert-xs": "encoder.block.mixer", "t5-tiny": "decoder.block.cross"}


@pytest.mark.parametrize(("name", "part"), OTHERS.items())
def test_attention_of_other_kinds_has_no_such_key(name, part):
    with pytest.raises(UserError, match="unknown key 'value_residual'"):
        load_recipe(name, {f"model.{part}.value_residual": True})


def test_the_first_layers_values_are_made_once():
    """Torch counts as many operations of a stack as are counted for it, and as without the connections."""
    counts = []
    for connected in (False, True):
        values = {"width": D, "layers": 3, "block": block(value_residual=connected)}
        stack = StackConfig.parse(values, "test").build(place(causal=False))
        with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
            stack(states().float(), Context())
        counts.append(counter.get_total_flops())
        assert counts[-1] == 2 * 9 * stack.flops_per_token(9)
    assert counts[0] == counts[1]


def numbered(recipe):
    """A model whose layers have their number for a share."""
    torch.manual_seed(0)
    model = recipe.model.build(100).eval()
    for layer, share in model.stack.value_residual.shares.items():
        torch.nn.init.constant_(share, int(layer))
    return model


def started(old, recipe, by=None):
    new = recipe.model.build(100).eval()
    tensors = old.state_dict()
    new.load_state_dict({name: tensors[source] for name, source in model_sources(old, new, by).items()})
    return new


@pytest.mark.parametrize(("by", "expected"), [("repeat", [1, 2, 1, 1, 2]), ("interleave", [1, 1, 1, 2, 2])])
def test_a_grown_model_mixes_values_in_the_shares_of_the_layers_it_starts_from(by, expected):
    """All but its first layer; where they start from the first, in those of the second."""
    recipe = shrink("bert-tiny", **MIXED)
    new = started(numbered(recipe), recipe.changed(grown(recipe.model, 6, by)), by)
    assert [new.stack.value_residual.shares[str(layer)].item() for layer in range(1, 6)] == expected


def test_layers_that_share_all_parts_mix_in_shares_of_their_own_and_keep_them_when_they_share_no_more():
    recipe = shrink("albert-tiny", **MIXED, **{"model.encoder.share": "all"})
    old = numbered(recipe)
    new = started(old, recipe.changed(unshared(recipe.model)))
    assert torch.equal(new(Row(IDS))[0], old(Row(IDS))[0])
    torch.nn.init.zeros_(old.stack.value_residual.shares["2"])
    assert not torch.equal(new(Row(IDS))[0], old(Row(IDS))[0])


@pytest.mark.parametrize("mixed", [False, True])
def test_a_model_that_mixes_values_starts_from_none_that_does_not_and_the_other_way_round(mixed):
    changes = MIXED, {**MIXED, "model.encoder.block.mixer.value_residual": False}
    new, old = (shrink("bert-tiny", **changes[number]).model.build(100) for number in (mixed, not mixed))
    whose = "the run's" if mixed else "this model's"
    with pytest.raises(
        UserError, match=rf"{whose} encoder mixes values .* set it to {str(mixed).lower()} in the recipe"
    ):
        model_sources(old, new)


def test_attention_by_itself_has_values_of_its_own():
    assert torch.equal(
        mixer(value_residual=True)(states(), Context())[0], mixer(value_residual=False)(states(), Context())[0]
    )
