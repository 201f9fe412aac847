"""Spans and answers whose places are characters of the given text, in scripts with marks and in either form."""

import json
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.errors import UserError
from bakeoff.tasks.kinds.question_answering import QuestionAnsweringConfig
from bakeoff.tasks.kinds.tagging import Tagging, TaggingConfig
from bakeoff.tasks.predictions.answer_spans import gathered
from bakeoff.tasks.reading.gold_answers import GoldAnswer, placed
from bakeoff.tasks.reading.questions import Question
from bakeoff.tasks.reading.texts_with_spans import tagged_words
from bakeoff.tasks.reading.words_and_tags import TaggedSentence
from bakeoff.tasks.rows.answer_windows import AnswerWindow
from bakeoff.tasks.rows.items import Items
from bakeoff.tasks.scores.spans import spans_of

HINDI = "मैं दिल्ली में रहता हूँ"


def config(path):
    return TaggingConfig(train=path, text_column="text", spans_column="spans")


def read(path, *rows):
    path.write_text("".join(json.dumps({"text": text, "spans": spans}) + "\n" for text, spans in rows))
    return list(config(path).read(path))


def span(start, end, label="LOC"):
    return {"start": start, "end": end, "label": label}


def test_a_text_in_hindi_has_the_words_of_hindi(tmp_path):
    (found,) = read(tmp_path / "a.jsonl", (HINDI, [span(4, 10)]))
    assert list(found.texts) == HINDI.split()
    assert found.tags == ("O", "B-LOC", "O", "O", "O")
    assert found.widened == 0
    raw = config(tmp_path / "a.jsonl").example([HINDI])
    assert raw.texts == found.texts


TEXTS = st.lists(
    st.sampled_from(["दिल्ली", "Zürich", "Việt", "서울", "น้ำ", "北京", "it's", "3.5", "👨‍👩‍👧", "שָׁלוֹם"]),
    min_size=1,
    max_size=6,
)


@given(TEXTS, st.data())
def test_spans_come_back_as_they_were_given_in_every_form(words, data):
    form = data.draw(st.sampled_from(["NFC", "NFD"]))
    words = [unicodedata.normalize(form, word) for word in words]
    text, spans = "", []
    for word in words:
        text += data.draw(st.sampled_from([" ", "  ", "\n", "-"]))
        if data.draw(st.booleans()):
            spans.append(span(len(text), len(text) + len(word)))
        text += word
    task = config("a.jsonl")

    found = tagged_words(text, spans, "here")
    example = TaggedSentence(1, found.words, found.tags, found.offsets)
    answered = Tagging(task, ["B-LOC", "I-LOC", "O"], []).as_record(example, found.tags)
    assert answered["spans"] == spans
    assert found.widened == 0
    assert all(unicodedata.is_normalized("NFC", word) for word in found.words)
    assert len(list(spans_of(found.tags))) == len(spans)


def test_a_span_inside_a_cluster_is_widened_and_told(tmp_path):
    rows = [(HINDI, [span(4, 9), span(5, 6)][:1]), ("I ❤\ufe0f Rome", [span(2, 3, "SIGN"), span(5, 9)])]
    found = read(tmp_path / "a.jsonl", *rows)
    assert [each.widened for each in found] == [1, 1]
    assert found[0].tags == ("O", "B-LOC", "O", "O", "O")
    task = config(tmp_path / "a.jsonl").learn(found, "a.jsonl")
    (note,) = task.remarks(found)
    assert note == (
        "2 spans began or ended between a letter and its marks, or within an emoji, the first on line 1: widened to "
        "the whole of it"
    )
    assert task.as_record(found[1], found[1].tags)["spans"] == [span(2, 4, "SIGN"), span(5, 9)]


def test_a_word_is_cut_where_a_span_begins(tmp_path):
    (found,) = read(tmp_path / "a.jsonl", ("Neustadt", [span(3, 8)]))
    assert (found.texts, found.offsets) == (("Neu", "stadt"), ((0, 3), (3, 8)))


def test_two_spans_of_one_cluster_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"a.jsonl:1: 'spans': the spans 0-1 and 1-2 share a letter with its marks"):
        read(tmp_path / "a.jsonl", ("दिन", [span(0, 1), span(1, 2)]))


@pytest.mark.parametrize("sign", ["\u200b", "\u200f", "\x07", "\ufeff"])
def test_a_span_of_nothing_that_can_be_seen_is_refused_and_not_lost(tmp_path, sign):
    with pytest.raises(UserError, match=r"a.jsonl:1: 'spans': the span 2-3 covers invisible characters alone; mend it"):
        read(tmp_path / "a.jsonl", (f"a {sign} Rome", [span(2, 3), span(4, 8)]))
    (found,) = read(tmp_path / "a.jsonl", (f"a {sign}Rome", [span(2, 7)]))
    assert found.tags == ("O", "B-LOC")


def test_words_with_tags_have_no_spans(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("Ann B-PER\nsaw O\n\n")
    task = TaggingConfig(train=path)
    (only,) = task.read(path)
    assert task.learn([only], "a").as_record(only, only.tags) == {"words": ["Ann", "saw"], "tags": ["B-PER", "O"]}


def test_the_simplest_tags_know_a_word_in_either_form(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("café X\nbar O\nbar O\n\n" + unicodedata.normalize("NFD", "café") + " X\n\n")
    task = TaggingConfig(train=path)
    first, second = task.read(path)
    assert task.learn([first], "a").simplest([first], [second]) == {"accuracy": 1.0}


@pytest.mark.parametrize(("context", "answer"), [("NFD", "NFC"), ("NFC", "NFD"), ("NFD", "NFD")])
def test_an_answer_is_looked_for_in_either_form(context, answer):
    text = unicodedata.normalize(context, "Où est le café été ? Le café.")
    given = unicodedata.normalize(answer, "café été")
    found = placed(given, None, text, "here")
    assert unicodedata.normalize("NFC", text[found.start : found.end]) == "café été"
    assert placed(given, found.start, text, "here") == found
    assert not found.moved
    assert placed(given, 0, text, "here").moved


def test_an_answer_inside_a_cluster_is_widened():
    assert placed("दिल्ल", 4, HINDI, "here") == GoldAnswer("दिल्ल", 4, 10, widened=True)
    # Without a start, the first place where the answer is whole.
    assert placed("न", None, "दिनी न", "here") == GoldAnswer("न", 5, 6)
    assert placed("ल", None, "ली", "here") == GoldAnswer("ल", 0, 2, widened=True)
    task = QuestionAnsweringConfig(train="a.csv").learn(
        [Question(3, ("q", HINDI), (placed("दिल्ल", 4, HINDI, "here"),))], "a.csv"
    )
    (note,) = task.remarks([Question(3, ("q", HINDI), (placed("दिल्ल", 4, HINDI, "here"),))])
    assert note == (
        "1 of 1 questions have an answer that begins or ends between a letter and its marks, the first line 3 "
        "('दिल्ल'): the whole of it is learned"
    )


def test_a_predicted_answer_has_whole_clusters():
    begin, end = np.array([4, 6, 8]), np.array([6, 8, 10])  # as pieces of a word: दि ल् ली
    window = AnswerWindow(Question(1, ("q", HINDI)), begin, end, 0, 0, None)
    scores = np.array([[-9, -9], [0, 0], [5, 5], [0, 0]], np.float32)
    items = Items(None, np.arange(2), np.zeros(1, np.int64), [window], [])
    (answer,) = gathered([scores], items, 1, 3)
    assert answer.candidates[0][:3] == ("ल्ली", 6, 10)
    assert len(answer.candidates) == 2
