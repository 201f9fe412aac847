"""Where recipes differ: classes against scikit-learn, thirds by length, rows that differ whatever the seed."""

import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score, matthews_corrcoef, precision_recall_fscore_support
from synthetic_results import make_results
from test_every_kind import Answering, Divided, folder, plan_of  # noqa: F401

from bakeoff.comparison.execution import compare
from bakeoff.comparison.reporting.report import write_report
from bakeoff.comparison.reporting.where_section import class_scores, where_section
from bakeoff.comparison.results import Results
from bakeoff.comparison.statistics.breakdown import (
    EXCERPT,
    MOST_ROWS,
    OF_A_KIND,
    DifferingRow,
    LengthScores,
    TestRow,
    by_length,
    differing_rows,
    steadily_differing,
    thirds,
)
from bakeoff.json_files import read_json_lines
from bakeoff.tasks.kinds.classification import ClassificationConfig, LabelledText
from bakeoff.tasks.kinds.question_answering import QuestionAnsweringConfig
from bakeoff.tasks.kinds.tagging import TaggedSentence, TaggingConfig
from bakeoff.tasks.reading.questions import Question
from bakeoff.tasks.scores.label_scores import LabelScore

CONFIG = ClassificationConfig(train="t.tsv", text_column="text", label_column="label")


@given(st.lists(st.integers(0, 6), max_size=80))
def test_thirds_part_all_rows_by_their_length_and_none_of_one_length(lengths):
    parts = thirds(lengths)
    if len(lengths) < 30:
        assert parts == []
        return
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(lengths)))
    for one, other in itertools.pairwise(parts):
        assert max(np.asarray(lengths)[one]) < min(np.asarray(lengths)[other])


def test_rows_of_unlike_lengths_are_in_equal_thirds():
    assert [len(part) for part in thirds(np.random.default_rng(0).permutation(90).tolist())] == [30, 30, 30]


def lines(right):
    return [{"label": "a", "prediction": "a" if each else "b"} for each in right]


def test_scores_by_length_are_those_of_the_rows_of_that_length():
    random = np.random.default_rng(1)
    characters = random.permutation(60).tolist()
    right = {label: {seed: [random.random(60) < 0.7] for seed in range(3)} for label in ("one", "two")}
    runs = {
        label: {seed: [lines(each) for each in nested] for seed, nested in seeds.items()}
        for label, seeds in right.items()
    }
    simple = random.random(60) < 0.5
    made = by_length(characters, runs, lines(simple), CONFIG, "accuracy", None, 1.0)
    assert [(part.shortest, part.longest, part.rows) for part in made] == [(0, 19, 20), (20, 39, 20), (40, 59, 20)]
    for part in made:
        those = [row for row in range(60) if part.shortest <= characters[row] <= part.longest]
        assert part.baseline == pytest.approx(simple[those].mean())
        for label, seeds in right.items():
            assert part.pretrained[label].seeds == {
                seed: pytest.approx(nested[0][those].mean()) for seed, nested in seeds.items()
            }
            low, high = part.pretrained[label].interval
            assert low < part.pretrained[label].mean < high


def test_intervals_by_length_are_wider_where_rows_belong_together():
    """Each article has its ten questions right, or none."""
    random = np.random.default_rng(3)
    articles = np.arange(600) // 10
    characters = np.tile(np.arange(10), 60).tolist()
    right = [(random.random(60) < 0.6)[articles] for _ in range(3)]
    runs = {"one": {seed: [lines(each)] for seed, each in enumerate(right)}}
    alone, together = (
        by_length(characters, runs, None, CONFIG, "accuracy", clusters, 1.0) for clusters in (None, articles)
    )
    for one, other in zip(alone, together, strict=True):
        low, high = one.pretrained["one"].interval
        lower, higher = other.pretrained["one"].interval
        assert lower < low < high < higher


@pytest.mark.parametrize(
    ("metric", "scored"),
    [("macro_f1", lambda *sides: f1_score(*sides, average="macro")), ("matthews", matthews_corrcoef)],
)
def test_scores_by_length_that_are_no_means_over_rows_are_those_of_scikit_learn(metric, scored):
    """Also where a third has two rows of a class, or one."""
    random = np.random.default_rng(2)
    characters = list(range(90))
    labels = random.choice([*"abcde"], size=90, p=[0.5, 0.3, 0.12, 0.05, 0.03])
    answers = [np.where(random.random(90) < 0.7, labels, random.choice([*"abcde"], size=90)) for _ in range(2)]
    runs = {
        "one": {
            seed: [[{"label": label, "prediction": answer} for label, answer in zip(labels, answered, strict=True)]]
            for seed, answered in enumerate(answers)
        }
    }
    for part in by_length(characters, runs, None, CONFIG, metric, None, 1.0):
        rows = slice(part.shortest, part.longest + 1)
        expected = [scored(labels[rows], answered[rows]) for answered in answers]
        assert part.pretrained["one"].seeds == {seed: pytest.approx(value) for seed, value in enumerate(expected)}


