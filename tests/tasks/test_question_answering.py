"""Question answering, from files to predictions."""

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from keyword_task import FILLERS, KEYWORDS
from tests.conftest import shrink

from bakeoff.errors import UserError
from bakeoff.tasks.evaluate import evaluate
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.kinds.question_answering import QuestionAnswering, QuestionAnsweringConfig
from bakeoff.tasks.predict import predict, predict_file
from bakeoff.tasks.predictions.answer_spans import Candidate, PredictedAnswer, best_spans, gathered
from bakeoff.tasks.reading.gold_answers import GoldAnswer, placed
from bakeoff.tasks.reading.questions import Question
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tokenizer.tokenizer import Tokenizer

QUICK = FinetuneConfig(learning_rate=[3e-3], epochs=10, least_steps=0, evaluations=2, length=24)
SIZES = {"train": 150, "dev": 30, "test": 30}


def squad(draw, count, unanswerable):
    """Questions whose answer is the one fruit of the context, written in several ways; some have none."""
    paragraphs = []
    for number in range(count):
        words = draw.choices(FILLERS, k=draw.randint(3, 24))
        fruit = draw.choice(KEYWORDS["fruit"])
        text = fruit.capitalize() if number % 2 else fruit
        place = draw.randrange(len(words) + 1)
        words.insert(place, draw.choice(FILLERS) if unanswerable and number % 3 == 0 else text)
        context = "\u00a0\n".join(words)
        answers = [{"text": text, "answer_start": context.index(text)}] if text in words else []
        asked = {"id": f"q{number}", "question": "apple", "answers": answers, "is_impossible": not answers}
        paragraphs.append({"context": context, "qas": [asked]})
    return {"data": [{"title": "Fruit", "paragraphs": paragraphs}]}


@pytest.fixture(scope="module", params=[False, True], ids=["1.1", "2.0"])
def tuned(request, recipe, corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("squad")
    for seed, (name, count) in enumerate(SIZES.items()):
        made = squad(random.Random(seed), count, request.param)
        (folder / f"{name}.json").write_text(json.dumps(made), encoding="utf-8")
    task = QuestionAnsweringConfig(**{name: folder / f"{name}.json" for name in SIZES})
    result = finetune(recipe, task, folder / "run", config=QUICK, tokenizer=corpus, device="cpu", progress=False)
    return result, task, request.param


def test_answers_of_long_contexts_are_learned(tuned):
    result, task, unanswerable = tuned
    assert result.scores["test"]["exact"] > 0.8 > result.simplest["exact"]
    run = FinetunedRun.open(result.path)
    lines = run.predictions()
    exact = np.mean(
        [(line["prediction"] in line["label"]) if line["label"] else not line["prediction"] for line in lines]
    )
    assert result.scores["test"]["exact"] == pytest.approx(exact)
    names = {"exact", "f1"} | ({f"{part}_{each}" for part in ("has_answer", "no_answer") for each in ("exact", "f1")})
    assert set(result.scores["test"]) == (names if unanswerable else {"exact", "f1"})
    assert run.learned.labels["unanswerable"] == unanswerable
    assert unanswerable or all(line["prediction"] for line in lines)
    assert evaluate(result.path, data=task.test, device="cpu")["scores"] == pytest.approx(
        result.scores["test"], abs=1e-5
    )


def test_answers_are_text_of_the_context_and_their_probabilities_add_up(tuned):
    result, task, unanswerable = tuned
    run = FinetunedRun.open(result.path)
    found = [each for part in predict_file(run, task.test, device="cpu") for each in part]
    assert [each.prediction for each in found]
    for each in found:
        given = run.learned.as_record(each.example, each.prediction)
        if given["answer"]:
            assert each.example.context[given["start"] : given["end"]] == given["answer"]
        for candidate in given["n_best"]:
            assert each.example.context[candidate["start"] : candidate["end"]] == candidate["answer"]
        total = sum(candidate["probability"] for candidate in given["n_best"]) + given.get("no_answer", 0)
        assert total == pytest.approx(1, abs=1e-4)
        assert ("no_answer" in given) == unanswerable
    lines = [line["prediction"] for line in run.predictions()]
    assert [run.learned.text(each.prediction) for each in found] == lines
    (plum,) = predict(result.path, ["apple"], ["baran  baran\nPLUM baran"], device="cpu")
    assert plum["answer"] == "PLUM"
    (none,) = predict(result.path, ["apple"], [" "], device="cpu")
    assert (none["answer"], none["start"], none["n_best"]) == ("", None, [])


@pytest.mark.parametrize("system", ["gpt-tiny", "xlnet-tiny", "bart-tiny", "elmo-tiny", "laptop-encoder-tiny"])
def test_every_architecture_answers(system, corpus, tmp_path):
    path = tmp_path / "train.json"
    path.write_text(json.dumps(squad(random.Random(0), 30, True)))
    task = QuestionAnsweringConfig(train=path)
    config = FinetuneConfig(learning_rate=[1e-3], epochs=1, least_steps=0, evaluations=1, length=16)
    made = finetune(
        shrink(system), task, tmp_path / "run", config=config, tokenizer=corpus, device="cpu", progress=False
    )
    assert 0 <= made.scores["test"]["f1"] <= 1
    assert len(predict(made.path, ["apple"], ["plum baran " * 30], device="cpu")[0]["n_best"]) == task.n_best


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), max_size=7), st.integers(1, 9), st.integers(1, 12))
def test_the_best_spans_are_those_of_all(scores, longest, count):
    table = np.array(scores, np.float32).reshape(-1, 2)
    every = [
        (first, last, float(table[first, 0] + table[last, 1]))
        for first in range(len(table))
        for last in range(first, min(first + longest, len(table)))
    ]
    every.sort(key=lambda span: -span[2])
    assert [tuple(each) for each in best_spans(table, longest, count)] == every[:count]


