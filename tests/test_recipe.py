import re

import pytest
import yaml

from bakeoff.errors import UserError
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe, recipe_names


def write(folder, name="mine.yaml", **changes):
    values = {"extends": "bert-base", **changes}
    (folder / name).write_text(yaml.safe_dump(values), encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("name", recipe_names())
def test_a_complete_recipe_reads_back_as_itself(name, tmp_path):
    recipe = load_recipe(name)
    (tmp_path / "copy.yaml").write_text(recipe.to_yaml(), encoding="utf-8")
    assert load_recipe(tmp_path / "copy.yaml") == recipe
    assert recipe.name == name
    assert recipe.paper


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_can_be_extended(name, tmp_path):
    """Whatever it extends itself; what nothing is changed in is the same recipe under another name."""
    base = load_recipe(name)
    assert load_recipe(write(tmp_path, extends=name)) == base.model_copy(update={"name": "mine"})
    changed = load_recipe(write(tmp_path, extends=name, training={"clip": 0.25}))
    assert changed == base.changed({"name": "mine", "training.clip": 0.25})


def test_a_recipe_extends_others_to_any_depth(tmp_path):
    recipe = load_recipe(write(tmp_path, model={"encoder": {"layers": 7}}))
    assert recipe.name == "mine"
    assert (recipe.model.encoder.layers, recipe.model.encoder.width) == (7, 768)
    write(tmp_path, "0.yaml", model={"dropout": 0.25}, training={"clip": 2.0, "budget": {"steps": 500_000}})
    for i in range(1, 50):
        write(tmp_path, f"{i}.yaml", extends=f"{i - 1}.yaml", training={"batch": i})
    recipe = load_recipe(write(tmp_path, extends="49.yaml", training={"budget": {"minutes": 3}}))
    assert (recipe.name, recipe.model.dropout, recipe.training.clip, recipe.training.batch) == ("mine", 0.25, 2.0, 49)
    assert recipe.training.schedule.warmup == 0.01  # bert-base's share, through another budget
    assert recipe.published is None


def test_every_inherited_warm_up_keeps_its_share(tmp_path):
    schedules = {name: {"kind": "linear", "warmup": 30} for name in ("schedule", "decay_schedule")}
    write(tmp_path, "base.yaml", training={"budget": {"steps": 120}, **schedules})
    longer = load_recipe(write(tmp_path, extends="base.yaml", training={"budget": {"steps": 1_000}}))
    assert longer.training.schedule.warmup == longer.training.decay_schedule.warmup == 0.25
    own = {"budget": {"steps": 1_000}, "decay_schedule": {"kind": "linear", "warmup": 40}}
    longer = load_recipe(write(tmp_path, extends="base.yaml", training=own))
    assert (longer.training.schedule.warmup, longer.training.decay_schedule.warmup) == (0.25, 40)
    assert load_recipe(tmp_path / "base.yaml").training.decay_schedule.warmup == 30


def test_recipes_that_extend_each_other_are_refused_with_their_chain(tmp_path):
    own = write(tmp_path, "own.yaml", extends="own.yaml")
    with pytest.raises(UserError, match=f"^{own}: extends goes in a circle: {own} -> {own}$"):
        load_recipe(own)
    a, b, c = (tmp_path / name for name in ("a.yaml", "b.yaml", "c.yaml"))
    write(tmp_path, "a.yaml", extends="b.yaml")
    write(tmp_path, "b.yaml", extends="c.yaml")
    write(tmp_path, "c.yaml", extends="../" + tmp_path.name + "/b.yaml")  # another spelling of the same file
    with pytest.raises(UserError, match="extends goes in a circle") as caught:
        load_recipe(a)
    circle = str(caught.value).partition("circle: ")[2].split(" -> ")
    assert circle == [str(b), str(c), str(tmp_path / ".." / tmp_path.name / "b.yaml")]
    assert str(caught.value).startswith(f"{c}: ")


def test_a_recipe_extends_several_and_the_later_ones_win(tmp_path):
    """A list is the same as a chain in which each extends the one before it."""
    partial = {"training": {"batch": 3, "optimizer": {"kind": "muon", "lr": 0.5}, "schedule": {"warmup": 0.25}}}
    (tmp_path / "training.yaml").write_text(yaml.safe_dump(partial), encoding="utf-8")
    (tmp_path / "dropout.yaml").write_text(yaml.safe_dump({"model": {"dropout": 0.5}, "training": {"batch": 5}}))
    several = load_recipe(write(tmp_path, extends=["gpt-base", "training.yaml", "dropout.yaml"], input={"length": 64}))
    write(tmp_path, "first.yaml", extends="gpt-base", **partial)
    write(tmp_path, "second.yaml", extends="first.yaml", model={"dropout": 0.5}, training={"batch": 5})
    assert several == load_recipe(write(tmp_path, extends="second.yaml", input={"length": 64}))
    assert (several.training.batch, several.training.optimizer.kind, several.model.dropout) == (5, "muon", 0.5)
    assert several.published is None


def test_what_several_extend_is_read_once(tmp_path):
    write(tmp_path, "0.yaml", training={"clip": 2.0})
    for i in range(1, 60):  # 2^60 ways lead to the first
        write(tmp_path, f"{i}.yaml", extends=[f"{i - 1}.yaml", f"{i - 1}.yaml"], training={"batch": i})
    recipe = load_recipe(write(tmp_path, extends=["59.yaml", "7.yaml"]))
    assert (recipe.training.clip, recipe.training.batch) == (2.0, 7)
    write(tmp_path, "3.yaml", extends=["0.yaml", "9.yaml"])
    with pytest.raises(UserError, match="extends goes in a circle"):
        load_recipe(tmp_path / "59.yaml")


@pytest.mark.parametrize("name", recipe_names())
def test_the_laptop_training_replaces_that_of_every_recipe(name, tmp_path):
    recipe = load_recipe(write(tmp_path, extends=[name, "trainings/laptop"]))
    assert recipe.training == load_recipe("laptop-encoder-tiny").training
    assert recipe.model == load_recipe(name).model


def test_a_chain_that_is_too_long_is_refused_in_one_line(tmp_path):
    write(tmp_path, "0.yaml")
    for i in range(1, 300):
        write(tmp_path, f"{i}.yaml", extends=f"{i - 1}.yaml")
    with pytest.raises(UserError, match="extends: more than 200 recipes") as caught:
        load_recipe(tmp_path / "299.yaml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("base", ["", [], ["bert-base", ""], ["bert-base", 3], {"name": "bert-base"}, 3, True])
def test_what_is_extended_is_a_name(base, tmp_path):
    with pytest.raises(UserError, match=r"mine\.yaml: extends: give the name of a recipe, or a \.yaml file") as caught:
        load_recipe(write(tmp_path, extends=base))
    assert "\n" not in str(caught.value)


def test_what_is_extended_does_not_exist(tmp_path):
    with pytest.raises(UserError, match=r"mine\.yaml: extends: no recipe 'bert-mni'; did you mean 'bert-mini'"):
        load_recipe(write(tmp_path, extends="bert-mni"))
    with pytest.raises(UserError, match=f"mine.yaml: extends: {tmp_path / 'no.yaml'}: no such recipe file"):
        load_recipe(write(tmp_path, extends="no.yaml"))


def test_what_has_another_kind_replaces_what_it_extends(tmp_path):
    mixer = {"kind": "light_conv", "kernel": 3, "heads": 4}
    recipe = load_recipe(write(tmp_path, model={"encoder": {"block": {"mixer": mixer}}}))
    assert recipe.model.encoder.block.mixer.kernel == 3
    assert recipe.model.encoder.block.ffn.width == 3072


def test_overrides_from_the_command_line():
    recipe = load_recipe("bert-base", ["model.encoder.layers=6", "objective.0.rate=0.3", "training.clip=null"])
    assert recipe.model.encoder.layers == 6
    assert recipe.objective[0].rate == 0.3
    assert recipe.training.clip is None
    assert load_recipe("bert-base", {"training.optimizer.lr": "1e-3"}).training.optimizer.lr == 1e-3


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("bert-bas", [], "no recipe 'bert-bas'; did you mean 'bert-base'?"),
        ("missing.yaml", [], "missing.yaml: no such recipe file"),
        ("bert-base", ["model.encoder.layer=6"], "model.encoder: unknown key 'layer'; did you mean 'layers'?"),
        ("bert-base", ["model.encoder.block.mixer.head=6"], "unknown key 'head'; did you mean 'heads'?"),
        ("bert-base", ["trainin.batch=6"], "unknown key 'trainin'; did you mean 'training'?"),
        ("bert-base", ["training.lr=1e-3"], "training: unknown key 'lr'; did you mean 'training.optimizer.lr'[?]$"),
        ("bert-base", ["model.layers=2"], "model: unknown key 'layers'; did you mean 'model.encoder.layers'[?]$"),
        ("t5-base", ["model.layers=2"], "did you mean 'model.encoder.layers' or 'model.decoder.layers'[?]$"),
        (
            "bert-base",
            ["rate=0.3"],
            "unknown key 'rate'; did you mean 'objective.0.rate' or 'training.optimizer.lr.rate'[?]$",
        ),
        ("bert-base", ["model.encoder.heads=2"], "did you mean 'model.encoder.block.mixer.heads'[?]$"),
        ("gpt-base", ["model.decoder.block.mixer.head=6"], "unknown key 'head'; did you mean 'heads'[?]$"),
        ("bert-base", ["zzz=1"], "unknown key 'zzz'; choose from extends, input, model, name, objective"),
        ("bert-base", ["objective.0.ngram=1001"], "objective.0.ngram: input should be less than or equal to 1000"),
        ("bert-base", ["objective.0.ngram=2147483648"], "objective.0.ngram: 2147483648 is too large"),
        ("bert-base", [f"training.budget={'x' * 1000}"], f"not '{'x' * 199}[.][.][.]$"),
        ("bert-base", [f"training.schedule={'x' * 1000}"], f"there is no '{'x' * 200}[.][.][.]'"),
        ("bert-base", ["extends=bert-large"], "--set extends: only a recipe's file can extend another; name"),
        ("bert-base", ["model.encoder.layers=many"], "model.encoder.layers: .*not 'many'"),
        ("bert-base", ["objective.7.rate=1"], "'objective.7' is not a place in a list of 2"),
        ("bert-base", ["model.dropout.rate=1"], "'model.dropout.rate' does not exist"),
        ("bert-base", ["layers"], "expected KEY=VALUE"),
        ("bert-base", ["objective=[{rate: 0.3}]"], "objective.0.kind: this key is required"),
        ("bert-base", ["training.average.share=0.3"], "training.average.kind: this key is required"),
        (
            "laptop-encoder-tiny",
            ["training.optimizer.weight_decay=0.1", "training.decay_schedule={kind: linear, warmup: 100}"],
            "training.decay_schedule.warmup: 100 steps, but the budget has none; give a share",
        ),
        ("bert-base", ["objective.0.kind=mml"], "objective.0.kind: there is no 'mml'; did you mean 'mlm'"),
        ("bert-base", ["input.length=600"], "input.length: 600 is more than model.embedding.length, 512"),
        ("gpt-base", ["objective.0.kind=mlm"], "mlm predicts from both sides, but a model with 'decoder'"),
        ("bert-base", ["objective.1.kind=clm"], "clm predicts the next token.*use 'decoder'"),
        ("conv-light-encoder-base", ["objective.0={kind: sop}"], "sop needs two segments, but input.format is blocks"),
        ("bert-base", ["objective.0={kind: sop}"], "sop and nsp both arrange the segments"),
        ("bert-base", ["objective.1.kind=mlm"], "mlm is listed twice"),
        (
            "elmo",
            ["objective.0={kind: clm}"],
            "clm reads in one direction.*use bilm",
        ),
        ("elmo", ["objective.0={kind: mlm}"], "mlm needs layers that see both sides.*use bilm"),
        ("gpt-base", ["objective.0.kind=bilm"], "bilm predicts from either side alone.*'directions: 2'"),
        ("bert-base", ["model.directions=2"], "directions: 2 is for a model with 'decoder' alone"),
        ("bert-base", ["model.decoder.width=4"], "model"),
    ],
)
def test_mistakes_are_one_line_that_names_the_place(name, overrides, message):
    with pytest.raises(UserError, match=message) as caught:
        load_recipe(name, overrides)
    assert "\n" not in str(caught.value)


