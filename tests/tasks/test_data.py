import random
import re
import statistics
from collections import Counter
from itertools import pairwise

import pytest
from keyword_task import labelled, write_jsonl, write_tsv

from bakeoff.errors import UserError
from bakeoff.tasks.checks.examine import check_task
from bakeoff.tasks.data import load_task
from bakeoff.tasks.kinds.choice import ChoiceQuestion
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.kinds.multilabel import MultilabelConfig
from bakeoff.tasks.kinds.regression import RegressionConfig
from bakeoff.tasks.kinds.tagging import TaggingConfig
from bakeoff.tasks.reading.questions import Question


def config(folder, **changes):
    return ClassificationConfig(
        **({"train": folder / "train.tsv", "text_column": "text", "label_column": "label"} | changes)
    )


def texts_of(part):
    return {each.texts for each in part}


def test_files_are_taken_as_they_are(task):
    data = load_task(task)
    assert [len(part) for part in (data.train, data.dev, data.test)] == [240, 60, 90]
    assert data.task.classes == ["fruit", "place", "tool"]
    assert data.task.simplest(data.train, data.test)["accuracy"] == pytest.approx(1 / 3)
    assert data.notes == []


def test_held_out_parts_are_stratified_disjoint_and_said(tmp_path):
    write_tsv(tmp_path / "train.tsv", labelled(300, 1))
    data = load_task(config(tmp_path))
    parts = [data.train, data.dev, data.test]
    assert [len(part) for part in parts] == [210, 30, 60]
    for part in parts:
        assert len(set(Counter(each.label for each in part).values())) == 1
    texts = [texts_of(part) for part in parts]
    assert not texts[0] & texts[1]
    assert not texts[0] & texts[2]
    assert not texts[1] & texts[2]
    assert data.notes == [
        "no test file: 60 of the 300 rows of train.tsv held out as test",
        "no dev file: 30 of the 300 rows of train.tsv held out as dev",
    ]
    assert load_task(config(tmp_path))[1:] == data[1:]
    assert load_task(config(tmp_path, split_seed=1)).test != data.test


def test_few_rows_to_learn_from_leave_the_held_out_parts_alone(tmp_path):
    write_tsv(tmp_path / "train.tsv", labelled(300, 1))
    whole, few = load_task(config(tmp_path)), load_task(config(tmp_path, train_rows=20))
    assert (few.dev, few.test) == (whole.dev, whole.test)
    assert set(few.train) < set(whole.train)
    assert len(few.train) == 20


@pytest.mark.parametrize("order", ["sorted", "mixed"])
def test_few_rows_have_of_each_class_its_share_and_of_the_rarest_one(tmp_path, order):
    """In a file that is sorted by class, too, whose first rows are all of one."""
    counts = {"often": 600, "half": 300, "seldom": 96, "once": 3, "never": 1}
    rows = [{"text": f"{label} {i}", "label": label} for label, count in counts.items() for i in range(count)]
    if order == "mixed":
        random.Random(0).shuffle(rows)
    write_tsv(tmp_path / "train.tsv", rows)
    files = {"dev": tmp_path / "train.tsv", "test": tmp_path / "train.tsv"}
    parts = [load_task(config(tmp_path, **files, train_rows=count)) for count in (5, 10, 100, 999, 1000)]
    for data, count in zip(parts, (5, 10, 100, 999, 1000), strict=True):
        found = Counter(each.label for each in data.train)
        assert found.total() == count
        assert all(1 <= found[label] <= counts[label] for label in counts)
        assert all(abs(found[label] - count * counts[label] / 1000) < 3 for label in counts)
        assert [each.line for each in data.train] == sorted(each.line for each in data.train)
        assert data.task.classes == sorted(counts)
    for fewer, more in pairwise(parts):
        assert set(fewer.train) <= set(more.train)
    other = load_task(config(tmp_path, **files, train_rows=100, split_seed=1))
    assert set(other.train) != set(parts[2].train)