def test_lengths_that_do_not_differ_are_not_compared():
    runs = {"one": {0: [lines([True] * 40)]}}
    assert by_length([5] * 40, runs, None, CONFIG, "accuracy", None, 1.0) == []
    assert by_length([], runs, None, CONFIG, "accuracy", None, 1.0) == []


SCORES = st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=2, max_size=2)


@given(st.lists(SCORES, min_size=2, max_size=3))
def test_rows_that_differ_are_those_on_which_one_recipe_is_better_in_every_seed(table):
    values = {str(i): [np.array(seed, float) for seed in seeds] for i, seeds in enumerate(table)}
    expected = {
        row
        for row in range(6)
        if any(all(seed[row] for seed in one) for one in table)
        and any(not any(seed[row] for seed in one) for one in table)
    }
    assert set(steadily_differing(values)) == expected


def test_the_widest_and_most_even_divisions_come_first_and_no_kind_of_row_takes_all_places():
    better, worse = np.ones(40), np.zeros(40)
    better[:3], worse[3:5] = 0, 1
    found = steadily_differing({"a": [better] * 2, "b": [worse] * 2})
    assert len(found) == MOST_ROWS
    assert 0 not in found  # both are wrong
    assert 3 not in found  # both are right
    worse[30:36], better[30:36] = 1, 0
    found = steadily_differing({"a": [better] * 2, "b": [worse] * 2})
    assert sum(30 <= row < 36 for row in found[: 2 * OF_A_KIND]) == OF_A_KIND
    nearer = {"a": [np.array([0.1, 0.9]), np.array([0.2, 0.8])], "b": [np.array([0.0, 0.1]), np.array([0.05, 0.1])]}
    assert steadily_differing(nearer) == [1, 0]
    assert steadily_differing({"alone": [better]}) == []


def test_a_row_has_the_predictions_of_all_seeds_and_the_beginning_of_its_text():
    long = TestRow.of(LabelledText(1, ("x" * 500, "y")), CONFIG)
    assert (len(long.text), long.text[-1], long.characters, long.words) == (EXCERPT, "…", 501, None)
    pair = TestRow.of(LabelledText(1, ("one", "two")), CONFIG)
    assert pair.text == "one | two"
    sentence = TestRow.of(TaggedSentence(1, ("a", "b"), ("X", "Y")), TaggingConfig(train="t.conll"))
    assert (sentence.text, sentence.words, sentence.characters) == ("a b", 2, 2)
    asked = TestRow.of(Question(1, ("who?", "an article"), ()), QuestionAnsweringConfig(train="t.json"))
    assert (asked.text, asked.words) == ("who? | an article", None)
    tags = [{"label": ["X", "Y"], "prediction": ["X", tag]} for tag in "YX"]
    runs = {"one": {0: [tags[:1]], 1: [tags[1:]]}}
    assert differing_rows([0], runs, [sentence]) == [
        DifferingRow(
            row=1, text="a b", label=["X", "Y"], word_by_word=True, predictions={"one": [["X", "Y"], ["X", "X"]]}
        )
    ]


def test_scores_of_classes_are_those_of_scikit_learn(folder):  # noqa: F811
    """Of recipes and of the baseline, from their predictions."""
    results = compare(plan_of(folder), folder / "out", engine=Answering(), report=lambda results, path: None)
    for baseline in results.baselines:
        if baseline.kind == "learned" and baseline.labels:
            rows = read_json_lines(folder / "out" / baseline.predictions)
            sides = [[row[side] for row in rows] for side in ("label", "prediction")]
            expected = precision_recall_fscore_support(*sides, labels=list(baseline.labels), zero_division=0)
            found = [(each.precision, each.recall, each.f1, each.count) for each in baseline.labels.values()]
            assert np.transpose(found) == pytest.approx(np.array(expected), abs=1e-6)
            break
    else:
        pytest.fail("no baseline has scores of classes")
    assert all(analysis.by_length for analysis in results.analyses)
    assert Results.read(folder / "out/results.json") == results
    again = compare(plan_of(folder), folder / "out", engine=Answering(), report=lambda results, path: None)
    assert again.analyses == results.analyses  # texts and lengths are kept


