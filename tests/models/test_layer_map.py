"""Unsharing and growing are edits of a stack's index map: which layer starts from which, and what comes of it."""

import pytest
import torch
from tests.conftest import shrink

from bakeoff.errors import UserError
from bakeoff.models.layer_map import grown, model_sources, source_layers, unshared
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.row import Row

IDS = torch.arange(5, 29).view(2, 12)


def build(recipe, seed=0):
    torch.manual_seed(seed)
    return recipe.model.build(100).eval()


def started(old, recipe, by=None):
    """A model of the recipe with the weights of another one."""
    new = build(recipe, seed=1)
    sources = model_sources(old, new, by)
    tensors = old.state_dict()
    new.load_state_dict({name: tensors[source] for name, source in sources.items()})
    return new


def layers(side="encoder", **values):
    return {f"model.{side}.{key}": value for key, value in values.items()}


def test_layers_are_repeated_or_interleaved():
    assert source_layers(2, 6, "repeat") == [0, 1, 0, 1, 0, 1]
    assert source_layers(3, 6, "interleave") == [0, 0, 1, 1, 2, 2]
    assert source_layers(3, 4, "repeat") == [0, 1, 2, 0]
    assert source_layers(3, 4, "interleave") == [0, 0, 1, 2]
    assert source_layers(3, 3, "repeat") == source_layers(3, 3, "interleave") == [0, 1, 2]


@pytest.mark.parametrize(("share", "groups"), [("all", 1), ("all", 2), ("attention", 1), ("ffn", 2), ("none", 1)])
def test_unshared_layers_are_the_same_function_and_their_own(share, groups):
    recipe = shrink("albert-tiny", **layers(layers=4, share=share, groups=groups))
    old = build(recipe)
    new = started(old, recipe.changed(unshared(recipe.model)))
    assert torch.equal(new(Row(IDS))[0], old(Row(IDS))[0])
    parameters = [id(p) for layer in new.stack.layers for part in layer for p in part.parameters()]
    assert len(parameters) == len(set(parameters)) == 4 * 12


def applied_again(model, order):
    """The hidden states where the model's layers are applied in that order."""
    model.stack.layers = tuple(model.stack.layers[layer] for layer in order)
    return model(Row(IDS))[0]


@pytest.mark.parametrize("by", ["repeat", "interleave"])
@pytest.mark.parametrize("name", ["albert-tiny", "bert-tiny", "conv-light-encoder-tiny"])
def test_a_grown_model_applies_its_layers_more_often(name, by):
    recipe = shrink(name, **layers(layers=2))
    old = build(recipe)
    deep = recipe.changed(grown(recipe.model, 5, by))
    new = started(old, deep, by)
    order = [0, 1, 0, 1, 0] if by == "repeat" else [0, 0, 0, 1, 1]
    assert torch.equal(new(Row(IDS))[0], applied_again(old, order))
    shared = name == "albert-tiny"
    assert sum(p.numel() for p in new.stack.parameters()) == (
        sum(p.numel() for p in old.stack.parameters()) if shared else pytest.approx(2.5 * parts(old), rel=0.01)
    )


def parts(model):
    return sum(p.numel() for p in model.stack.parts.parameters())


def test_groups_of_shared_layers_grow_by_interleaving_only():
    recipe = shrink("albert-tiny", **layers(layers=4, share="all", groups=2))
    old = build(recipe)
    deep = recipe.changed(grown(recipe.model, 8, "interleave"))
    assert torch.equal(started(old, deep, "interleave")(Row(IDS))[0], applied_again(old, [0, 0, 1, 1, 2, 2, 3, 3]))
    with pytest.raises(UserError, match=r"layers 1 and 3 share their mixer, but would start from layers 1 and 3 of"):
        model_sources(old, build(deep), "repeat")


def test_a_list_of_blocks_grows_like_its_layers():
    conv = {"repeat": 2, "mixer": {"kind": "light_conv", "kernel": 3, "heads": 2}, "ffn": {"width": 64}}
    last = {"mixer": {"kind": "attention", "heads": 2}, "ffn": {"width": 64}}
    values = load_recipe("bert-tiny").model_dump(mode="json")
    values["model"]["encoder"] |= {"width": 32, "layers": 3, "block": [conv, last]}
    recipe = Recipe.parse(values, "hybrid")
    old = build(recipe)
    for by, repeats in (("repeat", [2, 1, 2, 1]), ("interleave", [4, 2])):
        deep = recipe.changed(grown(recipe.model, 6, by))
        assert [block.repeat for block in deep.model.encoder.block] == repeats
        order = source_layers(3, 6, by)
        assert torch.equal(started(old, deep, by)(Row(IDS))[0], applied_again(build(recipe), order))


def test_both_stacks_of_a_sequence_to_sequence_model_grow():
    values = load_recipe("bert-tiny").model_dump(mode="json")
    block = {"mixer": {"kind": "attention", "heads": 2}, "ffn": {"width": 64}}
    values["model"]["encoder"] = {"width": 32, "layers": 2, "block": block}
    values["model"]["decoder"] = {"width": 32, "layers": 3, "block": block | {"cross": {"heads": 2}}}
    model = type(load_recipe("bert-tiny").model).model_validate(values["model"])
    assert grown(model, 3, "repeat") == {"model.encoder.layers": 3}
    assert grown(model, 4, "repeat") == {"model.encoder.layers": 4, "model.decoder.layers": 4}
    with pytest.raises(UserError, match="--grow 2: the decoder has 3 layers already"):
        grown(model, 2, "repeat")


def test_what_does_not_match_is_refused():
    shallow, deep = (build(shrink("bert-tiny", **layers(layers=n))) for n in (2, 3))
    with pytest.raises(UserError, match=r"the encoder has 3 layers, but the run's has 2; --grow 3 makes them more"):
        model_sources(shallow, deep)
    with pytest.raises(UserError, match=r"the encoder has 2 layers, but the run's has 3$"):
        model_sources(deep, shallow, "repeat")
    with pytest.raises(UserError, match="this model has a decoder, but the run's has none"):
        model_sources(shallow, build(shrink("gpt-tiny")))
    with pytest.raises(UserError, match="layers 1 and 2 share their mixer, but would start from layers 1 and 2 of"):
        model_sources(shallow, build(shrink("bert-tiny", **layers(layers=2, share="all"))))
