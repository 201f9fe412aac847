"""Comparisons that search first: with an engine whose trials have a known best rate, and one that trains."""

import json
import math
import shutil
from html import escape
from pathlib import Path

import pytest
import yaml
from tests.comparison.test_execution import FakeEngine, folder, plan
from tests.conftest import PLAIN, shrink
from tests.tuning.conftest import Planted
from tests.valid_charts import charts_in

from bakeoff import checksums
from bakeoff.comparison.execution import compare
from bakeoff.comparison.facts import StartFacts
from bakeoff.comparison.reporting.cautions import cautions
from bakeoff.comparison.reporting.report import write_report
from bakeoff.comparison.reporting.search_findings import COLUMNS, NOT_SEARCHED, rows, transferred
from bakeoff.comparison.reporting.terminal import print_results
from bakeoff.comparison.results import Results
from bakeoff.errors import Interrupted, UserError
from bakeoff.optimization.optimizers import AdamWConfig
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.runs.run import Run
from bakeoff.tuning.ranges import RATE
from bakeoff.tuning.results import SearchJournal
from bakeoff.tuning.tune import tune

__all__ = ["folder"]
BEST = {"one": 3e-3, "two": 4e-4}
SEARCH = {"trials": 8, "budget": "10 %"}


class Searching(FakeEngine):
    """Trains nothing; its recipes are real ones, each with a best rate of its own.

    Args:
        best: the best rate by recipe.
        stops_before: the number of the trial's part, over all searches, that is interrupted.
        lost: recipes of which every trial diverges.
        keep_steps: what `search_steps` answers; None: the budget's.
    """

    def __init__(self, best=None, stops_before=None, lost=(), keep_steps=None, **options):
        super().__init__(**options)
        self.best, self.stops_before, self.lost = best or BEST, stops_before, lost
        self.keep_steps, self.parts, self.trained = keep_steps, 0, {}

    def recipe(self, name, overrides, device):
        recipe = shrink("bert-tiny", **PLAIN, **{"training.clip": {"one": 1.0, "two": 2.0}.get(name, 3.0)})
        return recipe.model_copy(update={"name": name}).changed(overrides)

    def search_steps(self, recipe, corpus, **options):
        self.calls.append(("search_steps", recipe.name))
        return self.keep_steps or options["budget"].steps

    def search(self, recipe, corpus, out, **options):
        self.calls.append(("search", recipe.name, str(options["budget"])))
        planted = Planted(self.best[recipe.name], diverges_from=0 if recipe.name in self.lost else math.inf)
        carry_out = planted.carry_out

        def counted(job, progress, note):
            if self.parts == self.stops_before:
                raise Interrupted("the run can be resumed", 2)
            self.parts += 1
            return carry_out(job, progress, note)

        planted.carry_out = counted
        tune(recipe, corpus, out, engine=planted, **options)

    def parse(self, recipe):
        return Recipe.parse(recipe, "recipe")

    def pretrain(self, recipe, corpus, out, **options):
        self.trained[recipe.name, options["seed"]] = recipe.training.optimizer.lr
        super().pretrain(recipe, corpus, out, **options)


def go(folder, engine, out="out", **changes):
    changes = {"budget": "steps=1000", "search": SEARCH, "seeds": 2, **changes}
    return compare(plan(folder, **changes), folder / out, engine=engine, report=lambda results, path: None)


def without_times(results):
    baselines = [each.model_copy(update={"seconds": None}) for each in results.baselines]
    return results.model_copy(update={"created": "", "baselines": baselines})


