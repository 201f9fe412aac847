"""Runs from outside: listed, drawn, followed; of files that a training would write, and of one that is trained."""

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import shrink
from tests.valid_charts import charts_in

import bakeoff
from bakeoff import checksums
from bakeoff.cli import run as command
from bakeoff.errors import UserError
from bakeoff.overview.curves import curves, smoothed
from bakeoff.overview.lines import Follower
from bakeoff.overview.listing import list_runs, state_text, table
from bakeoff.overview.page import write_curves
from bakeoff.overview.text_chart import text_chart
from bakeoff.overview.watch import watch
from bakeoff.unfinished import FAILURE

EMPTY = (2).to_bytes(8, "little") + b"{}"
"""A file of no tensors."""


def line(step, kind="train", loss=None, **more):
    loss = 8.0 / (1 + step / 10) if loss is None else loss
    own = {"kind": kind, "step": step, "tokens": 100 * step, "flops": 7 * step, "seconds": step / 10, "loss": loss}
    shares = {"accuracy": {}, "perplexity": {}, "bits_per_byte": {}} if kind == "validation" else {}
    return own | {"losses": {"mlm": loss}, "tokens_per_second": 1000.0} | shares | more


def write_lines(folder, lines):
    (folder / "metrics.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))


def unfinished(folder, lines=(), steps=100):
    """What an unfinished pre-training has on disk."""
    folder.mkdir(parents=True)
    (folder / "recipe.yaml").write_text("name: some-recipe\n")
    (folder / "environment.json").write_text(json.dumps({"recipe": {"name": "some-recipe"}, "steps": steps}))
    write_lines(folder, lines)
    return folder


def finish(folder, loss=2.5, steps=100, planned=100):
    (folder / "model.safetensors").write_bytes(EMPTY)
    summary = {"steps": steps, "planned_steps": planned, "tokens": 100 * steps, "parameters": 1234}
    (folder / "summary.json").write_text(json.dumps(summary | {"validation": {"loss": loss}}))


@pytest.fixture
def folder(tmp_path):
    """One of each: finished, cut short, stopped, damaged, and folders that are no runs."""
    finish(unfinished(tmp_path / "a"), loss=2.5)
    finish(unfinished(tmp_path / "deep" / "b"), loss=1.5, steps=40)
    unfinished(tmp_path / "c", [line(0, "validation", 9.0), line(20), line(25, "validation", 3.0), line(30)])
    (unfinished(tmp_path / "d") / "environment.json").write_text("{")
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "recipe.yaml").write_text("extends: bert-base\n")
    return tmp_path


def test_runs_of_every_state_are_listed_and_a_damaged_one_is_told_in_its_line(folder):
    found = {entry.path.name: entry for entry in bakeoff.list_runs(folder)}
    assert {name: entry.state for name, entry in found.items()} == {
        "a": "finished",
        "b": "cut short",
        "c": "stopped",
        "d": "damaged",
    }
    assert (found["c"].step, found["c"].steps, found["c"].tokens, found["c"].loss) == (30, 100, 3000, 3.0)
    assert found["a"].parameters == 1234
    assert "environment.json" in found["d"].problem
    text = table([found["a"], found["b"], found["d"]])
    assert len(text) == 4
    assert "cut short at step 40 of 100" in text[2]
    assert text[3].endswith(found["d"].problem)


def test_a_run_is_one_line_whatever_its_name(tmp_path):
    unfinished(tmp_path / "a\nb\tc")
    (entry,) = bakeoff.list_runs(tmp_path)
    assert table([entry])[1].startswith(rf"{tmp_path}/a\nb\tc ")
    with pytest.raises(UserError, match="folders are wanted, not None"):
        bakeoff.list_runs(None)


