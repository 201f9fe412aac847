import pytest

from bakeoff.recipe import load_recipe, recipe_names
from tests.published.table import general, read_table, recipe_leaves

TABLE = read_table()


def test_the_table_has_every_recipe_and_no_other():
    assert sorted(name for name in TABLE.entries if not name.startswith(".")) == recipe_names()


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_is_what_its_sources_say(name):
    expected = TABLE.expected(name)
    wrong, unknown, named = [], [], set()
    for key, value in recipe_leaves(load_recipe(name)).items():
        if key in TABLE.free:
            continue
        ways = general(key)
        named |= expected.keys() & ways
        found = next((values[way] for values in (expected, TABLE.common) for way in ways if way in values), None)
        if found is None:
            unknown.append(f"{key}: {value!r} stands in no source's values")
        elif found.value != value or isinstance(found.value, bool) != isinstance(value, bool):
            wrong.append(f"{key}: {value!r}, but {found.value!r} says {found.source}")
    missing = [f"{key}: {expected[key].value!r} says {expected[key].source}" for key in expected.keys() - named]
    assert not wrong + unknown + sorted(missing)


def test_every_value_has_a_source():
    for name in TABLE.entries:
        assert all(len(value.source) > 4 for value in TABLE.expected(name).values()), name
