"""Regression, tagging and choice, from files to predictions."""

import json
import random
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bakeoff.cli import run as command_line
from bakeoff.errors import UserError
from bakeoff.tasks.checks.examine import check_task
from bakeoff.tasks.data import load_task
from bakeoff.tasks.evaluate import evaluate
from bakeoff.tasks.finetune import finetune, open_source
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.fitting.settling import settle
from bakeoff.tasks.kinds.choice import ChoiceConfig
from bakeoff.tasks.kinds.regression import RatedText, RegressionConfig, regression_scores
from bakeoff.tasks.kinds.tagging import TaggedSentence, Tagging, TaggingConfig
from bakeoff.tasks.predict import predict, predict_file
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tasks.scores.spans import Span, may_follow, span_scores, spans_of
from bakeoff.tokenizer.tokenizer import Tokenizer, TwoVocabularies

WORDS = {"apple": "FRUIT", "plum": "FRUIT", "saw": "TOOL", "hammer": "TOOL", "town": "O", "coast": "O"}
QUICK = FinetuneConfig(learning_rate=[3e-3], epochs=12, least_steps=0, evaluations=4)


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def drawn(seed, count):
    random = np.random.default_rng(seed)
    return [[str(word) for word in random.choice(list(WORDS), random.integers(2, 7))] for _ in range(count)]


def files_of(folder, make):
    return {
        name: write(folder / f"{name}.jsonl", make(seed, count)) for seed, (name, count) in enumerate(SIZES.items())
    }


SIZES = {"train": 160, "dev": 40, "test": 40}


def test_numbers_are_learned_and_come_back_on_their_scale(recipe, corpus, tmp_path):
    def rows(seed, count):
        found = drawn(seed, count)
        return [
            {"t": " ".join(words), "n": 100 + 10 * sum(WORDS[each] == "FRUIT" for each in words)} for words in found
        ]

    task = RegressionConfig(**files_of(tmp_path, rows), text_column="t", label_column="n")
    out = tmp_path / "run"
    result = finetune(recipe, task, out, config=QUICK, tokenizer=corpus, device="cpu", progress=False)
    assert result.scores["test"]["spearman"] > 0.6
    assert result.scores["test"]["mean_absolute_error"] < result.simplest["mean_absolute_error"]
    lines = FinetunedRun.open(out).predictions()
    expected = regression_scores([each["label"] for each in lines], [each["prediction"] for each in lines])
    assert result.scores["test"] == pytest.approx(expected, abs=1e-4)
    (many, few) = predict(out, ["apple plum apple plum", "town coast town"], device="cpu")
    assert 95 < few["value"] < many["value"] < 160
    assert evaluate(out, data=task.test, device="cpu")["scores"] == pytest.approx(result.scores["test"], abs=1e-5)


def test_scores_of_numbers_equal_scipy_and_are_0_where_a_side_is_constant():
    true, found = np.random.default_rng(0).normal(size=(2, 50))
    scores = regression_scores(true, found)
    assert scores["pearson"] == pytest.approx(stats.pearsonr(true, found).statistic, abs=1e-6)
    assert scores["spearman"] == pytest.approx(stats.spearmanr(true, found).statistic, abs=1e-6)
    assert regression_scores(true, [1.0] * 50)["pearson"] == 0


@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e-60, 1e60])
def test_predictions_keep_their_digits_on_any_scale(scale):
    """Rounded to six decimals, all predictions of small numbers would be 0, in files and in what is compared."""
    config = RegressionConfig(train="a.csv", text_column="t", label_column="n")
    texts = [RatedText(line, ("text",), scale * line) for line in range(1, 9)]
    task = config.learn(texts, "a.csv")
    predicted = [task.deviation * z + task.mean for z in (-1.51, -1.2, -0.8, -0.4, 0.3, 0.9, 1.25, 1.4)]
    error = np.mean([abs(text.value - each) for text, each in zip(texts, predicted, strict=True)])
    both = list(zip(texts, predicted, strict=True))
    exactly = partial(pytest.approx, rel=1e-5, abs=0)
    assert task.score(texts, predicted)["mean_absolute_error"] == exactly(error)
    assert [task.as_record(*each)["value"] for each in both] == exactly(predicted)
    lines = [task.line(*each) for each in both]
    near = scale * float(np.nextafter(np.float32(1.5), np.float32(2)))  # ranks are those of all digits
    assert task.line(texts[0], near)["prediction"] > task.line(texts[0], scale * 1.5)["prediction"]
    assert config.contributions(lines, "mean_absolute_error").mean() == exactly(error)
    assert [float(task.shown(*each)[0]) for each in both] == pytest.approx(predicted, rel=1e-3, abs=0)