def test_a_broken_file_is_named_with_its_line(tmp_path):
    (tmp_path / "broken.yaml").write_text("model:\n  encoder: [1, 2\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"broken.yaml line \d+: not valid YAML"):
        load_recipe(tmp_path / "broken.yaml")
    (tmp_path / "empty.yaml").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match="expected keys and values, found nothing"):
        load_recipe(tmp_path / "empty.yaml")


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("steps=1000", "steps", 1000),
        ("tokens=5M", "tokens", 5_000_000),
        ("words=2.3M", "words", 2_300_000),
        ("tokens=123456789012345", "tokens", 123456789012345),
        ("epochs=2.5", "epochs", 2.5),
        ("flops=1e15", "flops", 1e15),
        ("minutes=10", "minutes", 10),
        ("hours=2", "minutes", 120),
    ],
)
def test_budgets_are_read(text, unit, value):
    budget = Budget.parse_text(text)
    assert getattr(budget, unit) == value
    assert Budget.parse_text(str(budget)) == budget


def test_a_budget_is_written_exactly():
    budget = Budget(steps=1_234_567)
    assert Budget.parse_text(str(budget)) == budget


@pytest.mark.parametrize(
    "text", ["steps", "step=5", "tokens=", "minutes=-1", "steps=0", "flops=1e", "tokens=5X", "steps=1.5"]
)
def test_bad_budgets_are_refused(text):
    with pytest.raises(UserError, match="--budget"):
        Budget.parse_text(text)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"hours": "two"}, "hours: 'two' is not a number above 0"),
        ({"hours": True}, "hours: True is not a number"),
        ({"hours": -1}, "hours: -1 is not a number above 0"),
        ({"hours": 1, "minutes": 60}, "give exactly one of .* and hours, not hours, minutes"),
        ({"days": 1}, "unknown key 'days'; choose from epochs, flops, hours, minutes, steps, tokens"),
        ({"hour": 1}, "unknown key 'hour'; did you mean 'hours'"),
        ({"epochs": 0}, "epochs: input should be greater than 0"),
    ],
)
def test_budgets_of_a_recipe_are_checked(values, message):
    with pytest.raises(UserError, match=f"training.budget: {message}|training.budget.{message}"):
        load_recipe("bert-tiny", {"training.budget": values})


