import json
import math
import os
import shutil
from pathlib import Path

import pytest
import torch

from bakeoff.errors import UserError
from bakeoff.interop.export import export
from tests.conftest import shrink
from tests.untrained_runs import untrained

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

from bakeoff.interop.onnx import export as own
from bakeoff.interop.onnx.conversion import open_session
from bakeoff.interop.onnx.readme import OF_ENCODER, snippet
from bakeoff.tasks.rows.inputs import InputFormat

pytestmark = pytest.mark.slow  # what needs these libraries is left out of the quick tests anyway


@pytest.fixture(scope="module")
def encoder(corpus, tmp_path_factory):
    return untrained("conv-light-encoder-tiny", corpus, tmp_path_factory.mktemp("encoder") / "run")


@pytest.fixture(scope="module")
def written(encoder):
    return export(encoder.path, encoder.path.parent / "onnx", to="onnx")


def test_padding_changes_nothing_of_an_encoder(encoder, written):
    session, module = open_session(written.path / "model.onnx"), encoder.load()
    ids = torch.randint(0, encoder.tokenizer.size, (1, 9))
    with torch.inference_mode():
        from bakeoff.row import Row

        right = module.model(Row(ids))[0]
    longer = torch.cat([ids, torch.randint(0, encoder.tokenizer.size, (1, 6))], 1)
    mask = (torch.arange(15) < 9).long()[None]
    found = session.run(["hidden_states"], {"input_ids": longer.numpy(), "attention_mask": mask.numpy()})[0][:, :9]
    assert torch.allclose(torch.from_numpy(found), right, atol=1e-5)
    assert written.largest_difference < 1e-5


def test_the_lines_of_the_readme_run_without_bakeoff(written, monkeypatch, capsys):
    monkeypatch.chdir(written.path)
    lines = (written.path / "README.md").read_text().partition("```python\n")[2].partition("```")[0]
    assert "bakeoff" not in lines
    exec(compile(lines, "README.md", "exec"), {})
    assert capsys.readouterr().out.startswith("(2, ")


@pytest.mark.parametrize("truncate", ["head", "head+tail"])
def test_the_lines_of_the_readme_cut_a_text_as_its_run_does(truncate, encoder, written, tmp_path, monkeypatch):
    folder = Path(shutil.copytree(written.path, tmp_path / "onnx"))
    config = json.loads((folder / "config.json").read_text()) | {"length": 12, "truncate": truncate}
    (folder / "config.json").write_text(json.dumps(config))
    monkeypatch.chdir(folder)
    texts = [" ".join(["the river finds the old stone"] * times) for times in (1, 2, 3, 9)] + [""]
    lines = snippet(config, "pass").replace('["The first text.", "A second one, which is longer."]', repr(texts))
    exec(compile(lines, "README.md", "exec"), names := {})
    expected = InputFormat(encoder.tokenizer, encoder.recipe, 12, truncate).encode(texts).ids
    assert names["rows"] == [ids.tolist() for ids in expected]
    assert max(map(len, names["rows"])) == 12


def test_a_causal_text_is_the_same_in_parts_as_in_one(corpus, tmp_path, monkeypatch, capsys):
    run = untrained("conv-light-lm-tiny", corpus, tmp_path / "run")
    made = export(run.path, tmp_path / "onnx", to="onnx")
    session, module = open_session(made.path / "model.onnx"), run.load()
    config = json.loads((made.path / "config.json").read_text())
    ids = torch.randint(0, corpus.tokenizer.size, (2, 11))
    with torch.inference_mode():
        from bakeoff.row import Row

        head = module.objectives[0].head
        right = head.scores(module.model(Row(ids))[0], module.model.embedding.weight)
    assert [each["name"] for each in config["inputs"][:2]] == ["input_ids", "past.0"]
    state = {
        each["name"]: torch.zeros([{"batch": 2, "past": 0}.get(axis, axis) for axis in each["axes"]]).numpy()
        for each in config["inputs"][1:]
    }
    parts = []
    for begin, end in ((0, 1), (1, 6), (6, 11)):
        logits, *after = session.run(None, {"input_ids": ids[:, begin:end].numpy(), **state})
        state = dict(zip(state, after, strict=True))
        parts.append(torch.from_numpy(logits))
    assert torch.allclose(torch.cat(parts, 1), right, atol=1e-4)
    monkeypatch.chdir(made.path)
    exec(compile(snippet(config, OF_ENCODER), "README.md", "exec"), {})
    assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantize": "int3"}, "no such kind of weights"),
        ({"measure_on": "x"}, "nothing to measure"),
        ({"pooling": "mean"}, "--pooling: --to onnx has no such option"),
    ],
)
def test_wrong_options_are_refused(encoder, tmp_path, options, message):
    with pytest.raises(UserError, match=message):
        export(encoder.path, tmp_path / "out", to="onnx", **options)
    assert not any(tmp_path.iterdir())


