"""What a verb says may be done next: to people at a terminal, and to nobody else."""

import sys

import pytest

from bakeoff.cli import run


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """Runs `prepare` on a text of a few lines; asked whether standard error is a terminal, it says so."""
    (tmp_path / "text.txt").write_text("A river finds a stone.\n\nA house has a garden.\n" * 40, encoding="utf-8")
    monkeypatch.chdir(tmp_path)

    def prepare(terminal):
        monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
        arguments = ["prepare", "text.txt", "--out", "my corpus", "--vocabulary", "60", "--validation", "20%"]
        assert run([*arguments, "--document-per-line"]) == 0

    return prepare


def test_people_are_told_what_is_next(prepared, capsys):
    prepared(terminal=True)
    told = capsys.readouterr()
    assert "next: bakeoff pretrain laptop-encoder-tiny --corpus 'my corpus' --out RUN" in told.err
    assert "next:" not in told.out


def test_programs_are_not(prepared, capsys):
    prepared(terminal=False)
    assert "next:" not in capsys.readouterr().err
