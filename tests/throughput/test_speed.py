import csv
import json
import math
import time

import pytest
import torch
from tests.conftest import shrink
from tests.valid_charts import charts_in

from bakeoff.batching.batches import Batches, BatchSizes
from bakeoff.batching.rows import TargetDrawing, TextRows
from bakeoff.cli import run
from bakeoff.errors import UserError
from bakeoff.learner.pretraining_model import PretrainingModel
from bakeoff.throughput import cell as cells
from bakeoff.throughput.cell import Cell, RandomText, numbered_tokenizer
from bakeoff.throughput.measure import parse_lengths, speed
from bakeoff.throughput.results import QUANTITIES, shown

NAMES = ["bert-tiny", "conv-light-lm-tiny"]


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    out = tmp_path_factory.mktemp("speed") / "made"
    recipes = [shrink(name) for name in NAMES]
    return speed(recipes, [32, 16], batch_tokens=64, vocabulary=160, device="cpu", seconds=0.0, out=out), out


@pytest.mark.parametrize("name", ["speed.json", "speed.csv", "speed.html"])
def test_files_of_somebody_else_are_not_replaced(name, tmp_path):
    (tmp_path / name).write_text('{"measurements": []}', encoding="utf-8")
    with pytest.raises(UserError, match=f"{name}: is there already, and not from this command; choose another --out"):
        speed([shrink("bert-tiny")], [16], batch_tokens=16, device="cpu", seconds=0.0, out=tmp_path)
    assert [path.read_text(encoding="utf-8") for path in tmp_path.iterdir()] == ['{"measurements": []}']
    with pytest.raises(UserError, match="cannot be made: "):
        speed([shrink("bert-tiny")], [16], device="cpu", out=tmp_path / name)


def test_every_cell_has_its_figures(measured):
    results, _ = measured
    assert [(each.length, each.recipe) for each in results.measurements] == [(t, n) for t in (16, 32) for n in NAMES]
    for each in results.measurements:
        assert each.problem is None
        assert each.rows == 64 // each.length
        figures = {quantity.field: getattr(each, quantity.field) for quantity in QUANTITIES}
        if each.recipe == "bert-tiny":
            assert figures.pop("generation_ms") is None  # it cannot write
        if figures["memory_bytes"] is None or figures["memory_bytes"] == 0:
            figures.pop("memory_bytes")  # the system does not tell, or freed memory was enough for so small a model
        assert all(math.isfinite(value) and value > 0 for value in figures.values()), figures


