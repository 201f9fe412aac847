"""What a recipe of a plan has of its own: text, tokenizer, budget, start, fine-tuning; and what has no effect."""

import pytest
import yaml

from bakeoff.comparison.planning.plan import Plan
from bakeoff.errors import UserError


def read(folder, items, **changes):
    """A plan of some recipes, whose files need not be good for anything."""
    for name in ("corpus", "other", "mine"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "rows.tsv").touch()
    task = {"name": "two", "train": "rows.tsv", "text_column": "text", "label_column": "label"}
    values = {"corpus": "corpus", "recipes": items, "budget": "steps=5", "tasks": [task], **changes}
    (folder / "plan.yaml").write_text(
        yaml.safe_dump({key: value for key, value in values.items() if value is not None})
    )
    return Plan.read(folder / "plan.yaml")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tokenizer": {"kinds": "word"}}, "recipes.0.tokenizer: unknown key 'kinds'; did you mean 'kind'"),
        ({"tokenizer": {}}, "recipes.0: tokenizer: nothing given; give its kind, its size or lowercase"),
        ({"tokenizer": "none"}, "recipes.0.tokenizer: there is no file or folder"),
        ({"set": {"tokenizer": {"kind": "words"}}}, "recipes.0: tokenizer: kind"),
        (
            {"tokenizer": {"kind": "word"}, "set": {"tokenizer.size": 9}},
            "recipes.0: set: give all of the tokenizer's settings under `tokenizer`, or under `set`",
        ),
        ({"set": {"budget": "steps=3"}}, "budget: it is no key of a recipe; in a plan it stands beside `recipe`"),
        ({"budget": "years=5"}, "recipes.0.budget: unknown unit 'years'"),
        ({"budget": 60}, "recipes.0.budget: give a unit and how many, such as tokens=5M"),
        ({"budget": "steps=0"}, "recipes.0.budget: steps=0 is no training; give 0"),
        ({"budget": 0}, "recipes.0: budget: 0: what is compared as it is, is a run or a model; name it as `recipe`"),
        ({"start": "./mine", "budget": 0}, "budget: 0: what is compared as it is, is a run or a model"),
        ({"corpus": "corpses"}, "recipes.0.corpus: there is no directory"),
        ({"grow": 9}, "recipes.0: grow would have no effect: it changes a start, and there is none; `set`"),
        ({"unshare": True}, "recipes.0: unshare would have no effect: it changes a start, and there is none"),
        ({"grow_by": "repeat"}, "recipes.0: grow_by would have no effect: there is no start that grows"),
        ({"grow": 0}, "recipes.0.grow"),
        ({"start": "random"}, "recipes.0: start: random would have no effect: a recipe begins with random weights"),
        ({"recipe": None, "start": "random"}, "start: random: name the recipe, or the run whose architecture"),
        ({"finetune": {"poling": "mean"}}, "recipes.0.finetune: unknown key 'poling'; did you mean 'pooling'"),
        ({"recipe": "./mine", "grow": 9, "set": {"model.encoder.layers": 8}}, "`grow` says how many layers there are"),
        ({"recipe": "./mine", "budget": 0, "set": {"model.dropout": 0}}, "set: model.dropout would have no effect"),
        ({"recipe": "./mine", "budget": 0, "corpus": "other"}, "corpus would have no effect: with a budget of 0 the"),
        ({"recipe": "./mine", "budget": 0, "tokenizer": "mine"}, "tokenizer would have no effect: with a budget of 0"),
        ({"recipe": "./mine", "budget": 0, "unshare": True}, "unshare would have no effect: with a budget of 0"),
        ({"recipe": "./mine", "set": {"training.token_vectors.window": 3}}, "the table of tokens is the start's"),
        ({"recipe": "./mine", "tokenizer": {"kind": "word"}}, "tokenizer would have no effect: a start has its own"),
    ],
)
def test_mistakes_and_what_has_no_effect_are_one_line(tmp_path, settings, message):
    item = {"recipe": "bert-mini", "name": "a", **settings}
    with pytest.raises(UserError) as error:
        read(tmp_path, [{key: value for key, value in item.items() if value is not None}, "gpt-tiny"])
    assert message in str(error.value)
    assert str(tmp_path / "plan.yaml") in str(error.value)
    assert "\n" not in str(error.value)


def test_a_plan_needs_a_budget_unless_every_recipe_has_one(tmp_path):
    items = [{"recipe": "bert-mini", "budget": "steps=6"}, {"recipe": "./mine", "budget": 0}]
    plan = read(tmp_path, items, budget=None)
    assert [plan.budget_of(item) for item in plan.recipes] == ["steps=6", "0"]
    plan = read(tmp_path, [items[0], "gpt-tiny"])
    assert [plan.budget_of(item) for item in plan.recipes] == ["steps=6", "steps=5"]
    with pytest.raises(UserError, match="budget: would have no effect: every recipe has a budget of its own"):
        read(tmp_path, items)
    with pytest.raises(UserError, match="budget: this key is required, unless every recipe has a budget of its own"):
        read(tmp_path, [items[0], "gpt-tiny"], budget=None)
    with pytest.raises(UserError, match="search: would have no effect: no recipe is trained"):
        read(tmp_path, items[1:], budget=None, search={})


def test_settings_of_fine_tuning_are_those_of_the_task_and_the_recipes_own(tmp_path):
    plan = read(tmp_path, [{"recipe": "bert-mini", "finetune": {"freeze": "model", "batch": 4}}, "gpt-tiny"])
    task = plan.tasks[0].model_copy(update={"finetune": plan.tasks[0].finetune.model_copy(update={"batch": 8})})
    own, plain = (plan.task_of(item, task).finetune for item in plan.recipes)
    assert (own.freeze, own.batch) == ("model", 4)
    assert (plain.freeze, plain.batch) == (None, 8)


@pytest.mark.parametrize(
    "settings", [{"tokenizer": {"size": 90}}, {"set": {"tokenizer.size": 90}}, {"set": {"tokenizer": {"size": 90}}}]
)
def test_a_tokenizer_may_be_said_as_any_other_override(tmp_path, settings):
    item = read(tmp_path, [{"recipe": "bert-mini", **settings}, "gpt-tiny"]).recipes[0]
    assert (item.own_tokenizer, item.of_recipe) == ({"size": 90}, {})
