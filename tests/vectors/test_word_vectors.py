"""Vectors of words in their contexts against states of rows of their own, and their places in the text."""

import json

import numpy as np
import pytest
import torch
from tests.conftest import sentences
from tests.untrained_runs import untrained
from tests.vectors.test_embed import states_of

import bakeoff
from bakeoff.cli import run as command
from bakeoff.row import Row
from bakeoff.scoring.windows import windows_around, windows_behind

NAMES = ["bert-tiny", "gpt2-tiny", "xlnet-tiny", "gpt-bert-tiny", "bart-tiny"]
TEXT = " The (river) finds  the old stone, — stone."


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {name: untrained(name, corpus, folder / name, **{"input.length": 64}) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_a_word_has_the_mean_of_the_states_of_its_tokens(name, runs):
    run = bakeoff.load(runs[name].path, device="cpu")
    (found,) = run.embed_words([TEXT])
    assert [word.text for word in found.words] == ["The", "river", "finds", "the", "old", "stone", "—", "stone"]
    assert all(TEXT[word.start : word.end] == word.text for word in found.words)
    states = states_of(runs[name], TEXT).float().numpy()
    before = 0 if name in ("xlnet-tiny", "bart-tiny") else 1
    (placed,) = run.tokenizer.encode_placed([TEXT])
    for word, vector in zip(found.words, found.vectors, strict=True):
        own = [t for t in range(len(placed.ids)) if placed.begin[t] < word.end and placed.end[t] > word.start]
        assert len(own) == word.tokens
        assert vector == pytest.approx(states[[before + token for token in own]].mean(0), abs=1e-4)
    assert not np.allclose(found.vectors[5], found.vectors[7], atol=1e-3)  # the same word in another context


@pytest.mark.parametrize("name", ["bert-tiny", "gpt2-tiny"])
def test_long_texts_are_read_in_windows(name, runs):
    run = bakeoff.load(runs[name].path, device="cpu")
    text = " ".join(sentences(6, seed=2))
    (found,) = run.embed_words([text], "token", length=16)
    ids = run.tokenizer.encode([text])[0][0]
    assert len(found.words) == len(ids) > 40
    model, tokenizer = runs[name].load().model, run.tokenizer
    causal = name == "gpt2-tiny"
    front, behind = ([tokenizer.separator], []) if causal else ([tokenizer.start], [tokenizer.separator])
    for window in (windows_behind if causal else windows_around)(len(ids), 16 - len(front) - len(behind)):
        row = [*front, *ids[window.begin : window.end].tolist(), *behind]
        with torch.no_grad():
            states = model(Row(torch.tensor([row])))[0][0].numpy()
        expected = states[1 + window.scored - window.begin : 1 + window.until - window.begin]
        assert found.vectors[window.scored : window.until] == pytest.approx(expected, abs=1e-4)


def test_the_command_gives_what_python_gives(runs, tmp_path, capsys):
    path, texts = str(runs["bert-tiny"].path), ["The old stone.", "", "river"]
    expected = [
        (number, word, vector)
        for number, own in enumerate(bakeoff.load(path, device="cpu").embed_words(texts, layers=(0, -1)), 1)
        for word, vector in zip(own.words, own.vectors, strict=True)
    ]
    (tmp_path / "t.txt").write_text("".join(f"{text}\n" for text in texts))
    given = ["embed", path, "--texts", str(tmp_path / "t.txt"), "--per", "word", "--layers", "0,-1", "--device", "cpu"]
    assert command(given) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["number"], each["text"], each["start"]) for each in lines] == [
        (number, word.text, word.start) for number, word, _ in expected
    ]
    assert np.array([each["vector"] for each in lines], np.float32) == pytest.approx(
        np.stack([vector for _, _, vector in expected]), abs=1e-5
    )
    assert command([*given, "--out", str(tmp_path / "v.npy")]) == 0
    assert np.load(tmp_path / "v.npy").shape == (4, expected[0][2].shape[0])
    assert command([*given, "--pooling", "cls"]) == 2
    assert "a word's vector is the mean of its tokens" in capsys.readouterr().err
