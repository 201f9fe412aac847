"""Grids: their cells, their names, and what is no grid."""

import itertools

import pytest
from small_plans import write_plan

from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.running.engine import Engine
from bakeoff.comparison.running.opened import Opened
from bakeoff.errors import UserError

ALBERT = {"model.encoder.share": ["none", "all"], "model.embedding.width": [64, 128, 256]}
LOSSES = {"loss": {"no": {}, "SOP": {"objective": [{"kind": "mlm"}, {"kind": "sop"}]}}}


def parsed(recipes, **changes):
    task = {"name": "mood", "train": "a.tsv", "text_column": "text", "label_column": "label"}
    plan = {"corpus": "corpus", "budget": "steps=5", "tasks": [task], "recipes": recipes, **changes}
    return Plan.parse(plan, "plan.yaml")


def test_a_recipe_with_a_grid_stands_for_every_combination_of_levels():
    plan = parsed(["bert-mini", {"recipe": "albert-tiny", "set": {"model.dropout": 0.0}, "grid": ALBERT}])
    bert, *cells = plan.recipes
    assert (bert.name, bert.set, bert.cell) == ("bert-mini", {}, None)
    assert [cell.set for cell in cells] == [
        {"model.dropout": 0.0, "model.encoder.share": share, "model.embedding.width": width}
        for share, width in itertools.product(*ALBERT.values())
    ]
    assert cells[0].name == "albert-tiny, share none, embedding width 64"
    (facts,) = plan.grids
    assert facts.factors == {"share": ["none", "all"], "embedding width": ["64", "128", "256"]}
    assert list(facts.cells) == [cell.name for cell in cells]
    # What is added to a plan leaves the names of what is there, and with them its directories.
    more = parsed([{"recipe": "albert-tiny", "grid": {**ALBERT, "model.embedding.width": [64, 512]}}])
    assert {cell.name for cell in more.recipes} & {cell.name for cell in cells} == {cells[0].name, cells[3].name}


def test_over_several_recipes_the_recipe_is_a_factor():
    plan = parsed(["bert-mini", "albert-tiny"], grid=LOSSES)
    (facts,) = plan.grids
    assert facts.factors == {"recipe": ["bert-mini", "albert-tiny"], "loss": ["no", "SOP"]}
    assert [item.name for item in plan.recipes] == [
        f"{recipe}, loss {loss}" for recipe, loss in itertools.product(*facts.factors.values())
    ]
    assert [item.entry for item in plan.recipes] == [0, 0, 1, 1]
    assert parsed(["bert-mini"], grid=LOSSES).grids[0].factors == {"loss": ["no", "SOP"]}


@pytest.mark.parametrize(
    ("grid", "titles"),
    [
        ({"model.encoder.width": [8, 16], "model.embedding.width": [8, 16]}, ["encoder width", "embedding width"]),
        ({"model.encoder.block.mixer.heads": [1, 2]}, ["heads"]),
        ({"objective.0.rate": [0.1, 0.3], "objective.1.rate": [0.1, 0.3]}, ["objective 0 rate", "objective 1 rate"]),
        ({"model.encoder.block.mixer.query_key_norm": [True, False]}, ["query key norm"]),
    ],
)
def test_a_factor_is_called_after_the_end_of_its_key(grid, titles):
    (facts,) = parsed([{"recipe": "bert-mini", "grid": grid}]).grids
    assert list(facts.factors) == titles


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"grid": {"model.encoder.layers": [1]}}, "grid: model.encoder.layers: a factor has two levels at least"),
        ({"grid": {"model.encoder.layers": 3}}, "model.encoder.layers: input should be a list ([VALUE, VALUE]), not 3"),
        ({"grid": {"model.dropout": [0.1, 0.10]}}, "model.dropout: two levels are called '0.1'"),
        ({"grid": {"training.average_last": [0, 4]}}, "grid: training.average_last would have no effect: the weights"),
        ({"grid": {"objective": [[{"kind": "mlm"}], [{"kind": "clm"}]]}}, "no single value wants a name"),
        ({"grid": {"model.encoder.layers": [1, 2], "depth": {"a": {"model.encoder.layers": 3}, "b": {}}}}, "both set"),
        ({"grid": {"training.batch": list(range(99)), "model.dropout": [0.1, 0.2, 0.3]}}, "297 cells"),
        ({"grid": {"x" * 130: {"a": {"model.dropout": 0}, "b": {}}}}, "longer than 120 characters"),
        ({"grid": ALBERT, "search": {"over": {"model.encoder.share": ["none"]}}}, "the plan searches it"),
        ({"grid": ALBERT, "recipes": [{"recipe": "a", "set": {"model.encoder": {}}}]}, "sets model.encoder, and the"),
        ({"recipes": [{"recipe": "a", "set": {"model.encoder.share": "all"}, "grid": ALBERT}]}, "under `set` as well"),
        ({"grid": ALBERT, "recipes": [{"recipe": "a", "grid": LOSSES}]}, "leave one of them out"),
        ({"recipes": [{"recipe": "a", "grid": ALBERT}, {"recipe": "a", "grid": LOSSES}]}, "two grids are called 'a'"),
        ({"grid": {"recipe": {"a": {"model.dropout": 0}, "b": {}}}}, "a factor called recipe would be taken for the"),
    ],
)  # fmt: skip
def test_what_is_no_grid_is_refused(changes, message):
    with pytest.raises(UserError, match=r"^plan\.yaml: (recipes|grid)") as error:
        parsed(**{"recipes": ["a"], **changes})
    assert message in str(error.value)


def opened(tmp_path, corpus, grid):
    recipes = [{"recipe": "gpt-tiny.yaml", "grid": grid}]
    path = write_plan(tmp_path, corpus, rows=20, epochs=1, recipes=recipes, budget="steps=2", seeds=1)
    return Opened(Plan.read(path), tmp_path / "out", None, Engine(), None, lambda line: None)


def test_cells_that_no_model_can_have_are_refused_together(tmp_path, corpus):
    grid = {"model.decoder.width": [32, 48], "model.decoder.block.mixer.heads": [2, 3, 5]}
    with pytest.raises(UserError) as error:
        opened(tmp_path, corpus, grid)
    text = str(error.value)
    for heads, width in ((3, 32), (5, 32), (5, 48)):
        assert f"recipe “gpt-tiny, heads {heads}, decoder width {width}”: mixer.heads: {heads} heads do not" in text
    assert "heads 2" not in text
    assert "\n" not in text
    with pytest.raises(UserError, match="are the same recipe; a level changes nothing"):
        opened(tmp_path, corpus, {"model.decoder.layers": {"as it is": {}, "one": {"training.clip": 1.0}}})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("changes", [{"grid": {}}, {"recipes": [{"recipe": "albert-tiny", "grid": {}}]}])
def test_a_grid_without_a_factor_is_refused(changes):
    with pytest.raises(UserError, match="grid: no factor given; give one as KEY"):
        parsed(**{"recipes": ["bert-mini"], **changes})
