"""A whole search, with an engine that trains nothing and knows the best value."""

import copy
import json
import math
import subprocess
import sys

import pytest
from tests.conftest import PLAIN, crossed, shrink
from tests.valid_charts import charts_in

from bakeoff.durable import held
from bakeoff.errors import Interrupted, UserError
from bakeoff.optimization.budget import Budget
from bakeoff.recipe_files import load_recipe
from bakeoff.runs.run import Run
from bakeoff.tuning.findings import second_best
from bakeoff.tuning.ranges import RATE
from bakeoff.tuning.results import SearchJournal, TuningResults
from bakeoff.tuning.tune import tune

RECIPE = shrink("bert-tiny", **PLAIN, **{"training.budget": {"steps": 1000}})


def search(out, engine, **options):
    return tune(RECIPE, "corpus", out, engine=engine, **{"trials": 15, **options})


def rows_of(node):
    """The dots of a chart, wherever its data stand."""
    if isinstance(node, dict) and "evaluation" in node and "trial" in node:
        yield node
    elif isinstance(node, dict | list):
        for each in node.values() if isinstance(node, dict) else node:
            yield from rows_of(each)


def test_a_planted_optimum_is_found(tmp_path, planted):
    results = search(tmp_path / "out", planted(best=3e-3))
    assert results.winner.values[RATE] == pytest.approx(3e-3, rel=0.15)
    rates = {trial.values[RATE] for trial in results.trials}
    assert results.winner.values[RATE] == min(rates, key=lambda rate: abs(math.log(rate / 3e-3)))
    assert results.states.count("finished") == 6
    assert results.states.count("stopped") == 9
    assert not any("was tried" in line for line in results.cautions)
    assert any("the noise, what another seed would change, is unknown" in line for line in results.cautions)


def test_only_the_better_ones_go_on(tmp_path, planted):
    engine = planted()
    results = search(tmp_path / "out", engine)
    assert [sum(until == step for _, until in engine.calls) for step in (250, 500, 1000)] == [15, 8, 6]
    best = [trial.name for trial in results.ranked]
    assert {name for name, until in engine.calls if until == 1000} == {*best[:6]}
    early = [
        trial.model_copy(update={"losses": [0.0 for _ in trial.losses]}) if trial.state == "stopped" else trial
        for trial in results.trials
    ]
    assert second_best(early, results.winner).name == best[1]  # of those that were trained to their end
    assert results.full_trainings == pytest.approx((15 + 8 + 2 * 6) / 4)
    assert results.seconds == pytest.approx(7 * 2.5 + 2 * 5 + 6 * 10)


def test_what_is_written(tmp_path, planted):
    out = tmp_path / "out"
    results = search(out, planted())
    recipe = load_recipe(out / "recipe.yaml")
    assert recipe == RECIPE.changed(results.winner.values)
    comment = [line for line in (out / "recipe.yaml").read_text().splitlines() if line.startswith("# ")]
    assert comment[0].startswith(
        "# bert-tiny with the best values of 15 trials by `bakeoff tune`, of 1000 steps each, 6"
    )
    assert any("corpus abc, seed 0" in line for line in comment)
    assert json.loads((out / "results.json").read_text()) == json.loads(results.model_dump_json())
    page = (out / "report.html").read_text()
    assert "held-out loss over training.optimizer.lr" in page
    drawn = charts_in(page)
    rows = list(rows_of(drawn["key-0"]))
    assert sorted(row["x"] for row in rows if row["evaluation"] == "at the end") == sorted(
        trial.values[RATE] for trial in results.trials if trial.state == "finished"
    )
    assert len(rows) == 15 + 8 + 6
    with pytest.raises(UserError, match="this is not a run but a search; its runs are in"):
        Run(out)