def test_the_chosen_values_reach_the_trainings(folder):
    engine = Searching()
    results = go(folder, engine)
    found = {entry.label: entry.search.winner.values[RATE] for entry in results.recipes}
    for name, rate in found.items():
        tried = [trial.values[RATE] for trial in next(e for e in results.recipes if e.label == name).search.trials]
        assert rate == min(tried, key=lambda value: abs(math.log(value / BEST[name])))
        assert rate != 1e-3
    assert engine.trained == {(name, seed): found[name] for seed in (0, 1) for name in ("one", "two")}
    for entry in results.recipes:
        assert entry.recipe["training"]["optimizer"]["lr"] == found[entry.label]
        settings = json.loads((folder / f"out/runs/{entry.label}/seed-0/pretrain.settings.json").read_text())
        assert settings["recipe"]["training"]["optimizer"]["lr"] == found[entry.label]
    kinds = [call[0] for call in engine.calls]
    assert max(i for i, kind in enumerate(kinds) if kind == "search") < kinds.index("pretrain")
    assert kinds.index("search_steps") < kinds.index("read")  # mistakes come out before anything is read or trained
    assert Results.read(folder / "out/results.json") == results


def test_a_finished_comparison_searches_nothing_again(folder):
    first = go(folder, Searching())
    before = {path: path.stat().st_mtime_ns for path in (folder / "out/searches").rglob("*")}
    again = Searching(best={"one": 1.0, "two": 1.0})
    assert without_times(go(folder, again)) == without_times(first)
    assert again.calls == []
    assert {path: path.stat().st_mtime_ns for path in (folder / "out/searches").rglob("*")} == before


@pytest.mark.parametrize("part", [3, 17, *(pytest.param(part, marks=pytest.mark.slow) for part in (0, 9, 29))])
def test_a_comparison_that_is_stopped_in_a_search_goes_on_as_one_that_was_not(folder, part):
    whole = go(folder, engine := Searching(), out="whole")
    stopped = Searching(stops_before=part)
    with pytest.raises(Interrupted, match=r"out: interrupted; what is done is kept, and the same command goes on"):
        go(folder, stopped)
    assert stopped.of("pretrain") == []
    rest = Searching()
    results = go(folder, rest)
    assert without_times(results) == without_times(whole)
    assert stopped.parts + rest.parts == engine.parts  # nothing twice
    assert rest.trained == engine.trained


def test_a_trial_is_a_share_of_the_budget_and_the_cost_is_told(folder):
    engine = Searching()
    results = go(folder, engine, search={**SEARCH, "budget": "25%"})
    assert engine.of("search") == [("one", "steps=250"), ("two", "steps=250")]
    for entry in results.recipes:
        assert {trial.steps for trial in entry.search.trials} == {250}
        assert len(entry.search.trials) == 8
        spent = sum(trial.step for trial in entry.search.trials)
        assert spent < 0.8 * 8 * 250
    costs = {row[0]: float(row[COLUMNS.index("cost")]) for row in rows(results)}
    spent = {entry.label: sum(trial.step for trial in entry.search.trials) / 1000 for entry in results.recipes}
    assert costs == pytest.approx(spent, abs=0.01)


@pytest.mark.parametrize(
    ("budget", "trial"),
    [
        ("tokens=5M", "tokens=500000"),
        ("flops=1e15", "flops=100000000000000.0"),
        ("epochs=3", "epochs=0.3"),
        ("hours=1", "minutes=6.0"),
    ],
)
def test_the_share_is_in_the_unit_of_the_budget(folder, budget, trial):
    engine = Searching(keep_steps=1000, stops_before=0)
    engine.search = lambda recipe, corpus, out, **options: engine.calls.append(("search", str(options["budget"])))
    with pytest.raises(UserError, match="did not finish"):
        go(folder, engine, budget=budget)
    assert engine.of("search") == [(trial,)]


