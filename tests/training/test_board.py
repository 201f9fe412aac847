"""What is told of trainings side by side where there is no terminal."""

from bakeoff.display import pace
from bakeoff.display.board import Board
from bakeoff.display.progress import Remarked, TrainingProgress


def test_lines_of_a_training_come_through_and_figures_now_and_then(monkeypatch):
    monkeypatch.setattr(pace, "LINE_SECONDS", 0.0)
    lines = []
    with Board(lines.append, 3, "training") as shown:
        shown.begin("a", "seed 0: a")
        shown.begin("b", "seed 0: b")
        shown.end("b")
        with TrainingProgress("a", 20, lambda note: shown.hear("a", note)) as progress:
            progress.line("a: a remark")
            progress.step(5, 2.5, 1000.0, 42.0)
            progress.step(6, 2.5, 1000.0, 42.0)  # so soon after the other that it is not told
            progress.step(20, 2.0, 1000.0, 0.0)
    assert lines == [
        "a: a remark",
        "1 of 3 trainings done",
        "seed 0: a: step 5/20  loss 2.500  1,000 tokens/s  42 s left",
        "1 of 3 trainings done",
        "seed 0: a: step 20/20  loss 2.000  1,000 tokens/s  0 s left",
    ]


def test_what_trainings_have_in_common_is_remarked_once_and_what_else_they_say_each_time(capsys):
    """Side by side and one after the other alike."""
    heard, shared = [], Remarked()
    with Board(heard.append, 2, "training") as board:
        for key in ("a", "b"):
            board.begin(key, key)
            for shown in (lambda note, key=key: board.hear(key, note), shared, False):
                progress = TrainingProgress(key, 20, shown)
                progress.remark("the corpus has another tokenizer")
                progress.line("going on at step 5")
    once = ["the corpus has another tokenizer", "going on at step 5", "going on at step 5"]
    assert heard == once
    assert capsys.readouterr().err.splitlines() == once


def test_without_a_place_to_print_nothing_is_shown(capsys):
    with Board(None, 1, "trial") as shown:
        shown.begin("a", "a")
        shown.hear("a", {"line": "a remark"})
        shown.end("a")
    assert capsys.readouterr() == ("", "")
