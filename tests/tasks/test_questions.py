"""Reading questions with their contexts and answers, and how answers are scored."""

import gzip
import json
import re
import string
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.errors import UserError
from bakeoff.tasks.baselines.overlap import count_words, overlapping_answer
from bakeoff.tasks.data import hold_out
from bakeoff.tasks.kinds.question_answering import QuestionAnsweringConfig
from bakeoff.tasks.reading.gold_answers import GoldAnswer, placed
from bakeoff.tasks.scores.answer_scores import best_threshold, compare


def squad(*paragraphs, title="T"):
    return {"version": "x", "data": [{"title": title, "paragraphs": list(paragraphs)}]}


def paragraph(context, *asked):
    return {"context": context, "qas": [{"id": f"q{n}", "question": "Who?", **each} for n, each in enumerate(asked)]}


def answer(text, start):
    return {"text": text, "answer_start": start}


def read(path, labelled=True, **columns):
    return list(QuestionAnsweringConfig(train=path, **columns).read(path, labelled))


@pytest.mark.parametrize("indent", [None, 1])
def test_squad_files(tmp_path, indent):
    path = tmp_path / "dev.json.gz"
    qas = [
        {"answers": [answer("Ann", 0), answer("Ann Lee", 0)]},
        {"answers": [], "is_impossible": True, "plausible_answers": [answer("Bob", 9)]},
        {"is_impossible": True},
        {"answers": [answer("", -1)]},
    ]
    path.write_bytes(gzip.compress(json.dumps(squad(paragraph("Ann Lee. Bob.", *qas)), indent=indent).encode()))
    found = read(path)
    assert [each.texts for each in found] == [("Who?", "Ann Lee. Bob.")] * 4
    assert found[0].answers == (GoldAnswer("Ann", 0, 3), GoldAnswer("Ann Lee", 0, 7))
    assert [each.answers for each in found[1:]] == [()] * 3
    assert [each.name for each in found] == ["q0", "q1", "q2", "q3"]
    assert [each.answers for each in read(path, labelled=False)] == [None] * 4


def test_tables_name_the_answer_and_perhaps_its_start(tmp_path):
    table = tmp_path / "a.csv"
    table.write_text("q,c,a,s\nWho?,Bob saw Bob.,Bob,8\nWho?,Bob.,,\n")
    first, second = read(table, text_column="q", pair_column="c", label_column="a", start_column="s")
    assert (first.answers, second.answers, first.line) == ((GoldAnswer("Bob", 8, 11),), (), 2)
    assert read(table, text_column="q", pair_column="c", label_column="a")[0].answers == (GoldAnswer("Bob", 0, 3),)
    lines = tmp_path / "a.jsonl"
    answers = ["Bob", ["Bob", "saw"], None, {"text": ["Bob"], "answer_start": [8]}]
    lines.write_text(
        "".join(json.dumps({"question": "?", "context": "Bob saw Bob", "answer": a}) + "\n" for a in answers)
    )
    starts = [[each.start for each in question.answers] for question in read(lines)]
    assert starts == [[0], [0, 4], [], [8]]


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_questions_as_the_library_datasets_has_them(tmp_path, ending):
    datasets = pytest.importorskip("datasets", reason='needs datasets: pip install -e ".[hub]"')
    answers = [{"text": ["Bob", "b."], "answer_start": [8, 10]}, {"text": [], "answer_start": []}]
    rows = {"question": ["Who?"] * 2, "context": ["Bob saw Bob.", "Bob."], "answers": answers, "id": ["x", "y"]}
    table = datasets.Dataset.from_dict(rows)
    path = tmp_path / f"train.{ending}"
    if ending == "parquet":
        table.to_parquet(str(path))
    else:
        table.save_to_disk(str(tmp_path / "set"))
        next((tmp_path / "set").glob("*.arrow")).rename(path)
    for file in (path, *([Path(f"hub:{tmp_path}")] if ending == "parquet" else [])):
        first, second = read(file, label_column="answers")
        assert first.answers == (GoldAnswer("Bob", 8, 11), GoldAnswer("b.", 10, 12))
        assert (second.answers, second.texts) == ((), ("Who?", "Bob."))
        assert [each.answers for each in read(file, labelled=False)] == [None, None]
    with pytest.raises(UserError, match=r"no column 'answer'.*; name the columns with --text-column"):
        read(path)