def test_a_budget_without_a_unit_is_told_what_one_is():
    with pytest.raises(UserError, match="--budget 10: give a unit and how many, such as tokens=5M"):
        Budget.parse_text("10")


def test_an_override_replaces_the_budgets_unit():
    """A recipe has one budget, so that another unit cannot stand beside its own."""
    assert load_recipe("bert-tiny", ["training.budget.steps=3"]).training.budget == Budget(steps=3)
    assert load_recipe("bert-tiny", ["training.budget.tokens=3"]).training.budget == Budget(tokens=3)
    assert load_recipe("bert-base", ["training.budget.tokens=5"]).training.schedule.warmup == 0.01
    with pytest.raises(UserError, match=r"exactly one of steps, .* minutes and hours, not steps, tokens"):
        load_recipe("bert-tiny", ["training.budget.steps=3", "training.budget.tokens=3"])


def test_budgets_become_steps():
    costs = {"tokens_per_step": 4000.0, "flops_per_step": 1e9}
    assert Budget(steps=7).steps_for(**costs) == 7
    assert Budget(tokens=40_000).steps_for(**costs) == 10
    assert Budget(flops=5e9).steps_for(**costs) == 5
    assert Budget(words=60_000).steps_for(**costs, words_per_token=0.75) == 20
    assert Budget.parse_text("words=10M") == Budget(words=10_000_000)
    assert Budget(epochs=2.5).steps_for(**costs, text_tokens=80_000) == 50
    assert Budget.parse({"hours": 0.5}, "here") == Budget(minutes=30)
    assert Budget(minutes=1).steps_for(**costs, seconds_per_step=0.5) == 120


