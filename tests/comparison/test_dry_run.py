"""What a comparison or a search will cost, before it begins: what is counted is what is then trained."""

import json

import pytest
import yaml
from small_plans import NAMES, write_plan
from tests.conftest import shrink
from typer.testing import CliRunner

from bakeoff.cli.app import app
from bakeoff.comparison import forecast as of_comparison
from bakeoff.comparison.execution import compare
from bakeoff.comparison.forecast import forecast_comparison
from bakeoff.comparison.planning.advice import in_a_plan
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.running.engine import Engine
from bakeoff.comparison.running.opened import Opened
from bakeoff.errors import UserError
from bakeoff.optimization.budget import Budget
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.fitting import memory
from bakeoff.tuning import forecast as of_search
from bakeoff.tuning.forecast import forecast_search
from bakeoff.tuning.halving import most_work
from bakeoff.tuning.results import SearchJournal
from bakeoff.tuning.tune import tune


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    for module in (of_comparison, of_search):
        monkeypatch.setattr(module, "FORECAST_SECONDS", 0.01)


@pytest.fixture
def write(corpus, tmp_path):
    def write(**changes):
        return write_plan(tmp_path, corpus, 20, 1, **{"budget": "steps=10", "seeds": 2, **changes})

    return write


def counts(forecast):
    return [(work.what, work.of, work.jobs, work.done) for work in forecast.works]


@pytest.mark.slow
def test_what_is_counted_is_what_is_trained_and_nothing_is_written(write, tmp_path):
    plan, out = write(), tmp_path / "out"
    before = sorted(tmp_path.rglob("*"))
    forecast = forecast_comparison(plan, out, jobs=1)
    assert sorted(tmp_path.rglob("*")) == before
    assert counts(forecast) == [
        (what, name, jobs, 0) for name in NAMES for what, jobs in (("pre-training", 2), ("fine-tuning", 4))
    ]
    assert all(line.endswith("measured now") for line in forecast.speed)
    assert 0 < forecast.seconds == sum(work.jobs * work.seconds for work in forecast.works)
    compare(write(seeds=1), out, jobs=1, report=lambda results, path: None)
    trained = [path.parent.name for path in (out / "runs").rglob("model.safetensors")]
    assert len(trained) * 2 == sum(work.jobs for work in forecast.works)
    sizes = sum(path.stat().st_size for path in (out / "runs").rglob("model.safetensors"))
    assert forecast.kept / 2 == pytest.approx(sizes, rel=0.2)  # a head is another than the one of pre-training
    again = forecast_comparison(write(), out, jobs=1)
    assert counts(again) == [
        (what, name, jobs, jobs) for name in NAMES for what, jobs in (("pre-training", 1), ("fine-tuning", 2))
    ]
    assert all(line.endswith("in its trainings here") for line in again.speed)
    assert again.kept * 2 == forecast.kept


