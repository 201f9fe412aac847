from pathlib import Path

import pytest
from keyword_task import write_jsonl, write_tsv

from bakeoff.cli import run as run_cli
from bakeoff.errors import UserError
from bakeoff.preparation.prepare import prepare
from bakeoff.tasks.evaluate import evaluate
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.kinds.tagging import TaggingConfig
from bakeoff.tasks.predict import predict
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig


def test_a_pretrained_run_on_its_corpus_gives_its_last_validation(run, corpus):
    rows = run.recipe.training.validation_examples
    found = evaluate(run.path, corpus=corpus, examples=rows, device="cpu")
    expected = run.summary["validation"]
    assert found["losses"] == pytest.approx(expected["losses"])
    assert found["bits_per_byte"] == pytest.approx(expected["bits_per_byte"])
    assert found["accuracy"] == pytest.approx(expected["accuracy"])
    assert set(found["perplexity"]) == {"mlm"}
    assert evaluate(run.path, corpus=corpus, examples=4, device="cpu")["examples"] == 4


def test_a_fine_tuned_run_on_its_test_file_gives_its_scores(fitted, files, tmp_path, capsys):
    found = evaluate(fitted.path, data=files / "test.tsv", device="cpu")
    assert found["scores"] == pytest.approx(fitted.scores["test"])
    assert found["rows"] == 90
    assert found["simplest"]["accuracy"] == pytest.approx(1 / 3)
    rows = [{"words": "apple baran", "class": "fruit"}, {"words": "saw", "class": "tool"}]
    write_jsonl(tmp_path / "other.jsonl", rows)
    options = {"text_column": "words", "label_column": "class"}
    other = evaluate(fitted.path, data=tmp_path / "other.jsonl", **options, device="cpu")
    assert other["scores"]["accuracy"] == 1
    assert (other["simplest"]["accuracy"], other["simplest_from"]) == (0.5, "train")
    asked = ["evaluate", str(fitted.path), "--data", str(files / "test.tsv"), "--device", "cpu"]
    assert run_cli(asked) == 0
    assert "\nmost frequent class (of train)  accuracy 0.3333" in capsys.readouterr().out


def test_what_was_cut_is_said(capsys, fitted, tmp_path):
    """In evaluation and prediction, of words that each are one token."""
    rows = [{"text": f"apple {'baran ' * count}".strip(), "label": "fruit"} for count in (2, 39, 29)]
    write_tsv(tmp_path / "long.tsv", rows)
    found = evaluate(fitted.path, data=tmp_path / "long.tsv", device="cpu")
    assert found["cut"] == {"length": 32, "longest": None, "rows": 1, "of_rows": 3, "tokens": 10, "of_tokens": 73}
    cut = "1 of the 3 rows of {} cut to 32 tokens: 13.7 % of the tokens are not read"
    assert found["notes"] == [cut.format("long.tsv")]
    assert run_cli(["predict", str(fitted.path), "--texts", str(tmp_path / "long.tsv")]) == 0
    assert capsys.readouterr().err == cut.format(tmp_path / "long.tsv") + "\n"
    assert run_cli(["predict", str(fitted.path), *[row["text"] for row in rows]]) == 0
    assert capsys.readouterr().err == cut.format("what was given") + "\n"
    assert run_cli(["predict", str(fitted.path), "apple"]) == 0
    assert capsys.readouterr().err == ""


def test_another_file_may_have_another_form(fitted, tmp_path):
    (tmp_path / "other.csv").write_text("7;apple baran;f\n8;saw;t\n9;hammer;\n9;kiwi;x\n", encoding="utf-16")
    settings = {"header": False, "separator": "semicolon", "broken_rows": "skip"}
    settings["label_names"] = {"f": "fruit", "t": "tool", "x": None}
    options = {"text_column": "2", "label_column": "3", "device": "cpu"}
    found = evaluate(fitted.path, data=tmp_path / "other.csv", settings=settings, **options)
    assert (found["rows"], found["scores"]["accuracy"]) == (2, 1)
    assert sorted(found["notes"]) == [
        "1 row of other.csv left out: the row has no label",
        "1 row of other.csv left out: the row has the label 'x'",
    ]
    for name, text in (("fruit", "apple"), ("tool", "saw")):
        (tmp_path / "classes" / name).mkdir(parents=True)
        (tmp_path / "classes" / name / "1.txt").write_text(text)
    found = evaluate(fitted.path, data=tmp_path / "classes", settings={"layout": "class_folders"}, device="cpu")
    assert (found["rows"], found["scores"]["accuracy"]) == (2, 1)
    (tmp_path / "words.jsonl").write_text('{"w": ["apple"], "t": ["A"]}\n')
    for settings, message in (
        (
            {"metric": "macro_f1"},
            "metric: was decided in fine-tuning; how a file is read is said by cluster_column, errors, encoding",
        ),
        ({"spans_column": "t"}, "spans_column: is nothing that a task of classification has"),
        ({"header": "perhaps"}, "settings of the file: header"),
        ({"pair_column": "t"}, "pair_column: the run has learned from single texts"),
    ):
        with pytest.raises(UserError, match=message):
            evaluate(fitted.path, data=tmp_path / "words.jsonl", settings=settings, device="cpu")