def test_minutes_are_measured_of_the_recipes_that_are_trained(folder):
    engine = Searching(keep_steps=1000, best={**BEST, "lost": 1.0}, lost=["lost"])
    measured = []
    engine.step_times = lambda recipes, corpus, device: (
        measured.extend(recipe.training.optimizer.lr for recipe in recipes) or [(0.1, 0.1)] * len(recipes)
    )
    engine.search = lambda recipe, corpus, out, **options: Searching.search(
        engine, recipe, corpus, out, **{**options, "budget": options["budget"].parse_text("steps=100")}
    )
    results = go(folder, engine, budget="minutes=1", seeds=1, recipes=["one", "two", "lost"])
    assert measured == [entry.recipe["training"]["optimizer"]["lr"] for entry in results.recipes]
    assert results.budget.steps == {"one": 600, "two": 600}


def test_a_recipe_may_keep_its_own_values(folder):
    engine = Searching()
    recipes = ["one", {"recipe": "two", "search": False}]
    results = go(folder, engine, recipes=recipes)
    assert engine.of("search") == [("one", "steps=100")]
    assert results.recipes[1].search is None
    assert engine.trained["two", 0] == 1e-3
    found = [line for line in cautions(results) if "not searched" in line]
    assert found == ["“two” was not searched: what the others gain by their search is no merit of theirs."]
    assert [*rows(results)][1][:2] == ["two", "not searched"]
    with pytest.raises(UserError, match=r"pretrain: begun with search null, not \{.*restore the plan"):
        go(folder, Searching())


@pytest.mark.slow
def test_a_recipe_of_which_every_trial_diverges_is_left_out(folder):
    results = go(folder, Searching(lost=["two"]))
    assert [entry.label for entry in results.recipes] == ["one"]
    assert any(
        "because a training diverged: “two” (every trial of its search, seed 0" in line for line in cautions(results)
    )
    again = Searching()
    assert without_times(go(folder, again)) == without_times(results)
    assert again.calls == []  # it would diverge again
    shutil.rmtree(folder / "out/searches/two")
    assert [entry.label for entry in go(folder, Searching()).recipes] == ["one", "two"]
    with pytest.raises(UserError, match="every recipe diverged"):
        go(folder, Searching(lost=["one", "two"]), out="other")


def test_without_a_search_nothing_is_searched_and_the_output_says_so(folder, capsys):
    engine = FakeEngine()
    results = compare(plan(folder), folder / "out", engine=engine)
    caution = NOT_SEARCHED.format(" of pre-training")  # dev chooses the rates of fine-tuning
    assert caution in cautions(results)
    assert not (folder / "out/searches").exists()
    assert results.search is None
    assert all(entry.search is None for entry in results.recipes)
    page = (folder / "out/report.html").read_text()
    assert escape(caution).replace("`search`", "<code>search</code>") in page
    assert "What was searched before" not in page
    print_results(results, folder / "out")
    assert "not searched here" in " ".join(capsys.readouterr().out.split())
    one_rate = [
        entry.model_copy(update={"scores": [score.model_copy(update={"tried": []}) for score in entry.scores]})
        for entry in results.recipes
    ]
    results = results.model_copy(update={"recipes": one_rate})
    assert NOT_SEARCHED.format("") in cautions(results)


def test_several_rates_for_each_recipe_are_no_caution(folder):
    results = compare(plan(folder), folder / "out", engine=FakeEngine())
    one, two = results.recipes[:2]

    def said(*cells):
        entries = []
        for number, (base, rate, batch) in enumerate(cells):
            training = {"optimizer": {"kind": "adamw", "lr": rate}, "batch": batch}
            recipe = base.recipe | {"name": base.label, "training": training}
            entries.append(base.model_copy(update={"label": f"{number}", "recipe": recipe}))
        found = cautions(results.model_copy(update={"recipes": entries}))
        return any("not searched here" in text for text in found)

    assert not said((one, 1e-3, 4), (one, 2e-3, 4), (two, 1e-3, 4), (two, 5e-3, 4))
    assert said((one, 1e-3, 4), (one, 2e-3, 4), (two, 1e-3, 4))
    assert said((one, 1e-3, 4), (one, 1e-3, 8))
    assert said((one, 1e-3, 4), (one, 2e-3, 8))  # the rate may be the batch's


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"search": {**SEARCH, "trials": 9}},
            r"searches/one: begun with search\.trials 8, not 9; restore",
        ),
        ({"search": {**SEARCH, "budget": "20 %"}}, r'search\.budget "10 %", not "20 %"'),
        ({"search": {**SEARCH, "over": {"model.dropout": [0.0, 0.1]}}}, r"search\.over.model\.dropout null"),
        ({"search": None}, r"begun with search \{.*, not null"),
        ({"recipes": [{"recipe": "one", "set": {"model.dropout": 0.2}}, "two"]}, r"searches/one: begun with recipe\."),
    ],
)
def test_a_changed_search_is_refused_before_anything_runs(folder, changes, said):
    go(folder, Searching(), seeds=1)
    engine = Searching()
    with pytest.raises(UserError, match=said):
        go(folder, engine, **changes)
    assert engine.calls == []


