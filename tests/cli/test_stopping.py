"""Answers to files, imports and exports that are stopped, or find no space: nothing half-written has their name."""

import io
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.conftest import crossed, sentences, shrink
from tests.test_full_disk import space
from tests.untrained_runs import untrained

from bakeoff.cli import run as command
from bakeoff.durable import appearing
from bakeoff.errors import UserError
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.classification import ClassificationConfig

FORMS = {
    "fill": [".jsonl", ".tsv", ".parquet"],
    "score": [".jsonl", ".tsv", ".parquet", ".npy"],
    "embed": [".jsonl", ".parquet", ".npy"],
    "generate": [".jsonl", ".tsv", ".parquet"],
    "predict": [".jsonl", ".tsv", ".parquet"],
}
"""The verbs that answer texts, and what they write to."""

VERBS = [(verb, ending) for verb, endings in FORMS.items() for ending in endings]

EXPORTS = {
    "hf": ["transformers"],
    "onnx": ["onnx", "onnxscript", "onnxruntime"],
    "sentence-transformers": [],
    "gguf": ["gguf"],
}
"""Forms of exports, and the libraries that they need."""


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    """A run for each verb."""
    folder = tmp_path_factory.mktemp("runs")
    bert = untrained("bert-tiny", corpus, folder / "bert", **{"input.length": 32}).path
    gpt = untrained("gpt2-tiny", corpus, folder / "gpt", **{"input.length": 32}).path
    rows = "".join(f"{'yes' if 'river' in text else 'no'}\t{text}\n" for text in sentences(60))
    (folder / "rows.tsv").write_text("label\ttext\n" + rows)
    task = ClassificationConfig(train=folder / "rows.tsv", text_column="text", label_column="label")
    quick = FinetuneConfig(epochs=1, least_steps=0, learning_rate=[1e-3])
    options = {"config": quick, "tokenizer": corpus.path, "device": "cpu", "progress": False}
    finetune(shrink("bert-tiny"), task, folder / "classes", **options)
    return {"fill": bert, "score": bert, "embed": bert, "generate": gpt, "predict": folder / "classes"}


def words_of(verb, runs, out):
    more = ["--tokens", "2"] if verb == "generate" else []
    return [verb, str(runs[verb]), *more, "--device", "cpu", "--out", str(out)]


class Stopped(io.BytesIO):
    """Standard input after whose end somebody types Ctrl-C."""

    def readline(self, size=-1):
        line = super().readline(size)
        if not line:
            raise KeyboardInterrupt
        return line


def typed(monkeypatch, kind, lines=100):
    data = b"".join(f"The river finds [MASK] {number} stones [MASK]\n".encode() for number in range(lines))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(kind(data)))


@pytest.mark.parametrize(("verb", "ending"), VERBS)
def test_ctrl_c_leaves_nothing(verb, ending, runs, tmp_path, capsys, monkeypatch):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    if verb == "fill":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Stopped(b"The [MASK] stone\n" * 100)))
    else:
        typed(monkeypatch, Stopped)
    assert command(words_of(verb, runs, tmp_path / f"out{ending}")) == 130
    assert capsys.readouterr().err == "bakeoff: interrupted\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("verb", "ending"), VERBS)
def test_a_full_disk_is_told_in_one_line(verb, ending, runs, tmp_path, capsys, monkeypatch):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    typed(monkeypatch, io.BytesIO)
    out = tmp_path / f"out{ending}"
    with space(200):
        status = command(words_of(verb, runs, out))
    assert status == 2
    assert capsys.readouterr().err == f"bakeoff: {out}: cannot be written: File too large; nothing was kept\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("verb", FORMS)
def test_places_that_cannot_be_written_to(verb, runs, tmp_path, capsys, monkeypatch):
    typed(monkeypatch, io.BytesIO)
    there, none = tmp_path / "there.jsonl", tmp_path / "none" / "out.jsonl"
    there.write_text("mine")
    for out, why in ((there, "is there already; choose another --out"), (none, None)):
        assert command(words_of(verb, runs, out)) == 2
        said = capsys.readouterr().err
        assert said == f"bakeoff: {out}: {why}\n" if why else f"bakeoff: {none.parent}: no such folder\n"
    assert there.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [there]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_nobody_may_write_to(runs, tmp_path, capsys, monkeypatch):
    typed(monkeypatch, io.BytesIO)
    tmp_path.chmod(0o500)
    assert command(words_of("embed", runs, tmp_path / "out.npy")) == 2
    assert capsys.readouterr().err == f"bakeoff: {tmp_path / 'out.npy'}: cannot be made: Permission denied\n"