@pytest.mark.slow
def test_a_search_costs_what_its_journal_then_has(write, corpus, tmp_path):
    write()
    options = {"trials": 5, "budget": Budget(steps=60), "device": "cpu", "jobs": 1}
    forecast = forecast_search(tmp_path / "gpt-tiny.yaml", corpus.path, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
    assert counts(forecast) == [("trial", "gpt-tiny", 5, 0)]
    tune(tmp_path / "gpt-tiny.yaml", corpus.path, tmp_path / "out", **options)
    trials = SearchJournal.read(tmp_path / "out/search.json").trials
    spent = sum(trial.step for trial in trials)
    most = most_work([trial.evaluations for trial in trials]) * 60
    assert spent <= most < 5 * 60
    (speed,) = forecast.speed
    seconds = float(speed.split()[1]) / 1000
    assert forecast.seconds == pytest.approx(most * seconds, rel=0.02)
    again = forecast_search(tmp_path / "gpt-tiny.yaml", corpus.path, tmp_path / "out", **options)
    assert again.works[0].done > 0
    assert again.speed[0].endswith("steps of its trials here")


def test_trials_of_a_comparison_are_counted(write, tmp_path):
    plan = write(budget="steps=200", search={"trials": 4, "budget": "50 %"})
    forecast = forecast_comparison(plan, tmp_path / "out", jobs=1)
    trials = [work for work in forecast.works if work.what == "trial"]
    assert [(work.of, work.jobs) for work in trials] == [(name, 4) for name in NAMES]
    pretrainings = {work.of: work.seconds for work in forecast.works if work.what == "pre-training"}
    for work in trials:  # three of four are stopped at the latest at their half
        whole = 0.5 * pretrainings[work.of]
        assert whole < work.jobs * work.seconds < 4 * whole


@pytest.mark.slow
def test_trials_that_are_done_are_counted_as_done(write, tmp_path):
    plan = write(recipes=["gpt-tiny.yaml"], seeds=1, budget="steps=100", search={"trials": 2, "budget": "50 %"})
    before = forecast_comparison(plan, tmp_path / "out", jobs=1)
    compare(plan, tmp_path / "out", jobs=1)
    after = forecast_comparison(plan, tmp_path / "out", jobs=1)
    assert counts(before) == [(what, name, jobs, 0) for what, name, _, jobs in counts(after)]
    assert (after.works[0].what, after.works[0].jobs, after.works[0].done) == ("trial", 0, 2)
    assert after.seconds == 0


@pytest.mark.slow
def test_trials_of_a_recipe_whose_pre_trainings_are_copies_are_counted(write, tmp_path):
    ways = [{"recipe": "gpt-tiny.yaml", "name": f"{length}", "finetune": {"length": length}} for length in (16, 24)]
    plan = write(recipes=ways, budget="steps=200", search={"trials": 4, "budget": "50 %"})
    forecast = forecast_comparison(plan, tmp_path / "out", jobs=1)
    assert [work[:3] for work in counts(forecast)] == [
        ("trial", "16", 4),
        ("pre-training", "16", 2),
        ("fine-tuning", "16", 4),
        ("trial", "24", 4),
        ("copied training", "24", 2),
        ("fine-tuning", "24", 4),
    ]
    assert "2 copied trainings" in forecast.rows()["jobs"]


def test_minutes_are_the_minutes(write, tmp_path):
    forecast = forecast_comparison(write(budget="minutes=3"), tmp_path / "out", jobs=1)
    assert [work.seconds for work in forecast.works if work.what == "pre-training"] == [180.0, 180.0]
    assert all(line.endswith("by its budget") for line in forecast.speed)


def test_a_mistake_of_the_plan_is_refused_as_in_the_comparison(write, tmp_path):
    plan = write(recipes=["gpt-tiny.yaml", {"recipe": "bert-tiny", "set": {"model.encoder.layer": 3}}])
    with pytest.raises(UserError) as here:
        compare(plan, tmp_path / "out")
    with pytest.raises(UserError) as there:
        forecast_comparison(plan, tmp_path / "out")
    assert str(here.value) == str(there.value)


def planned(plan, out):
    return list(Opened(Plan.read(plan), out, None, Engine(), None, lambda line: None).planned().all())


def begin(*trainings):
    for each in trainings:
        each.begin()
        each.directory.mkdir()


def test_a_change_of_a_file_is_refused_as_in_the_comparison(write, tmp_path):
    """A plan of which nothing is left to do by its count would be refused by the comparison itself."""
    plan, out = write(seeds=1), tmp_path / "out"
    begin(*planned(plan, out))
    forecast_comparison(plan, out, jobs=1)
    (tmp_path / "rows.tsv").write_text((tmp_path / "rows.tsv").read_text() + "the river\t1\n")
    for refused in (forecast_comparison, compare):
        with pytest.raises(UserError, match="pretrained-0: begun with another content of train; restore the plan and"):
            refused(plan, out, jobs=1)


@pytest.mark.slow
def test_what_diverged_is_counted_once_its_settings_have_changed(write, tmp_path):
    plan, out = write(seeds=1), tmp_path / "out"
    first = planned(plan, out)[0]
    begin(first)
    first.fail("the loss is nan")
    assert {work.of for work in forecast_comparison(plan, out, jobs=1).works if work.jobs} == {NAMES[1]}
    (tmp_path / f"{NAMES[0]}.yaml").write_text(shrink(NAMES[0]).changed({"model.dropout": 0.3}).to_yaml())
    before = sorted(out.rglob("*"))
    assert {work.of for work in forecast_comparison(plan, out, jobs=1).works if work.jobs} == {*NAMES}
    assert sorted(out.rglob("*")) == before


@pytest.mark.parametrize(
    ("rows", "message"), [([5, 50], "50 are more than the 20 rows"), ([20, "all"], "2 of them are")]
)
def test_numbers_of_rows_are_refused_as_in_the_comparison(rows, message, write, tmp_path):
    columns = {"text_column": "text", "label_column": "label", "train_rows": rows}
    plan = write(tasks=[{"name": "mood", **columns, **dict.fromkeys(("train", "dev", "test"), "rows.tsv")}])
    with pytest.raises(UserError, match=f"^task “mood”: train_rows: {message}") as here:
        forecast_comparison(plan, tmp_path / "out")
    with pytest.raises(UserError) as there:
        compare(plan, tmp_path / "out", jobs=1)
    assert str(here.value) == str(there.value)


def test_the_command_line_prints_rows_or_json(write, tmp_path):
    arguments = ["compare", str(write()), "--out", str(tmp_path / "out"), "--jobs", "1", "--dry-run"]
    printed = CliRunner().invoke(app, arguments)
    assert printed.exit_code == 0
    assert [line.split()[0] for line in printed.stdout.splitlines()] == ["jobs", "time", "speed", "disk", "memory"]
    printed = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert printed["seconds"] >= 0
    assert [work["of"] for work in printed["works"]] == [name for name in NAMES for _ in range(2)]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("option", "changes"), [("trials", {"trials": 0}), ("seeds", {"seeds": 0}), ("jobs", {"jobs": 0})]
)
def test_what_a_search_refuses_at_once_its_forecast_does(option, changes, corpus, tmp_path):
    for function in (tune, forecast_search):
        with pytest.raises(UserError, match=rf"^--{option} 0: give at least 1$"):
            function(shrink("gpt-tiny"), corpus.path, tmp_path / "out", device="cpu", **changes)
    assert not (tmp_path / "out").exists()


