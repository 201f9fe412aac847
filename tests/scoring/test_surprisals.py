"""Surprisals of words and tokens: they add up to the text's score, and their places are those of the given text."""

import json
import math
import unicodedata

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import sentences
from tests.untrained_runs import untrained

import bakeoff
from bakeoff.cli import run as command
from bakeoff.errors import UserError
from bakeoff.scoring.minimal_pairs import score_sentences
from bakeoff.scoring.surprisals import surprisals
from bakeoff.tokenizer.stretches import stretches_of
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

NAMES = ["gpt-tiny", "bert-tiny", "gpt-bert-tiny", "xlnet-tiny", "elmo-tiny", "lstm-lm-tiny"]
TEXTS = ["The river finds  the old stone, doesn't it? ", "", " river", "x", " ".join(sentences(4, seed=6))]
KINDS = ["wordpiece", "byte_bpe", "char_bpe", "unigram", "word", "whitespace", "character"]


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    changes = {name: {"input.length": 12} | ({"input.reuse": 4} if name == "xlnet-tiny" else {}) for name in NAMES}
    return {name: untrained(name, corpus, folder / name, **changes[name]) for name in NAMES}


@pytest.fixture(scope="module")
def tokenizers():
    texts = ["The river finds the old stone. 我爱北京 दिल्ली में café น้ำใจ", *sentences(30)]
    return {kind: Tokenizer.train(TokenizerConfig(kind=kind, size=330), texts) for kind in KINDS}


@pytest.mark.parametrize("per", ["word", "token"])
@pytest.mark.parametrize("name", NAMES)
def test_surprisals_add_up_to_the_score_of_the_text(name, per, runs):
    run = bakeoff.load(runs[name].path, device="cpu")
    plain = run.score(TEXTS)
    for text, whole, found in zip(TEXTS, plain, run.score(TEXTS, per=per), strict=True):
        assert found.log_probability == pytest.approx(whole.log_probability, abs=1e-5)
        assert found.parts is not None
        if found.log_probability is None:  # a text of unknown tokens alone
            assert 0 < found.unknown == found.tokens
        else:
            total = math.fsum(part.surprisal for part in found.parts) * math.log(2)
            assert total == pytest.approx(-found.log_probability)
        assert sum(part.tokens for part in found.parts) == found.tokens == whole.tokens
        assert sum(part.unknown for part in found.parts) == found.unknown
        assert all(part.text == text[part.start : part.end] for part in found.parts)
        if per == "word":
            assert [part.text for part in found.parts] == text.split()
        else:
            assert len(found.parts) == found.tokens


def test_a_token_has_its_probability_given_the_tokens_before(runs):
    """The surprisal of a last word is what the text's score loses without it."""
    run = bakeoff.load(runs["gpt-tiny"].path, device="cpu")
    short, long = run.score(["The river finds", "The river finds stone"], per="word")
    assert long.parts[-1].surprisal * math.log(2) == pytest.approx(
        short.log_probability - long.log_probability, abs=1e-4
    )
    assert [part.surprisal for part in long.parts[:-1]] == pytest.approx([p.surprisal for p in short.parts], abs=1e-4)
    (first,) = run.score(["The"], per="word")[0].parts
    opening = run.logits([[run.tokenizer.opening]])[0, 0].double().log_softmax(-1)
    ids = run.tokenizer.encode(["The"])[0][0]
    if len(ids) == 1:
        assert first.surprisal == pytest.approx(-float(opening[int(ids[0])]) / math.log(2), abs=1e-3)


@pytest.mark.parametrize("name", ["bert-tiny", "gpt-bert-tiny"])
def test_a_reading_is_chosen_by_name(name, runs):
    run = bakeoff.load(runs[name].path, device="cpu")
    text = "gardening forests finds"
    found = {each: run.score([text], reading=each)[0].log_probability for each in ("pseudo", "pseudo_words")}
    for reading, value in found.items():
        assert value == pytest.approx(score_sentences(runs[name], [text], reading, device="cpu")[0], abs=1e-5)
    assert found["pseudo"] != pytest.approx(found["pseudo_words"], abs=1e-3)


def test_the_end_of_a_line_that_is_scored_is_a_part():
    lines = Tokenizer.train(TokenizerConfig(kind="whitespace", size=60, end_of_line=True), sentences(30))
    text = " the old stone "
    (placed,) = lines.encode_placed([text])
    found = surprisals(text, placed, np.full(len(placed.ids) + 1, -math.log(2)), "word", lines.unknown)
    assert [part[:3] for part in found] == [("the", 1, 4), ("old", 5, 8), ("stone", 9, 14), ("", 14, 14)]
    assert [part.surprisal for part in found] == pytest.approx([1] * 4)