def test_too_few_rows_for_all_classes_leave_the_classes_known(tmp_path):
    write_tsv(tmp_path / "train.tsv", labelled(300, 1))
    data = load_task(config(tmp_path, train_rows=2))
    assert data.task.classes == ["fruit", "place", "tool"]
    assert len({each.label for each in data.train}) == 2
    assert data.task.simplest(data.train, data.test)["accuracy"] == pytest.approx(1 / 3)
    assert any("of test missing in train" in note for note in data.notes), data.notes


@pytest.mark.parametrize("split", ["dev", "test"])
def test_a_tag_that_train_lacks_is_a_wrong_answer_wherever_it_stands(split, tmp_path):
    """In a treebank's own parts rare tags are right, and no reason to refuse it."""
    for name, last in (("train", "NOUN"), (split, "XYZ")):
        rows = [("the", "DET"), ("dog", "NOUN")] * 9 + [("wow", last)]
        (tmp_path / f"{name}.conll").write_text("".join(f"{word}\t{tag}\n\n" for word, tag in rows))
    files = {"dev": tmp_path / "train.conll", "test": tmp_path / "train.conll", split: tmp_path / f"{split}.conll"}
    config = TaggingConfig(train=tmp_path / "train.conll", **files)
    data = load_task(config)
    examples = getattr(data, split)
    assert data.task.classes == ["DET", "NOUN"]
    assert f"1 label of {split} missing in train: XYZ" in data.notes
    assert check_task(config).problems == []
    assert data.task.simplest(data.train, examples)["accuracy"] == pytest.approx(18 / 19)
    predictions = [["NOUN"]] * 19
    assert data.task.score(examples, predictions)["accuracy"] == pytest.approx(9 / 19)
    assert {name: each.count for name, each in data.task.score_labels(examples, predictions).items()} == {
        "DET": 9,
        "NOUN": 9,
        "XYZ": 1,
    }


def test_tags_that_one_sentence_alone_has_may_be_held_out(tmp_path):
    sentences = [f"the\tDET\ndog{n}\tR{n}\n\n" for n in range(60)]
    (tmp_path / "a.conll").write_text("".join(sentences))
    data = load_task(TaggingConfig(train=tmp_path / "a.conll"))
    parts = (data.train, data.dev, data.test)
    assert data.task.classes == ["DET", *sorted(each.tags[1] for each in data.train)]
    assert sum(map(len, parts)) == 60 > len(data.train)


def test_a_span_of_a_type_that_train_lacks_is_missed_and_a_slip_refused(tmp_path):
    for name, tags in (("train", "B-PER I-PER O"), ("test", "B-PER B-ORG O"), ("slip", "B-PER ORG O")):
        lines = "".join(f"{word}\t{tag}\n" for word, tag in zip("abc", tags.split(), strict=True)) + "\n"
        (tmp_path / f"{name}.conll").write_text(lines * 20)
    train = tmp_path / "train.conll"
    config = TaggingConfig(train=train, dev=train, test=tmp_path / "test.conll", legal=True)
    task = load_task(config).task
    assert (task.metric, task.classes) == ("f1", ["B-PER", "I-PER", "O"])
    with pytest.raises(UserError, match=r"slip.conll: the tag 'ORG' .* is neither O nor B-"):
        load_task(config.model_copy(update={"test": tmp_path / "slip.conll"}))


def test_a_label_among_several_that_train_lacks_is_never_predicted(tmp_path):
    for name, last in (("train", "b"), ("test", "b c")):
        lines = [f"text {n} of many\t{'a' if n % 2 else last}" for n in range(40)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(["text\tlabels", *lines]) + "\n")
    config = MultilabelConfig(
        train=tmp_path / "train.tsv",
        test=tmp_path / "test.tsv",
        text_column="text",
        label_column="labels",
        between_labels=" ",
    )
    data = load_task(config)
    assert data.task.classes == ["a", "b"]
    assert "1 label of test missing in train: c" in data.notes
    for baseline in data.task.baselines(data.train):
        predictions = baseline.predict(data.test)
        scores = data.task.score(data.test, predictions)
        assert scores["exact"] <= 0.5
        lines = [data.task.line(*pair) for pair in zip(data.test, predictions, strict=True)]
        for metric, value in scores.items():
            assert config.contributions(lines, metric).mean() == pytest.approx(value, abs=0.02), metric
        of_labels = data.task.score_labels(data.test, predictions)
        assert (of_labels["c"].recall, of_labels["c"].count) == (0.0, 20)
        assert scores["macro_f1"] == pytest.approx(sum(each.f1 for each in of_labels.values()) / 3)


