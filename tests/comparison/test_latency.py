"""The latency of fine-tuned models: measured once, on this machine, on as many texts as long as the plan says."""

import json

import pytest
from small_plans import NAMES, write_plan
from test_execution import FakeEngine, folder, go  # noqa: F401

from bakeoff.comparison.execution import compare
from bakeoff.comparison.latency import LatencyPlan
from bakeoff.comparison.running import latency
from bakeoff.comparison.running.engine import Engine
from bakeoff.errors import UserError
from bakeoff.tasks.finetuned_run import FinetunedRun


def measured(engine):
    return engine.of("latencies")


def test_models_are_measured_after_the_last_seed_and_by_a_later_call_those_alone_that_are_new(folder):  # noqa: F811
    reports, engine = [], FakeEngine()
    results = go(folder, engine, reports)
    assert [len(each.latencies) for each in reports] == [0, 0, 2]
    assert measured(engine) == [("mood", "one", "two")]
    assert engine.calls[-1][0] == "latencies"
    assert [(each.recipe, each.task, each.seconds) for each in results.latencies] == [
        ("one", "mood", 0.003),
        ("two", "mood", 0.003),
    ]
    more = FakeEngine()
    again = go(folder, more, recipes=["one", "two", "three"])
    assert measured(more) == [("mood", "three")]
    assert again.latencies[:2] == results.latencies
    assert not measured(last := FakeEngine())
    assert go(folder, last, recipes=["one", "two", "three"]).latencies == again.latencies
    assert measured(last) == []


@pytest.mark.parametrize("change", ["batch", "processor", "threads", "torch", "run"])
def test_what_a_latency_depends_on_makes_it_void(folder, change):  # noqa: F811
    class Elsewhere(FakeEngine):
        def environment(self, device):
            now = {"processor": "fake", "threads": "1"}
            versions = {"bakeoff": "0", "torch": "1"}
            return now | {change: "other"}, versions | {change: "other"}

    class Here(FakeEngine):
        def environment(self, device):
            return {"processor": "fake", "threads": "1"}, {"bakeoff": "0", "torch": "1"}

    go(folder, Here(), seeds=1)
    if change == "run":
        kept = json.loads((folder / "out/latency.json").read_text())
        for each in kept["latencies"]:
            each["trained"] = "other"
        (folder / "out/latency.json").write_text(json.dumps(kept))
        (folder / "out/bakeoff.sha256").unlink()
    later = Elsewhere() if change in ("processor", "threads", "torch") else Here()
    asked = {"latency": {"batch": 16}} if change == "batch" else {}
    go(folder, later, seeds=1, **asked)
    assert measured(later) == [("mood", "one", "two")]


def test_recipes_that_diverged_have_none(folder):  # noqa: F811
    engine = FakeEngine(diverging=[("pretrain", "one", 0)])
    assert [each.recipe for each in go(folder, engine).latencies] == ["two"]


def test_models_predict_batches_of_the_test_texts_of_the_asked_length(corpus, tmp_path, monkeypatch):
    """In turns, the same ones for all of them, from texts to predictions."""
    rows, turns, predictions_of = [], [], latency.predictions_of

    def spied(head, items, *rest):
        rows.append([len(ids) for ids in items.encoded.ids])
        turns.append(id(head))
        return predictions_of(head, items, *rest)

    monkeypatch.setattr(latency, "predictions_of", spied)
    asked = {"batch": 3, "length": 12}
    plan = write_plan(tmp_path, corpus, 20, 1, budget="steps=2", seeds=1, from_scratch=False, latency=asked)
    results = compare(plan, tmp_path / "out", jobs=1, report=lambda results, path: None)
    assert {tuple(each) for each in rows} == {(12, 12, 12)}
    warm = latency.WARM_UP * len(NAMES)
    assert turns[warm:] == [turns[warm], turns[warm + 1]] * 3
    for each, name in zip(results.latencies, NAMES, strict=True):
        run = FinetunedRun.open(tmp_path / "out" / "runs" / name / "seed-0" / "mood" / "pretrained-0")
        assert (each.recipe, each.task, each.parameters) == (name, "mood", run.results.parameters)
        assert each.seconds > 0
    assert results.latency == LatencyPlan(**asked)
    (learned,) = [each for each in results.baselines if each.kind == "learned"]
    assert learned.seconds > 0


def test_rows_longer_than_a_model_has_positions_are_refused_before_anything_is_trained(folder):  # noqa: F811
    class Real(FakeEngine):
        def recipe(self, name, overrides, device):
            return Engine().recipe("bert-tiny", overrides, device)

        def check(self, recipe, task):
            pass

    engine = Real()
    with pytest.raises(UserError, match="latency, recipes “one” and “two”: length: 100000 is more than the "):
        go(folder, engine, latency={"length": 100_000})
    assert engine.calls == []
