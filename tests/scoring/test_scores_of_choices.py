"""What a score is asked for: last words, ends of lines, unknown tokens, positions, a module in memory."""

import math

import numpy as np
import pytest
import torch
from tests.conftest import sentences
from tests.scoring.naive_scores import Naive
from tests.untrained_runs import untrained

import bakeoff
from bakeoff.errors import UserError
from bakeoff.generation.generate import never_written
from bakeoff.preparation.prepare import prepare
from bakeoff.reading.text_files import in_memory
from bakeoff.scoring import completions, token_scores
from bakeoff.scoring import texts as scoring
from bakeoff.scoring.minimal_pairs import score_sentences
from bakeoff.scoring.texts import TextScores, scorer_of, scoring_objective
from bakeoff.scoring.token_scores import ScoredText
from bakeoff.tasks.language import heading, open_scores
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    """A corpus whose tokenizer has a token for the end of a line."""
    folder = tmp_path_factory.mktemp("lines")
    (folder / "train.txt").write_text("".join(line + "\n" for line in sentences(300)), encoding="utf-8")
    config = TokenizerConfig(kind="whitespace", size=120, end_of_line=True)
    return prepare(folder / "train.txt", folder / "corpus", tokenizer=config, validation=0.1, workers=0)


def test_a_last_word_and_a_sentence_read_around_have_no_end_of_line(lines, tmp_path):
    gpt, bert = (untrained(name, lines, tmp_path / name) for name in ("gpt-tiny", "bert-tiny"))
    text = "The river finds the stone"
    ids = gpt.tokenizer.encode([text])[0][0].tolist()
    (found,) = TextScores(gpt, in_memory([text]), last_word=True, device="cpu")
    naive = Naive(gpt, scoring_objective(gpt)).of_text(ids)
    assert (found.text, found.tokens) == ("stone", 1)
    assert found.log_probability == pytest.approx(naive[-1], abs=2e-3)
    around = math.fsum(Naive(bert, scoring_objective(bert)).of_text(ids))
    for reading in ("pseudo", "pseudo_words"):
        assert score_sentences(bert, [text], reading, device="cpu") == pytest.approx([around], abs=2e-3)
    (found,) = TextScores(bert, in_memory([text]), device="cpu")
    assert (found.tokens, found.log_probability) == (len(ids), pytest.approx(around, abs=2e-3))


def test_sentences_are_read_as_a_corpus_is_and_in_parts(lines, tmp_path, monkeypatch):
    run = untrained("gpt-tiny", lines, tmp_path / "run")
    given = ["The  river", "stone\nfinds", " the old ", "river finds", "stone", "The river"]
    expected = [score_sentences(run, [" ".join(text.split())], "forwards", device="cpu")[0] for text in given]
    monkeypatch.setattr(completions, "TEXTS_AT_ONCE", 2)
    assert score_sentences(run, given, "forwards", device="cpu").tolist() == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("states_at_once", [1, 2, 1 << 20])
def test_a_word_is_likeliest_if_each_of_its_tokens_is(states_at_once, corpus, tmp_path, monkeypatch):
    run = untrained("gpt-tiny", corpus, tmp_path / "run")
    monkeypatch.setattr(token_scores, "SCORES", states_at_once * run.load().model.embedding.weight.shape[0])
    scorer = scorer_of(run, scoring_objective(run), True, "cpu")
    text = "The river finds gardening"
    ids, starts = run.tokenizer.encode([text])[0]
    first = int(np.flatnonzero(starts)[-1])
    assert len(ids) - first > 2
    # The likeliest first token of a word, with another one after it.
    naive, row = Naive(run, scoring_objective(run)), [run.tokenizer.opening, *ids[:first].tolist()]
    usual = [token for token in range(run.tokenizer.size) if token not in never_written(run.tokenizer)]
    for _ in range(3):
        scores = naive.after(row)
        row.append(max(usual, key=lambda token: float(scores[token])))
    best = np.array(row[1:])
    wrong = best.copy()
    wrong[-2] = usual[0] if usual[0] != wrong[-2] else usual[1]
    found, other = scorer.score([ScoredText(best, first), ScoredText(wrong, first)])
    assert found.likeliest.tolist() == [True, True, True]
    assert other.likeliest.tolist()[:2] == [True, False]
    likeliest = [each.likeliest for each in TextScores(run, in_memory([text]), last_word=True, device="cpu")]
    assert likeliest == [False]