def test_the_files_hold_every_cell(measured):
    results, out = measured
    assert sorted(path.name for path in out.iterdir()) == ["speed.csv", "speed.html", "speed.json"]
    assert json.loads((out / "speed.json").read_text()) == results.model_dump(mode="json")
    rows = list(csv.DictReader((out / "speed.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["latency_ms"] for row in rows] == [str(each.latency_ms) for each in results.measurements]
    html = (out / "speed.html").read_text(encoding="utf-8")
    drawn = charts_in(html)
    assert list(drawn) == [quantity.field for quantity in shown(results)]
    for each in results.measurements:
        assert f"<td>{QUANTITIES[0].of(each)}</td>" in html
    points = drawn["training_tokens_per_second"]["data"]["values"]
    assert {(point["recipe"], point["length"]) for point in points} == {(n, t) for n in NAMES for t in (16, 32)}


@pytest.mark.parametrize("name", ["bert-tiny", "albert-tiny", "roberta-tiny", "xlnet-tiny", "gpt-tiny", "t5-tiny"])
@pytest.mark.parametrize(("rows", "length"), [(1, 64), (5, 16)])
def test_rows_are_full_and_no_attention_needs_a_mask(name, rows, length):
    recipe = Cell(shrink(name), length, rows, 160, torch.device("cpu"), 60.0)._fitted()
    module = PretrainingModel(recipe, 160)
    text, tokenizer = RandomText(rows, length, 160), numbered_tokenizer(160)
    assert tokenizer.size == 160
    drawing = TargetDrawing(recipe.objective, module.objectives)
    every = TextRows(text, tokenizer, recipe.input, drawing, seed=0)
    (batch,) = Batches([every], BatchSizes(rows, rows), seed=0).fixed(rows)
    assert batch.row.padding_mask is None
    assert batch.row.documents is None
    assert len(batch.row.ids) == rows
    if batch.row.source is None:
        assert batch.row.ids.shape == (rows, length)
        assert batch.tokens == rows * length


def test_a_longer_table_of_positions_is_said():
    recipe = shrink("bart-tiny").changed({"model.embedding.length": 40})
    results = speed([recipe], [32, 40, 64], batch_tokens=64, vocabulary=160, device="cpu", seconds=0.0)
    assert [each.position_table for each in results.measurements] == [None, 41, 65]
    assert all(each.problem is None for each in results.measurements)
    assert results.remarks() == ["bart-tiny: its table of positions was lengthened (length 40, 64)"]


def test_too_slow_and_out_of_memory_are_reported(monkeypatch):
    def training(self, recipe, module, batch):
        if self.recipe.name == "bert-tiny" and self.length == 32:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")

        def step(turn):
            if self.recipe.name == "gpt-tiny":
                time.sleep(0.02)
            elif turn == 2 and self.length == 16:
                raise torch.OutOfMemoryError("CUDA out of memory")
            return 0.02 if self.recipe.name == "gpt-tiny" else 1e-3

        return step

    monkeypatch.setattr(cells.Cell, "_training", training)
    recipes = [shrink("bert-tiny"), shrink("gpt-tiny")]
    results = speed(recipes, [16, 32], vocabulary=160, device="cpu", seconds=0.0, most_seconds=0.01)
    assert [each.problem for each in results.measurements] == [
        "out of memory",
        "a step takes more than 0.01 s",
        "out of memory",
        "not tried, too slow at length 16",
    ]
    assert all(getattr(each, quantity.field) is None for each in results.measurements for quantity in QUANTITIES)
    assert "bert-tiny: out of memory (length 16, 32)" in results.remarks()


def test_other_errors_are_not_taken_for_memory(monkeypatch):
    def broken(self, recipe, module, batch):
        raise RuntimeError("shapes differ")

    monkeypatch.setattr(cells.Cell, "_training", broken)
    with pytest.raises(RuntimeError, match="shapes differ"):
        speed([shrink("bert-tiny")], [16], vocabulary=160, device="cpu", seconds=0.0)


def test_lengths():
    assert parse_lengths("64,100") == [64, 100]
    assert parse_lengths("64..4096") == [64, 128, 256, 512, 1024, 2048, 4096]
    assert parse_lengths("64..100") == [64]
    for text in ("", "64,", "a", "0..4", "8..4", "-1"):
        with pytest.raises(UserError, match="--lengths"):
            parse_lengths(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bert-tny"], "did you mean 'bert-tiny'"),
        (["bert-tiny", "bert-tiny"], "bert-tiny: given twice"),
        (["bert-tiny", "--lengths", "64-128"], "--lengths 64-128: expected"),
        (["bert-tiny", "--lengths", "4"], "--lengths 4: give at least 8"),
        (["bert-tiny", "--batch-tokens", "0"], "--batch-tokens"),
        (["bert-tiny", "--vocabulary", "5"], "--vocabulary"),
        (["bert-tiny", "--device", "tpu"], "--device tpu"),
        (["bert-tiny", "--out", __file__], "test_speed.py"),
    ],
)
def test_a_mistake_is_one_line(capsys, arguments, message):
    assert run(["speed", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == 1
    assert message in captured.err


def test_the_verb_prints_tables(capsys, tmp_path):
    small = ["--set", "model.encoder.width=32", "--set", "model.encoder.block.ffn.width=32", "--vocabulary", "160"]
    small += ["--lengths", "8,16", "--batch-tokens", "16", "--seconds", "0", "--device", "cpu"]
    assert run(["speed", "bert-tiny", *small, "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "training, tokens/s" in out
    assert "speed.html" in out
    assert run(["speed", "bert-tiny", *small, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["measurements"]) == 2


def test_objectives_of_weight_0_are_not_measured(monkeypatch):
    seen = []

    def training(self, recipe, module, batch):
        seen.append({name for name, (rows, _) in batch.targets.items() if len(rows)})
        return lambda turn: 1e-3

    monkeypatch.setattr(cells.Cell, "_training", training)
    objectives = [{"kind": "diffusion", "weight": 0}, {"kind": "mlm"}]
    speed([shrink("roberta-tiny", objective=objectives)], [16], vocabulary=160, device="cpu", seconds=0.0)
    assert seen
    assert all(names == {"mlm"} for names in seen)