def test_no_jobs_are_refused_in_a_comparison_and_its_forecast(write, tmp_path):
    for function in (compare, forecast_comparison):
        with pytest.raises(UserError, match=r"^--jobs 0: give at least 1$"):
            function(write(), tmp_path / "out", jobs=0)
    assert not (tmp_path / "out").exists()


def test_a_task_in_folders_of_files_is_known_by_their_content(write, tmp_path):
    """IMDb and RACE are published so; whatever changes in one of the files is another task."""
    for label, at in ((label, at) for label in ("calm", "wild") for at in range(20)):
        (tmp_path / "train" / label).mkdir(parents=True, exist_ok=True)
        (tmp_path / "train" / label / f"{at}.txt").write_text(f"the river {at}")
    columns = {"text_column": "text", "label_column": "label"}
    task = {"name": "mood", "train": "train", "layout": "class_folders", **columns}

    def marks():
        plan = Plan.read(write(tasks=[task]))
        opened = Opened(plan, tmp_path / "out", None, Engine(), None, lambda line: None)
        return opened.planned().tasks["mood"]["files"]

    before = marks()
    assert marks() == before
    (tmp_path / "train/calm/3.txt").write_text("the river 4")
    changed = marks()
    assert changed["train"] != before["train"]
    (tmp_path / "train/calm/3.txt").rename(tmp_path / "train/wild/30.txt")
    assert marks()["train"] not in (before["train"], changed["train"])