def test_what_an_older_version_made_goes_on(folder):
    """Keys that recipes and searches have learnt since count as at their defaults, wherever settings have them."""
    first = go(folder, Searching(), seeds=1)
    for path in (folder / "out").rglob("*.settings.json"):
        settings = json.loads(path.read_text())
        for part in (settings, settings.get("pretraining", {})):
            for key in {"recipe", "model"} & {*part}:
                model = part[key] if key == "model" else part[key]["model"]
                del model["norm_affine"]
            if part.get("search"):
                part["search"] = {"trials": 8}
        path.write_text(json.dumps(settings))
        checksums.forget(path.parent, [path.name])
    engine = Searching()
    assert without_times(go(folder, engine, seeds=1)) == without_times(first)
    assert engine.calls == []


def test_a_search_is_refused_where_trainings_without_one_are(folder):
    go(folder, Searching(), search=None, seeds=1)
    engine = Searching()
    with pytest.raises(UserError, match=r"one/seed-0/pretrain: begun with search null, not"):
        go(folder, engine)
    assert engine.of("search") == []


def test_a_search_that_was_deleted_is_made_again_and_a_plan_may_grow(folder):
    go(folder, Searching(), seeds=1)
    shutil.rmtree(folder / "out/searches/one")
    engine = Searching(best={**BEST, "three": 1e-3})
    results = go(folder, engine, seeds=2, recipes=["one", "two", "three"])
    assert [name for name, _ in engine.of("search")] == ["one", "three"]
    assert len(engine.of("pretrain")) == 1 + 3
    assert [entry.search.winner.values[RATE] for entry in results.recipes][2] == 1e-3
    shutil.rmtree(folder / "out/searches/one")
    with pytest.raises(UserError, match=r"one/seed-0/pretrain: begun with recipe\.training\.optimizer\.lr"):
        go(folder, Searching(best={**BEST, "one": 1e-4}), seeds=2)  # other values than the trainings have


