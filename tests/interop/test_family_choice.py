"""The choice among families that can express a recipe: declared by them, and not by the order of their list."""

import itertools

import pytest

from bakeoff.interop import families
from bakeoff.interop.families import FAMILIES, NotSaid, precedence
from bakeoff.interop.hugging_face import family_choice, membership
from bakeoff.interop.hugging_face.family_choice import choose, said
from bakeoff.recipe_files import load_recipe, recipe_names

MASKED = {"objective": [{"kind": "mlm"}], "input.format": "full_sentences"}
VARIANTS = [
    MASKED,
    {**MASKED, "model.embedding.segments": 0},
    {**MASKED, "model.embedding.segments": 1},
    {**MASKED, "model.embedding.width": 64},
    {**MASKED, "model.encoder.layers": 1},
    {**MASKED, "model.encoder.layers": 1, "model.embedding.width": 64},
    {**MASKED, "model.encoder.block.ffn.activation": "relu", "model.embedding.segments": 0},
    {**MASKED, "model.encoder.share": "all", "model.embedding.width": 64},
    {**MASKED, "objective": [{"kind": "mlm"}, {"kind": "rtd"}]},
]
"""Encoders that several families have a class for, and near ones."""
RECIPES = {f"bert-tiny, variant {place}": ("bert-tiny", changes) for place, changes in enumerate(VARIANTS, 1)}
RECIPES |= {name: (name, {}) for name in recipe_names() if name.endswith(("-tiny", "-base"))}


@pytest.fixture(params=RECIPES)
def recipe(request):
    name, changes = RECIPES[request.param]
    return load_recipe(name, changes)


def claims(family, recipe):
    try:
        said(family, recipe)
    except NotSaid:
        return False
    return True


def test_of_two_families_that_can_express_a_recipe_one_yields_to_the_other(recipe):
    claimants = [family for family in FAMILIES if claims(family, recipe)]
    for one, other in itertools.combinations(claimants, 2):
        assert (one.model_types[0] in other.yields_to) != (other.model_types[0] in one.yields_to), (one, other)
    assert len({precedence(family) for family in claimants}) == len(claimants)


def test_families_yield_to_known_ones_and_not_in_a_circle():
    types = {family.model_types[0]: family for family in FAMILIES}
    for family in FAMILIES:
        assert all(precedence(types[name]) < precedence(family) for name in family.yields_to)


@pytest.mark.parametrize("changes", [MASKED, VARIANTS[1], VARIANTS[3]])
def test_the_order_of_the_list_decides_nothing(changes, corpus, monkeypatch):
    recipe = load_recipe("bert-tiny", changes)
    before = choose(recipe, corpus.tokenizer, None), membership.membership(recipe)
    for module in (families, family_choice, membership):
        monkeypatch.setattr(module, "FAMILIES", FAMILIES[::-1])
    after = choose(recipe, corpus.tokenizer, None), membership.membership(recipe)
    assert (before[0].family, before[1]) == (after[0].family, after[1])
