"""`--quiet` and `--log` of the verbs that work long."""

import os
import re
import signal
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from bakeoff.cli import run as command_line
from bakeoff.cli.app import app
from bakeoff.display import pace

STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ")

LONG = ["demo", "prepare", "pretrain", "tune", "finetune", "evaluate", "predict", "score", "generate", "embed"]
LONG += ["similarity", "inspect", "compare", "speed", "check", "import", "export"]


def lines_of(path):
    found = path.read_text(encoding="utf-8").splitlines()
    assert all(STAMP.match(line) for line in found), found
    return [STAMP.sub("", line) for line in found]


@pytest.mark.parametrize("verb", LONG)
def test_every_verb_that_works_long_has_them(verb):
    told = CliRunner().invoke(app, [verb, "--help"], env={"COLUMNS": "200"}).output
    assert "--quiet" in told
    assert "--log" in told


def prepared(text_folder, out, *options):
    return command_line(["prepare", str(text_folder), "--out", str(out), "--document-per-line", *options])


def test_a_log_has_what_is_printed_and_goes_on(text_folder, tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(pace, "LINE_SECONDS", -1.0)
    log = tmp_path / "prepare.log"
    assert prepared(text_folder, tmp_path / "a", "--log", str(log)) == 0
    printed = capfd.readouterr()
    assert sorted(lines_of(log)) == sorted([*printed.out.splitlines(), *printed.err.splitlines()])
    assert any(re.fullmatch(r"encoding: .*B of .*B, .*B/s, .* left", line) for line in printed.err.splitlines())
    before = lines_of(log)
    assert prepared(text_folder, tmp_path / "a", "--log", str(log)) == 2  # it is there already
    (told,) = capfd.readouterr().err.splitlines()
    assert lines_of(log) == [*before, told]
    assert command_line(["runs", str(tmp_path)]) == 0
    assert len(lines_of(log)) == len(before) + 1  # the next command has no log


def test_quiet_prints_results_and_errors_alone(text_folder, tmp_path, capfd):
    log = tmp_path / "quiet.log"
    assert prepared(text_folder, tmp_path / "a", "--quiet", "--log", str(log)) == 0
    printed = capfd.readouterr()
    assert printed.err == ""
    assert printed.out.startswith("corpus ")
    assert any(line.startswith("encoding ") for line in lines_of(log))
    assert prepared(text_folder, tmp_path / "a", "--quiet") == 2
    assert capfd.readouterr().err.startswith("bakeoff: ")
    assert prepared(text_folder, tmp_path / "b") == 0
    assert "encoding" in capfd.readouterr().err


@pytest.mark.parametrize("place", [".", "none/train.log"])
def test_a_log_that_cannot_be_written_is_refused_before_any_work(place, text_folder, tmp_path, capfd):
    assert prepared(text_folder, tmp_path / "a", "--log", str(tmp_path / place)) == 2
    assert re.fullmatch(r"bakeoff: --log \S+: cannot be written: .*\n", capfd.readouterr().err)
    assert not (tmp_path / "a").exists()


def test_a_full_disk_under_the_log_does_not_end_the_work(text_folder, tmp_path, capfd):
    assert prepared(text_folder, tmp_path / "a", "--log", "/dev/full") == 0
    told = capfd.readouterr().err
    assert told.count("bakeoff: --log /dev/full: No space left on device; nothing more is written to it") == 1


@pytest.mark.slow
def test_a_log_survives_ctrl_c(corpus, tmp_path):
    log = tmp_path / "train.log"
    command = [sys.executable, "-m", "bakeoff", "pretrain", "bert-tiny", "--corpus", str(corpus.path)]
    options = ["--budget", "steps=100000", "--device", "cpu", "--log", str(log), "--quiet"]
    with subprocess.Popen([*command, *options, "--out", str(tmp_path / "run")], stderr=subprocess.PIPE) as process:
        while (
            not (tmp_path / "run" / "metrics.jsonl").exists()
            or '"train"' not in (tmp_path / "run" / "metrics.jsonl").read_text()
        ):
            assert process.poll() is None
        os.kill(process.pid, signal.SIGINT)
        told = process.communicate(timeout=60)[1].decode()
    assert re.search(r"stopped at step \d+; the same command with --resume", told)
    assert lines_of(log)[-1] == told.splitlines()[-1]