@pytest.mark.parametrize(
    ("search", "steps", "said"),
    [
        ({"budget": "1 %"}, 1000, "1 % of the 1,000 steps of a pre-training are less than 50, the fewest of a trial"),
        ({"budget": "1 %"}, 1000, "give 5 % at least"),
        ({"budget": "3 %"}, 1240, "give 4.1 % at least"),
        ({}, 20, "a whole pre-training has 20 steps, and a trial needs 50 at least; give a larger budget, or leave"),
    ],
)
def test_trials_that_are_too_short_are_refused(folder, search, steps, said):
    engine = Searching()
    with pytest.raises(UserError) as error:
        go(folder, engine, search=search, budget=f"steps={steps}")
    assert str(error.value).startswith("recipe “one”: search.budget: ")
    assert said in str(error.value)
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("search", "said"),
    [
        ({"trails": 8}, "plan: search: unknown key 'trails'; did you mean 'trials'?"),
        ({"trials": 1}, "plan: search.trials: input should be greater than or equal to 2, not 1"),
        ({"budget": "10"}, "plan: search.budget: '10' is no share of a pre-training's budget above 0"),
        ({"budget": 0.1}, "plan: search.budget: 0.1 is no share of"),
        ({"budget": "0 %"}, "plan: search.budget: '0 %' is no share of"),
        ({"budget": "101 %"}, "plan: search.budget: '101 %' is no share of"),
        ({"over": [RATE]}, "plan: search.over: input should be keys with values"),
    ],
)
def test_mistakes_in_the_plan(folder, search, said):
    with pytest.raises(UserError) as error:
        plan(folder, search=search)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_list_a_number_and_a_text_say_what_is_searched(folder):
    over = {RATE: [1e-4, 2e-3], "training.clip": 1.0, "model.dropout": "0..0.2"}
    results = go(folder, Searching(), search={"over": over, "trials": 8, "budget": "100 %"})
    for entry in results.recipes:
        values = [trial.values for trial in entry.search.trials]
        assert {each[RATE] for each in values} == {1e-4, 2e-3}
        assert {each["training.clip"] for each in values} == {1.0}
        assert len({each["model.dropout"] for each in values}) > 2
    assert not any("transferred to the whole one" in line for line in cautions(results))


def cautious(folder, best, losses=(4.0, 4.0), **search):
    """The cautions on the first recipe where seeds of its training end with these losses."""
    engine = Searching(best={**BEST, "one": best})
    results = go(folder, engine, search={**SEARCH, **search}, recipes=["one"])
    (entry,) = results.recipes
    runs = [run.model_copy(update={"validation_loss": loss}) for run, loss in zip(entry.runs, losses, strict=True)]
    entry = entry.model_copy(update={"runs": runs})
    return [line for line in cautions(results.model_copy(update={"recipes": [entry]})) if "“one” (" in line]


@pytest.mark.parametrize(("best", "word"), [(1.0, "highest"), (1e-7, "lowest")])
def test_a_best_value_at_an_edge_is_told(folder, best, word):
    (line,) = cautious(folder, best)
    assert line.startswith("The best value that was tried is the last of its range for “one” (training.optimizer.lr ")
    assert f", the {word}); a better one may lie beyond" in line


def test_rates_of_finetuning_at_the_end_of_what_was_tried_are_told(folder):
    """A fake fine-tuning tries 3e-5 and 1e-4 and takes the second."""
    results = compare(plan(folder), folder / "out", engine=FakeEngine())
    (told,) = (line for line in cautions(results) if "dev chose" in line)
    assert "dev chose the highest one nearly always on" in told
    assert "; a higher one may be better" in told
    count = sum(score.task == results.tasks[0].name for entry in results.recipes for score in entry.scores)
    assert f"“{results.tasks[0].name}” ({count} of {count})" in told

    def changed(**values):
        entries = [
            entry.model_copy(update={"scores": [score.model_copy(update=values) for score in entry.scores]})
            for entry in results.recipes
        ]
        return "".join(cautions(results.model_copy(update={"recipes": entries})))

    assert "dev chose the lowest one nearly always" in changed(learning_rate=3e-5)
    assert "dev chose" not in changed(tried=[3e-5, 1e-4, 3e-4])
    assert "dev chose" not in changed(tried=[1e-4])
    assert "dev chose" not in changed(tried=[])  # of an older version


def test_two_trials_that_seeds_make_as_different_are_told(folder):
    """The best rate lies between two of the grid, nearly in the middle: they are 0.002 apart."""
    assert cautious(folder, 1.62e-3) == []
    (line,) = cautious(folder, 1.62e-3, losses=(4.0, 4.1))
    assert line.startswith("The two best trials are closer than can be told for “one” (lr ")
    assert "differ by 0.1000" in line  # sqrt(2) times the deviation of two losses is their difference


def test_losses_under_another_objective_are_not_compared_with_those_of_seeds(folder):
    over = {RATE: [1e-3, 3e-3], "objective.0.rate": [0.15, 0.2]}
    assert cautious(folder, 1.62e-3, losses=(4.0, 9.0), over=over) == []