def test_an_answer_is_taken_where_it_stands_nearest_to_its_start():
    assert placed("ab", 4, "ab ab ab", "") == GoldAnswer("ab", 3, 5, moved=True)
    assert placed("aa", 1, "baaa", "") == GoldAnswer("aa", 1, 3)
    assert placed("aa", 3, "baaa", "") == GoldAnswer("aa", 2, 4, moved=True)
    assert placed(" ab ", 2, "xx ab", "") == GoldAnswer(" ab ", 3, 5)
    assert placed("a  b", None, "x a\nb", "") == GoldAnswer("a  b", 2, 5)
    assert placed("c", 0, "ab", "") == GoldAnswer("c", None, None)
    assert placed("c", -1, "ab", "") == GoldAnswer("c", None, None)  # as CMRC 2018 says that it does not stand there
    assert placed("b", -1, "abb", "") == GoldAnswer("b", 1, 2)


@given(st.text("ab ", min_size=1, max_size=12), st.text("ab", min_size=1, max_size=3), st.data())
def test_nearest_places_are_found_by_looking_at_all(context, text, data):
    start = data.draw(st.integers(0, len(context)))
    all_places = [place for place in range(len(context)) if context.startswith(text, place)]
    found = placed(text, start, context, "")
    if all_places:
        assert abs(found.start - start) == min(abs(place - start) for place in all_places)
        assert context[found.start : found.end] == text
    else:
        assert found.start is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"data": [', r"a.json:1: broken JSON"),
        ('{"data": [],\n "data": []}', r"a.json:2: the key 'data' comes twice; mend it"),
        ("[1]", r"a.json: not the layout of SQuAD"),
        ('{\n"a": 1}', r"a.json: not the layout of SQuAD"),
        ("", r"a.json: the file is empty"),
        ('{"data": []}', "holds no questions"),
        ('{"data": [1]}', "article 1: int stands where an object with 'paragraphs' should"),
        (json.dumps(squad({"qas": []})), "article 1, paragraph 1: 'context' is missing"),
        (json.dumps(squad(paragraph("ab", {}))), "question q0: 'answers' is missing"),
        (
            json.dumps(squad(paragraph("ab", {"answers": [answer("a", 7)]}))),
            "q0: the answer starts at character 7 of a",
        ),
        (
            json.dumps(squad(paragraph("ab", {"answers": [answer("a", "0")]}))),
            "'answer_start' holds str instead of a num",
        ),
        (
            json.dumps(squad(paragraph("ab", {"answers": [answer("a", 0)], "is_impossible": True}))),
            "question q0: 'is_impossible' is true, and it has answers",
        ),
    ],
)
def test_broken_files_are_refused_in_a_line(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(UserError, match=message) as error:
        read(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("rows", "columns", "message"),
    [
        ("q,c\nx,y\n", {}, r"a.csv:1: no column 'question' \(.*\); name the columns with --text-column"),
        ("question,context,answer,s\nx,y,y,one\n", {"start_column": "s"}, r"a.csv:2: 's' holds 'one'; give the number"),
        ("question,context,answer,s\nx,y,y,5\n", {"start_column": "s"}, r"a.csv:2: the answer starts at character 5"),
        ("question,context,answer\n", {}, "holds no questions"),
        ("question,context\nx,y\n", {"label_column": "context"}, "each needs a column of its own"),
    ],
)
def test_broken_tables_are_refused_in_a_line(tmp_path, rows, columns, message):
    path = tmp_path / "a.csv"
    path.write_text(rows)
    with pytest.raises(UserError, match=message):
        read(path, **columns)


def test_what_is_learned_from_must_have_answers_in_its_contexts(tmp_path):
    path = tmp_path / "a.csv"
    for rows, message in (
        ("x,y,", "no question has an answer"),
        ("x,y,zz", r"no answer stands in its context.*line 2"),
    ):
        path.write_text(f"question,context,answer\n{rows}\n")
        config = QuestionAnsweringConfig(train=path)
        with pytest.raises(UserError, match=message):
            config.learn(read(path), "a.csv")


@pytest.mark.parametrize("articles", [4, 19, 20, 40])
def test_questions_of_a_context_or_of_one_of_many_articles_are_held_out_together(tmp_path, articles):
    path = tmp_path / "a.json"
    asked = [{"answers": [answer("a", 0)]}] * 3
    made = [[paragraph(f"a{n} {m}", *asked) for m in range(5)] for n in range(articles)]
    data = [squad(*each, title=f"T{n}")["data"][0] for n, each in enumerate(made)]
    path.write_text(json.dumps({"data": data}))
    stay, out = hold_out(read(path), 0.25, 0, "test")
    assert len(out) == pytest.approx(articles * 15 / 4, abs=8)

    def groups(part):
        return {each.context.split()[0] if articles >= 20 else each.context for each in part}

    assert not groups(stay) & groups(out)


# The official evaluation of SQuAD 2.0, written anew from its published definition.


def official(text):
    text = "".join(sign for sign in text.lower() if sign not in set(string.punctuation))
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def official_scores(right, found):
    golds = [gold for gold in right if official(gold)] or [""]

    def f1(gold):
        one, other = official(gold), official(found)
        if not one or not other:
            return float(one == other)
        same = sum((Counter(one) & Counter(other)).values())
        if not same:
            return 0.0
        precision, recall = same / len(other), same / len(one)
        return 2 * precision * recall / (precision + recall)

    return max(float(official(gold) == official(found)) for gold in golds), max(map(f1, golds))


WORDS = st.lists(
    st.sampled_from(["The", "a", "cat", "dog's", "an", "$12", "U.S.", "é", "—", "'", "the.", "a's", "th.e"]), max_size=4
)
ANSWERS = WORDS.map(" ".join)


@given(st.lists(ANSWERS, max_size=3), ANSWERS)
def test_scores_are_the_official_ones(right, found):
    assert compare(right, found) == pytest.approx(official_scores(right, found))


@given(
    st.lists(
        st.tuples(st.sampled_from([-2.0, -1, 0, 0.5, 3]), st.booleans(), st.sampled_from([0.0, 0.5, 1.0])),
        min_size=1,
        max_size=8,
    )
)
def test_the_threshold_is_as_good_as_any(questions):
    differences = np.array([each for each, _, _ in questions])
    gains = np.array([value if has else -1 for _, has, value in questions])

    def total(threshold):
        return sum(
            (value if given else 0) if has else float(not given)
            for (_, has, value), given in zip(questions, differences <= threshold, strict=True)
        )

    found, candidates = best_threshold(differences, gains), [-9, *sorted(differences)]
    most = max(map(total, candidates))
    assert total(found) == pytest.approx(most)
    lowest = next(each for each in candidates if total(each) == pytest.approx(most))
    assert (differences <= found).tolist() == (differences <= lowest).tolist(), "of those as good, the lowest"


def test_the_answer_without_a_model_stands_near_the_words_of_the_question():
    context = "Ann slept. The tower was built in 1889 by Gustave Eiffel for a fair. Bob ate."
    assert overlapping_answer("Who built the tower in 1889?", context, 2) == "by Gustave"
    assert overlapping_answer("Who?", "", 2) == ""


def test_the_answer_without_a_model_has_as_many_ideographs_as_answers_have():
    context = "他睡了。这座塔于1889年由埃菲尔建造。天晴。"
    assert overlapping_answer("谁建造的?", context, 3) == "埃菲尔"
    assert [count_words(text) for text in ("埃菲尔", "Gustave Eiffel, 1832", "1889年")] == [3, 3, 2]


def test_questions_without_an_id_are_numbered_through_the_file(tmp_path):
    qas = [{"question": "Who?", "answers": []}, {"question": "Why?", "id": "own", "answers": []}]
    articles = [{"paragraphs": [{"context": f"text {n} {m}", "qas": qas} for m in range(2)]} for n in range(2)]
    (tmp_path / "a.json").write_text(json.dumps({"data": articles}))
    found = read(tmp_path / "a.json")
    assert [each.name for each in found] == ["1", "own", "3", "own", "5", "own", "7", "own"]
    assert [each.line for each in found] == list(range(1, 9))