def test_a_run_whose_weights_or_recipe_are_not_whole_is_damaged(folder):
    for name, kept in (("model.safetensors", EMPTY[:-1]), ("recipe.yaml", b"name: [")):
        run = folder / name
        finish(unfinished(run))
        checksums.record(run, ["recipe.yaml", "model.safetensors"])
        assert [entry.state for entry in list_runs(run)] == ["finished"]
        (run / name).write_bytes(kept)
        (entry,) = list_runs(run)
        assert entry.state == "damaged"
        assert str(run / name) in entry.problem


def test_an_order_puts_what_has_no_figure_last(folder):
    assert [e.path.name for e in bakeoff.list_runs(folder, sort="loss")] == ["b", "a", "c", "d"]
    assert [e.path.name for e in bakeoff.list_runs(folder, sort="tokens")] == ["a", "b", "c", "d"]
    os.utime(folder / "a" / "summary.json", (0, 0))
    for name in ("metrics.jsonl", "environment.json"):
        os.utime(folder / "a" / name, (0, 0))
    assert bakeoff.list_runs(folder, sort="age")[-1].path.name == "a"
    with pytest.raises(UserError, match="--sort size"):
        bakeoff.list_runs(folder, sort="size")
    with pytest.raises(UserError, match="no such folder"):
        bakeoff.list_runs(folder / "none")


