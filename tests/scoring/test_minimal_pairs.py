"""Sentences in every reading against a naive oracle in float64, and what their scores say of minimal pairs."""

import gzip
import json
import math
from collections import Counter

import numpy as np
import pytest
import tokenizers
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from tests.conftest import sentences
from tests.untrained_runs import untrained

from bakeoff.errors import UserError
from bakeoff.row import Queries, Row
from bakeoff.scoring.methods import readings
from bakeoff.scoring.minimal_pairs import TIE, MinimalPair, judge, preferences, read_minimal_pairs, score_sentences

EXPECTED = {
    "gpt-tiny": ["forwards"],
    "bert-tiny": ["pseudo", "pseudo_words"],
    "roberta-tiny": ["pseudo", "pseudo_words"],
    "xlnet-tiny": ["pseudo", "pseudo_words"],
    "gpt-bert-tiny": ["pseudo", "pseudo_words", "forwards"],
}
WORDS = "The forests.islands and gardening mirrors."
SENTENCES = ["The river finds the quiet stone.", WORDS, "x", "", *sentences(2, seed=3)]


@pytest.fixture(scope="module")
def runs(corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return {name: untrained(name, corpus, folder / name, **{"input.length": 64}) for name in EXPECTED}


def words_of(run, text):
    """The ids of a text, and the word of each: that of its last character, spaces and punctuation being borders."""
    word, words = 0, []
    for before, character in zip(" " + text, text, strict=False):
        word += before == " " or "." in (before, character)
        words.append(word)
    encoding = tokenizers.Tokenizer.from_str(run.tokenizer.to_string()).encode(text, add_special_tokens=False)
    return encoding.ids, [words[end - 1] for _, end in encoding.offsets]


@torch.no_grad()
def naive(run, text, reading):
    """One token after the other, in a row of its own, the whole model in float64."""
    module = run.load().double()
    objective = readings(run)[reading]
    head = next(each.head for each in module.objectives if each.name == objective.kind)
    tokenizer, total = run.tokenizer, 0.0
    ids, words = words_of(run, text)
    for place, token in enumerate(ids):
        hidden = [place]
        if reading == "pseudo_words":
            hidden = [other for other in range(place, len(ids)) if words[other] == words[place]]
        masked = [tokenizer.mask if other in hidden else each for other, each in enumerate(ids)]
        if objective.kind == "clm":
            state = module.model(Row(torch.tensor([[tokenizer.separator, *ids[:place]]])))[0][0, -1]
        elif objective.kind == "mntp":
            row = torch.tensor([[tokenizer.separator, *masked]])
            state = module.model(Row(row, prefix=torch.tensor([row.shape[1]])))[0][0, place]
        elif objective.kind == "mlm":
            state = module.model(Row(torch.tensor([[tokenizer.start, *masked, tokenizer.separator]])))[0][0, place + 1]
        else:
            row = [*ids, tokenizer.separator, tokenizer.start]
            visible = torch.ones(len(row) + 1, len(row), dtype=torch.bool)
            visible[:, hidden] = False
            queries = Queries(torch.tensor([[place]]), visible[None])
            segments = torch.tensor([[0] * (len(row) - 1) + [2]])
            state = module.model(Row(torch.tensor([row]), segments, queries=queries))[0][0, -1]
        total += float(head.scores(state[None], module.model.embedding.weight)[0].log_softmax(-1)[token])
    return total


@pytest.mark.parametrize("name", EXPECTED)
def test_sentences_have_the_scores_of_their_definition_in_every_reading(name, runs):
    run = runs[name]
    assert list(readings(run)) == EXPECTED[name]
    found = {}
    for reading in readings(run):
        found[reading] = score_sentences(run, SENTENCES, reading, device="cpu")
        for text, score in zip(SENTENCES, found[reading], strict=True):
            assert score == pytest.approx(naive(run, text, reading), abs=2e-4)
    _, words = words_of(run, WORDS)
    assert max(Counter(words).values()) > 1
    if "pseudo" in found:
        assert np.abs(found["pseudo"] - found["pseudo_words"]).max() > 1e-3


def test_what_is_said_twice_is_scored_alike_and_nothing_depends_on_the_order(runs):
    run = runs["bert-tiny"]
    found = score_sentences(run, [*SENTENCES, *reversed(SENTENCES)], "pseudo", device="cpu")
    assert found[: len(SENTENCES)].tolist() == found[len(SENTENCES) :][::-1].tolist()
    assert score_sentences(run, ["a \n b"], "pseudo", device="cpu") == score_sentences(run, ["a b"], "pseudo")


scores = st.sampled_from([0.0, -1.0, -1.0 - TIE / 2, -7.5, float("-inf")]) | st.floats(-50, 0, allow_subnormal=False)


@settings(max_examples=100, deadline=None)
@given(found=st.lists(st.tuples(st.sampled_from("abc"), scores, scores), min_size=1, max_size=30))
def test_good_and_bad_share_every_point(found):
    """Turning all pairs round gives one minus the accuracy, so that a scorer without an opinion has a half."""
    pairs = [MinimalPair("x", "y", group) for group, _, _ in found]
    values = np.array([pair[1:] for pair in found])
    forth, back = preferences(pairs, values), preferences(pairs, values[:, ::-1])
    assert forth.accuracy + back.accuracy == pytest.approx(1)
    assert forth.ties == back.ties
    assert forth.pairs == len(found)
    same = preferences(pairs, values[:, [0, 0]])
    assert (same.accuracy, same.ties) == (0.5, len(found))
    by_group = {}
    for group, good, bad in found:
        tied = good == bad or abs(good - bad) < TIE
        by_group.setdefault(group, []).append(0.5 if tied else float(good > bad))
    means = [sum(each) / len(each) for each in by_group.values()]
    assert forth.accuracy == pytest.approx(sum(means) / len(means))


def test_the_average_is_over_groups():
    pairs = [MinimalPair("x", "y", group) for group in "aaab"]
    found = preferences(pairs, np.array([[1.0, 0], [1, 0], [1, 0], [0, 1]]))
    assert found.groups == {"a": 1.0, "b": 0.0}
    assert found.accuracy == 0.5


def test_larger_kinds_average_over_their_groups():
    kinds = [("syntax", "islands"), ("syntax", "islands"), ("syntax", "binding"), ("semantics", "quantifiers")]
    pairs = [MinimalPair("x", "y", group, own) for group, own in zip("aabc", kinds, strict=True)]
    found = preferences(pairs, np.array([[1.0, 0], [0, 1], [1, 0], [0, 0]]))
    assert found.kinds == [
        {"syntax": 0.75, "semantics": 0.5},
        {"islands": 0.5, "binding": 1.0, "quantifiers": 0.5},
    ]


def test_no_number_decides_nothing(runs, tmp_path, corpus):
    pairs = [MinimalPair("x", "y", "a"), MinimalPair("x", "y", "b")]
    with pytest.raises(UserError, match=r"^pair 2 \(b\): a score is not a number"):
        preferences(pairs, np.array([[0.0, 1.0], [0.0, float("nan")]]))
    run = untrained("gpt-tiny", corpus, tmp_path / "run")
    tensors = load_file(run.path / "model.safetensors")
    tensors["embedding.tokens.weight" if "embedding.tokens.weight" in tensors else next(iter(tensors))][:] = math.nan
    save_file(tensors, run.path / "model.safetensors")
    (run.path / "bakeoff.sha256").unlink()
    with pytest.raises(UserError, match="the score of 'river' is nan, not a finite number"):
        score_sentences(run, ["river"], "forwards", device="cpu")


def test_a_sentence_of_unknown_tokens_alone_ties_with_any_other(runs):
    run, seen, unseen = runs["gpt-tiny"], "The river finds the stone.", "\u2603"
    assert run.tokenizer.hidden([unseen]).all_unknown
    pairs = [MinimalPair(seen, unseen, "bad"), MinimalPair(unseen, seen, "good"), MinimalPair(seen, seen, "same")]
    found = judge(run, pairs, "forwards", device="cpu")
    assert found.groups == {"bad": 0.5, "good": 0.5, "same": 0.5}
    assert (found.ties, found.unknown) == (3, 2)


def test_runs_without_a_reading_are_refused(runs, corpus, tmp_path):
    with pytest.raises(UserError, match="cannot read pseudo, only forwards"):
        score_sentences(runs["gpt-tiny"], ["river"], "pseudo")
    with pytest.raises(UserError, match="trained on span_corruption, which gives sentences no probability"):
        readings(untrained("t5-tiny", corpus, tmp_path / "t5"))


def test_pairs_are_read_from_files_of_blimp_and_judged(runs, tmp_path):
    made = [MinimalPair(good, good.replace("the", "an"), f"g{i % 2}") for i, good in enumerate(sentences(6, seed=7))]
    lines = [json.dumps({"sentence_good": p.good, "sentence_bad": p.bad, "field": "x", "UID": p.group}) for p in made]
    with gzip.open(tmp_path / "pairs.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("\n".join(lines))
    pairs = read_minimal_pairs(tmp_path / "pairs.jsonl.gz")
    assert pairs == [pair._replace(kinds=("x",)) for pair in made]
    found = judge(runs["gpt-tiny"], pairs, "forwards", device="cpu")
    right = Counter()
    for pair in pairs:
        right[pair.group] += naive(runs["gpt-tiny"], pair.good, "forwards") > naive(
            runs["gpt-tiny"], pair.bad, "forwards"
        )
    assert found.groups == {group: right[group] / 3 for group in ("g0", "g1")}
    assert found.kinds == [{"x": pytest.approx(found.accuracy)}]
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(UserError, match=r"empty.jsonl: the file holds no pairs"):
        read_minimal_pairs(tmp_path / "empty.jsonl")
    (tmp_path / "blank.csv").write_text("good,bad,kind\nx,y,a\nx, ,a\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"blank.csv: pair 2 has a blank bad; mend it"):
        read_minimal_pairs(tmp_path / "blank.csv", "good", "bad", "kind")
    with pytest.raises(UserError, match=r"blank.csv:1: no column 'UID'"):
        read_minimal_pairs(tmp_path / "blank.csv", "good", "bad")
