"""Named data sets: each is read from small files of the form in which it is published."""

import gzip
import re
from pathlib import Path

import pytest
from tests.published_files import GLUE, PUBLISHED, ROWS, conllu, glue, laid, table

from bakeoff.errors import UserError
from bakeoff.tasks.data import load_task
from bakeoff.tasks.datasets.dataset import dataset_names, load_dataset
from bakeoff.tasks.datasets.named import dataset_task, named_task
from bakeoff.tasks.registry import parse_task


@pytest.mark.parametrize(
    ("name", "files", "expected"), PUBLISHED, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_data_set_is_read_as_it_is_published(name, files, expected, tmp_path):
    metric, classes, train, test = expected
    data = load_task(dataset_task(name, laid(tmp_path, files)))
    assert (data.task.metric, data.task.classes) == (metric, classes)
    assert (len(data.train), len(data.test)) == (train, test)
    assert data.task.config.title == name


def test_every_data_set_is_tried():
    assert set(dataset_names()) == {row[0] for row in PUBLISHED}


@pytest.mark.parametrize("name", dataset_names())
def test_the_settings_of_each_form_are_those_of_its_kind(name):
    known = load_dataset(name)
    for form in known.forms:
        parts = {part: form.names(part)[0] for part in ("train", "dev", "test") if form.names(part)}
        parse_task({"kind": known.kind, **known.settings, **form.settings, **parts}, name)
    config = parse_task(named_task(name, "hub:"), name)
    assert str(config.train) == f"hub:{known.hub.repository}@{known.hub.splits['train']}"
    assert str(parse_task(named_task(name, "hub:me/mine"), name).train).startswith("hub:me/mine@")


def test_notes_say_what_dev_and_test_are(tmp_path):
    folder = laid(tmp_path, glue("sentence\tlabel\n", "fine {n}\t{label}\n"))
    assert (
        load_task(dataset_task("sst2", folder))
        .notes[0]
        .startswith("the official test has no labels: test is the official")
    )
    data = load_task(dataset_task("sst2", folder, dev=folder / "dev.tsv"))
    assert not any("official" in note for note in data.notes)


def test_what_is_given_replaces_what_is_known(tmp_path):
    folder = laid(
        tmp_path, glue("sentence\tlabel\n", "fine {n}\t{label}\n") | {"mine.tsv": "a\tsentence\tlabel\nx\ty\t0\n"}
    )
    task = dataset_task(
        "sst2", folder, train=folder / "mine.tsv", text_column="a", metric="matthews", label_column=None
    )
    assert (task.train.name, task.test.name, task.text_column, task.label_column) == (
        "mine.tsv",
        "dev.tsv",
        "a",
        "label",
    )
    assert task.metric == "matthews"
    alone = dataset_task("sst2", None, train=folder / "mine.tsv")
    assert (alone.dev, alone.test, alone.text_column) == (None, None, "sentence")


def test_compressed_files_are_found(tmp_path):
    files = glue("sentence\tlabel\n", "fine {n}\t{label}\n")
    laid(tmp_path, {f"{name}.gz": gzip.compress(text.encode()) for name, text in files.items()})
    assert dataset_task("sst2", tmp_path).train.name == "train.tsv.gz"


@pytest.mark.parametrize(
    ("name", "folder", "message"),
    [
        ("sst", "", r"dataset: there is no 'sst'; did you mean 'sst\d'\?"),
        (
            "stsb",
            "",
            r"not the files of stsb: looked for sts-train\.csv or .*; or train\.tsv with dev\.tsv \(each also",
        ),
        ("sst2", "none", r"none: no such folder; --data is the folder with the files of sst2"),
        ("sst2", None, r"sst2: give --data FOLDER with its files, or --train FILE"),
        ("universal_dependencies", "", r"2 files are called \*-ud-train\.conllu \(a-ud-train\.conllu, b-ud"),
    ],
)
def test_what_is_not_there_is_one_line(name, folder, message, tmp_path):
    laid(tmp_path, {"a-ud-train.conllu": conllu(1), "b-ud-train.conllu": conllu(1)})
    data = None if folder is None else tmp_path / folder
    with pytest.raises(UserError, match=message) as caught:
        named_task(name, data)
    assert "\n" not in str(caught.value)


MINE = """
title: Support tickets of 2026
kind: classification
settings: {text_column: ticket, label_column: team}
forms:
  - train: [tickets.tsv]
    test: [later.tsv]
    remark: test is of the month after
"""


def test_a_data_set_of_ones_own_is_a_file(tmp_path):
    rows = table("ticket\tteam\n", "printer {n}\t{label}\n")
    laid(tmp_path, {"tickets.yaml": MINE, "tickets.tsv": rows, "later.tsv": rows})
    data = load_task(dataset_task(str(tmp_path / "tickets.yaml"), tmp_path))
    assert (data.task.config.title, data.task.classes, len(data.test)) == ("tickets", ["0", "1"], ROWS)
    assert "test is of the month after" in data.notes


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"dataset: .*mine\.yaml: no such file$"),
        (MINE + "colour: red\n", r"mine\.yaml: unknown key 'colour'"),
        (MINE + "hub: {repositry: a/b, splits: {train: train}}", r"unknown key 'repositry'; did you mean 'repository'"),
        (MINE.replace("train:", "trane:"), r"mine\.yaml: forms\.0: unknown key 'trane'; did you mean 'train'"),
        (MINE.replace("[tickets.tsv]", "[]"), r"mine\.yaml: forms\.0\.train: nothing given; give at least 1"),
        (MINE.replace("classification", "sorting"), r"mine\.yaml: kind: there is no kind of task 'sorting'; there are"),
        (MINE.replace("ticket,", "ticket, colour: red,"), r"mine\.yaml: unknown key 'colour'"),
    ],
)
def test_mistakes_in_the_file_of_a_data_set_are_one_line(content, message, tmp_path):
    laid(tmp_path, {} if content is None else {"mine.yaml": content, "tickets.tsv": "", "later.tsv": ""})
    with pytest.raises(UserError, match=message) as caught:
        dataset_task(str(tmp_path / "mine.yaml"), tmp_path)
    assert "\n" not in str(caught.value)


def test_a_data_set_that_is_not_known_on_the_hub(tmp_path):
    laid(tmp_path, {"mine.yaml": MINE})
    with pytest.raises(UserError, match="mine: --data hub:a/b: the data set is not known on the Hub"):
        named_task(str(tmp_path / "mine.yaml"), "hub:a/b")


def test_the_guide_lists_every_data_set_with_its_name_on_the_hub():
    guide = (Path(__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
    table = guide.partition("## Other forms")[0]
    rows = re.findall(r"^\| `(\w+)` \|.*\| `(\S+)`[^|]*\|$", table, re.MULTILINE)
    assert dict(rows) == {name: load_dataset(name).hub.repository for name in dataset_names()}


def test_each_task_of_glue_is_scored_as_its_paper_says():
    """Wang et al. 2019, table 1: the first metric of two, and for F1 that of paraphrases."""
    glue = {name: load_dataset(name) for name in GLUE}
    metrics = {name: each.settings.get("metric", "accuracy") for name, each in glue.items()}
    others = {"cola": "matthews", "mrpc": "f1", "qqp": "f1", "stsb": "spearman"}
    assert metrics == {name: others.get(name, "accuracy") for name in GLUE}
    positive = {
        name: {own: called for called, own in each.hub.settings["label_names"].items()}[each.settings["positive"]]
        for name, each in glue.items()
        if "positive" in each.settings
    }
    assert positive == {"mrpc": "equivalent", "qqp": "duplicate"}
