"""Classifiers that learn from others' probabilities: the loss, the file between, the result, and what is refused."""

import json
import shutil

import numpy as np
import pytest
import torch
from keyword_task import labelled
from tests.interrupting import interrupt_at

from bakeoff.cli import run as command_line
from bakeoff.errors import Interrupted, UserError
from bakeoff.json_files import json_lines, read_json_lines
from bakeoff.tasks.data import load_task
from bakeoff.tasks.distill import distill_classifier
from bakeoff.tasks.evaluate import evaluate
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.kinds.classification import ClassificationConfig
from bakeoff.tasks.kinds.regression import RegressionConfig
from bakeoff.tasks.predict import predict, predict_parts
from bakeoff.tasks.rows.items import Items

TEXTS = [row["text"] for row in labelled(160, 7)]
QUICK = FinetuneConfig(learning_rate=[3e-3], epochs=3, least_steps=0)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Texts without labels, and two blank lines."""
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("\n".join([*TEXTS, "", " "]) + "\n", encoding="utf-8")
    return path


def distilled(teachers, source, texts, out, **options):
    return distill_classifier(
        [each.path for each in teachers],
        source,
        texts,
        out,
        device="cpu",
        progress=False,
        **{"config": QUICK, **options},
    )


@pytest.fixture(scope="module")
def second(recipe, task, corpus, tmp_path_factory):
    """Another fine-tuned run, which is less sure of itself."""
    out = tmp_path_factory.mktemp("second") / "run"
    config = FinetuneConfig(learning_rate=[1e-3], epochs=2, least_steps=0)
    return finetune(recipe, task, out, config=config, tokenizer=corpus, device="cpu", progress=False, seed=4)


def soft_file(path, probabilities):
    rows = [{"text": f"a text {n}", "label": max(p, key=p.get), "p": p} for n, p in enumerate(probabilities)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return ClassificationConfig(train=path, text_column="text", label_column="label", probabilities_column="p")


def test_the_loss_is_the_cross_entropy_with_the_probabilities(tmp_path):
    drawn = np.random.default_rng(0)
    given = drawn.dirichlet([1, 1, 1], 40)
    data = load_task(soft_file(tmp_path / "soft.jsonl", [dict(zip("abc", row, strict=True)) for row in given]))
    assert data.task.labels == ["a", "b", "c"]
    examples = data.train
    targets = [data.task._target(each) for each in examples]
    items = Items(None, np.arange(len(examples) + 1), np.arange(len(examples)), targets)
    scores = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    chosen = np.array([3, 0, 7, 7, 9])
    found = data.task.loss(scores, items, chosen)
    expected = 0.0
    for row, item in zip(scores.numpy(), chosen, strict=True):
        taught = [examples[item].probabilities[name] for name in "abc"]
        expected -= sum(p * (z - np.log(np.exp(row).sum())) for p, z in zip(taught, row, strict=True)) / 5
    assert float(found) == pytest.approx(expected, rel=1e-6)
    logarithms = [np.log(each / each.sum()).astype(np.float32) for each in drawn.uniform(0.1, 1, (len(examples), 3))]
    mean = -np.mean([(t * row).sum() for t, row in zip(targets, logarithms, strict=True)])
    assert data.task.mean_loss(logarithms, items) == pytest.approx(mean, rel=1e-5)


def test_classes_without_a_row_of_their_own_are_learned(tmp_path):
    rows = [{"a": 0.6, "b": 0.3, "c": 0.1}, {"b": 0.5, "a": 0.4, "c": 0.1}] * 10
    assert load_task(soft_file(tmp_path / "soft.jsonl", rows)).task.labels == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ({"a": 0.5, "b": 0.2}, "the sum 0.7"),
        ({"a": 1.5, "b": -0.5}, "no probability"),
        ({"a": "much", "b": 0.5}, "no probability"),
        ({}, "for each class"),
        ("a", "for each class"),
        (None, "for each class"),
    ],
)
def test_cells_that_hold_no_probabilities_are_refused_with_their_line(cell, words, tmp_path):
    config = soft_file(tmp_path / "soft.jsonl", [{"a": 0.6, "b": 0.4}] * 20)
    lines = config.train.read_text(encoding="utf-8").splitlines()
    lines[4] = json.dumps({"text": "x", "label": "a", "p": cell})
    config.train.write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(UserError, match=rf"soft.jsonl:5: .*{words}"):
        load_task(config)


def test_a_student_learns_what_two_teachers_say(fitted, second, run, texts, quick, files, tmp_path):
    options = {"test": files / "test.tsv", "config": quick}
    result = distilled([fitted, second], run.path, texts, tmp_path / "student", **options)
    lines = [json.loads(line) for line in (tmp_path / "student-taught.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(lines) == 160
    one, other = (FinetunedRun.open(each.path) for each in (fitted, second))
    for line in lines[:20]:
        means = [_probabilities(each, line["text"]) for each in (one, other)]
        assert line["probabilities"] == pytest.approx(
            {name: (means[0][name] + means[1][name]) / 2 for name in means[0]}, abs=2e-6
        )
        assert line["label"] == max(line["probabilities"], key=line["probabilities"].get)
    assert result.transferred_tensors > 0
    assert result.scores["dev"]["accuracy"] > 0.6  # agreement with the teachers on texts that were held out
    labelled_score = evaluate(tmp_path / "student", data=files / "test.tsv", device="cpu")["scores"]["accuracy"]
    assert result.scores["test"]["accuracy"] == pytest.approx(labelled_score)
    assert any("agreement" in note for note in result.notes)
    assert predict(tmp_path / "student", ["a text"], device="cpu")[0]["label"] in one.learned.classes


def test_a_resumed_one_keeps_what_another_device_has_rounded_otherwise(fitted, run, texts, tmp_path):
    distilled([fitted], run.path, texts, tmp_path / "whole")
    lines = read_json_lines(tmp_path / "whole-taught.jsonl")
    for each in lines[::2]:
        each["probabilities"] = {name: value + 3e-6 for name, value in each["probabilities"].items()}
    begun = tmp_path / "student-taught.jsonl"
    begun.write_text(json_lines(lines), encoding="utf-8")
    distilled([fitted], run.path, texts, tmp_path / "student", resume=True)
    assert read_json_lines(begun) == lines
    for changed in (lines[:-1], [{**lines[0], "text": "another"}, *lines[1:]], [{"a": 1}, *lines[1:]]):
        begun.write_text(json_lines(changed), encoding="utf-8")
        with pytest.raises(UserError, match=r"student-taught.jsonl: was begun with other texts or teachers"):
            distilled([fitted], run.path, texts, tmp_path / "student", resume=True)


def _probabilities(run, text):
    ((answer,),) = predict_parts(run, [(text,)], device="cpu")
    return dict(zip(run.learned.classes, answer.prediction.probabilities.tolist(), strict=True))


def test_without_a_labelled_file_both_scores_are_agreement(fitted, recipe, texts, tmp_path):
    result = distilled([fitted], recipe, texts, tmp_path / "student")
    assert result.rows == {"train": 112, "dev": 16, "test": 32}
    student = FinetunedRun.open(tmp_path / "student")
    assert student.tokenizer.to_string() == FinetunedRun.open(fitted.path).tokenizer.to_string()
    predictions = student.predictions()
    teacher = predict(fitted.path, TEXTS, device="cpu")
    assert {line["label"] for line in predictions} <= {each["label"] for each in teacher}
    agreement = np.mean([line["label"] == line["prediction"] for line in predictions])
    assert result.scores["test"]["accuracy"] == pytest.approx(agreement)


def test_a_stopped_one_goes_on_exactly_and_not_from_other_teachers(fitted, second, run, texts, tmp_path, monkeypatch):
    whole = distilled([fitted], run.path, texts, tmp_path / "whole")
    with monkeypatch.context() as patch:
        interrupt_at(patch, 5)
        with pytest.raises(Interrupted):
            distilled([fitted], run.path, texts, tmp_path / "student")
    with pytest.raises(UserError, match=r"student-taught.jsonl: was begun with other texts or teachers"):
        distilled([second], run.path, texts, tmp_path / "student", resume=True)
    result = distilled([fitted], run.path, texts, tmp_path / "student", resume=True)
    assert result.scores == whole.scores
    with pytest.raises(UserError, match="holds a fine-tuned run"):
        distilled([fitted], run.path, texts, tmp_path / "student")
    (tmp_path / "other-taught.jsonl").write_text("mine", encoding="utf-8")
    with pytest.raises(UserError, match=r"other-taught.jsonl: is there already"):
        distilled([fitted], run.path, texts, tmp_path / "other")
    assert (tmp_path / "other-taught.jsonl").read_text(encoding="utf-8") == "mine"
    (tmp_path / "other-taught.jsonl").write_bytes(b"\xff\xfe no UTF-8")
    with pytest.raises(UserError, match=r"other-taught.jsonl: is there already"):
        distilled([fitted], run.path, texts, tmp_path / "other")


def test_labels_that_the_teachers_files_named_are_named_once(recipe, corpus, texts, tmp_path):
    rows = labelled(120, 3)
    kinds = sorted({row["label"] for row in rows})
    numbers = {label: str(number) for number, label in enumerate(kinds, 1)}  # 1 is 0 to the task, 2 is 1 and so on
    path = tmp_path / "train.jsonl"
    lines = [json.dumps({"probabilities": row["text"], "label": numbers[row["label"]]}) for row in rows]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    names = {number: str(int(number) - 1) for number in numbers.values()}
    columns = {"text_column": "probabilities", "label_column": "label"}
    config = ClassificationConfig(train=path, label_names=names, **columns)
    made = finetune(recipe, config, tmp_path / "run", config=QUICK, tokenizer=corpus, device="cpu", progress=False)
    result = distilled([made], recipe, texts, tmp_path / "student", test=path)
    task = FinetunedRun.open(tmp_path / "student").task
    read = list(task.read(task.train))
    assert len(read) == 160
    for each in read:
        assert each.label == max(each.probabilities, key=each.probabilities.get)
    assert result.rows["test"] == 120


def test_what_cannot_teach_is_refused(fitted, run, texts, files, corpus, recipe, tmp_path):
    with pytest.raises(UserError, match="a fine-tuned run is needed"):
        distilled([run], run.path, texts, tmp_path / "student")
    with pytest.raises(UserError, match="listed twice"):
        distilled([fitted, fitted], run.path, texts, tmp_path / "student")
    empty = tmp_path / "empty.txt"
    empty.write_text("\n \n", encoding="utf-8")
    with pytest.raises(UserError, match=r"empty.txt: the file holds no texts"):
        distilled([fitted], run.path, empty, tmp_path / "student")
    few = tmp_path / "few.txt"
    few.write_text("one\ntwo\n" + "three\n" * 20, encoding="utf-8")
    with pytest.raises(UserError, match=r"few.txt: 3 texts: too few to hold some out as dev; give more$"):
        distilled([fitted], run.path, few, tmp_path / "student")
    other = tmp_path / "other.tsv"
    other.write_text(
        "text\tlabel\n" + "".join(f"{word} a\t{'xy'[at % 2]}\n" for at, word in enumerate(TEXTS[:24])), encoding="utf-8"
    )
    config = ClassificationConfig(train=other, text_column="text", label_column="label")
    xy = finetune(recipe, config, tmp_path / "xy", config=QUICK, tokenizer=corpus, device="cpu", progress=False)
    with pytest.raises(UserError, match=r"xy: has other classes than"):
        distilled([fitted, xy], run.path, texts, tmp_path / "student")
    assert not (tmp_path / "student-taught.jsonl").exists()
    numbers = tmp_path / "numbers.tsv"
    numbers.write_text(
        "text\tlabel\n" + "".join(f"{word}\t{at}\n" for at, word in enumerate(TEXTS[:24])), encoding="utf-8"
    )
    config = RegressionConfig(train=numbers, text_column="text", label_column="label")
    grades = finetune(recipe, config, tmp_path / "grades", config=QUICK, tokenizer=corpus, device="cpu", progress=False)
    with pytest.raises(UserError, match=r"grades: fine-tuned for regression; the teacher of a classifier"):
        distilled([grades], run.path, texts, tmp_path / "student")


def test_the_verb(fitted, run, texts, files, tmp_path, capsys):
    out = tmp_path / "student"
    given = ["distill", str(fitted.path), "--into", str(run.path), "--texts", str(texts), "--device", "cpu"]
    quick = ["--option", "epochs=1", "--option", "least_steps=0", "--option", "learning_rate=1e-3"]
    assert command_line([*given, *quick, "--out", str(out), "--test", str(files / "test.tsv")]) == 0
    shown = capsys.readouterr()
    assert "agreement" in shown.out
    nowhere = ["--out", str(tmp_path / "no")]
    on = ["distill", str(fitted.path), "--into", "bert-tiny", "--corpus", "c"]
    for arguments, words in [
        (on, "--texts FILE"),
        ([*given, "--budget", "steps=3"], "--budget: belongs to a pre-training"),
        ([*given, "--weight", "0.5"], "--weight: belongs to a pre-training"),
        ([*given, "--corpus", "c"], "--corpus"),
        (["distill", "--into", str(run.path), "--texts", str(texts)], "give the runs"),
        (
            ["distill", str(run.path), "--into", "bert-tiny", "--corpus", "c", "--test", "x"],
            "--test: belongs to --texts",
        ),
        (["distill", str(tmp_path / "gone"), *given[2:]], "no such run"),
        (["distill", str(run.path), *given[2:]], "a fine-tuned run is needed"),
    ]:
        assert command_line([*arguments, *nowhere]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert words in line
    assert command_line(["distill", "--out", str(out), "--resume"]) == 2
    assert "student: a classifier, which knows its texts no more; to go on give" in capsys.readouterr().err
    shutil.rmtree(out)
