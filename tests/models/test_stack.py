import pytest
import torch
from tests.conftest import shrink

from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel, build_on_meta
from bakeoff.recipe_files import load_recipe

CONV = {"kind": "light_conv", "kernel": [3, 5, 3, 5], "heads": 2}


def distinct(share, groups=1, layers=4):
    changes = {"model.encoder.layers": layers, "model.encoder.share": share, "model.encoder.groups": groups}
    module = build_on_meta(shrink("bert-tiny", **changes), 100)
    return {name: len(parts) for name, parts in module.model.stack.parts.items()}, module.model.stack.index_map


@pytest.mark.parametrize(
    ("share", "groups", "mixers", "networks"),
    [("none", 1, 4, 4), ("attention", 1, 1, 4), ("ffn", 1, 4, 1), ("all", 1, 1, 1), ("all", 2, 2, 2)],
)
def test_layers_share_the_parts_they_are_told_to(share, groups, mixers, networks):
    counts, _ = distinct(share, groups)
    assert counts == {"mixer": mixers, "ffn": networks}


def test_groups_are_runs_of_neighbours():
    _, index_map = distinct("all", groups=2)
    assert [dict(layer)["mixer"] for layer in index_map] == [0, 0, 1, 1]


def test_shared_layers_are_the_same_function_applied_again():
    torch.manual_seed(0)
    module = PretrainingModel(shrink("albert-tiny", **{"model.encoder.layers": 3}), 100).eval()
    stack = module.model.stack
    assert stack.layers[0] == stack.layers[2]
    assert len(list(stack.parameters())) == len(list(stack.parts["mixer"][0].parameters())) + len(
        list(stack.parts["ffn"][0].parameters())
    )


def test_layers_of_different_shapes_cannot_share_and_the_error_names_both():
    recipe = shrink(
        "conv-light-encoder-tiny",
        **{"model.encoder.layers": 4, "model.encoder.share": "all", "model.encoder.block.mixer": CONV},
    )
    with pytest.raises(UserError, match=r"layers 1 and 2 cannot share their mixer, because function.taps is \(2, 3\)"):
        build_on_meta(recipe, 100)


def test_a_kernel_for_each_layer():
    changes = {"model.encoder.layers": 4, "model.encoder.block.mixer": CONV}
    module = build_on_meta(shrink("conv-light-encoder-tiny", **changes), 100)
    assert [part.function.taps.shape[1] for part in module.model.stack.parts["mixer"]] == [3, 5, 3, 5]
    with pytest.raises(UserError, match="4 sizes, but there is a layer 5"):
        build_on_meta(shrink("conv-light-encoder-tiny", **(changes | {"model.encoder.layers": 5})), 100)


def test_a_list_of_blocks_makes_a_hybrid():
    conv = {
        "kind": "transformer",
        "repeat": 2,
        "mixer": {"kind": "light_conv", "kernel": 3, "heads": 2},
        "ffn": {"width": 64},
    }
    last = {"kind": "transformer", "mixer": {"kind": "attention", "heads": 2}, "ffn": {"width": 64}}
    values = load_recipe("bert-tiny").model_dump(mode="json")
    values["model"]["encoder"] |= {"width": 32, "layers": 3, "block": [conv, last]}
    recipe = type(load_recipe("bert-tiny")).parse(values, "hybrid")
    kinds = [type(part.function).__name__ for part in build_on_meta(recipe, 100).model.stack.parts["mixer"]]
    assert kinds == ["LightConv", "LightConv", "Attention"]
    values["model"]["encoder"]["layers"] = 4
    with pytest.raises(UserError, match="the list makes 3 layers, but layers is 4"):
        build_on_meta(type(recipe).parse(values, "hybrid"), 100)


@pytest.mark.parametrize(
    ("at", "layers", "expected"),
    [("last", 4, "CCCA"), ("last", 5, "CCCCA"), (1, 4, "ACCC"), (3, 4, "CCAC"), (1, 1, "A")],
)
def test_attention_stands_where_it_is_put(at, layers, expected):
    changes = {"model.encoder.block.1.at": at, "model.encoder.layers": layers}
    module = build_on_meta(load_recipe("conv-light-hybrid-tiny", changes), 100)
    found = {"LightConv": "C", "Attention": "A"}
    kinds = [found[type(mixer.function).__name__] for mixer, _ in module.model.stack.layers]
    assert "".join(kinds) == expected


EVERY = {"every": 3, "mixer": {"kind": "attention", "heads": 2}, "ffn": {"width": 64}}


@pytest.mark.parametrize(
    ("layers", "every", "at", "expected"),
    [(7, 3, None, "ACCACCA"), (4, 1, None, "AAAA"), (1, 3, None, "A"), (6, 2, 1, "LCACAC"), (6, 2, 2, "ALACAC")],
)
def test_attention_stands_in_every_third_layer(layers, every, at, expected):
    recipe = load_recipe("conv-light-hybrid-tiny")
    conv, last = (block.model_dump(mode="json") for block in recipe.model.encoder.block)
    blocks = [conv, EVERY | {"every": every}]
    if at is not None:
        blocks.append(last | {"at": at, "mixer": {"kind": "lstm"}})
    found = {"LightConv": "C", "Attention": "A", "Lstm": "L"}
    made = recipe.changed({"model.encoder.block": blocks, "model.encoder.layers": layers})
    module = build_on_meta(made, 100)
    kinds = [found[type(mixer.function).__name__] for mixer, _ in module.model.stack.layers]
    assert "".join(kinds) == expected


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model.encoder.block.1.at": 5}, "at: 5: this is not one of the 4 layers"),
        ({"model.encoder.block.1.at": 0}, "at: 0: this is not one of the 4 layers"),
        ({"model.encoder.block.0.at": 4}, "at: last: this has a block already"),
        ({"model.encoder.block.0.repeat": 2}, "the list makes 3 layers, but layers is 4"),
        ({"model.encoder.block.1.repeat": 1}, "either 'repeat', 'at' or 'every'"),
        ({"model.encoder.block.0.every": 2, "model.encoder.block.1": EVERY}, "several blocks have 'every'"),
        ({"model.encoder.block.0.every": 2, "model.encoder.block.1.at": 1}, "the list makes 2 layers, but layers is 4"),
    ],
)
def test_a_place_that_cannot_be_is_refused(changes, reason):
    with pytest.raises(UserError, match=reason):
        build_on_meta(load_recipe("conv-light-hybrid-tiny", changes), 100)


@pytest.mark.parametrize("heads", [3, 5])
def test_heads_must_divide_the_width(heads):
    with pytest.raises(UserError, match=f"mixer.heads: {heads} heads do not divide the width 32"):
        build_on_meta(shrink("bert-tiny", **{"model.encoder.block.mixer.heads": heads}), 100)
    with pytest.raises(UserError, match=f"cross.heads: {heads} heads do not divide the width 32"):
        build_on_meta(shrink("bart-tiny", **{"model.decoder.block.cross.heads": heads}), 100)