@pytest.mark.parametrize(
    ("numbers", "problem"),
    [
        (["1e300", "-1e300"], r"a\.csv:2: 1e300 \(column 'n'\) is beyond 1e\+100; scale the numbers$"),
        (["1e-300", "2e-300"], r"a\.csv: all numbers are between 1e-300 and 2e-300, too near .*; scale them$"),
        (["1_000", "2"], r"a\.csv:2: '1_000' is no number \(column 'n'\)"),
    ],
)
def test_numbers_that_cannot_be_learned_are_refused(numbers, problem, tmp_path):
    (tmp_path / "a.csv").write_text("t,n\n" + "".join(f"text,{each}\n" for each in numbers))
    config = RegressionConfig(train=tmp_path / "a.csv", text_column="t", label_column="n")
    with pytest.raises(UserError, match=problem):
        config.learn(list(config.read(config.train)), "a.csv")


def tagged(seed, count):
    return [
        {"w": words, "t": [WORDS[each] if WORDS[each] == "O" else f"B-{WORDS[each]}" for each in words]}
        for words in drawn(seed, count)
    ]


def test_tags_are_learned_for_every_word_of_long_sentences_too(recipe, corpus, tmp_path):
    task = TaggingConfig(**files_of(tmp_path, tagged), text_column="w", label_column="t")
    out = tmp_path / "run"
    config = QUICK.model_copy(update={"length": 16})
    result = finetune(recipe, task, out, config=config, tokenizer=corpus, device="cpu", progress=False)
    assert result.scores["test"]["f1"] > 0.9
    assert result.simplest["f1"] == 1  # a word always has the same tag here
    sentence = " ".join(["apple", "town", "saw"] * 20)  # far longer than 16 tokens
    (found,) = predict(out, [sentence], device="cpu")
    assert len(found["tags"]) == len(found["words"]) == 60
    assert sum(tag == f"B-{WORDS[word]}" for word, tag in zip(found["words"], found["tags"], strict=True)) > 35
    answered = [each for part in predict_file(FinetunedRun.open(out), task.test, device="cpu") for each in part]
    assert len(answered) == SIZES["test"]


@pytest.mark.parametrize("name", ["recipe", "causal_recipe"])
@pytest.mark.parametrize("length", [8, 11, 64])
def test_every_word_is_asked_for_once_at_a_token_of_its_own(request, name, length, corpus):
    recipe, tokenizer = request.getfixturevalue(name), Tokenizer.load(corpus)
    config = TaggingConfig(train="train.jsonl", text_column="w", label_column="t")
    format = InputFormat(tokenizer, recipe, length)
    words = ["unfathomable", "x", "", "\u200b", "saw", "\U0001f9ff", "hammering"] * 5
    items = Tagging(config, ["A", "O"], []).encode(
        [config.example([" ".join(words)]), TaggedSentence(1, tuple(words))], format
    )
    for owner, count in ((0, len(" ".join(words).split())), (1, len(words))):
        own = [items.targets[item] for item in np.flatnonzero(items.owners == owner)]
        assert sorted(np.concatenate([target.words for target in own]).tolist()) == list(range(count))
    for row, target in zip(items.encoded.ids, items.targets, strict=True):
        assert len(row) <= length
        assert len(set(target.positions.tolist())) == len(target.positions)
        assert not np.isin(row[target.positions], [tokenizer.start, tokenizer.separator, tokenizer.pad]).any()


