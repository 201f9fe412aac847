import pytest

from bakeoff.recipe_files import load_recipe, recipe_names
from tests.published.table import read_table, recipe_leaves

TABLE = read_table()


def test_the_table_has_every_recipe_and_no_other():
    assert sorted(name for name in TABLE.entries if not name.startswith(".")) == recipe_names()


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_is_what_its_sources_say(name):
    differences = TABLE.differences(name, recipe_leaves(load_recipe(name)))
    assert not differences, "\n".join(differences)


def test_each_changed_value_is_noticed_and_each_key_that_comes_or_goes():
    right = recipe_leaves(load_recipe("gcnn-14b"))
    for key in right.keys() - TABLE.free:
        changed = {**right, key: "another"}
        assert [line.partition(":")[0] for line in TABLE.differences("gcnn-14b", changed)] == [key]
        assert TABLE.differences("gcnn-14b", {**right, f"{key}.new": 0})
    without = {key: value for key, value in right.items() if key != "training.optimizer.lr"}
    assert TABLE.differences("gcnn-14b", without)


def test_every_value_has_a_source():
    for name in TABLE.entries:
        assert all(len(value.source) > 3 for value in TABLE.expected(name).values()), name