def test_trials_may_have_several_seeds(folder):
    results = go(folder, Searching(), search={**SEARCH, "seeds": 2}, seeds=1)
    (one, _), (found, _) = rows(results), [entry.search for entry in results.recipes]
    assert {len(trial.runs) for trial in found.trials} == {2}
    spent = sum(trial.step for trial in found.trials) / 1000
    assert float(one[COLUMNS.index("cost")]) == pytest.approx(2 * spent, abs=0.01)
    assert "all with the seeds 0 to 1, whose mean counts" in transferred(results)


def test_that_the_luck_of_a_search_is_in_no_interval_is_told(folder, tmp_path):
    results = go(folder, Searching())
    assert any("how much luck was in this choice is in no interval" in line for line in cautions(results))
    assert not any("in no interval" in line for line in cautions(go(folder, FakeEngine(), search=None, out="plain")))
    write_report(results, tmp_path / "report.html")
    assert "validation split alone, once for all seeds" in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_the_carried_length_is_told(folder, capsys):
    results = go(folder, Searching())
    assert any(
        "chosen at 10 % of a pre-training's budget and transferred to the whole" in line for line in cautions(results)
    )
    print_results(results, folder / "out")
    printed = capsys.readouterr().out
    assert "searched before" in printed
    for entry in results.recipes:
        assert f"lr {entry.search.winner.values[RATE]:.4g}" in printed


class Starting(Searching):
    """`one` starts from weights that 250 steps have trained, of which the last run made 50."""

    def start(self, source, imported, say):
        return Path(source)

    def starting(self, source, start, recipe, corpus, grow_by):
        taken = {"origin": None, "tensors": 1, "of": 1, "fresh": []}
        return StartFacts(source=source, run=str(start), steps=50, trained=250, weights="0" * 16, **taken)


def test_with_a_start_the_length_is_that_of_all_training(folder, corpus, monkeypatch):
    for place in ("corpus", "runs/first"):
        shutil.copytree(corpus.path, folder / place, dirs_exist_ok=True)
    monkeypatch.setattr(AdamWConfig, "length_exponent", 0.5)
    engine = Starting()
    recipes = [{"recipe": "one", "start": str(folder / "runs/first")}, "two"]
    results = go(folder, engine, recipes=recipes, search={**SEARCH, "budget": "25 %"}, seeds=1)
    found = {entry.label: entry.search.winner.values[RATE] for entry in results.recipes}
    # From 250 + 250 steps to 250 + 1,000, and from 250 to 1,000.
    assert engine.trained == {("one", 0): pytest.approx(found["one"] / 2.5**0.5), ("two", 0): found["two"] / 2}


def test_rates_are_carried_to_the_whole_budget_by_the_rule(folder, monkeypatch):
    monkeypatch.setattr(AdamWConfig, "length_exponent", 0.5)
    engine = Searching()
    results = go(folder, engine, search={**SEARCH, "budget": "25 %"}, seeds=1)
    for entry in results.recipes:
        rate = entry.search.winner.values[RATE] / 2
        assert engine.trained[entry.label, 0] == rate
        assert f"“{entry.label}” from {2 * rate:.4g} to {rate:.4g}" in transferred(results)
    assert any("their learning rates adjusted to the longer training" in line for line in cautions(results))
    trained = {row[0]: row[COLUMNS.index("trained with")] for row in rows(results)}
    assert trained == {entry.label: f"{entry.search.winner.values[RATE] / 2:.4g}" for entry in results.recipes}


def test_a_rate_that_was_not_searched_is_not_carried(folder, monkeypatch):
    monkeypatch.setattr(AdamWConfig, "length_exponent", 0.5)
    engine = Searching()
    over = {RATE: [2e-3], "model.dropout": [0.0, 0.1]}
    results = go(folder, engine, search={**SEARCH, "over": over, "budget": "25 %"}, seeds=1)
    assert {*engine.trained.values()} == {2e-3}
    assert "transferred to the trainings unchanged" in transferred(results)