def test_words_of_two_vocabularies_are_those_of_the_source(corpus):
    source = Tokenizer.load(corpus)
    both = TwoVocabularies(source, source)
    (found,), (expected,) = (each.encode_words([["unfathomable", "saw"]]) for each in (both, source))
    assert all((one == other).all() for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("B-X I-X O B-X", [("X", 0, 2), ("X", 3, 4)]),
        ("I-X I-X B-X O I-Y", [("X", 0, 2), ("X", 2, 3), ("Y", 4, 5)]),  # IOB1
        ("B-X I-Y", [("X", 0, 1), ("Y", 1, 2)]),
        ("B-X E-X S-X S-Y", [("X", 0, 2), ("X", 2, 3), ("Y", 3, 4)]),
        ("O O", []),
    ],
)
def test_spans_are_those_of_conlleval(tags, spans):
    assert list(spans_of(tags.split())) == [Span(*each) for each in spans]


TAGS = st.lists(st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"]), min_size=1, max_size=8)


@given(st.lists(TAGS, min_size=1, max_size=4))
def test_spans_of_iob_are_found_by_a_naive_reading(sentences):
    for tags in sentences:
        naive, place = [], 0
        while place < len(tags):
            if tags[place] == "O":
                place += 1
                continue
            type, end = tags[place][2:], place + 1
            while end < len(tags) and tags[end] == f"I-{type}":
                end += 1
            naive.append(Span(type, place, end))
            place = end
        assert list(spans_of(tags)) == naive
    assert span_scores(sentences, sentences)["f1"] == (1 if any(map(list, map(spans_of, sentences))) else 0)


def test_the_legal_sequence_is_the_best_of_all():
    tags = ["B-X", "B-Y", "I-X", "I-Y", "O"]
    task = Tagging(TaggingConfig(train="t.jsonl", legal=True), tags, [])
    random = np.random.default_rng(0)
    for _ in range(20):
        table = torch.from_numpy(random.normal(size=(4, 5)).astype(np.float32)).log_softmax(-1).numpy()
        best, chosen = -np.inf, None
        for places in np.ndindex(5, 5, 5, 5):
            names = ["O", *(tags[place] for place in places)]
            if all(may_follow(one, other, closed=False) for one, other in pairwise(names)):
                value = sum(table[word, place] for word, place in enumerate(places))
                best, chosen = max((best, chosen), (value, places), key=lambda each: each[0])
        assert tuple(task.moves.likeliest(table)) == chosen


def test_files_of_words_and_tags(tmp_path):
    conll = tmp_path / "a.conll"
    conll.write_text("-DOCSTART- -X- O O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\nPeter NNP B-NP B-PER\n")
    found = list(TaggingConfig(train=conll).read(conll))
    assert [(each.texts, each.tags, each.line) for each in found] == [
        (("EU", "rejects"), ("B-ORG", "O"), 5),
        (("Peter",), ("B-PER",), 6),
    ]
    universal = tmp_path / "a.conllu"
    cells = "_\t" * 5 + "_"
    universal.write_text(
        f"# text = Don't\n1-2\tDon't\t_\t_\t{cells}\n1\tDo\tdo\tAUX\t{cells}\n"
        f"2\tn't\tnot\tPART\t{cells}\n2.1\tx\tx\tX\t{cells}\n\n"
    )
    (only,) = TaggingConfig(train=universal).read(universal)
    assert (only.texts, only.tags) == (("Do", "n't"), ("AUX", "PART"))
    spans = [{"start": 0, "end": 8, "label": "LOC"}, {"start": 8, "end": 9, "label": "ORG"}]
    raw = write(tmp_path / "a.jsonl", [{"text": "New York北京x.", "spans": spans}])
    (only,) = TaggingConfig(train=raw, text_column="text", spans_column="spans").read(raw)
    assert (only.texts, only.tags) == (
        ("New", "York", "北", "京", "x", "."),
        ("B-LOC", "I-LOC", "B-ORG", "O", "O", "O"),
    )


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"w": ["a", "b"], "t": ["O"]}, "a.jsonl:1: 2 words and 1 tags"),
        ({"w": "a b", "t": ["O"]}, "a.jsonl:1: 'w' holds str instead of a list"),
        ({"w": ["a"], "t": [""]}, "a.jsonl:1: 't' holds an empty tag"),
    ],
)
def test_what_does_not_fit_is_named_with_its_line(row, message, tmp_path):
    path = write(tmp_path / "a.jsonl", [row])
    with pytest.raises(UserError, match=message):
        list(TaggingConfig(train=path, text_column="w", label_column="t").read(path))


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([{"start": 2, "end": 1, "label": "X"}], "the span 2-1 ends where it begins, or before; mend it"),
        ([{"start": 0, "end": 9, "label": "X"}], "the span 0-9 ends at 9, beyond the text's 3 characters; mend it"),
        ([{"start": 5, "end": 9, "label": "X"}], "the span 5-9 begins at 5, beyond the text's 3 characters; mend it"),
        ([{"start": -1, "end": 2, "label": "X"}], "the span -1-2 begins before the text; mend it"),
        ([{"start": 0, "end": 2, "label": "X"}, {"start": 1, "end": 3, "label": "Y"}], "overlap"),
        ([{"start": 0, "end": 2}], "an object with start, end and label"),
    ],
)
def test_spans_that_are_none(spans, message, tmp_path):
    path = write(tmp_path / "a.jsonl", [{"text": "abc", "spans": spans}])
    with pytest.raises(UserError, match=message):
        list(TaggingConfig(train=path, text_column="text", spans_column="spans").read(path))