def test_a_folder_that_is_there_is_left_alone(encoder, tmp_path):
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(UserError, match="holds something already"):
        export(encoder.path, tmp_path, to="onnx")
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_missing_library_is_named(encoder, tmp_path, monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr("bakeoff.extras.import_module", absent)
    with pytest.raises(UserError, match=r"needs the library onnx, which is not installed; run pip install 'onnx>="):
        export(encoder.path, tmp_path / "out", to="onnx")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError])
def test_nothing_is_left_of_an_export_that_was_stopped(encoder, tmp_path, monkeypatch, stop):
    def stopped(graph, file, what):
        file.write_bytes(b"half")
        raise stop

    monkeypatch.setattr(own, "convert", stopped)
    with pytest.raises(stop):
        export(encoder.path, tmp_path / "out", to="onnx")
    assert not os.listdir(tmp_path)


def test_other_numbers_than_torchs_are_not_written(encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(own, "convert", lambda graph, file, what: file.write_bytes(b"half"))
    monkeypatch.setattr(own, "check_file", lambda *given: None)
    monkeypatch.setattr(own, "open_session", lambda file: None)
    monkeypatch.setattr(own, "largest_difference", lambda *given: 2e-4)
    with pytest.raises(UserError, match="computes something else"):
        export(encoder.path, tmp_path / "out", to="onnx")
    assert not os.listdir(tmp_path)


def test_the_loss_of_eight_bits_on_texts_is_that_of_the_same_hidden_tokens(encoder, tmp_path):
    from bakeoff.interop.onnx.measuring import by_loss, rows_of

    source = own._opened(encoder.path)
    (graph,) = source.graphs.values()
    file = tmp_path / "texts.txt"
    file.write_text("the one and the other\n" * 20)
    batches = rows_of(graph, file, source.format)

    class Uniform:
        """Gives every token the same score."""

        def run(self, names, feeds):
            ids = feeds["input_ids"]
            seen.append(int((ids == encoder.tokenizer.mask).sum()))
            return [torch.zeros(*ids.shape, source.vocabulary).numpy()]

    seen = []
    loss, agreeing = by_loss(graph, batches, encoder.tokenizer, file.name)(Uniform(), Uniform())
    assert loss.before == loss.after == pytest.approx(math.log(source.vocabulary), abs=1e-5)
    assert loss.lower_is_better
    assert agreeing.after == 1
    hidden = int(loss.name.partition("(")[2].split()[0])
    assert 0 < hidden == sum(seen[: len(batches)]) < 0.4 * sum(each["input_ids"].size for each in batches)


@pytest.mark.parametrize("name", ["lstm-encoder-tiny", "lstm-lm-tiny", "gru-lm-tiny"])
def test_recurrent_networks_read_padded_rows_as_documents(name, corpus):
    from bakeoff.interop.onnx.padded_rows import with_padded_rows
    from bakeoff.learner.pretraining_model import PretrainingModel
    from bakeoff.row import Row

    model = PretrainingModel(shrink(name), corpus.tokenizer.size).eval().model
    steps = torch.arange(9)
    padding_mask = torch.stack([steps < 9, steps < 4, steps >= 3, (steps > 2) & (steps < 6), steps < 1])
    inputs = Row(torch.randint(0, corpus.tokenizer.size, (5, 9)), padding_mask=padding_mask)
    with torch.inference_mode():
        right = model(inputs)[0]
        with_padded_rows(model)
        found = model(inputs)[0]
    assert torch.allclose(found[padding_mask], right[padding_mask], atol=1e-6)