def test_the_report_has_a_curve_of_each_recipe(folder):
    results = go(folder, Searching())
    write_report(results, folder / "out/report.html")
    page = (folder / "out/report.html").read_text()
    drawn = charts_in(page)
    for number, entry in enumerate(results.recipes, 1):
        rule = drawn[f"search-{number}-0"]["layer"][-1]
        assert rule["data"]["values"] == [{"x": entry.search.winner.values[RATE]}]
        assert f"held-out loss over lr; {entry.search.winner.values[RATE]:.4g} is chosen" in page
        assert (folder / f"out/figures/search-{number}-0.svg").exists()
    assert "transferred to the trainings unchanged" in page


@pytest.mark.slow
def test_a_small_real_comparison(corpus, tmp_path):
    """Two recipes, two rates, 50 steps a trial: the trained recipe has the rate whose trial did best."""
    shape = {"model.decoder.width": 16, "model.decoder.layers": 1, "model.decoder.block.mixer.heads": 2}
    shape |= {"model.decoder.block.ffn.width": 16, "input.length": 32, "training.batch": 4}
    rows = "text\tlabel\n" + "".join(f"text {i}\t{i % 2}\n" for i in range(20))
    (tmp_path / "rows.tsv").write_text(rows)
    task = {"name": "a task", "train": "rows.tsv", "test": "rows.tsv", "text_column": "text", "label_column": "label"}
    made = {
        "corpus": str(corpus.path),
        "budget": "steps=50",
        "seeds": 1,
        "from_scratch": False,
        "recipes": [
            {"recipe": "gpt-tiny", "set": shape},
            {"recipe": "gpt-tiny", "name": "kept", "set": shape, "search": False},
        ],
        "search": {"over": {RATE: [1e-6, 1e-3, 1e-2]}, "trials": 3, "budget": "100 %"},
        "tasks": [{**task, "finetune": {"epochs": 1}}],
        "device": "cpu",
    }
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(made))
    results = compare(tmp_path / "plan.yaml", tmp_path / "out")
    search = tmp_path / "out/searches/gpt-tiny"
    trials = SearchJournal.read(search / "search.json").trials
    best = min(trials, key=lambda trial: trial.losses[-1])
    assert len(trials) == 3
    trained = Run.open_finished(tmp_path / "out/runs/gpt-tiny/seed-0/pretrain")
    assert trained.recipe.training.optimizer.lr == best.values[RATE] == 1e-2
    # The same seed and length: the training is the best trial again.
    assert (
        trained.weights_file().read_bytes()
        == Run.open_finished(search / "trials" / best.name).weights_file().read_bytes()
    )
    kept = load_recipe("gpt-tiny").fitted(50).training.optimizer.lr
    assert Run.open_finished(tmp_path / "out/runs/kept/seed-0/pretrain").recipe.training.optimizer.lr == kept
    assert results.recipes[0].search.winner.values == best.values
    made["search"]["over"] = {"training.optimizer.rl": [1e-3, 1e-2]}
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(made))
    said = r"recipe gpt-tiny: search\.over training\.optimizer\.rl=0\.001,0\.01: gpt-tiny has no such key; did you mean"
    with pytest.raises(UserError, match=said):
        compare(tmp_path / "plan.yaml", tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("place", ["searches", "searches/one", "searches/one/trials"])
def test_links_in_the_place_of_searches_are_refused(folder, place):
    (folder / "precious").mkdir()
    (folder / "out" / place).parent.mkdir(parents=True)
    (folder / "out" / place).symlink_to(folder / "precious")
    engine = Searching()
    with pytest.raises(UserError, match="a link"):
        go(folder, engine)
    assert engine.of("search") == []
    assert not any((folder / "precious").iterdir())