def test_texts_are_read_as_tables_of_the_task_where_their_names_do_not_say_how(fitted):
    assert not any(
        FinetunedRun.open(fitted.path).task.reads_its_form(Path(name)) for name in ("a.tsv", "a.txt", "a.jsonl")
    )
    bare = FinetunedRun.open(fitted.path).task.model_copy(update={"header": False})
    assert [bare.reads_its_form(Path(name)) for name in ("a.tsv", "a.csv.gz", "a.txt", "-", "a.jsonl")] == [
        *(True, True, False, False, False)
    ]


def test_answers_without_a_model_are_those_of_train_as_long_as_it_is_there(recipe, corpus, tmp_path):
    for name, tags in (("train", ["A", "B"]), ("test", ["B", "A"])):
        write_jsonl(tmp_path / f"{name}.jsonl", [{"w": ["apple", f"saw{row}"], "t": tags} for row in range(30)])
    paths = {name: tmp_path / f"{name}.jsonl" for name in ("train", "test")}
    task = TaggingConfig(**paths, text_column="w", label_column="t")
    config = FinetuneConfig(epochs=1, least_steps=0, evaluations=1)
    run = finetune(recipe, task, tmp_path / "run", config=config, tokenizer=corpus, device="cpu", progress=False).path
    found = evaluate(run, data=tmp_path / "test.jsonl", device="cpu")
    assert found["simplest_from"] == "train"
    assert found["simplest"]["accuracy"] < 0.1  # of words that dev has, nothing is known
    train = (tmp_path / "train.jsonl").read_text()
    (tmp_path / "train.jsonl").write_text(train + '{"w": ["new"], "t": ["C"]}\n')  # which the run has not learnt
    assert evaluate(run, data=tmp_path / "test.jsonl", device="cpu")["simplest_from"] == "data"
    (tmp_path / "train.jsonl").unlink()
    found = evaluate(run, data=tmp_path / "test.jsonl", device="cpu")
    assert (found["simplest"]["accuracy"], found["simplest_from"]) == (1.0, "data")


def test_predictions(fitted):
    texts = ["ransel apple", "hammer", "", "kitip " * 50 + "town"]
    found = predict(fitted.path, texts, device="cpu")
    assert [each["label"] for each in found[:2]] == ["fruit", "tool"]
    assert all(1 / 3 <= each["probability"] <= 1 for each in found)
    for text, (label, probability) in zip(texts, map(dict.values, found), strict=True):
        (alone,) = predict(fitted.path, [text], device="cpu")
        assert alone == {"label": label, "probability": pytest.approx(probability, abs=1e-5)}
    assert predict(fitted.path, [], device="cpu") == []


def test_texts_are_scored_with_what_a_fine_tuning_of_a_fine_tuned_run_came_from(run, task, tmp_path):
    config = FinetuneConfig(learning_rate=[1e-3], epochs=1, least_steps=0, evaluations=1)
    few, source = task.model_copy(update={"train": task.dev}), run.path
    for name in ("once", "twice"):
        source = finetune(source, few, tmp_path / name, config=config, device="cpu", progress=False).path
    with pytest.raises(UserError, match=f"twice: a fine-tuned run scores no texts; score them with {run.path}$"):
        evaluate(source, texts=task.test)


def test_what_is_refused(run, fitted, corpus, files, tmp_path):
    def refused(message, function, *arguments, **options):
        with pytest.raises(UserError, match=message):
            function(*arguments, device="cpu", **options)

    refused("give either --corpus", evaluate, run.path)
    refused("evaluated on labelled --data", evaluate, fitted.path, corpus=corpus)
    refused("a fine-tuned run scores no texts; score them with", evaluate, fitted.path, texts=files)
    refused("--set changes the recipe of a pre-trained run", evaluate, fitted.path, data=files, overrides=["a=1"])
    refused("evaluated on a --corpus", evaluate, run.path, data=files / "test.tsv")
    refused("no such run", evaluate, tmp_path / "none", data=files / "test.tsv")
    refused("a fine-tuned run is needed", predict, run.path, ["text"])
    refused("fine-tuned on single texts", predict, fitted.path, ["text"], ["pair"])
    write_tsv(tmp_path / "other.tsv", [{"text": "x", "label": "animal"}])
    refused(
        r"other.tsv:2: the label 'animal' does not occur in what the run has learnt",
        evaluate,
        fitted.path,
        data=tmp_path / "other.tsv",
    )
    (tmp_path / "text.txt").write_text("one two three four\nfive six seven eight\n" * 40)
    other = prepare(
        tmp_path / "text.txt",
        tmp_path / "corpus",
        tokenizer=TokenizerConfig(kind="word", size=20),
        document_per_line=True,
        validation=0.1,
        workers=1,
    )
    refused("prepared with another tokenizer", evaluate, run.path, corpus=other.path)