def test_the_schedule_is_fitted_to_the_budget():
    fitted = load_recipe("bert-base").fitted(500)  # warm-up 10,000 of 1,000,000 steps: 1 %
    assert fitted.training.budget.steps == 500
    assert fitted.training.schedule.warmup == 5
    assert load_recipe("bert-tiny").fitted(500).training.schedule.warmup == 25  # a share
    assert isinstance(Recipe.parse(fitted.model_dump(mode="json"), "again"), Recipe)


def test_a_budget_of_ones_own_keeps_the_warm_ups_share(tmp_path):
    """The README's own example: bert-base warms up for 10,000 of 1,000,000 steps."""
    recipe = load_recipe(write(tmp_path, training={"batch": 32, "budget": {"minutes": 30}}))
    assert recipe.training.schedule.warmup == 0.01
    assert recipe.fitted(400).training.schedule.warmup == 4
    assert load_recipe("bert-base", {"training.budget": {"tokens": 5}}).training.schedule.warmup == 0.01
    own = {"budget": {"minutes": 30}, "schedule": {"warmup": 500}}
    with pytest.raises(UserError, match="500 steps, but the budget has none; give a share"):
        load_recipe(write(tmp_path, training=own))


def test_a_warm_up_that_is_given_with_the_budget_is_taken_as_it_is(tmp_path):
    own = {"budget": {"steps": 3_000_000}, "schedule": {"warmup": 10_000}}  # bert-base's own warm-up, written again
    assert load_recipe(write(tmp_path, training=own)).training.schedule.warmup == 10_000
    pairs = {"training.budget.steps": 3_000_000, "training.schedule.warmup": 10_000}
    assert load_recipe("bert-base", pairs).training.schedule.warmup == 10_000
    pairs = {"training.budget.steps": 3_000_000, "training.schedule": {"kind": "linear", "warmup": 10_000}}
    assert load_recipe("bert-base", pairs).training.schedule.warmup == 10_000


