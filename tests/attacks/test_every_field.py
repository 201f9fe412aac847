"""Every field of every recipe's parts, given values of the wrong type, sign and size: taken, or refused in one line."""

import math
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import build_on_meta
from bakeoff.recipe_files import load_recipe, recipe_names
from bakeoff.resources.costs import costs_of

NUMBERS = [-1, 0, 1, 2, 3, 7, 2**24, 2**31, 2**63, 10**30, -0.5, 0.5, 1.5, 1e300, math.inf, -math.inf, math.nan]
OTHERS = [True, False, None, "", "x", "1", "\ud800", [], [-1], [[]], {}, {"a": 1}, {1: 2}, "a" * 1000]
VALUES = [*NUMBERS, *OTHERS]


def keys(values, key=""):
    """The dotted keys of a tree of plain data, those of its branches too."""
    if key:
        yield key
    if isinstance(values, dict | list):
        for name, value in values.items() if isinstance(values, dict) else enumerate(values):
            yield from keys(value, f"{key}.{name}" if key else str(name))


RECIPES = {name: load_recipe(name) for name in recipe_names() if name.endswith("-tiny")}


def fields():
    """A small recipe and a key for each field of each kind of part."""
    found = {}
    for name, recipe in RECIPES.items():
        values = recipe.model_dump(mode="json")
        for key in keys(values):
            place, kinds = values, []
            for part in key.split(".")[:-1]:
                place = place[int(part)] if isinstance(place, list) else place[part]
                kinds += [str(place.get("kind", place.get("format")))] if isinstance(place, dict) else []
            found.setdefault((key.partition(".")[0], kinds[-1] if kinds else "", key.rpartition(".")[2]), (name, key))
    return list(found.values())


FIELDS = fields()


def attack(name, key, value):
    try:
        recipe = RECIPES[name].changed({key: value})
        build_on_meta(recipe, 300)
        costs_of(recipe, 300)
    except UserError as error:
        text = str(error)
        assert "\n" not in text
        assert len(text) < 2500
        text.encode("utf-8", "backslashreplace")


@given(st.sampled_from(FIELDS), st.sampled_from(VALUES))
@settings(max_examples=250, deadline=None)
def test_a_field_takes_a_value_or_refuses_it(field, value):
    attack(*field, value)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "key"), FIELDS, ids=lambda part: part)
def test_a_field_takes_or_refuses_every_value(name, key):
    for value in VALUES:
        attack(name, key, value)


def test_there_are_many_fields():
    assert len(FIELDS) > 200
    assert len({name for name, _ in FIELDS}) > 20
    assert len(list(product(FIELDS, VALUES))) > 6000
