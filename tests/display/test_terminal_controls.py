"""What reaches a terminal, a pipe and JSON of texts that hold commands to a terminal."""

import json
import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.progress import Progress
from rich.table import Table

from bakeoff.cli import run
from bakeoff.display.console import Console, column
from bakeoff.display.terminal import show, tell, write, write_json
from bakeoff.display.text import visible

HOSTILE = "\x1b]0;title\x07\x1b[2Ja\x9b31mb\u202ec\rd\x7f[/bold] [bold]e :smile: \u2066"
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@given(st.text())
def test_nothing_is_obeyed_and_the_rest_stays(text):
    shown = visible(text)
    assert not OBEYED.search(shown)
    assert "\n" not in shown
    if text.isprintable():
        assert shown == text


def test_marks_that_turn_nothing_around_stay():
    text = "שלום‏ (1)\u200f, مرحبا \u200e x\u200d"
    assert visible(text) == text


def test_a_terminal_gets_no_commands(capsys, monkeypatch):
    for stream in (sys.stdout, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True)
    for function in (show, write, tell):
        function(HOSTILE)
    out, err = capsys.readouterr()
    assert not OBEYED.search(out + err)
    assert "\\x1b[2Ja\\x9b31mb\\u202ec\\rd\\x7f[/bold] [bold]e :smile:" in out
    assert out.count("\\x1b[2Ja") == 2


def test_a_pipe_gets_results_to_the_letter_and_messages_in_one_safe_line(capsys):
    write(HOSTILE)
    assert capsys.readouterr().out == HOSTILE + "\n"
    tell(HOSTILE + "\nsecond")
    err = capsys.readouterr().err
    assert not OBEYED.search(err)
    assert err.count("\n") == 1


def test_json_means_what_it_meant(capsys):
    values = {"label": HOSTILE, "lines": "a\nb\tc"}
    write_json(json.dumps(values, indent=1, ensure_ascii=False))
    out = capsys.readouterr().out
    assert not OBEYED.search(out)
    assert json.loads(out) == values


def test_tables_and_bars_print_text_and_no_markup(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("FORCE_COLOR", "1")
    console = Console()
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    console.print(table)
    console.print(HOSTILE, style="bold")
    with Progress(column("{task.description} {task.fields[figures]}"), console=console) as bar:
        bar.add_task(HOSTILE, total=1, figures=HOSTILE)
    out = capsys.readouterr().out
    # Rich's own: colours, the cursor hidden and shown, lines up, lines emptied.
    own = re.compile(r"\x1b\[(?:[\d;]*m|\?25[lh]|2K|1A|\d*A)|\r")
    assert own.search(out)
    assert not OBEYED.search(own.sub("", out))
    assert out.count("\\x1b[2Ja") >= 6
    assert "[/bold] [bold]e :smile:" in out


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", f"{HOSTILE}\nsecond"],
        ["show", "bert-tiny", "--set", f"{HOSTILE}=1"],
        ["predict", HOSTILE, "text"],
        ["peek", "bert-tiny", "--corpus", HOSTILE],
        [HOSTILE],
        ["recipes", f"--{HOSTILE}"],
    ],
)
def test_an_error_is_one_line_without_commands(arguments, capsys):
    assert run(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert not OBEYED.search(err)
    assert err.count("\n") == 1