def test_not_every_token_of_a_word_is_enough(corpus, tmp_path, monkeypatch):
    run = untrained("gpt-tiny", corpus, tmp_path / "run")
    scores = TextScores(run, in_memory(["The gardening"]), last_word=True, device="cpu")

    class Half:
        def score(self, rows):
            found = [token_scores.TokenScores(len(row.ids) - row.first) for row in rows]
            for each in found:
                each.likeliest[0] = True
            return found

    monkeypatch.setattr(scores, "_scorer", Half())
    (found,) = scores
    assert found.tokens > 1
    assert found.likeliest is False


@pytest.mark.parametrize(
    ("changes", "room"),
    [({}, 1024), ({"objective.0.decoder_begins": ["separator", "start"], "objective.0.source_start": True}, 1023)],
)
def test_a_target_may_take_every_position(changes, room, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(scoring, "TEXTS_AT_ONCE", 2)
    run = untrained("bart-tiny", corpus, tmp_path / "run", **changes)
    assert len(run.tokenizer.encode(["river"])[0][0]) == 1
    full, more = "river " * (room - 1), "river " * room  # with the end of the target
    assert len(open_scores(run, [("stone", full)], device="cpu").file) == 1
    with pytest.raises(UserError, match=r"texts: pair 5 has 1,025 tokens; the model has 1,024 positions"):
        open_scores(run, [*[("stone", full)] * 4, ("stone", more)], device="cpu")
    marks = 1 + bool(changes)
    open_scores(run, [("river " * (1024 - marks), "a")], device="cpu")
    with pytest.raises(UserError, match=r"texts: pair 1 has 1,025 tokens"):
        open_scores(run, [("river " * (1025 - marks), "a")], device="cpu")


def test_a_target_has_tokens_and_unknown_ones_of_its_own_side(parallel_corpus, tmp_path):
    run = untrained("transformer-translation-tiny", parallel_corpus, tmp_path / "run")
    scores = open_scores(run, [("1 2", "one \u2603 two"), ("\u2603", "one"), ("1", "\u2603")], device="cpu")
    assert heading(scores)["measure"] == "log_probability"
    first, second, third = scores
    own = run.tokenizer.encode_targets(["one \u2603 two"])
    assert first.tokens == len(own[0]) + 1
    assert [each.unknown for each in (first, second, third)] == [1, 0, 1]
    assert [each.hidden.hidden for each in (first, second, third)] == [1, 0, 1]
    assert third.log_probability is not None  # the end of the target has one
    parts = bakeoff.load(run, device="cpu").score(["1 2"], ["one two"], per="token")[0].parts
    expected = Naive(run, scoring_objective(run)).of_target("1 2", "one two")
    assert [-part.surprisal * math.log(2) for part in parts] == pytest.approx(expected, abs=2e-3)
    assert "".join(part.text for part in parts) == "onetwo"


def test_the_module_in_memory_scores(corpus, tmp_path):
    run = untrained("gpt-tiny", corpus, tmp_path / "run")
    module, texts = run.load(), in_memory(["The river"])
    (before,) = TextScores(run, texts, device="cpu")
    with torch.no_grad():
        module.model.embedding.weight.mul_(0.5)
    (after,) = TextScores(run, texts, module=module, device="cpu")
    assert after.log_probability != pytest.approx(before.log_probability, abs=1e-3)