def test_a_file_is_extended_relative_to_the_file_that_says_so(tmp_path, monkeypatch):
    write(tmp_path, "base.yaml", model={"dropout": 0.25})
    values = yaml.safe_load((tmp_path / "base.yaml").read_text())
    complete = load_recipe(tmp_path / "base.yaml")
    (tmp_path / "base.yaml").write_text(complete.to_yaml())
    path = write(tmp_path, extends="base.yaml", training={"batch": 4})
    monkeypatch.chdir("/")
    assert values["model"]["dropout"] == load_recipe(path).model.dropout == 0.25


def test_a_changed_model_has_no_published_size():
    assert load_recipe("bert-base", {"training.batch": 8}).published.parameters == 110_000_000
    assert load_recipe("bert-base", {"model.encoder.layers": 6}).published is None
    assert load_recipe("bert-base").changed({"model.encoder.layers": 6}).published is None
    assert load_recipe("bert-mini").published is None
    assert load_recipe("bert-large").published.parameters == 336_000_000


def test_values_that_are_set_stay_the_callers():
    given = {"objective": [{"kind": "mlm"}], "objective.0.rate": 0.3}
    assert load_recipe("roberta-tiny").changed(given).objective[0].rate == 0.3
    assert given["objective"] == [{"kind": "mlm"}]