def questions(seed, count):
    random = np.random.default_rng(seed)
    fruits, others = ([word for word, tag in WORDS.items() if (tag == "FRUIT") == fruit] for fruit in (True, False))
    made = []
    for _ in range(count):
        choices = [str(word) for word in random.choice(others, random.integers(1, 4))]
        place = int(random.integers(len(choices) + 1))
        choices.insert(place, str(random.choice(fruits)))
        made.append({"context": "eat", "choices": choices, "right": "ABCD"[place]})
    return made


def test_any_number_of_choices_is_learned(recipe, corpus, tmp_path):
    task = ChoiceConfig(**files_of(tmp_path, questions), text_column="context", choices="choices", label_column="right")
    out = tmp_path / "run"
    result = finetune(recipe, task, out, config=QUICK, tokenizer=corpus, device="cpu", progress=False)
    assert result.scores["test"]["accuracy"] > 0.8 > result.simplest["accuracy"]
    for line in FinetunedRun.open(out).predictions():
        assert sum(line["probabilities"]) == pytest.approx(1, abs=1e-4)
        assert line["prediction"] == int(np.argmax(line["probabilities"]))


def test_what_is_asked_of_a_fine_tuning_is_what_its_user_has_said_of_labels(recipe, corpus, tmp_path):
    """So that one which stopped before the data settled it goes on; what is kept of the task is settled."""
    task = ChoiceConfig(**files_of(tmp_path, questions), text_column="context", choices="choices", label_column="right")
    settled = settle(open_source(recipe, corpus), task, QUICK, 0, "cpu")
    assert settled.asked()["task"] == task.model_dump(mode="json")
    assert (task.label_is, settled.setting.task.config.label_is) == (None, "letter")