def test_targets_have_words_and_their_end(parallel_corpus, tmp_path):
    run = bakeoff.load(untrained("transformer-translation-tiny", parallel_corpus, tmp_path / "run").path, device="cpu")
    (found,) = run.score(["the old stone"], ["der alte  Stein"], per="word")
    assert [part.text for part in found.parts] == ["der", "alte", "Stein", ""]
    assert math.fsum(part.surprisal for part in found.parts) * math.log(2) == pytest.approx(-found.log_probability)


MIXED = st.text("ab .,-'我北दिल्ीน้ำé\u0301\t\u200b[SEP]MASK", max_size=16)


@pytest.mark.parametrize("kind", KINDS)
@given(text=MIXED)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
def test_every_token_and_every_visible_character_is_in_one_stretch(kind, text, tokenizers):
    (placed,) = tokenizers[kind].encode_placed([text])
    clean = " ".join(unicodedata.normalize("NFC", text).split())
    assert placed.ids.tolist() == tokenizers[kind].encode([clean])[0][0].tolist()
    words = stretches_of(text, placed, "word")
    assert [token for each in words for token in range(each.first, each.until)] == list(range(len(placed.ids)))
    held = [place for each in words for place in range(each.start, each.end) if not text[place].isspace()]
    assert held == [place for place, character in enumerate(text) if not character.isspace()]
    assert not any(text[each.start].isspace() or text[each.end - 1].isspace() for each in words if text.strip())
    for each in stretches_of(text, placed, "token"):
        assert 0 <= each.start <= each.end <= len(text)


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe", "unigram", "word", "character"])
def test_places_are_those_of_the_given_text(kind, tokenizers):
    text = " The cafe\u0301  दिल्ली\tने 北京。"
    (placed,) = tokenizers[kind].encode_placed([text])
    found = [text[each.start : each.end] for each in stretches_of(text, placed, "word")]
    assert found == ["The", "cafe\u0301", "दिल्ली", "ने", "北", "京", "。"]


def test_words_that_share_a_token_are_one_row():
    texts = ["北京天 天北京 北京 天 安 门 天北京安", "北京"] * 40
    tokenizer = Tokenizer.train(TokenizerConfig(kind="byte_bpe", size=300), texts)
    (placed,) = tokenizer.encode_placed(["天北京 安"])
    assert list(zip(placed.begin, placed.end, strict=True)) == [(0, 1), (1, 3), (3, 5)]
    found = ["天北京 安"[each.start : each.end] for each in stretches_of("天北京 安", placed, "word")]
    assert found == ["天", "北京", "安"]


def test_the_command_gives_what_python_gives(runs, tmp_path, capsys):
    path = str(runs["gpt-tiny"].path)
    texts = ["The old stone.", "", "river"]
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in texts))
    expected = bakeoff.load(path, device="cpu").score(texts, per="word")
    given = ["score", path, "--texts", str(tmp_path / "texts.txt"), "--per", "word", "--device", "cpu"]
    assert command([*given, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["results"]
    assert [each["parts"] for each in found] == [[part._asdict() for part in own.parts] for own in expected]
    assert command([*given, "--out", str(tmp_path / "a.jsonl")]) == 0
    capsys.readouterr()
    lines = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    flat = [(number, part) for number, own in enumerate(expected, 1) for part in own.parts]
    assert lines == [{"number": number, **part._asdict()} for number, part in flat]
    assert command([*given, "--out", str(tmp_path / "a.npy")]) == 0
    assert np.load(tmp_path / "a.npy") == pytest.approx([part.surprisal for _, part in flat])
    capsys.readouterr()
    assert command(given) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["text", "surprisal", "tokens", "start", "end", "word"]
    assert [(row[0], row[-1]) for row in rows[1 : 1 + len(flat)]] == [(str(number), part.text) for number, part in flat]


def test_what_cannot_be_asked_for_together_is_refused(runs):
    run = runs["gpt-tiny"]
    assert command(["score", str(run.path), "a b", "--per", "word", "--last-word"]) == 2
    with pytest.raises(UserError, match="cannot read pseudo, only forwards"):
        bakeoff.load(run.path, device="cpu").score(["a"], reading="pseudo")