def test_a_run_that_a_process_holds_is_training_and_looking_does_not_hold_it(folder):
    descriptor = os.open(folder / "c", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        assert [e.state for e in bakeoff.list_runs(folder / "c")] == ["training"]
    finally:
        os.close(descriptor)
    assert [e.state for e in bakeoff.list_runs(folder / "c")] == ["stopped"]


def test_fine_tuned_runs_and_searches_are_listed(tmp_path):
    tuned = tmp_path / ".task.unfinished"
    tuned.mkdir()
    (tuned / "recipe.yaml").write_text("name: some-recipe\n")
    (tuned / "asked.json").write_text("{}")
    dev = {"kind": "dev", "learning_rate": 0.1, "epochs": 4, "step": 10, "epoch": 1.0, "loss": 0.7, "seconds": 1.0}
    write_lines(tuned, [dev])
    search = tmp_path / "search"
    unfinished(search / "trials" / "000", [line(10)])
    (search / "search.json").write_text("{}")
    found = {entry.path.name: entry for entry in bakeoff.list_runs(tmp_path)}
    assert set(found) == {"task", "search"}
    assert (found["task"].kind, found["task"].step, found["task"].steps) == ("fine-tuning", 10, 40)
    write_lines(tuned, [])
    (tuned / "checkpoints" / "step-7").mkdir(parents=True)
    early = {entry.path.name: entry for entry in bakeoff.list_runs(tmp_path)}["task"]
    assert (early.state, early.step, early.steps) == ("stopped", 7, None)
    assert (found["search"].kind, found["search"].trials) == ("search", 1)
    assert {e.path.name for e in bakeoff.list_runs(search)} == {"search", "000"}


def test_a_fine_tuned_run_shows_the_training_that_dev_chose(tmp_path):
    """Of several rates and lengths."""
    run = tmp_path / "task"
    run.mkdir()
    lines = [
        {"learning_rate": rate, "epochs": epochs, "step": step, "steps": 10 * epochs, "loss": rate, "accuracy": score}
        for rate, epochs, step, score in [(0.1, 1, 10, 0.5), (0.1, 3, 20, 0.9), (0.1, 3, 30, 0.8), (0.1, 5, 50, 0.7)]
    ]
    write_lines(run, [{**line, "kind": "dev", "seconds": 1.0} for line in lines])
    (run / "labels.json").write_text("[]")
    (run / "recipe.yaml").write_text("name: some-recipe\n")
    (run / "model.safetensors").write_bytes(EMPTY)
    scores = {"dev": {"accuracy": 0.9}, "test": {"accuracy": 0.6}}
    results = {"learning_rate": 0.1, "metric": "accuracy", "recipe": "some-recipe", "scores": scores, "parameters": 7}
    (run / "results.json").write_text(json.dumps(results))
    (entry,) = list_runs(run)
    assert (entry.state, entry.step, entry.steps, entry.score) == ("finished", 30, 30, 0.6)


def test_an_unfinished_fine_tuning_has_the_name_that_the_user_gives_it(tmp_path, monkeypatch):
    (tmp_path / "runs" / ".task.unfinished").mkdir(parents=True)
    (tmp_path / "runs" / ".task.unfinished" / "recipe.yaml").write_text("name: some-recipe\n")
    (tmp_path / "runs" / ".task.unfinished" / "asked.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    assert [str(entry.path) for entry in list_runs("runs/task")] == ["runs/task"]
    monkeypatch.chdir(tmp_path / "runs")
    assert [str(entry.path) for entry in list_runs("task")] == ["task"]


def test_the_list_needs_no_torch():
    program = "import sys; from bakeoff.overview import listing, curves, watch; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


@given(st.lists(st.integers(-10_000, 10_000).map(lambda number: number / 100), max_size=40))
def test_smoothing_keeps_places_ends_and_straight_lines(values):
    points = [(float(place), value) for place, value in enumerate(values)]
    found = smoothed(points)
    assert [x for x, _ in found] == [x for x, _ in points]
    if points:
        assert (found[0], found[-1]) == (points[0], points[-1])
    straight = [(x, 3 * x + 1) for x, _ in points]
    assert smoothed(straight) == [pytest.approx(point) for point in straight]


def test_curves_are_drawn_in_letters_and_files(tmp_path):
    for name, factor in (("a", 1), ("b", 2)):
        lines = [line(step, loss=factor * (1 + 50 / (step + 10))) for step in range(1, 101)]
        unfinished(tmp_path / name, [*lines, line(100, "validation", factor * 1.5)])
    found = curves([tmp_path / "a", tmp_path / "b"], "steps")
    assert [curve.label for curve in found] == [str(tmp_path / "a"), str(tmp_path / "b")]
    assert found[0].held_out == [(100.0, 1.5)]
    chart = text_chart(found, "steps", width=80)
    drawn = [row.partition("|")[2] for row in chart if "|" in row]
    first = {letter: min(i for i, row in enumerate(drawn) if letter in row) for letter in "ab"}
    assert first["b"] < first["a"] or first == {"a": 0, "b": 0}
    assert max(i for i, row in enumerate(drawn) if "a" in row) > max(i for i, row in enumerate(drawn) if "b" in row)
    assert max(map(len, chart[:19])) <= 80
    for ending, start in ((".html", "<!doctype html>"), (".svg", "<svg")):
        write_curves(found, "steps", tmp_path / f"curves{ending}")
        text = (tmp_path / f"curves{ending}").read_text(encoding="utf-8")
        assert text.lower().startswith(start)
        assert str(tmp_path / "a") in text
        assert ending == ".svg" or [*charts_in(text)] == ["curves"]
        with pytest.raises(UserError, match="is there already; choose another --out"):
            write_curves(found, "steps", tmp_path / f"curves{ending}")
    with pytest.raises(UserError, match=r"\.html, \.svg or \.png"):
        write_curves(found, "steps", tmp_path / "curves.gif")
    with pytest.raises(UserError, match="--over hours"):
        curves([tmp_path / "a"], "hours")


def test_a_line_that_is_not_what_was_written_is_told_and_not_drawn(tmp_path):
    run = unfinished(tmp_path / "run", [line(10), line(20, "validation", 3.0)])
    checksums.record(run, ["metrics.jsonl"])
    assert curves([run], "steps")[0].held_out == [(20.0, 3.0)]
    write_lines(run, [line(10), line(20, "validation", 2.0)])
    with pytest.raises(UserError, match=r"metrics\.jsonl: damaged"):
        curves([run], "steps")


def test_a_damaged_log_is_named_and_the_others_are_drawn(tmp_path, capsys):
    good, bad = (unfinished(tmp_path / name, [line(0), line(10), line(20)]) for name in ("good", "bad"))
    (bad / "metrics.jsonl").write_text("{\n[]\n")
    assert {curve.label for curve in curves([tmp_path])} == {str(good)}
    assert f"not drawn: {bad / 'metrics.jsonl'}" in capsys.readouterr().err
    with pytest.raises(UserError, match=r"bad/metrics\.jsonl"):
        curves([bad])


def test_what_has_no_curve_beside_others_is_named(tmp_path, capsys):
    finish(unfinished(tmp_path / "a", [line(10, loss=2.0), line(20, loss=1.5)]))
    tuned = tmp_path / "tuned"
    tuned.mkdir()
    shown = {"kind": "dev", "step": 5, "steps": 10, "seconds": 1.0, "loss": 0.5, "learning_rate": 0.1, "epochs": 2}
    write_lines(tuned, [{**shown, "accuracy": 0.5}])
    (tuned / "recipe.yaml").write_text("name: x\n")
    (tuned / "labels.json").write_text("[]")
    (tuned / "task.yaml").write_text("kind: classification\n")
    (tmp_path / "none").mkdir()
    paths = [tmp_path / name for name in ("a", "tuned", "none")]
    assert {curve.label for curve in curves(paths, "tokens")} == {str(tmp_path / "a")}
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"not drawn: {tuned}: fine-tunings count steps and seconds",
        f"not drawn: {tmp_path / 'none'}: no runs here",
    ]
    assert command(["runs", str(tmp_path / "a"), "--over", "seconds"]) == 2
    assert "--over seconds is the axis of curves; give --plot or --out, too" in capsys.readouterr().err


def test_one_run_that_is_named_in_two_ways_is_listed_once(tmp_path, monkeypatch):
    finish(unfinished(tmp_path / "runs" / "a"))
    monkeypatch.chdir(tmp_path)
    assert [entry.path for entry in list_runs(["runs/a", "runs", "runs/../runs/a"])] == [Path("runs/a")]


def test_a_follower_sees_lines_come_half_written_ones_wait_and_a_cut_back(tmp_path):
    path = tmp_path / "metrics.jsonl"
    follower = Follower(path)
    assert follower.look() == ([], False)
    write_lines(tmp_path, [line(1), line(2)])
    assert follower.look() == ([line(1), line(2)], False)
    with open(path, "a") as file:
        file.write('{"kind": "train", "st')
    assert follower.look() == ([], False)
    write_lines(tmp_path, [line(1), line(2, loss=9.0)])
    assert follower.look() == ([line(2, loss=9.0)], True)
    write_lines(tmp_path, [line(1)])
    assert follower.look() == ([], True)


def test_watching_tells_what_comes_through_a_resumption_until_the_end(tmp_path, capsys):
    run = unfinished(tmp_path / "run", [line(0, "validation", 9.0), line(10)])
    descriptor = os.open(run, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    looks = iter(
        [
            lambda: write_lines(run, [line(0, "validation", 9.0), line(10), line(50, "validation", 4.0)]),
            lambda: write_lines(run, [line(0, "validation", 9.0)]),
            lambda: write_lines(run, [line(0, "validation", 9.0), line(100, "validation", 3.0, at_most=["mlm"])]),
            lambda: finish(run, loss=3.0),
        ]
    )
    (ended,) = watch(run, sleep=lambda seconds: next(looks)())
    os.close(descriptor)
    told = capsys.readouterr().err
    assert ended.state == "finished"
    assert "step 10/100" in told
    assert "step 50/100  held-out 4.000" in told
    assert "goes on from step 0" in told
    assert "step 100/100  held-out at most 3.000" in told


def test_watching_ends_where_nobody_is_at_the_training_any_more(tmp_path):
    run = unfinished(tmp_path / "run", [line(10)])
    waits = []
    (ended,) = watch(run, sleep=waits.append)
    assert (ended.state, ended.step, len(waits)) == ("stopped", 10, 1)
    with pytest.raises(UserError, match="no such run"):
        watch(tmp_path / "none")


def test_watching_a_folder_follows_all_that_train(tmp_path, capsys):
    runs = [unfinished(tmp_path / name, [line(10)]) for name in ("a", "b")]
    descriptors = [os.open(run, os.O_RDONLY) for run in runs]
    for each in descriptors:
        fcntl.flock(each, fcntl.LOCK_EX)

    def end(seconds):
        if descriptors:
            finish(runs[len(descriptors) - 1])
            os.close(descriptors.pop())

    ended = watch(tmp_path, sleep=end)
    assert [entry.state for entry in ended] == ["finished", "finished"]
    assert f"{tmp_path / 'a'}: finished" in capsys.readouterr().err


def test_a_training_that_diverged_in_a_comparison_is_over_and_says_why(tmp_path, capsys):
    one, two = tmp_path / "runs" / "one", tmp_path / "runs" / "two"
    unfinished(one, [line(5)], steps=12)
    finish(unfinished(two))
    (one / FAILURE).write_text(json.dumps({"message": "one: mlm is not a finite number at step 6"}), encoding="utf-8")
    assert {entry.path.name: state_text(entry) for entry in bakeoff.list_runs(tmp_path)} == {
        "one": "diverged at step 5 of 12",
        "two": "finished",
    }
    assert command(["watch", str(tmp_path), "--every", "0.1"]) == 0
    capsys.readouterr()
    assert command(["watch", str(one), "--every", "0.1"]) == 2
    why = "bakeoff: one: mlm is not a finite number at step 6; its comparison tries it again once"
    assert capsys.readouterr().err.endswith(f"{why} {one} is deleted\n")


def test_watching_several_ends_with_a_status_that_says_whether_some_have_stopped(tmp_path, capsys):
    finish(unfinished(tmp_path / "a"))
    assert command(["watch", str(tmp_path), "--every", "0.1"]) == 0
    for name in ("b", "c"):
        unfinished(tmp_path / name, [line(10)])
    assert command(["watch", str(tmp_path), "--every", "0.1"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    expected = f"{tmp_path}: 2 of 3 trainings stopped without an end, the first {tmp_path / 'b'}; "
    assert expected in said


def test_a_real_training_is_listed_as_what_it_is(corpus, tmp_path):
    recipe, options = shrink("gpt-tiny"), {"progress": False, "device": "cpu"}
    bakeoff.pretrain(recipe, corpus.path, tmp_path / "run", until=4, **options)
    (entry,) = bakeoff.list_runs(tmp_path)
    assert (entry.recipe, entry.state, entry.step, entry.steps) == ("gpt-tiny", "stopped", 4, 12)
    bakeoff.pretrain(recipe, corpus.path, tmp_path / "run", resume=True, **options)
    (entry,) = watch(tmp_path / "run")
    summary = bakeoff.Run(tmp_path / "run").summary
    assert entry.state == "finished"
    assert (entry.tokens, entry.loss) == (summary["tokens"], summary["validation"]["loss"])
    assert entry.parameters == summary["parameters"]


def test_a_bound_is_named_one_wherever_the_loss_of_a_run_stands(corpus, tmp_path):
    recipe, options = shrink("bert-tiny", objective=[{"kind": "diffusion"}]), {"device": "cpu", "progress": False}
    bakeoff.pretrain(recipe, corpus.path, tmp_path / "run", until=4, **options)
    (stopped,) = bakeoff.list_runs(tmp_path)
    bakeoff.pretrain(recipe, corpus.path, tmp_path / "run", resume=True, **options)
    (finished,) = bakeoff.list_runs(tmp_path)
    for entry in (stopped, finished):
        assert entry.loss_at_most
        assert f"at most {entry.loss:.4f}" in table([entry])[1]