def labelled(context, *answers, question="apple"):
    return Question(1, (question, context), tuple(placed(text, None, context, "") for text in answers))


def test_targets_are_the_answers_tokens_and_no_answer_where_a_window_lacks_it(recipe, corpus):
    tokenizer = Tokenizer.load(corpus)
    format = InputFormat(tokenizer, recipe, 16)
    task = QuestionAnswering(QuestionAnsweringConfig(train="t.json"), False, 0.0)
    context = " ".join([*["baran"] * 20, "Plum", "saw", *["baran"] * 20])
    items = task.encode([labelled(context, "zz", "Plum saw"), labelled(context), labelled(context, "zz")], format)
    inside = 0
    for owner, row, window in zip(items.owners, items.encoded.ids, items.targets, strict=True):
        if owner == 0 and window.target != (0, 0):
            places = window.positions[list(window.target)]
            assert tokenizer.decode(row[places]) == "plum saw"
            inside += 1
        elif owner:
            assert window.target == ((0, 0) if owner == 1 else None)
    assert inside
    first, second = items.notes
    assert "1 of 3 questions have no answer that stands in the context, the first line 1 ('zz')" in first
    assert "1 of 3 questions have no answer, as none of train has" in second


def test_an_answer_is_learned_in_every_window_that_has_all_of_it(recipe, corpus):
    format = InputFormat(Tokenizer.load(corpus), recipe, 16)
    task = QuestionAnswering(QuestionAnsweringConfig(train="t.json"), False, 0.0)
    for before in range(12):
        context = " ".join([*["baran"] * before, "plum", "saw", *["baran"] * 20])
        for window in task.encode([labelled(context, "plum saw")], format).targets:
            text = context[window.begin[0] : window.end[-1]]
            assert (window.target != (0, 0)) == ("plum saw" in text)
            if window.target != (0, 0):
                first, last = (place - 1 for place in window.target)
                assert context[window.begin[first] : window.end[last]] == "plum saw"
    (window,) = task.encode([labelled("saw\u3000(plum)saw", "plum")], format).targets
    assert window.target == (3, 3)  # what touches an answer is no part of it


def test_the_answer_of_several_windows_is_the_best_and_none_that_of_the_surest_window(recipe, corpus):
    format = InputFormat(Tokenizer.load(corpus), recipe, 16)
    task = QuestionAnswering(QuestionAnsweringConfig(train="t.json", n_best=3), True, 0.0)
    words = " ".join(f"{word}" for word in FILLERS[:20])
    items = task.encode([labelled(words)], format)
    random = np.random.default_rng(0)
    outputs = [random.normal(size=(1 + len(window.begin), 2)).astype(np.float32) for window in items.targets]
    best: dict[str, float] = {}
    for window, own in zip(items.targets, outputs, strict=True):
        for first in range(len(window.begin)):
            for last in range(first, len(window.begin)):
                text = words[window.begin[first] : window.end[last]]
                best[text] = max(best.get(text, -np.inf), own[1 + first, 0] + own[1 + last, 1])
    (found,) = gathered(outputs, items, 30, 3)
    assert [each.text for each in found.candidates] == sorted(best, key=lambda text: -best[text])[:3]
    assert found.none == pytest.approx(min(own[0].sum() for own in outputs))
    assert len(items.owners) > 2


def test_dev_settles_from_when_on_there_is_no_answer():
    task = QuestionAnswering(QuestionAnsweringConfig(train="t.json"), True, 0.0)
    told = [("a", 1.0, ["a"]), ("b", 2.0, ["b"]), ("c", 3.0, []), ("d", 4.0, ["x"])]
    examples = [
        Question(n, ("?", "a"), tuple(GoldAnswer(t, 0, 1) for t in gold)) for n, (_, _, gold) in enumerate(told)
    ]
    answers = [PredictedAnswer((Candidate(text, 0, 1, 0.0),), none) for text, none, _ in told]
    resolved = task.resolve(examples, answers)
    assert 2 < resolved.threshold < 3
    assert [resolved.text(each) for each in answers] == ["a", "b", "", ""]
    assert resolved.score(examples, answers)["f1"] == 0.75
    again = task.config.restore(json.loads(json.dumps(resolved.labels)), "labels.json")
    assert again.score(examples, answers) == resolved.score(examples, answers)
    always = QuestionAnswering(task.config, False, 0.0).resolve(examples, answers)
    assert [always.text(each) for each in answers] == ["a", "b", "c", "d"]


def test_labels_of_another_sort_are_refused():
    with pytest.raises(UserError, match=r"labels.json: not what Bakeoff writes there: threshold"):
        QuestionAnsweringConfig(train="t.json").restore({"unanswerable": True}, "labels.json")
