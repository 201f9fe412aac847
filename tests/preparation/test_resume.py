"""A `prepare` that is killed, and called again."""

import json
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from bakeoff.errors import Interrupted, UserError
from bakeoff.preparation.encoding import text_encoding
from bakeoff.preparation.prepare import prepare
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals")

# Saves as often as it can, since the text is short.
OFTEN = """
from bakeoff.preparation import shards
from bakeoff.preparation.encoding import text_encoding
shards._SAVE_EVERY, shards._SAVE_SHARE, text_encoding._JOB = 0.0, 1e9, 1 << 14
"""
PREPARE = f"""
import json, sys
{OFTEN}
from bakeoff.preparation.prepare import prepare
from bakeoff.tokenizer.tokenizer import TokenizerConfig
calls = []
def progress(*call):
    calls.append(call)
    if len(calls) == 1:
        print(call[0], call[1], flush=True)
prepare(sys.argv[1], sys.argv[2], tokenizer=TokenizerConfig(size=300), progress=progress, **json.loads(sys.argv[3]))
"""
SIZE = TokenizerConfig(size=300)


def text(path, documents, seed=0):
    """Documents of one to twelve short paragraphs; or one document, if that is wanted, of all of them."""
    generator = random.Random(seed)
    words = ["river", "房间", "很", "unbelievable", "🎉", "שלום", "3.14", "café", "winter", "engine"]
    lines = [
        "\n".join(" ".join(generator.choices(words, k=9)) + "." for _ in range(generator.randint(1, 12)))
        for _ in range(documents)
    ]
    if path.suffix == ".txt":
        path.write_text("\n\n".join(lines))
    else:
        path.write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
    return path


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def start(file, out, **options):
    command = [sys.executable, "-c", PREPARE, str(file), str(out), json.dumps(options)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


def written(folder):
    """Bytes of text whose tokens are on the disk for good, as the journal has it."""
    try:
        journal = json.loads((folder / "part-00001-of-00001.json").read_text())
    except FileNotFoundError:
        return 0
    return journal["splits"]["train"]["bytes"]


WORKERS = {"workers": 2, "validation": 0.1}
SELECTED = {"workers": 0, "deduplicate": True, "minimum_characters": 100, "shuffle_ngrams": 2}
RUNS = {"workers": 0}  # one document, of which runs of paragraphs are held out


@pytest.mark.parametrize(
    ("name", "options", "kills"),
    [
        ("a.jsonl", SELECTED, 1),
        pytest.param("a.txt", RUNS, 1, marks=pytest.mark.slow),
        pytest.param("a.jsonl", WORKERS, 2, marks=pytest.mark.slow),
        pytest.param("a.jsonl", SELECTED, 2, marks=pytest.mark.slow),
        pytest.param("a.txt", RUNS, 2, marks=pytest.mark.slow),
    ],
)
def test_a_killed_prepare_goes_on_where_it_was(tmp_path, name, options, kills):
    file = text(tmp_path / name, 1500)
    whole = prepare(file, tmp_path / "whole", tokenizer=SIZE, **options)
    out, unfinished = tmp_path / "corpus", tmp_path / ".corpus.unfinished"
    generator = random.Random(name)
    before = 0
    for _ in range(kills):
        process = start(file, out, **options)
        while written(unfinished) == before:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.002)
        time.sleep(generator.uniform(0, 0.02))
        process.kill()
        process.communicate()
        assert not out.exists()
        assert written(unfinished) > before
        before = written(unfinished)
    process = start(file, out, **options)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    phase, position = output.split()
    assert phase == "encoding"  # the tokenizer is not trained again
    if name.endswith("jsonl"):
        assert int(position) > 0
    assert contents(out) == contents(whole.path)
    assert not unfinished.exists()


def test_ctrl_c_keeps_what_is_done(tmp_path):
    file = text(tmp_path / "a.jsonl", 1500)
    process = start(file, tmp_path / "corpus", workers=2)
    while not written(tmp_path / ".corpus.unfinished"):
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode != 0
    assert "the same command goes on from here" in errors
    assert written(tmp_path / ".corpus.unfinished")
    deadline = time.monotonic() + 20
    while lives(process.pid):  # the workers end with the process that started them
        assert time.monotonic() < deadline
        time.sleep(0.05)
    corpus = prepare(file, tmp_path / "corpus", tokenizer=SIZE)
    assert contents(corpus.path) == contents(prepare(file, tmp_path / "whole", tokenizer=SIZE).path)


@pytest.mark.parametrize(
    ("send", "number"),
    [(os.kill, signal.SIGTERM), pytest.param(os.killpg, signal.SIGHUP, marks=pytest.mark.slow)],
)
def test_the_command_ends_as_cleanly_by_other_signals(send, number, tmp_path):
    """`kill` reaches the process, a closed terminal its workers too."""
    file = text(tmp_path / "a.jsonl", 1500)
    command = [sys.executable, "-c", f"{OFTEN}\nfrom bakeoff.cli import main\nmain()", "prepare", str(file)]
    command += ["--out", str(tmp_path / "corpus"), "--vocabulary", "300"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        while not written(tmp_path / ".corpus.unfinished"):
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.002)
        send(process.pid, number)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert errors.splitlines()[-1].startswith("bakeoff: interrupted; the same command goes on from here")
    assert written(tmp_path / ".corpus.unfinished")


def interrupt(file, out):
    """Leave an unfinished corpus."""

    def progress(phase, *_):
        if phase == "encoding":
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        prepare(file, out, tokenizer=SIZE, progress=progress)
    assert out.with_name(f".{out.name}.unfinished").is_dir()


def lives(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("change", ["options", "text"])
def test_other_arguments_start_anew(tmp_path, change, capsys):
    file = text(tmp_path / "a.jsonl", 500)
    interrupt(file, tmp_path / "corpus")
    if change == "text":
        text(file, 400, seed=1)
    options = {"validation": 0.2 if change == "options" else 0.01}
    corpus = prepare(file, tmp_path / "corpus", tokenizer=SIZE, progress=True, **options)
    shown = capsys.readouterr().err
    assert f"begun with {'validation 0.01, not 0.2' if change == 'options' else f'another {file}'}" in shown
    assert contents(corpus.path) == contents(prepare(file, tmp_path / "whole", tokenizer=SIZE, **options).path)


def test_a_mistake_leaves_nothing_of_what_was_killed(tmp_path):
    file = text(tmp_path / "a.jsonl", 500)
    interrupt(file, tmp_path / "corpus")
    with file.open("a") as stream:
        stream.write("{\n")
    with pytest.raises(UserError, match="broken JSON"):
        prepare(file, tmp_path / "corpus", tokenizer=SIZE)
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_a_worker_that_is_killed_loses_nothing(tmp_path, monkeypatch):
    """The system kills one where memory is short; the plan is kept."""
    file = text(tmp_path / "a.jsonl", 500)

    def kill(*_):
        for process in multiprocessing.active_children():
            process.kill()

    monkeypatch.setattr(text_encoding, "_JOB", 1 << 12)
    with pytest.raises(UserError, match="Give the same command again"):
        prepare(file, tmp_path / "corpus", tokenizer=SIZE, workers=1, progress=kill)
    phases = []
    corpus = prepare(file, tmp_path / "corpus", tokenizer=SIZE, progress=lambda phase, *_: phases.append(phase))
    assert set(phases) == {"encoding"}
    assert contents(corpus.path) == contents(prepare(file, tmp_path / "whole", tokenizer=SIZE).path)
