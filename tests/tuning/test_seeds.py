"""Searches whose trials have several seeds, with an engine that trains nothing."""

import math
from statistics import fmean, stdev

import pytest
from tests.conftest import crossed, shrink
from tests.tuning.conftest import Planted
from tests.valid_charts import charts_in

from bakeoff.errors import Interrupted, UserError
from bakeoff.jobs.job import Outcome
from bakeoff.tuning.ranges import RATE
from bakeoff.tuning.results import SearchJournal, TuningResults
from bakeoff.tuning.tune import tune

RECIPE = shrink("bert-tiny", **{"training.budget": {"steps": 1000}})
RATES = [3e-4, 6e-4, 1.2e-3, 2.4e-3, 4.8e-3, 9.6e-3]


class Noisy(Planted):
    """An engine in which what a seed adds is larger than what a neighbouring rate does, and zero in the mean of 3.

    Args:
        lost: (rate, seed) of trainings that diverge at their second evaluation.
    """

    def __init__(self, lost=(), **options):
        super().__init__(**options)
        self.lost, self.seen = lost, {}

    def carry_out(self, job, progress, note):
        outcome = super().carry_out(job, progress, note)
        rate = job.recipe["training"]["optimizer"]["lr"]
        if (rate, job.seed) in self.lost and job.until > 250:
            return Outcome(loss=None, seconds=1.0, diverged="not a finite number")
        sign = (job.seed - 5) * (-1) ** RATES.index(rate)
        loss = outcome.loss + 0.2 * sign
        self.seen.setdefault((rate, job.until), {})[job.seed] = loss
        return outcome.model_copy(update={"loss": loss})


def search(out, engine, **options):
    options = {"over": {RATE: RATES}, "seed": 4, "seeds": 3, **options}
    return tune(RECIPE, "corpus", out, engine=engine, trials=6, **options)


def test_the_mean_over_seeds_decides_where_one_seed_would_be_wrong(tmp_path):
    engine = Noisy(best=2.4e-3)
    results = search(tmp_path / "out", engine)
    assert results.winner.values[RATE] == 2.4e-3
    assert search(tmp_path / "one", Noisy(best=2.4e-3), seeds=1).winner.values[RATE] != 2.4e-3
    for trial in results.trials:
        for evaluation, (loss, spread) in enumerate(zip(trial.losses, trial.spreads, strict=True)):
            seeds = engine.seen[trial.values[RATE], trial.evaluations[evaluation]]
            assert [*seeds] == [4, 5, 6]
            assert loss == pytest.approx(fmean(seeds.values()))
            assert spread == pytest.approx(stdev(seeds.values()))
    assert len(engine.calls) == 3 * (6 + 3 + 3)
    assert results.full_trainings == pytest.approx(3 * (6 + 3 + 2 * 3) / 4)
    assert {trial.number for trial in results.trials if trial.state == "finished"} == {
        int(name.partition("-")[0]) for name, until in engine.calls if until == 1000
    }
    assert {name.partition("-")[2] for name, _ in engine.calls} == {"seed-4", "seed-5", "seed-6"}


@pytest.mark.parametrize("call", crossed([1, 7, 18, 20, 28, 31], [7, 28]))
def test_an_interrupted_search_ends_as_one_that_was_not(tmp_path, call):
    lost = [(2.4e-3, 4)]
    whole = search(tmp_path / "whole", Noisy(lost))
    engine = Noisy(lost, stops_before=call)
    with pytest.raises(Interrupted, match="the same command goes on"):
        search(tmp_path / "out", engine)
    assert search(tmp_path / "out", engine) == whole
    assert len(engine.calls) == len({*engine.calls})
    for name in ("recipe.yaml", "results.json", "report.html", "search.json"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_a_trial_diverges_where_one_of_its_seeds_does(tmp_path):
    results = search(tmp_path / "out", Noisy([(2.4e-3, 6)], best=2.4e-3))
    (lost,) = (trial for trial in results.trials if trial.state == "diverged")
    assert lost.values[RATE] == 2.4e-3
    assert results.ranked[-1] == lost
    assert results.winner.values[RATE] in (1.2e-3, 4.8e-3)


def test_the_spread_is_shown(tmp_path):
    results = search(tmp_path / "out", Noisy(best=2e-3))
    page = (tmp_path / "out" / "report.html").read_text()
    drawn = charts_in(page)
    first, second = sorted((t for t in results.trials if t.state == "finished"), key=lambda t: t.losses[-1])[:2]
    assert f"{first.losses[-1]:.4f} ± {stdev(run.losses[-1] for run in first.runs):.4f}" in page
    differences = [a.losses[-1] - b.losses[-1] for a, b in zip(first.runs, second.runs, strict=True)]
    error = stdev(differences) / math.sqrt(3)
    assert any(f"standard error of {error:.4f} over their 3 seeds" in line for line in results.cautions)
    assert not any("is unknown" in line for line in results.cautions)
    bars = [layer for layer in drawn["key-0"]["layer"] if layer.get("encoding", {}).get("y2")]
    assert len(bars) == 1
    assert "the seeds 4 to 6" in page
    assert "the seeds 4 to 6" in (tmp_path / "out" / "recipe.yaml").read_text()
    assert TuningResults.read(tmp_path / "out" / "results.json") == results


def test_the_number_of_seeds_is_kept(tmp_path):
    lines = []
    search(tmp_path / "out", Noisy(), progress=lines.append)
    assert lines[0].startswith("6 trials of 1000 steps each with 3 seeds; bad ones are stopped early: all cost 11.2 ")
    assert lines[1].startswith("trial 000-seed-4 (lr 0.0024): ")
    with pytest.raises(UserError, match="begun with seeds 3, not 2"):
        search(tmp_path / "out", Noisy(), seeds=2)
    with pytest.raises(UserError, match="--seeds 0: give at least 1"):
        search(tmp_path / "new", Noisy(), seeds=0)


def test_a_search_from_before_there_were_several_goes_on(tmp_path):
    whole = search(tmp_path / "out", Noisy(), seeds=1)
    path = tmp_path / "out" / "search.json"
    journal = SearchJournal.read(path)
    settings = {key: value for key, value in journal.settings.items() if key != "seeds"}
    journal.model_copy(update={"settings": settings}).write(path)
    engine = Noisy()
    assert search(tmp_path / "out", engine, seeds=1) == whole
    assert engine.calls == []
