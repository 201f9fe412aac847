"""Devices, pipes and files without bound in the place of a file: refused in one line, neither waited for nor read."""

import os
import shutil
import signal

import pytest

from bakeoff.checksums import NAME
from bakeoff.cli import run as bakeoff
from bakeoff.regular_files import open_regular, read_regular, require_regular
from tests.untrained_runs import untrained

pytestmark = pytest.mark.skipif(os.name != "posix", reason="devices and pipes with names")


def zeros(path):
    path.symlink_to("/dev/zero")


def pipe(path):
    os.mkfifo(path)


def terabyte(path):
    """A file without blocks that says that it has a terabyte."""
    with path.open("wb") as file:
        file.truncate(1 << 40)


KINDS = [zeros, pipe, terabyte]


class Late(BaseException):
    """No exception that a reader of files could take for one of its own."""


@pytest.fixture(autouse=True)
def _not_for_ever():
    """An end to a test that waits for a pipe or reads without end."""

    def late(number, frame):
        raise Late

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def run(corpus, tmp_path_factory):
    return untrained("gpt-tiny", corpus, tmp_path_factory.mktemp("regular") / "run").path


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_a_regular_one_of_a_bounded_size(tmp_path, kind):
    path = tmp_path / "file"
    kind(path)
    with pytest.raises(OSError, match=r"where a file is wanted|bytes, where such a file has at most 1,000"):
        read_regular(path, 1000)
    with pytest.raises(OSError, match=r"."):
        require_regular(path, 1000)
    path.unlink()
    path.write_bytes(b"x" * 1000)
    (tmp_path / "link").symlink_to(path)
    assert read_regular(tmp_path / "link", 1000) == b"x" * 1000
    with open_regular(path) as file:
        assert file.read() == b"x" * 1000
    path.write_bytes(b"x" * 1001)
    with pytest.raises(OSError, match="1,001 bytes"):
        read_regular(path, 1000)
    with pytest.raises(IsADirectoryError):
        read_regular(tmp_path, 1000)


def test_a_file_that_says_nothing_of_its_size_is_bounded_too():
    assert read_regular("/proc/self/status", 1 << 20).startswith(b"Name:")  # whose size is 0
    with pytest.raises(OSError, match="at most 10"):
        read_regular("/proc/self/status", 10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [NAME, "recipe.yaml", "environment.json", "summary.json", "metrics.jsonl"])
def test_a_strangers_run_ends_in_a_line(tmp_path, capsys, run, kind, name):
    own = tmp_path / "runs" / "run"
    shutil.copytree(run, own)
    (own / name).unlink(missing_ok=True)
    kind(own / name)
    assert bakeoff(["runs", str(own.parent)]) == 0
    listed = capsys.readouterr()
    assert bakeoff(["check", str(own)]) == 2
    assert bakeoff(["generate", str(own), "The", "--tokens", "1", "--device", "cpu"]) in (0, 2)
    told = capsys.readouterr()
    assert "Traceback" not in listed.err + told.err


@pytest.fixture(scope="module")
def exported(run):
    pytest.importorskip("transformers")
    assert bakeoff(["export", str(run), "--out", str(run.parent / "exported"), "--to", "hf"]) == 0
    return run.parent / "exported"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["tokenizer.json", "model.safetensors"])
@pytest.mark.parametrize("has_list", [True, False])
def test_so_does_its_tokenizer_and_its_weights(tmp_path, capsys, run, kind, name, has_list):
    own = tmp_path / "run"
    shutil.copytree(run, own)
    (own / name).unlink()
    kind(own / name)
    if not has_list or kind is terabyte:  # a hash of a terabyte takes an hour
        (own / NAME).unlink()
    assert bakeoff(["check", str(own)]) == 2
    assert bakeoff(["generate", str(own), "The", "--tokens", "1", "--device", "cpu"]) == 2
    told = capsys.readouterr().err
    assert name in told
    assert "Traceback" not in told


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["part.jsonl", "part.parquet", "part.txt"])
def test_so_does_text_of_a_folder(tmp_path, capsys, kind, name):
    if kind is terabyte and name != "part.parquet":
        pytest.skip("text of a terabyte is what users have")
    pytest.importorskip("pyarrow")
    (tmp_path / "texts").mkdir()
    kind(tmp_path / "texts" / name)
    assert bakeoff(["prepare", str(tmp_path / "texts"), "--out", str(tmp_path / "corpus")]) == 2
    assert f"bakeoff: {tmp_path / 'texts' / name}: cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json"]
)
def test_so_does_a_folder_of_another_tool(tmp_path, capsys, exported, kind, name):
    out = shutil.copytree(exported, tmp_path / "exported")
    (out / name).unlink(missing_ok=True)
    kind(out / name)
    status = bakeoff(["import", str(out), "--out", str(tmp_path / "made")])
    told = capsys.readouterr().err
    if status:
        assert (status, told.count("bakeoff: ")) == (2, 1)
    assert "Traceback" not in told