def test_a_task_on_the_hub_is_known_by_its_name(write, tmp_path):
    task = {"name": "mood", "train": "hub:own/mood@train", "text_column": "text", "label_column": "label"}
    opened = Opened(Plan.read(write(tasks=[task])), tmp_path / "out", None, Engine(), None, lambda line: None)
    assert opened.planned().tasks["mood"]["files"] == {"train": task["train"], "dev": None, "test": None}


def test_files_of_tasks_are_read_before_a_speed_is_measured(write, tmp_path, monkeypatch):
    plan = write()
    (tmp_path / "rows.tsv").write_text("text\tmood\nthe river\t1\n")
    monkeypatch.setattr(of_comparison, "step_times", lambda *any: pytest.fail("a speed was measured"))
    with pytest.raises(UserError, match="no column 'label'"):
        forecast_comparison(plan, tmp_path / "out", jobs=1)


def test_a_device_that_is_not_there_is_said_of_the_plan(write, tmp_path):
    with pytest.raises(UserError, match=r"^device: gpu: unknown device; choose from auto, cpu"):
        forecast_comparison(write(device="gpu"), tmp_path / "out", jobs=1)


def test_advice_about_a_tasks_file_names_the_keys_of_a_plan(write, tmp_path):
    """A plan has no options; `finetune` says the same of its own."""
    plan = write()
    rows = tmp_path / "rows.tsv"
    rows.write_text("".join(rows.read_text().splitlines(keepends=True)[1:]))
    advice = r"if the first row is data, give header: false in the task, and columns"
    with pytest.raises(UserError, match=advice):
        compare(plan, tmp_path / "out", jobs=1, report=lambda results, path: None)
    with pytest.raises(UserError, match=advice):
        forecast_comparison(plan, tmp_path / "dry", jobs=1)
    rows.write_text("text;label\nthe old river;1\n")
    with pytest.raises(
        UserError, match=r"if its cells stand between semicolons, give separator: semicolon in the task$"
    ):
        compare(plan, tmp_path / "out", jobs=1, report=lambda results, path: None)


@pytest.mark.parametrize(
    ("said", "of_plan"),
    [
        ("give --option header=false, and", "give header: false in the task, and"),
        (
            "regression learns numbers, --task classification names",
            "regression learns numbers, kind: classification names",
        ),
        ("name it by --label-column", "name it by label_column"),
        ("or give --errors replace to read", "or give errors: replace to read"),
        ("--grow 1: the model has 2", "grow: 1: the model has 2"),
        ("--set extends: a recipe's file", "`set` extends: a recipe's file"),
        ("leave --set model.encoder.layers out", "leave set: model.encoder.layers out"),
    ],
)
def test_a_plans_keys_stand_for_all_options(said, of_plan):
    assert str(in_a_plan(UserError(f"rows.tsv: {said}"))) == f"rows.tsv: {of_plan}"


def test_advice_about_a_fine_tuning_names_its_keys(write, tmp_path, monkeypatch):
    tasks = yaml.safe_load(write().read_text())["tasks"]
    plan = write(tasks=[{**task, "finetune": {"micro_batch": "auto"}} for task in tasks])
    monkeypatch.setattr(memory, "memory_to_fit", lambda _: 1 << 10)
    with pytest.raises(UserError, match=r"give a smaller length \(length: N in the task's finetune\)"):
        compare(plan, tmp_path / "out", jobs=1, report=lambda results, path: None)


IDLE = {
    "unshare": (True, "no layers share weights"),
    "separators": (2, "there are no pairs of texts"),
    "layer_decay_rule": ("electra", "there is no layer_decay"),
}