def test_two_cannot_write_one_file(tmp_path):
    out = tmp_path / "out.npy"
    with appearing(out) as file:
        file.write(b"one")
        with pytest.raises(UserError, match="another process is writing it"), appearing(out):
            pass
    assert out.read_bytes() == b"one"
    with pytest.raises(UserError, match="made meanwhile"), appearing(tmp_path / "later") as file:
        (tmp_path / "later").write_bytes(b"two")
    assert (tmp_path / "later").read_bytes() == b"two"
    (tmp_path / ".last.partial").write_bytes(b"left by a process that was killed")
    with appearing(tmp_path / "last") as file:
        file.write(b"3")
    assert (tmp_path / "last").read_bytes() == b"3"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["last", "later", "out.npy"]


@pytest.mark.parametrize("form", crossed(EXPORTS, ("hf", "sentence-transformers")))
def test_a_stopped_export_leaves_nothing(form, runs, tmp_path, capsys, monkeypatch):
    for name in EXPORTS[form]:
        pytest.importorskip(name)

    def interrupted(path):
        raise KeyboardInterrupt

    monkeypatch.setattr("bakeoff.unfinished.sync", interrupted)  # when all is written, before it has its name
    run = runs["generate" if form == "gguf" else "embed"]
    status = command(["export", str(run), "--to", form, "--out", str(tmp_path / "out")])
    said = capsys.readouterr().err
    if status == 2 and form == "gguf":
        pytest.skip(said)
    assert (status, said.splitlines()[-1]) == (130, "bakeoff: interrupted")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("form", ["hf", "sentence-transformers"])
def test_an_export_without_space_leaves_nothing(form, runs, tmp_path, capsys):
    pytest.importorskip("transformers")
    with space(2000):
        assert command(["export", str(runs["embed"]), "--to", form, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"bakeoff: {tmp_path}{os.sep}")
    assert said.endswith("File too large; nothing was kept\n")
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_stopped_import_leaves_nothing(runs, tmp_path, capsys, monkeypatch):
    pytest.importorskip("transformers")
    assert command(["export", str(runs["embed"]), "--to", "hf", "--out", str(tmp_path / "theirs")]) == 0
    words = ["import", str(tmp_path / "theirs"), "--out", str(tmp_path / "out")]
    capsys.readouterr()
    with space(2000):
        assert command(words) == 2
    assert capsys.readouterr().err.count("\n") == 1

    def interrupted(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr("bakeoff.runs.run.Run.finish", interrupted)
    assert command(words) == 130
    assert capsys.readouterr().err == "bakeoff: interrupted\n"
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_who_stops_watching_stops_nothing_else(runs, capsys, monkeypatch):
    def interrupted(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr("bakeoff.overview.watch.watch", interrupted)
    assert command(["watch", str(runs["embed"])]) == 130
    assert capsys.readouterr().err == "bakeoff: stopped watching; the training goes on\n"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("verb", FORMS)
def test_signals_end_a_process(verb, number, runs, tmp_path):
    out = tmp_path / "out.jsonl"
    words = [sys.executable, "-m", "bakeoff", *words_of(verb, runs, out)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        while not (tmp_path / ".out.jsonl.partial").exists():
            process.stdin.write("The river [MASK]\n")
            process.stdin.flush()
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(number)
        said = process.stderr.read()
        process.stdin.close()
    assert (process.returncode, said) == (128 + number, "bakeoff: interrupted\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_only_a_late_ctrl_c_ends_a_process_that_cleans_up():
    # What cleans up takes as long as it likes.
    program = (
        "import sys, time; from unittest import mock; from bakeoff import signals; from bakeoff.cli import main\n"
        "signals.PATIENCE = 1.0\n"
        "def slow(*arguments):\n"
        "    try:\n        print('begun', flush=True); time.sleep(60)\n"
        "    finally:\n        print('cleaning up', flush=True); time.sleep(60)\n"
        "with mock.patch('bakeoff.cli.run', slow): main([])"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "cleaning up\n"
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process.send_signal(number)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
        process.send_signal(signal.SIGTERM)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 128 + signal.SIGINT
        assert process.stderr.read() == "bakeoff: interrupted\n"