def test_a_choice_with_a_question_is_asked_from_the_command_line_as_from_a_file(recipe, corpus, tmp_path, capsys):
    rows = [{**row, "q": f"which {number % 3}"} for number, row in enumerate(questions(np.random.default_rng(0), 40))]
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = {"text_column": "context", "pair_column": "q", "choices": "choices", "label_column": "right"}
    task = ChoiceConfig(train=file, dev=file, test=file, **columns)
    out = tmp_path / "run"
    quick = QUICK.model_copy(update={"epochs": [1]})
    finetune(recipe, task, out, config=quick, tokenizer=corpus, device="cpu", progress=False)
    kept = FinetunedRun.open(out).predictions()
    for row, line in zip(rows[:4], kept, strict=False):
        arguments = [str(out), row["context"], *row["choices"], "--device", "cpu", "--json"]
        assert command_line(["predict", *arguments, "--pair", row["q"]]) == 0
        (found,) = json.loads(capsys.readouterr().out)
        assert found["probabilities"] == pytest.approx(line["probabilities"], abs=1e-5)
        assert command_line(["predict", *arguments]) == 2
        assert capsys.readouterr().err.endswith("fine-tuned with a question; give one --pair\n")
    assert command_line(["predict", str(out), "eat", "one", "--pair", "which"]) == 2
    assert "give the context, the question and two choices at least" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("label", "first", "place"),
    [
        (1, 0, 1),
        (2, 1, 1),
        ("B", 0, 1),
        ("two", 0, 1),
        ("0", 0, 0),
        (3, 0, None),
        ("x", 0, None),
        ("ß", 0, None),
        ("9" * 5000, 0, None),
        ("AB", 0, None),
    ],
)
def test_the_right_choice_may_be_named_in_several_ways(label, first, place, tmp_path):
    path = write(tmp_path / "a.jsonl", [{"c": "x", "a": "one", "b": "two", "l": label}])
    config = ChoiceConfig(train=path, text_column="c", choices=["a", "b"], label_column="l", first_choice=first)
    if place is None:
        with pytest.raises(UserError, match=r"a.jsonl:1: '\w+' is none of the 2 choices"):
            list(config.read(path))
    else:
        assert [each.answer for each in config.read(path)] == [place]


@pytest.mark.parametrize(
    ("rows", "places"),
    [
        ([(["4", "2", "6", "1"], 1), (["red", "blue"], 0)], [1, 0]),  # places, one of them a text, too
        ([(["4", "2", "6", "1"], "1"), (["7", "8"], "1")], [1, 1]),
        ([(["A", "C", "D", "B"], "B"), (["red", "blue"], "a")], [1, 0]),
        ([(["4", "2", "6", "1"], "1"), (["7", "8"], "8")], [3, 1]),  # texts, which numbers are, too
        ([(["0", "2"], "2"), (["1", "0"], "1")], [1, 0]),
        ([(["1", "0"], 1), (["2", "1"], 1)], [1, 1]),  # numbers among texts are places
        ([(["0", "2"], 2), (["1", "0"], 1)], [1, 0]),  # unless there is no such place
        ([(["one", "two"], "two"), (["red", "blue"], "B")], [1, 1]),  # a text, and a letter
        ([(["4", "2"], "2"), (["red", "blue"], "A"), (["red", "blue"], "blue")], [1, 0, 1]),
    ],
)
def test_labels_of_a_file_name_choices_in_one_way_where_all_can(rows, places, tmp_path):
    path = write(tmp_path / "a.jsonl", [{"c": "x", "o": choices, "l": label} for choices, label in rows])
    config = ChoiceConfig(train=path, text_column="c", choices="o", label_column="l")
    assert [each.answer for each in config.read(path)] == places


def test_numbers_that_are_names_of_columns_are_no_places(tmp_path):
    rows = [{"c": "x", "1": "one", "2": "two", "3": "three", "l": label} for label in (1, 2)]
    path = write(tmp_path / "a.jsonl", rows)
    config = ChoiceConfig(train=path, text_column="c", choices=["1", "2", "3"], label_column="l")
    assert [each.answer for each in config.read(path)] == [0, 1]