@pytest.mark.parametrize("call", crossed([0, 1, 3, 15, 20, 26], [0, 15, 26]))
def test_an_interrupted_search_goes_on_and_ends_as_one_that_was_not(tmp_path, planted, call):
    whole = search(tmp_path / "whole", planted(diverges_from=5e-3))
    engine = planted(diverges_from=5e-3, stops_before=call)
    with pytest.raises(Interrupted, match="the same command goes on" if call else "nothing was done yet"):
        search(tmp_path / "out", engine)
    assert (tmp_path / "out").exists() == (call > 0)
    assert search(tmp_path / "out", engine) == whole
    assert len(engine.calls) == len({*engine.calls})  # nothing twice
    for name in ("recipe.yaml", "results.json", "report.html", "search.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    again = planted()
    assert search(tmp_path / "out", again) == whole
    assert again.calls == []


class Leaving:
    """Workers of the caller's that are stopped before anything has come back, and may still write for a while."""

    threads, slots = 1, 2

    def begin(self, key, job):
        pass

    def wait(self, noted):
        raise Interrupted("stopped", 2)


def test_a_search_whose_workers_may_still_write_is_kept(tmp_path, planted, monkeypatch):
    """The next call goes on with it, whatever they have begun by then."""
    whole, out = search(tmp_path / "whole", planted()), tmp_path / "out"
    with pytest.raises(Interrupted, match="the same command goes on"):
        search(out, planted(), workers=Leaving())
    (out / "trials" / "000").mkdir(parents=True)
    assert search(out, planted()).trials == whole.trials


def test_trials_that_diverge_are_the_worst(tmp_path, planted):
    engine = planted(best=1.0, diverges_from=4e-3)
    results = search(tmp_path / "out", engine)
    lost = [trial for trial in results.trials if trial.state == "diverged"]
    assert {trial.values[RATE] for trial in lost} == {
        trial.values[RATE] for trial in results.trials if trial.values[RATE] >= 4e-3
    }
    assert results.winner.values[RATE] < 4e-3
    assert results.ranked[-len(lost) :] == lost
    assert not any("is the highest that was tried" in line for line in results.cautions)  # there are higher ones
    assert all(trial.loss is None for trial in lost)


def test_where_all_diverge_there_is_no_best(tmp_path, planted):
    with pytest.raises(UserError, match="every trial diverged; search lower learning rates"):
        search(tmp_path / "out", planted(diverges_from=1e-9))
    assert not (tmp_path / "out" / "recipe.yaml").exists()


@pytest.mark.parametrize(("best", "word"), [(1e-6, "lowest"), (1.0, "highest")])
def test_a_best_value_at_an_edge_is_told(tmp_path, planted, best, word):
    results = search(tmp_path / "out", planted(best=best))
    (line,) = [line for line in results.cautions if "was tried" in line]
    assert f"is the {word} that was tried; a better one may lie beyond it" in line
    assert RATE in line


def test_several_keys(tmp_path, planted):
    results = search(tmp_path / "out", planted(), over=["model.dropout=0.0..0.5"], trials=40)
    assert results.winner.values[RATE] == pytest.approx(3e-3, rel=0.5)
    assert results.winner.values["model.dropout"] == pytest.approx(0.1, abs=0.15)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "held-out loss over model.dropout" in page


def test_keys_that_change_the_objective_are_measured_under_the_recipes_own(tmp_path, planted):
    seen = []

    class Engine(planted):
        def carry_out(self, job, progress, note):
            seen.append(job)
            return super().carry_out(job, progress, note)

    over = {"objective.0.rate": [0.15, 0.3], RATE: [1e-3]}
    results = search(tmp_path / "out", Engine(), over=over)
    own = RECIPE.model_dump(mode="json")
    assert {job.recipe["objective"][0]["rate"] for job in seen} == {0.15, 0.3}
    assert all(job.measured_as["objective"] == own["objective"] for job in seen)
    assert results.measured_as == ["objective", "input"]
    assert search(tmp_path / "other", planted()).measured_as == []


def test_each_trial_gets_the_steps_that_the_budget_pays_for(tmp_path, planted):
    results = search(
        tmp_path / "out", planted(), over={RATE: [1e-3], "training.batch": [4, 8]}, budget=Budget(tokens=8000)
    )
    assert {trial.values["training.batch"]: trial.steps for trial in results.trials} == {4: 2000, 8: 1000}
    assert not any("the budget is in steps" in line for line in results.cautions)
    unequal = search(tmp_path / "steps", planted(), over={RATE: [1e-3], "training.batch": [4, 8]})
    assert any("the budget is in steps, and training.batch may change" in line for line in unequal.cautions)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": 1}, "begun with seed 0, not 1"),
        ({"trials": 14}, "begun with trials 15, not 14"),
        ({"budget": Budget(steps=10)}, 'budget "steps=1000", not "steps=10"'),
        ({"over": ["model.dropout=0.0,0.1"]}, "model.dropout"),
    ],
)
def test_a_search_goes_on_with_what_it_was_begun_with_alone(tmp_path, planted, options, said):
    search(tmp_path / "out", planted())
    before = (tmp_path / "out" / "search.json").read_bytes()
    with pytest.raises(UserError, match=said):
        search(tmp_path / "out", planted(), **options)
    assert (tmp_path / "out" / "search.json").read_bytes() == before


def without_keys(recipe, *keys):
    """A complete recipe as a version wrote it down that did not know these keys."""
    recipe = copy.deepcopy(recipe)
    for key in keys:
        *above, last = key.split(".")
        part = recipe
        for name in above:
            part = part[name]
        del part[last]
    return recipe