@pytest.mark.parametrize("name", ["dev", "test"])
def test_a_file_without_any_known_tag_is_refused(name, tmp_path):
    """As where another column was meant."""
    for file, tags in (("train", "DET NOUN"), (name, "DT NN")):
        (tmp_path / f"{file}.conll").write_text(f"the\t{tags.split()[0]}\ndog\t{tags.split()[1]}\n\n" * 20)
    files = {"dev": tmp_path / "train.conll", "test": tmp_path / "train.conll", name: tmp_path / f"{name}.conll"}
    config = TaggingConfig(train=tmp_path / "train.conll", **files)
    expected = f"{tmp_path / name}.conll: none of its labels (DT, NN) occurs in {config.train}, which has DET, NOUN"
    with pytest.raises(UserError, match=re.escape(expected)):
        load_task(config)
    assert check_task(config).problems == [f"{expected}; mend them, or name another column"]


def test_few_sentences_have_every_tag(tmp_path):
    """A tag that no sentence at the beginning of the file has is no reason to refuse the task."""
    sentences = [[("the", "DET"), ("dog", "NOUN")]] * 90 + [[("x", "X")], [("wow", "INTJ"), ("!", "PUNCT")]]
    text = "".join("".join(f"{word}\t{tag}\n" for word, tag in sentence) + "\n" for sentence in sentences)
    (tmp_path / "a.conll").write_text(text)
    path = tmp_path / "a.conll"
    for few in (1, 3, 10):
        data = load_task(TaggingConfig(train=path, dev=path, test=path, train_rows=few))
        assert data.task.classes == ["DET", "INTJ", "NOUN", "PUNCT", "X"]
        assert len({tag for each in data.train for tag in each.tags}) == {1: 2, 3: 5, 10: 5}[few]


def test_few_numbers_are_of_the_whole_file(tmp_path):
    """Rows without classes are drawn evenly, and the scale of the numbers is that of all."""
    write_tsv(tmp_path / "train.tsv", [{"text": f"t{i}", "label": i} for i in range(1000)])
    columns = {"text_column": "text", "label_column": "label", "train": tmp_path / "train.tsv"}
    task = RegressionConfig(**columns, dev=columns["train"], test=columns["train"], train_rows=200)
    data = load_task(task)
    assert 450 < statistics.mean(each.value for each in data.train) < 550
    assert data.task.labels["mean"] == pytest.approx(499.5)


def test_equal_texts_stay_together(tmp_path):
    write_tsv(tmp_path / "train.tsv", [row for row in labelled(100, 1) for _ in range(3)])
    data = load_task(config(tmp_path))
    assert not texts_of(data.train) & texts_of(data.test)
    assert len(data.test) % 3 == 0


def test_rare_classes_share_what_rounding_leaves(tmp_path):
    rows = [{"text": f"text {i}", "label": f"class{i % 20:02d}"} for i in range(60)]
    write_tsv(tmp_path / "train.tsv", rows)
    data = load_task(config(tmp_path, dev=tmp_path / "train.tsv", test_share=0.1))
    assert len(data.test) == 6
    assert len({each.label for each in data.test}) == 6
    assert len({each.label for each in data.train}) == 20