def test_what_the_labels_of_train_are_those_of_other_files_are_too(tmp_path):
    """Of which all might by chance be read in another way; the run says it to whoever evaluates it."""

    def rows(*labelled):
        return [{"c": f"{number}", "o": choices, "l": label} for number, (choices, label) in enumerate(labelled)]

    plain, numeric = (["red", "blue", "green", "white"], "2"), (["4", "2", "6", "1"], "1")
    train = write(tmp_path / "train.jsonl", rows(*[plain] * 5, *[numeric] * 5))
    test = write(tmp_path / "test.jsonl", rows(*[numeric] * 3))
    config = ChoiceConfig(train=train, dev=train, test=test, text_column="c", choices="o", label_column="l")
    data = load_task(config)
    assert [each.answer for each in data.test] == [1, 1, 1]
    assert data.task.config.label_is == "place"
    assert [each.answer for each in data.task.config.read(test)] == [1, 1, 1]
    assert [each.answer for each in config.read(test)] == [3, 3, 3]
    write(test, rows((["red", "blue"], "blue")))
    said = r"test.jsonl:1: 'blue' is none .*: give its place from 0 on, as all labels of the task are read"
    with pytest.raises(UserError, match=said):
        load_task(config)
    assert [each.answer for each in data.task.config.read_otherwise({"label_is": "text"}).read(test)] == [1]
    write(train, rows(plain, numeric, (["pink", "grey"], "grey")))
    said = "'1' may be text or place, and no one of text, column, place, letter reads all labels of the file; mend"
    with pytest.raises(UserError, match=f"train.jsonl:2: {said}"):
        load_task(config)
    assert said in check_task(config).problems[0]


OF_SEQEVAL = {
    ("O B-A I-A B-B I-B", 0): (0.677966, 0.666667, 0.689655),
    ("O B-A I-A E-A S-A B-B I-B E-B S-B", 0): (0.612903, 0.612903, 0.612903),
    ("O B-A I-A B-B I-B", 1): (0.6875, 0.6875, 0.6875),
    ("O B-A I-A E-A S-A B-B I-B E-B S-B", 1): (0.666667, 0.65, 0.684211),
    ("O B-A I-A B-B I-B", 2): (0.717949, 0.666667, 0.777778),
    ("O B-A I-A E-A S-A B-B I-B E-B S-B", 2): (0.76, 0.76, 0.76),
    ("O B-A I-A B-B I-B", 5): (0.64, 0.695652, 0.592593),
    ("O B-A I-A E-A S-A B-B I-B E-B S-B", 5): (0.784314, 0.833333, 0.740741),
}
"""F1, precision and recall by seqeval 1.2.2 of tags that are drawn from the seed."""


@pytest.mark.parametrize(("names", "seed"), OF_SEQEVAL)
def test_scores_of_spans_are_those_of_seqeval(names, seed):
    draw, tags = random.Random(2 * seed), names.split()
    true = [[draw.choice(tags) for _ in range(draw.randint(1, 9))] for _ in range(6)]
    draw = random.Random(seed + 10**6)
    found = [[tag if draw.random() < 0.7 else draw.choice(tags) for tag in sentence] for sentence in true]
    scores = span_scores(true, found)
    assert tuple(scores[name] for name in ("f1", "precision", "recall")) == pytest.approx(
        OF_SEQEVAL[names, seed], abs=1e-6
    )


def test_a_row_that_is_left_out_gets_no_answer_which_is_said(recipe, corpus, tmp_path, capsys):
    rows = [{"t": f"baran {n}", "c": ["apple", "saw"], "l": n % 2} for n in range(40)]
    task = ChoiceConfig(
        train=write(tmp_path / "train.jsonl", rows), text_column="t", choices="c", label_column="l", broken_rows="skip"
    )
    config = FinetuneConfig(epochs=1, least_steps=0, evaluations=1)
    run = finetune(recipe, task, tmp_path / "run", config=config, tokenizer=corpus, device="cpu", progress=False).path
    rows = ('{"t": "a", "c": ["apple", "saw"]}', '{"t": ', '{"t": "b", "c": ["saw", "plum"]}', "{")
    (tmp_path / "new.jsonl").write_text("\n".join(rows) + "\n")
    found = [each for part in predict_file(FinetunedRun.open(run), tmp_path / "new.jsonl") for each in part]
    assert [each.example.texts[0] for each in found] == ["a", "b"]
    assert command_line(["predict", str(run), "--texts", str(tmp_path / "new.jsonl"), "--device", "cpu"]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert err.endswith(f"2 rows of {tmp_path / 'new.jsonl'} left out, without a prediction: the row is broken JSON\n")
