"""What is measured of trained models after the last seed, and once: the latency of predictions, and what layers do."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_plans import NAMES, write_plan
from synthetic_results import make_results
from test_execution import FakeEngine, folder, go  # noqa: F401

from bakeoff.comparison.execution import compare
from bakeoff.comparison.latency import LatencyPlan
from bakeoff.comparison.layer_profiles import LayerSimilarity
from bakeoff.comparison.reporting.layer_section import layer_figures, layer_section
from bakeoff.comparison.running import latency
from bakeoff.comparison.running.engine import Engine
from bakeoff.errors import UserError
from bakeoff.inspection.inspect import inspect
from bakeoff.inspection.similarity import debiased_cka
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.vectors.embedder import Embedder
from bakeoff.vectors.options import VectorConfig


def measured(engine):
    return engine.of("latencies")


def test_models_are_measured_after_the_last_seed_and_by_a_later_call_those_alone_that_are_new(folder):  # noqa: F811
    reports, engine = [], FakeEngine()
    results = go(folder, engine, reports)
    assert [len(each.latencies) for each in reports] == [0, 0, 2]
    assert measured(engine) == [("mood", "one", "two")]
    assert [call[0] for call in engine.calls[-4:]] == ["latencies", "layers", "layers", "similarities"]
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
        for each in kept["measurements"]:
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


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory):
    """A comparison of trained models, and what each measured call read: the lengths of rows, and the model."""
    place, calls, predictions_of = tmp_path_factory.mktemp("trained"), [], latency.predictions_of

    def spied(head, items, *rest):
        calls.append((tuple(len(ids) for ids in items.encoded.ids), id(head)))
        return predictions_of(head, items, *rest)

    asked = {"batch": 3, "length": 12}
    plan = write_plan(place, corpus, 20, 1, budget="steps=2", seeds=1, from_scratch=False, latency=asked)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(latency, "predictions_of", spied)
        patched.setattr(latency, "SECONDS", 0.0)
        results = compare(plan, place / "out", jobs=1, report=lambda results, path: None)
    return place / "out" / "runs", results, calls


def test_models_predict_batches_of_the_test_texts_of_the_asked_length(trained):
    """In turns, the same ones for all of them, from texts to predictions."""
    runs, results, calls = trained
    assert {lengths for lengths, _ in calls} == {(12, 12, 12)}
    turns = [model for _, model in calls][latency.WARM_UP * len(NAMES) :]
    assert turns == turns[: len(NAMES)] * 3
    assert len(set(turns)) == len(NAMES)
    for each, name in zip(results.latencies, NAMES, strict=True):
        run = FinetunedRun.open(runs / name / "seed-0" / "mood" / "pretrained-0")
        assert (each.recipe, each.task, each.parameters) == (name, "mood", run.results.parameters)
        assert each.seconds > 0
    assert results.latency == LatencyPlan(batch=3, length=12)
    (learned,) = [each for each in results.baselines if each.kind == "learned"]
    assert learned.seconds > 0


def test_rows_longer_than_a_model_has_positions_are_refused_before_anything_is_trained(folder):  # noqa: F811
    class Real(FakeEngine):
        def recipe(self, name, overrides, device):
            return Engine().recipe("bert-tiny", overrides, device)

        def check(self, recipe, task):
            pass

    engine = Real()
    with pytest.raises(UserError, match="latency, recipes “one” and “two”: length: 10000 is more than the "):
        go(folder, engine, latency={"length": 10_000})
    with pytest.raises(UserError, match=r"latency\.length: .* less than or equal to 16384, not 100000$"):
        go(folder, engine, latency={"length": 100_000})  # of a model without a bound, no measurement would end
    assert engine.calls == []


def test_layers_are_measured_after_the_last_training_and_not_again(folder):  # noqa: F811
    engine = FakeEngine()
    results = go(folder, engine)
    assert engine.of("layers") == [("one",), ("two",)]
    assert [(each.recipe, len(each.layers)) for each in results.layers] == [("one", 1), ("two", 1)]
    more = FakeEngine()
    again = go(folder, more, recipes=["one", "two", "three"])
    assert more.of("layers") == [("three",)]
    assert again.layers[:2] == results.layers


def test_layers_are_compared_with_those_of_the_first_recipe_or_of_the_baseline(folder):  # noqa: F811
    engine = FakeEngine()
    results = go(folder, engine)
    assert engine.of("similarities") == [("one", "two")]
    assert [(each.first, each.second) for each in results.similarities] == [("one", "two")]
    more = FakeEngine()
    go(folder, more, recipes=["one", "two", "three"])
    assert more.of("similarities") == [("one", "three")]
    against = FakeEngine()
    go(folder, against, recipes=["one", "two", "three"], baseline="two")
    assert against.of("similarities") == [("two", "one", "three")]


def test_similarity_is_that_of_the_vectors_of_held_out_sentences(trained):
    runs, results, _ = trained
    (each,) = results.similarities
    assert (each.first, each.second) == NAMES
    one, other = (Embedder(runs / name / "seed-0" / "pretrain", VectorConfig(layers=(1,)), "cpu") for name in NAMES)
    assert len(each.values) == 1 + one.model.config.stack.layers
    assert {len(row) for row in each.values} == {1 + other.model.config.stack.layers}
    assert all(-1 <= value <= 1.0001 for row in each.values for value in row)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_cka_is_one_for_a_rotation_and_nothing_on_average_for_others(seed):
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(40, 6))
    rotation, _ = np.linalg.qr(random.normal(size=(6, 6)))
    assert debiased_cka(vectors, 3 * vectors @ rotation + 5) == pytest.approx(1)
    wide = [debiased_cka(vectors, random.normal(size=(40, 400))) for _ in range(20)]
    assert abs(np.mean(wide)) < 0.1  # the biased estimate is near 0.3 here
    assert debiased_cka(vectors, np.ones((40, 2))) == 0


def test_layers_are_those_of_inspect(trained, tmp_path):
    runs, results, _ = trained
    for each, name in zip(results.layers, NAMES, strict=True):
        run = runs / name / "seed-0" / "pretrain"
        expected = inspect(run, out=tmp_path / name, device="cpu").layers
        assert each.recipe == name
        for layer, whole in zip(each.layers, expected, strict=True):
            assert (layer.stack, layer.layer) == (whole.stack, whole.layer)
            assert layer.l2_distance == pytest.approx(whole.l2_distance)
            assert layer.cosine_similarity == pytest.approx(whole.cosine_similarity)
            for kernel, other in zip(layer.kernels, whole.kernels, strict=True):
                sizes = np.abs(other.weights).sum(0)
                assert kernel.offsets == other.offsets
                assert kernel.shares == pytest.approx(sizes / sizes.sum(), abs=1e-5)
                assert kernel.mean_distance == pytest.approx(np.abs(kernel.offsets) @ sizes / sizes.sum())
    assert any(layer.kernels for each in results.layers for layer in each.layers)


def test_the_section_has_a_line_for_each_recipe_and_a_heat_map_for_each_with_kernels(results):
    figures = layer_figures(results)
    assert [figure.name for figure in figures] == ["layers-l2_distance", "layers-cosine_similarity", "layers-kernels-1"]
    drawn = json.dumps(figures[0].chart.to_dict())
    assert all(entry.label in drawn for entry in results.recipes)
    assert figures[2].caption == "conv-light-encoder-tiny: LightConv"
    assert "What their layers do" in layer_section(results, figures)
    alike = LayerSimilarity(first="gpt-tiny", second="bert-mini", values=[[1.0, 0.2]], trained=("a1", "a2"))
    more = layer_figures(results.model_copy(update={"similarities": [alike]}))
    assert [figure.name for figure in more[3:]] == ["layers-alike-1"]
    assert more[3].caption == "gpt-tiny across, bert-mini down"
    assert "How alike layers are" in layer_section(results, more)
    assert "How alike layers are" not in layer_section(results, figures)
    without = make_results().model_copy(update={"layers": []})
    assert layer_figures(without) == []
    assert layer_section(without, []) == ""
