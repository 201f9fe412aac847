"""The rules of the tracks: words as they are counted, the budget, the passes, and the checkpoints."""

import re

import pytest

import bakeoff
from bakeoff.challenge.rules import TRACKS, backend_of, checkpoint_name, count_words, words_of
from bakeoff.errors import UserError
from bakeoff.reading.sources import SourceOptions
from bakeoff.recipe_files import load_recipe

WORDS = ["one two\u00a0three four ", "x" * 70_000 + " end\n\nnext\tline", "", "词语 没有 空格"]
SKIPS = {"objective.0.noise": 0.1, "objective.0.noise_by": "skip"}
LATER = [{"until": 0.5, "settings": {"clm": {"noise_by": "mask"}}}]
SKIPPING = load_recipe("gpt-tiny", {**SKIPS, "training.curriculum": LATER})
TAUGHT = load_recipe("gpt-tiny", {"training.distillation": {"teachers": ["elsewhere/run"]}})


@pytest.mark.parametrize("per_line", [False, True])
def test_words_are_those_between_white_space(per_line, tmp_path):
    for number, text in enumerate(WORDS):
        (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8")
    expected = sum(len(text.split()) for text in WORDS)
    assert count_words([tmp_path], SourceOptions(document_per_line=per_line)) == expected


def test_checkpoints_are_the_published_ones():
    small = [f"chck_{number}M" for number in [*range(1, 10), *range(10, 101, 10)]]
    strict = [*small, *(f"chck_{number}M" for number in range(200, 1001, 100))]
    for name, expected in (("strict-small", small), ("strict", strict), ("multilingual", strict)):
        track = TRACKS[name]
        assert [*map(checkpoint_name, track.checkpoints(2 * track.most_read))] == expected
        assert [*map(words_of, expected)] == track.checkpoints(track.most_read)
    assert TRACKS["strict"].checkpoints(2.5e6) == [1_000_000, 2_000_000]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("strict-smal", "gpt-tiny"), {}, "strict-smal: no such track; there are strict, strict-small, multilingual"),
        (("strict", "gpt-tiny"), {"epochs": 11}, "--epochs 11: the track allows 1 to 10 passes over the text"),
        (("strict", "gpt-tiny"), {"backend": "mlm"}, "gpt-tiny: --backend mlm: its models are scored by causal"),
        (("strict", "t5-tiny"), {}, "t5-tiny: trained on span_corruption, which no backend of the track scores"),
        (("strict", "transformer-xl-tiny"), {}, "its rows continue each other, so that files are read in their order"),
        (("strict", SKIPPING), {}, "noise_by: skip takes words out of the rows, and all that are passed count as read"),
        (
            ("strict", TAUGHT),
            {},
            "elsewhere/run: gpt-tiny learns from it (training.distillation), and the text that it",
        ),
        (("strict", "gpt-tiny"), {"evaluation": "nowhere"}, "--evaluation nowhere: holds no folder full_eval"),
    ],
)
def test_what_breaks_a_rule_is_refused_and_leaves_nothing(arguments, options, message, tmp_path):
    (tmp_path / "text.txt").write_text("a text", encoding="utf-8")
    with pytest.raises(UserError, match=re.escape(message)):
        bakeoff.babylm(*arguments, tmp_path / "text.txt", tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_more_words_than_the_track_has_are_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(TRACKS, "strict", TRACKS["strict"]._replace(words=3))
    (tmp_path / "text.txt").write_text("four words are here", encoding="utf-8")
    message = f"{tmp_path}: 4 words between white space, and the track strict allows 3; leave some of the text out"
    with pytest.raises(UserError, match=f"^{re.escape(message)}$"):
        bakeoff.babylm("strict", "gpt-tiny", tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("recipe", "asked", "backend"),
    [("gpt-tiny", None, "causal"), ("bert-tiny", None, "mlm"), ("gpt-bert-tiny", "mntp", "mlm")],
)
def test_the_backend_is_what_the_recipe_has_learnt(recipe, asked, backend):
    assert backend_of(load_recipe(recipe), asked) == backend