@pytest.mark.parametrize("key", IDLE)
def test_settings_of_fine_tunings_without_an_effect_are_refused(write, tmp_path, key):
    value, why = IDLE[key]
    write()
    task = yaml.safe_load((tmp_path / "plan.yaml").read_text())["tasks"][0]
    recipes = ["gpt-tiny.yaml", {"recipe": "laptop-conv-tiny.yaml", "name": "conv", "finetune": {key: value}}]
    of_task = [{**task, "finetune": {**task["finetune"], key: value}}]
    for changes, where in (({"recipes": recipes}, "recipe “conv”"), ({"tasks": of_task}, "task “mood”")):
        with pytest.raises(UserError, match=f"^{where}: finetune: {key} would have no effect: {why}; leave it out$"):
            forecast_comparison(write(**changes), tmp_path / "out", jobs=1)
    default = {key: FinetuneConfig.model_fields[key].default}  # in words, for whoever reads the plan
    in_words = [{**task, "finetune": {**task["finetune"], **default}}]
    forecast_comparison(write(tasks=in_words), tmp_path / "out", jobs=1)


def test_settings_that_matter_to_one_recipe_or_task_are_taken(write, tmp_path):
    write()
    (tmp_path / "albert-tiny.yaml").write_text(shrink("albert-tiny").to_yaml())
    task = yaml.safe_load((tmp_path / "plan.yaml").read_text())["tasks"][0]
    unshared = {**task, "finetune": {**task["finetune"], "unshare": True}}
    (tmp_path / "pairs.tsv").write_text("text\tother\tlabel\n" + "a river\tan old one\t0\na stone\ta new one\t1\n" * 10)
    files = dict.fromkeys(("train", "dev", "test"), "pairs.tsv")
    pairs = {**task, **files, "name": "pairs", "pair_column": "other"}
    recipes = ["gpt-tiny.yaml", {"recipe": "albert-tiny.yaml", "finetune": {"separators": 2}}]
    forecast_comparison(write(recipes=recipes, tasks=[unshared, pairs]), tmp_path / "out", jobs=1)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"recipe": "gpt-tiny.yaml", "name": "again"}, ""),
        (
            {"recipe": "gpt-tiny.yaml", "name": "again", "set": {"training.checkpoint_minutes": 1}},
            "training.checkpoint_minutes",
        ),
        ({"recipe": "copy.yaml", "name": "again"}, "the one says what the other says"),
        ({"recipe": "gpt-tiny.yaml", "name": "again", "budget": "steps=10"}, "budget"),
    ],
)
def test_one_recipe_under_two_names_is_refused(write, tmp_path, other, why):
    write()
    (tmp_path / "copy.yaml").write_text((tmp_path / "gpt-tiny.yaml").read_text())
    why = f": {why}{' changes nothing that is compared' * (' ' not in why)}" if why else ""
    with pytest.raises(UserError, match=f"^recipes gpt-tiny and “again” are the same under two names{why}; leave one"):
        forecast_comparison(write(recipes=["gpt-tiny.yaml", other]), tmp_path / "out", jobs=1)
    apart = {**other, "budget": "steps=9"}
    forecast_comparison(write(recipes=["gpt-tiny.yaml", apart]), tmp_path / "out", jobs=1)


def test_several_values_of_a_key_belong_into_a_grid(write, tmp_path):
    recipes = ["gpt-tiny.yaml", {"recipe": "gpt-tiny.yaml", "name": "deep", "set": {"model.decoder.layers": [2, 4]}}]
    advice = r"recipe “deep”: .*not \[2, 4\]; to compare several values, give them under `grid`$"
    with pytest.raises(UserError, match=advice):
        forecast_comparison(write(recipes=recipes), tmp_path / "out", jobs=1)


def test_the_recipe_that_is_refused_is_named(write, tmp_path):
    write()
    text = (tmp_path / "gpt-tiny.yaml").read_text()
    (tmp_path / "gpt-tiny.yaml").write_text(text.replace("optimizer:", "optimiser:"))
    with pytest.raises(UserError, match=r"^recipe gpt-tiny: .*gpt-tiny.yaml: training: unknown key 'optimiser'"):
        forecast_comparison(tmp_path / "plan.yaml", tmp_path / "out", jobs=1)