def test_a_kind_that_is_set_replaces_the_part():
    """What the recipe says of the old one and the new one does not know is gone; what both know stays."""
    recipe = load_recipe("gpt-tiny", ["model.decoder.block.mixer.kind=lstm"])
    assert recipe.model.decoder.block.mixer.kind == "lstm"
    recipe = load_recipe("bert-tiny", ["input.format=blocks", "input.isolate=false", "objective=[{kind: mlm}]"])
    assert (recipe.input.length, recipe.input.isolate) == (load_recipe("bert-tiny").input.length, False)
    with pytest.raises(UserError, match=r"clm needs running text, but input\.format is segment_pair"):
        load_recipe("gpt-tiny", ["input.format=segment_pair"])
    with pytest.raises(UserError, match="input: unknown key 'short'"):  # which is not the recipe's
        load_recipe("bert-tiny", ["input.format=blocks", "input.short=0.1"])
    mixer = "model.decoder.block.mixer"
    with pytest.raises(UserError, match="mixer: unknown key 'heads'"):
        load_recipe("gpt-tiny", [f"{mixer}.kind=lstm", f"{mixer}.heads=2"])


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("training.schedule", "cosine"),
        ("training.optimizer", "adamw"),
        ("training.average", "swa"),
        ("model.decoder.block.mixer", "light_conv"),
        ("model.decoder.block", "gated_conv"),
        ("input", "segment_pair"),
    ],
)
def test_a_part_s_name_alone_is_its_kind(key, name, tmp_path):
    """Set on the command line, in a file that extends another one, and where nothing was before."""
    base = "albert-tiny" if key == "input" else "gpt-tiny"
    tag = "format" if key == "input" else "kind"
    by_kind = {f"{key}.{tag}": name}

    def outcome(overrides):
        try:
            return load_recipe(base, overrides)
        except UserError as error:
            return str(error)

    assert outcome([f"{key}={name}"]) == outcome(by_kind)
    first, *rest = key.split(".")
    for value in (name, {tag: name}):
        nested = value
        for part in reversed(rest):
            nested = {part: nested}
        (tmp_path / f"{type(value).__name__}.yaml").write_text(yaml.safe_dump({"extends": base, first: nested}))
    (one, other) = (str(tmp_path / f"{each}.yaml") for each in ("str", "dict"))

    def read(path):
        try:
            return load_recipe(path).model_dump() | {"name": ""}
        except UserError as error:
            return str(error).replace("dict.yaml", "str.yaml")

    assert read(one) == read(other)


def test_a_name_that_no_part_has_is_a_line_with_the_nearest_one():
    with pytest.raises(UserError, match=r"training\.schedule\.kind: there is no 'cosin'; did you mean 'cosine'\?"):
        load_recipe("gpt-tiny", ["training.schedule=cosin"])


def test_keys_that_are_no_more_are_left_out_where_they_did_nothing():
    """As they stand in the complete recipes of older versions."""
    key, off, on = "objective.0.logit_cap", None, 30.0
    assert load_recipe("gpt-tiny", {key: off}) == load_recipe("gpt-tiny")
    path, _, name = key.rpartition(".")
    refusal = f"{path}: {name}: this version has it no more; leave it out, or use an older one"
    with pytest.raises(UserError, match=f"^gpt-tiny.yaml: {re.escape(refusal)}$"):
        load_recipe("gpt-tiny", {key: on})
    with pytest.raises(UserError, match=f"unknown key '{name}'"):
        load_recipe("gpt-tiny", {f"training.{name}": off})


def test_a_rule_that_is_set_beside_a_kind_without_it_is_refused_and_not_left_out():
    kind, decay = "training.optimizer.kind=sgd", "training.optimizer.weight_decay"
    assert load_recipe("laptop-hybrid-tiny", [kind, "training.optimizer.lr=0.1"]).training.optimizer.weight_decay == 0
    for given in (f"{decay}.passes=1", f"{decay}={{passes: 1}}"):
        with pytest.raises(UserError, match=r"training\.optimizer\.weight_decay"):
            load_recipe("laptop-hybrid-tiny", [kind, "training.optimizer.lr=0.1", given])


def test_a_kind_that_is_set_does_without_values_that_it_does_not_take():
    """Convolutions have a gate or none, attention none or a named one."""
    mixer = "model.encoder.block.mixer"
    assert load_recipe("conv-light-encoder-tiny").model.encoder.block.mixer.gate is True
    turned = load_recipe("conv-light-encoder-tiny", [f"{mixer}.kind=attention"]).model.encoder.block.mixer
    assert (turned.kind, turned.heads, turned.gate) == ("attention", 8, "none")
    with pytest.raises(UserError, match=r"mixer\.gate: input should be 'none' or 'gelu', not true"):
        load_recipe("conv-light-encoder-tiny", [f"{mixer}.kind=attention", f"{mixer}.gate=true"])
    with pytest.raises(UserError, match=r"mixer\.heads: input should be a valid integer"):
        load_recipe("conv-light-encoder-tiny", [f"{mixer}.kind=attention", f"{mixer}.heads=many"])