def _require_that_they_differ(rows):
    """One recipe is right whatever the seed, another never."""
    for row in [row for found in rows.values() for row in found if isinstance(row.label, str)]:
        right = [{answer == row.label for answer in answers} for answers in row.predictions.values()]
        assert {True} in right
        assert {False} in right


@pytest.mark.parametrize("metric", ["macro_f1", "matthews"])
def test_rows_that_differ_are_right_and_wrong_ones_whatever_the_metric(folder, metric):  # noqa: F811
    files = dict.fromkeys(("train", "dev", "test"), folder / "rows.tsv")
    tasks = [{"name": "classes", **files, "text_column": "text", "label_column": "class", "metric": metric}]
    plan = plan_of(folder, tasks=tasks)
    results = compare(plan, folder / "out", engine=Divided(), report=lambda results, path: None)
    (analysis,) = results.analyses
    assert analysis.differing_rows
    _require_that_they_differ({"classes": analysis.differing_rows})


def test_scores_of_classes_are_means_over_fine_tunings():
    results = with_labels(make_results(tasks=("T",)))
    (entry,) = [each for each in results.recipes if each.label == "gpt-tiny"]
    values = [score.labels["yes"].f1 for score in entry.scores if score.initialisation == "pretrained"]
    found = class_scores(results, "T")
    assert found["yes"]["gpt-tiny"].f1 == pytest.approx(np.mean(values))
    assert found["yes"]["gpt-tiny"].count == 400


def with_labels(results, name="yes"):
    """The results with scores of two classes, of which one differs more among recipes."""
    entries = []
    for number, entry in enumerate(results.recipes):
        scores = []
        for score in entry.scores:
            start = 0.1 * (score.initialisation == "pretrained") + 0.01 * score.seed
            labels = {
                name: LabelScore(precision=0.5, recall=0.25, f1=start + 0.1 * number, count=400),
                "no": LabelScore(precision=0.5, recall=0.25, f1=start, count=300),
            }
            scores.append(score.model_copy(update={"labels": labels}))
        entries.append(entry.model_copy(update={"scores": scores}))
    return results.model_copy(update={"recipes": entries})


def test_the_section_shows_texts_as_text_and_what_differs_most_first(tmp_path):
    results = with_labels(make_results(tasks=("T",)), "<u>yes</u>")
    labels = list(results.analyses[0].pretrained)
    row = {"row": 7, "text": "<script>alert(1)</script>", "label": "<u>yes</u>"}
    rows = [
        DifferingRow(**row, predictions={label: ["<u>yes</u>", "<u>yes</u>", "no"] for label in labels}),
        DifferingRow(row=8, text="a", label=1.5, predictions={label: [1.0, 2.0, 3.0] for label in labels}),
        DifferingRow(
            row=9, text="b", label=["X", "Y"], word_by_word=True, predictions={n: [["X", "X"]] for n in labels}
        ),
        DifferingRow(row=10, text="c", label=["x"], predictions={label: [[], ["x"]] for label in labels}),
    ]
    spreads = results.analyses[0].pretrained
    parts = [
        LengthScores(shortest=1, longest=20, rows=9, pretrained=spreads, baseline=0.5),
        LengthScores(shortest=21, longest=21, rows=1, pretrained=spreads, baseline=0.75),
    ]
    update = {"differing_rows": rows, "by_length": parts}
    results = results.model_copy(update={"analyses": [results.analyses[0].model_copy(update=update)]})
    section = where_section(results)
    assert "<script" not in section
    assert "<u>" not in section
    assert section.index("&lt;u&gt;yes&lt;/u&gt;</th>") < section.index("no</th>")
    assert "<b>&lt;u&gt;yes&lt;/u&gt; 2/3</b><br>no 1/3" in section
    assert "2<small>1 to 3</small>" in section
    assert "1 of 2 right 1/1" in section
    assert "(nothing) 1/2<br><b>x 1/2</b>" in section
    assert "1 to 20 characters, 9 rows" in section
    assert "21 characters, 1 row<" in section
    assert "<td>50.0</td><td>75.0</td>" in section
    write_report(results, tmp_path / "report.html")
    assert section in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert where_section(make_results()) == ""
    assert json.loads(results.model_dump_json())["analyses"][0]["differing_rows"][0]["row"] == 7