def test_pairs_and_rows_in_two_parts(tmp_path):
    rows = [{"a": f"x{i}", "b": f"y{i}", "label": i % 2} for i in range(8)]
    for name, part in (("train", rows), ("dev", rows[:3]), ("test", [{"a": "x0", "b": "y1", "label": 0}, rows[1]])):
        write_jsonl(tmp_path / f"{name}.jsonl", part)
    paths = {name: tmp_path / f"{name}.jsonl" for name in ("train", "dev", "test")}
    data = load_task(ClassificationConfig(**paths, text_column="a", pair_column="b", label_column="label"))
    assert [each.texts for each in data.train] == [(f"x{i}", f"y{i}") for i in range(8)]
    assert data.notes == [
        "train has the texts of 1 of the 2 rows of test, too",
        "train has the texts of 3 of the 3 rows of dev, too",
        "dev has the texts of 1 of the 2 rows of test, too",
    ]


def test_texts_that_a_model_reads_alike_stay_together_and_are_noted(tmp_path):
    """With other spaces, or with an accent in a character of its own."""
    forms = ("cafe\u0301 {}", "caf\u00e9 {}", " caf\u00e9  {}", "caf\u00e9\u00a0{} ")
    rows = [{"text": form.format(i), "label": str(i % 2)} for form in forms for i in range(30)]
    write_jsonl(tmp_path / "rows.jsonl", rows)
    config = ClassificationConfig(train=tmp_path / "rows.jsonl", text_column="text", label_column="label")
    data = load_task(config)
    assert not any("has the texts of" in note for note in data.notes)
    parts = [{" ".join(each.texts[0].split()[1:]) for each in part} for part in (data.train, data.dev, data.test)]
    assert sum(map(len, parts)) == len(set.union(*parts)) == 30
    for name, form in zip(("train", "dev", "test"), forms, strict=False):
        write_jsonl(tmp_path / f"{name}.jsonl", [{"text": form.format(i), "label": str(i % 2)} for i in range(30)])
    paths = {name: tmp_path / f"{name}.jsonl" for name in ("train", "dev", "test")}
    split = load_task(ClassificationConfig(**paths, text_column="text", label_column="label"))
    assert split.notes[0] == "train has the texts of 30 of the 30 rows of test, too"
    questions = [Question(1, ("q?", form.format("au lait"))) for form in forms]
    choices = [ChoiceQuestion(1, (form.format("au lait"), "", "a", "b")) for form in forms]
    for alike in (questions, choices):
        assert len({each.cluster for each in alike}) == 1
    assert len({each.together for each in questions}) == 1


def test_what_dev_and_test_have_in_common_and_labels_of_one_split_are_noted(tmp_path):
    rows = {
        "train": [{"text": f"a{i}", "label": "yes" if i else "no"} for i in range(10)],
        "dev": [{"text": "d", "label": "yes"}, {"text": "e", "label": "no"}],
        "test": [{"text": "d", "label": "yes"}],
    }
    paths = {name: tmp_path / f"{name}.jsonl" for name in rows}
    for name, path in paths.items():
        write_jsonl(path, rows[name])
    expected = [
        "dev has the texts of 1 of the 1 row of test, too",
        "90.0% of train are 'yes': a model that answers nothing else is right as often; look at other scores than "
        "accuracy",
        "1 label of train missing in test: no",
    ]
    assert load_task(config(tmp_path, **paths)).notes == expected
    same = load_task(config(tmp_path, **{**paths, "test": paths["dev"]})).notes
    assert same == [
        "dev and test are the same file: epochs and rates are chosen by the rows that are reported",
        expected[1],
    ]


def test_unseen_label_names_file_line_and_reason(tmp_path, files):
    write_tsv(tmp_path / "dev.tsv", [{"text": "x", "label": "fruit"}, {"text": "y", "label": "animal"}])
    with pytest.raises(
        UserError, match=r"dev.tsv:3: the label 'animal' does not occur in .*train.tsv, which has fruit"
    ):
        load_task(config(files, dev=tmp_path / "dev.tsv", test=files / "test.tsv"))
    # The rows that are learned from may lack a label that the file has.
    assert load_task(config(files, dev=files / "dev.tsv", test=files / "test.tsv", train_rows=2)).task.outputs == 3


