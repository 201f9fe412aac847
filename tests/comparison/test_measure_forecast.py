"""The seconds of measures in the forecast of a comparison."""

import json
import math

import pytest
import yaml
from tests.conftest import shrink
from tests.untrained_runs import untrained_of

from bakeoff.comparison import forecast as of_comparison
from bakeoff.comparison.execution import compare
from bakeoff.comparison.forecast import forecast_comparison
from bakeoff.errors import UserError
from bakeoff.json_files import read_json
from bakeoff.scoring.completions import Completions
from bakeoff.tasks.measures import expected, fresh_heads, held_out_text
from bakeoff.tasks.measures.expected import seconds_of_rows, seconds_of_steps
from bakeoff.tasks.measures.fresh_heads import FreshHeadsConfig
from bakeoff.tasks.measures.held_out_text import HeldOutTextConfig
from bakeoff.tasks.measures.minimal_pairs import MinimalPairsConfig

PAIRS = 11


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    monkeypatch.setattr(of_comparison, "FORECAST_SECONDS", 0.01)
    monkeypatch.setattr(expected, "SECONDS", 0.001)


@pytest.fixture
def pairs(tmp_path):
    lines = [
        {"sentence_good": f"The river {n} is old.", "sentence_bad": f"River the {n} old is.", "UID": f"u{n % 3}"}
        for n in range(PAIRS)
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("count", [1, 3, 4, 100, 4096])
def test_rows_are_read_until_their_time_is_known_and_no_further(count, monkeypatch):
    clock, read = [0.0], []
    monkeypatch.setattr(expected, "SECONDS", 0.5)
    monkeypatch.setattr(expected.time, "perf_counter", lambda: clock[0])

    def reading(rows):
        clock[0] += 0.02 * rows + (1.0 if not read else 0.0)  # the first time is slower
        read.append(rows)

    assert seconds_of_rows(reading, count) == pytest.approx(0.02 * count)
    assert max(read) == min(count, 32)


def test_a_model_that_is_slow_for_the_machine_reads_one_row(monkeypatch):
    clock, done = [0.0], []
    monkeypatch.setattr(expected, "SECONDS", 0.5)
    monkeypatch.setattr(expected.time, "perf_counter", lambda: clock[0])

    def taking(seconds, kind):
        def work(count):
            clock[0] += seconds * count
            done.append((kind, count))

        return work

    assert seconds_of_rows(taking(5.0, "row"), 100) == pytest.approx(500)
    assert done == [("row", 1)]
    assert seconds_of_steps(taking(1.0, "row"), taking(1e6, "whole"), 10, 16) == pytest.approx(160)
    assert "whole" not in dict(done)
    assert seconds_of_steps(taking(0.01, "row"), taking(0.1, "whole"), 100, 16) == pytest.approx(10)


def test_what_is_timed_is_what_the_measure_does(corpus, pairs, tmp_path, monkeypatch):
    """With no bound of time the last part is the whole: as many sentences, rows and steps as the measure has."""
    monkeypatch.setattr(expected, "SECONDS", math.inf)
    done = []

    def counting(owner, name, size):
        before = getattr(owner, name)

        def counted(*arguments, **named):
            found = before(*arguments, **named)
            done.append((name, size(found, *arguments)))
            return found

        monkeypatch.setattr(owner, name, counted)

    counting(Completions, "score", lambda found, *_: len(found))
    counting(held_out_text, "row_sums", lambda found, *_: len(found))
    counting(fresh_heads, "row_sums", lambda found, *_: len(found))
    counting(fresh_heads, "_steps", lambda _, head, count: count)
    recipe = shrink("bert-tiny")
    run, text = untrained_of(recipe, corpus, tmp_path / "run"), str(corpus.path)
    for measure in (
        MinimalPairsConfig(test=pairs),
        HeldOutTextConfig(rows=7),
        HeldOutTextConfig(),
        FreshHeadsConfig(objectives=["sop"], steps=9, rows=6),
    ):
        done.clear()
        measure.measure(run, text, "cpu")
        of_the_measure = [*done]
        done.clear()
        assert measure.expected_seconds(recipe, corpus.tokenizer, text, "cpu") > 0
        assert done[-1] == of_the_measure[-1]
        assert not any(size > of_the_measure[-1][1] for name, size in done if name == of_the_measure[-1][0])
        if measure.kind == "fresh_heads":
            assert ("_steps", 9) in done


def test_a_head_without_weights_of_its_own_is_measured_as_it_is(corpus, tmp_path):
    """Scores of tokens may be products with the model's embedding alone, which keeps its weights."""
    recipe = shrink("laptop-decoder-tiny")
    measure = FreshHeadsConfig(objectives=["clm"], steps=5, rows=6)
    found = measure.measure(untrained_of(recipe, corpus, tmp_path / "run"), str(corpus.path), "cpu")
    assert 0 <= found.scores["accuracy:clm"] <= 1
    assert measure.expected_seconds(recipe, corpus.tokenizer, str(corpus.path), "cpu") > 0


def test_weights_and_random_numbers_stay_as_they_are(corpus, tmp_path):
    recipe = shrink("laptop-decoder-tiny")
    run = untrained_of(recipe, corpus, tmp_path / "run")
    before = HeldOutTextConfig(rows=5).measure(run, str(corpus.path), "cpu")
    HeldOutTextConfig(rows=5).expected_seconds(recipe, corpus.tokenizer, str(corpus.path), "cpu")
    assert HeldOutTextConfig(rows=5).measure(run, str(corpus.path), "cpu") == before


@pytest.mark.slow
def test_every_measurement_has_its_time_also_at_checkpoints(corpus, pairs, tmp_path):
    for name in ("gpt-tiny", "laptop-encoder-tiny"):
        (tmp_path / f"{name}.yaml").write_text(shrink(name).to_yaml())
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        yaml.safe_dump(
            {
                "corpus": str(corpus.path),
                "budget": "steps=20",
                "seeds": 2,
                "device": "cpu",
                "checkpoints": ["50 %"],
                "recipes": ["gpt-tiny.yaml", "laptop-encoder-tiny.yaml"],
                "tasks": [
                    {"kind": "held_out_text", "rows": 5},
                    {"name": "BLiMP", "kind": "minimal_pairs", "test": str(pairs), "reading": "forwards"},
                ],
            }
        )
    )
    out = tmp_path / "out"
    forecast = forecast_comparison(plan, out, jobs=1)
    works = [work for work in forecast.works if work.what == "measurement"]
    # The encoder does not read forwards; each run is measured at half of its budget and in the end.
    assert [(work.of, work.jobs) for work in works] == [("gpt-tiny", 4), ("gpt-tiny", 4), ("laptop-encoder-tiny", 4)]
    assert all(work.seconds > 0 and work.kept == work.running == 0 for work in works)
    assert "of measurements" in forecast.rows()["time"]
    compare(plan, out, jobs=1, only=["gpt-tiny"], report=lambda results, path: None)
    known = [work for work in forecast_comparison(plan, out, jobs=1).works if work.what == "measurement"]
    assert [(work.of, work.jobs, work.done) for work in known] == [
        ("gpt-tiny", 0, 4),
        ("gpt-tiny", 0, 4),
        ("laptop-encoder-tiny", 4, 0),
    ]
    kept = [read_json(path)["seconds"] for path in (out / "runs").rglob("BLiMP*/pretrained-0/results.json")]
    assert known[1].seconds == pytest.approx(sum(kept) / 4)


def test_a_run_that_cannot_be_measured_so_is_refused(corpus, pairs):
    measure = MinimalPairsConfig(test=pairs, reading="forwards")
    with pytest.raises(UserError, match="cannot read forwards"):
        measure.expected_seconds(shrink("laptop-encoder-tiny"), corpus.tokenizer, None, "cpu")