def test_a_search_that_an_older_version_began_goes_on(tmp_path, planted):
    """Keys that recipes have learnt since count as at their defaults."""
    whole = search(tmp_path / "whole", planted())
    engine = planted(stops_before=20)
    with pytest.raises(Interrupted):
        search(tmp_path / "out", engine)
    path = tmp_path / "out" / "search.json"
    journal = SearchJournal.read(path)
    older = without_keys(journal.settings["recipe"], "model.norm_affine", "model.encoder.block.mixer.query_key_norm")
    journal.model_copy(update={"settings": {**journal.settings, "recipe": older}}).write(path)
    assert search(tmp_path / "out", engine) == whole
    with pytest.raises(UserError, match=r"begun with recipe\.model\.dropout 0\.1, not 0\.2"):
        tune(RECIPE.changed({"model.dropout": 0.2}), "corpus", tmp_path / "out", engine=engine, trials=15)
    other = {**journal.settings["recipe"], "gone": 1}
    journal.model_copy(update={"settings": {**journal.settings, "recipe": other}}).write(path)
    with pytest.raises(UserError, match=r"begun with recipe\.gone 1, not null"):
        search(tmp_path / "out", engine)


def test_a_failure_before_the_first_trial_leaves_the_place_as_it_was(tmp_path, planted):
    class Broken(planted):
        def carry_out(self, job, progress, note):
            raise UserError("the corpus is gone")

    for place in (tmp_path / "new", tmp_path / "empty"):
        existed = place.name == "empty"
        if existed:
            place.mkdir()
        with pytest.raises(UserError, match="the corpus is gone"):
            search(place, Broken())
        assert place.exists() == existed
        assert not existed or not any(place.iterdir())


def test_other_places_are_not_written_to(tmp_path, planted):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    for place in (tmp_path / "out", tmp_path / "out" / "notes.txt"):
        with pytest.raises(UserError, match="holds something else already"):
            search(place, planted())
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["notes.txt"]
    link = tmp_path / "search" / "trials"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "out")
    with pytest.raises(UserError, match="holds something else"):
        search(link.parent, planted())


def test_one_process_at_a_time(tmp_path, planted):
    search(tmp_path / "out", planted())
    with held(tmp_path / "out"), pytest.raises(UserError, match="another process is writing here"):
        search(tmp_path / "out", planted())


def test_lines_tell_the_cost_before_and_each_look(tmp_path, planted):
    lines = []
    search(tmp_path / "out", planted(), progress=lines.append)
    assert lines[0] == (
        "15 trials of 1000 steps each; bad ones are stopped early: all cost 8.75 full trainings at most"
    )
    assert lines[1] == "trial 000 (lr 0.001): step 250 of 1,000: held-out loss 1.8707"
    assert len(lines) == 1 + 15 + 8 + 6


def test_help_imports_no_torch():
    code = "import sys; from bakeoff.cli import run; run(['tune', '--help']); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("over", "told"),
    [([1e-4, 1e-3, 3e-3], True), ([1e-4, 3e-3, 1e-2], False), ([1e-3, 3e-3], False), ([1e-3], False)],
)
def test_of_three_numbers_in_a_list_the_outer_ones_are_edges(tmp_path, planted, over, told):
    results = search(tmp_path / "out", planted(best=3e-3), over={RATE: over})
    assert any("is the highest that was tried" in line for line in results.cautions) == told
    assert any("is the lowest that was tried" in line for line in results.cautions) is False


def test_the_chart_marks_the_best_value_on_an_axis_of_numbers(tmp_path, planted):
    search(tmp_path / "out", planted(best=3e-3), over={RATE: [1e-4, 3e-3, 1e-2], "model.dropout": [0.1]})
    page = (tmp_path / "out" / "report.html").read_text()
    drawn = charts_in(page)
    rule = drawn["key-0"]["layer"][-1]
    assert rule["mark"]["type"] == "rule"
    assert rule["data"]["values"] == [{"x": 3e-3}]
    assert {layer["encoding"]["x"]["scale"]["type"] for layer in drawn["key-0"]["layer"]} == {"log"}
    assert [*drawn] == ["key-0"]


def test_results_are_read_back(tmp_path, planted):
    results = search(tmp_path / "out", planted())
    assert TuningResults.read(tmp_path / "out" / "results.json") == results
    older = json.loads((tmp_path / "out" / "results.json").read_text())
    older["carried"] = older.pop("transferred")
    for trial in older["trials"]:
        trial["looks"] = trial.pop("evaluations")
    (tmp_path / "results.json").write_text(json.dumps(older))
    assert TuningResults.read(tmp_path / "results.json") == results
    with pytest.raises(UserError, match=r"search\.json: not the results of a search: "):
        TuningResults.read(tmp_path / "out" / "search.json")