def test_one_class_or_too_few_rows(tmp_path):
    write_tsv(tmp_path / "train.tsv", [{"text": str(i), "label": "yes"} for i in range(20)])
    with pytest.raises(UserError, match=r"the only label is 'yes'"):
        load_task(config(tmp_path))
    write_tsv(tmp_path / "train.tsv", [{"text": str(i), "label": i} for i in range(3)])
    with pytest.raises(
        UserError, match=r"3 rows, no label of which comes twice: too few to hold some out as test; give"
    ):
        load_task(config(tmp_path))
    write_tsv(tmp_path / "train.tsv", [{"text": "same", "label": "yes" if i % 2 else "no"} for i in range(80)])
    with pytest.raises(
        UserError, match=r"80 rows in 1 group with the same texts or of one cluster, which stay together: "
    ):
        load_task(config(tmp_path))
    write_tsv(tmp_path / "train.tsv", [{"text": str(i), "label": i % 2} for i in range(3)])
    with pytest.raises(
        UserError, match=r"3 rows, 2 of them left, no label of which comes twice: too few to hold some out as dev; give"
    ):
        load_task(config(tmp_path))
    write_tsv(tmp_path / "train.tsv", [{"text": "abcd"[i % 4], "label": i % 2} for i in range(40)])
    with pytest.raises(UserError, match=r"40 rows, 30 of them left in 3 groups with the same texts .* out as dev"):
        load_task(config(tmp_path))


def test_misspelt_key():
    with pytest.raises(UserError, match=r"task: unknown key 'text_colum'; did you mean 'text_column'\?"):
        ClassificationConfig.parse({"train": "x", "text_colum": "a", "label_column": "b"}, "task")


def test_the_class_with_the_largest_remainder_is_rounded_up(tmp_path):
    """A quarter of 5, 9 and 14 texts: 1.25, 2.25 and 3.5."""
    rows = [{"text": f"text {i}", "label": label} for i, label in enumerate("a" * 5 + "b" * 9 + "c" * 14)]
    write_tsv(tmp_path / "train.tsv", rows)
    data = load_task(config(tmp_path, dev=tmp_path / "train.tsv", test_share=0.25))
    assert [[each.label for each in data.test].count(name) for name in "abc"] == [1, 2, 4]


@pytest.mark.parametrize(
    ("labels", "remarked"),
    [
        ([str(i) for i in range(1, 13)], "the 12 labels are numbers from 1 to 12"),
        (["0", "1", "2", "3"], None),
        (["1", "1.5", "2"], "the 3 labels are numbers from 1 to 2"),
        (["-2", "0", "2", "4", "6"], "the 5 labels are numbers from -2 to 6"),
        (["1", "2", "3", "4", "5", "none"], None),
        (["1", "2", "3", "4", "inf"], None),
    ],
)
def test_scores_on_a_scale_are_remarked_on(labels, remarked, tmp_path):
    rows = [{"text": f"text {i}", "label": labels[i % len(labels)]} for i in range(40 * len(labels))]
    write_tsv(tmp_path / "train.tsv", rows)
    notes = [note for note in load_task(config(tmp_path)).notes if "labels are numbers" in note]
    assert len(notes) == (remarked is not None)
    assert all(note.startswith(remarked) for note in notes)


def test_rows_of_two_splits_are_counted_where_they_should_not_be(tmp_path):
    """Those of test, however often train has their texts."""
    parts = {"train": ["a", "a", "a", "b", "c", "d"], "dev": ["x", "c", "c"], "test": ["a", "y", "b", "b", "z"]}
    for name, texts in parts.items():
        rows = [{"text": text, "label": "pq"[place % 2]} for place, text in enumerate(texts)]
        write_jsonl(tmp_path / f"{name}.jsonl", rows)
    paths = {name: tmp_path / f"{name}.jsonl" for name in parts}
    assert load_task(config(tmp_path, **paths)).notes == [
        "train has the texts of 3 of the 5 rows of test, too",
        "train has the texts of 2 of the 3 rows of dev, too",
    ]
