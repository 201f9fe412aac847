"""Files of an entry as people have them: mistakes, which are told before the training, marks of editors, changes."""

import csv
import json
import re
from pathlib import Path
from tempfile import gettempdir

import pytest

from bakeoff.challenge import asking, entry, multilingual
from bakeoff.challenge.asking import ask
from bakeoff.challenge.entry import babylm
from bakeoff.challenge.evaluation import missing_of, multilingual_parts
from bakeoff.challenge.folder import EntryFolder
from bakeoff.challenge.labelled import TASKS, check_labels
from bakeoff.challenge.reading_times import read_times
from bakeoff.challenge.suites import SUITES, read_choices
from bakeoff.errors import UserError
from tests.challenge.official_files import write, write_labels, write_official_files

PLACE = "full_eval/glue_filtered"


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("four words are here", encoding="utf-8")
    return path


def asked(text, out, evaluation=None):
    return ask("strict-small", "gpt-tiny", text, out, evaluation=evaluation)


@pytest.mark.parametrize(
    ("split", "content", "message"),
    [
        ("train", "", ": the file holds no rows"),
        ("train", '{"sentence1": "a"\n', ":1: not valid JSON"),
        ("valid", '{"sentence1": "a", "sentence2": "b", "label": "x"}\n', ":1: the label 'x' is not a whole number"),
        ("valid", '{"sentence1": "a", "sentence2": "b", "label": 7}\n', ":1: the label '7' does not occur in "),
    ],
)
def test_a_mistake_in_labels_is_told_before_the_training_and_leaves_nothing(
    split, content, message, text, tmp_path, monkeypatch
):
    write_labels(tmp_path / "evaluation" / PLACE)
    file = tmp_path / "evaluation" / PLACE / f"rte.{split}.jsonl"
    asked(text, tmp_path / "out", tmp_path / "evaluation").check()
    file.write_text(content, encoding="utf-8")
    monkeypatch.setattr(entry, "prepare", None)
    with pytest.raises(UserError, match=f"^{re.escape(f'{file}{message}')}") as error:
        babylm("strict-small", "gpt-tiny", text, tmp_path / "out", evaluation=tmp_path / "evaluation")
    assert gettempdir() not in str(error.value).replace(str(tmp_path), "")  # names no table of ours
    assert not (tmp_path / "out").exists()


def test_files_may_begin_with_the_mark_of_utf_8_and_end_their_lines_as_on_windows(text, tmp_path):
    for folder in ("plain", "windows"):
        write_official_files(tmp_path / folder)
    for path in (tmp_path / "windows").rglob("*.*"):
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    read = []
    for folder in ("plain", "windows"):
        evaluation, _ = asked(text, tmp_path / "out", tmp_path / folder).evaluating()
        read.append([evaluation.content(part) for part in evaluation.parts])
        for task in TASKS:
            check_labels(task, tmp_path / folder)
    assert read[0] == read[1]
    assert len(read[0]) == 8


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (
            "entity_tracking/regular.jsonl",
            '{"input_prefix": "a", "options": "abc", "numops": 1}',
            ":1: no row of entity",
        ),
        ("entity_tracking/regular.jsonl", '{"input_prefix": "a", "options": [1, 2], "numops": 1}', ":1: "),
        ("aoa/cdi_childes.json", '["a"]', ": expected a JSON object with keys and values, found a list"),
        ("aoa/cdi_childes.json", '{"word": "a context"}', ": word: not a list of objects with a context"),
        ("aoa/cdi_human.csv", "word,16,17,18\na,0.1,soon,0.3\n", ":2: column 17: 'soon' is not a number"),
        ("global_piqa_parallel/eng_latn.jsonl", '{"prompt": "a", "example_id": 1, "label": 0}', ":1: 0 answers"),
        ("reading/reading_data.csv", "item,word\na,b\n", ": has no column prev_item"),
        ("reading/reading_data.csv", "RTfirstfix", ":4: column RTfirstfix: 'soon' is not a number"),
        ("reading/reading_data.csv", 'item,word\n"' + "a," * 70_000, ": a row after line "),
        (
            "ewok_filtered/social.jsonl",
            '{"Domain": "a", "Context1": "b", "Context2": "c", "Target1": null}',
            ":1: no row of EWoK: Target1 is blank, or is no text",
        ),
        (
            "ewok_filtered/social.jsonl",
            '{"Domain": null, "Context1": "b", "Context2": "c", "Target1": "d"}',
            ":1: no row of EWoK: Domain is blank, or is no text",
        ),
        (
            "comps/comps_base.jsonl",
            '{"prefix_acceptable": null, "prefix_unacceptable": "b", "property_phrase": "c"}',
            ":1: no row of COMPS: prefix_acceptable is blank, or is no text",
        ),
        (
            "global_piqa_parallel/eng_latn.jsonl",
            '{"prompt": "a", "solution0": "b", "solution1": "c", "label": 0.5, "example_id": "d"}',
            ":1: no row of GlobalPIQA, parallel: the label 0.5 is not a whole number",
        ),
        (
            "glue_filtered/multirc.train.jsonl",
            '{"question": null, "answer": "b", "paragraph": "c", "label": 1}',
            ":1: question is no text",
        ),
    ],
)
def test_a_file_of_another_form_is_told_before_the_training(file, content, message, text, tmp_path, monkeypatch):
    path = write_official_files(tmp_path / "evaluation") / "full_eval" / file
    if content == "RTfirstfix":
        rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
        rows[3][rows[0].index(content)] = "soon"
        content = "".join(",".join(row) + "\n" for row in rows)
    path.write_text(content, encoding="utf-8")
    monkeypatch.setattr(entry, "prepare", None)
    monkeypatch.setattr(asking, "HELD_OUT", -1e9)  # all checkpoints are due
    limit = csv.field_size_limit(2**24)  # as after a table was read
    with pytest.raises(UserError, match=f"^{re.escape(f'{path}{message}')}"):
        babylm("strict-small", "gpt-tiny", text, tmp_path / "out", evaluation=tmp_path / "evaluation")
    assert not (tmp_path / "out").exists()
    assert csv.field_size_limit(limit) == 2**24


def test_too_little_text_is_told_and_leaves_nothing(text, tmp_path):
    with pytest.raises(
        UserError, match=r"^4 words are too little text for an entry, of which 0\.5 % are held out; give"
    ):
        babylm("strict-small", "gpt-tiny", text, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("", ": column RTgopast: too few different times for a regression, of words whose other columns are known"),
        ("7", ": column RTgopast: too few different times for a regression, of words whose other columns are known"),
        ("inf", ":2: column RTgopast: 'inf' is not a number"),
    ],
)
def test_times_that_no_regression_can_explain_are_refused(cell, message, tmp_path):
    path = write_official_files(tmp_path / "evaluation") / "full_eval" / "reading" / "reading_data.csv"
    assert len(read_times(path)) == 36
    rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    for row in rows[1:]:
        row[rows[0].index("RTgopast")] = cell
    path.write_text("".join(",".join(row) + "\n" for row in rows), encoding="utf-8")
    with pytest.raises(UserError, match=f"^{re.escape(f'{path}{message}')}$"):
        read_times(path)


@pytest.mark.parametrize("prompt", [None, 3])
def test_a_prompt_that_is_no_text_is_told_with_its_line(prompt, tmp_path):
    (suite,) = (each for each in multilingual.SUITES["eng"] if each.key == "hellaswag_en_mubench")
    write(tmp_path, "test.jsonl", [{"prompt": prompt, "choices": ["a", "b"], "label": 0}])
    with pytest.raises(UserError, match=r"test\.jsonl:1: no row of hellaswag_en_mubench: prompt is no text$"):
        read_choices(suite, tmp_path)


def test_solutions_that_are_null_are_none(tmp_path):
    (suite,) = (each for each in SUITES if each.key == "global_piqa_parallel")
    row = {"prompt": "a", "solution0": "b", "solution1": 3, "solution2": None, "label": "1", "example_id": "c"}
    write(tmp_path, "test.jsonl", [row])
    (choice,) = read_choices(suite, tmp_path)
    assert (choice.answers, choice.right) == (("b", "3"), 1)


def test_tables_of_other_tools_are_read_as_they_are(tmp_path):
    """A .csv whose rows have fewer answers than others, numbers as names of parts, and what a library says of data."""
    (tmp_path / "piqa").mkdir()
    (tmp_path / "piqa" / "x.csv").write_text("prompt,solution0,solution1,solution2,label\nWhy?,a,b,,1\nHow?,c,d,e,2\n")
    (tmp_path / "piqa" / "dataset_info.json").write_text('{"features": 1}\n')
    (piqa,) = (each for each in multilingual.SUITES["eng"] if each.key == "global_piqa_parallel_en")
    found = read_choices(piqa, tmp_path / "piqa")
    assert [(each.answers, each.right) for each in found] == [(("a", "b"), 1), (("c", "d", "e"), 2)]
    (tmp_path / "piqa" / "x.csv").write_text("prompt,solution0,solution1,solution2,label\nWhy?,a,,c,1\n")
    with pytest.raises(UserError, match="solution1 is blank"):
        read_choices(piqa, tmp_path / "piqa")
    (tmp_path / "comps").mkdir()
    (xcomps,) = (each for each in multilingual.SUITES["nld"] if each.key == "xcomps_nl")
    write(tmp_path / "comps", "a.jsonl", [{"acceptable_sent": "x", "unacceptable_sent": "y", "UID": 3}])
    assert [each.field for each in read_choices(xcomps, tmp_path / "comps")] == ["3"]


def test_a_file_that_is_no_table_is_named_where_none_is_read(tmp_path):
    (piqa,) = (each for each in multilingual.SUITES["eng"] if each.key == "global_piqa_parallel_en")
    place = tmp_path / piqa.full
    place.mkdir(parents=True)
    (place / "x.json").write_text('[{"prompt": "Why?"}]')
    (place / "state.json").write_text("{}")
    parts = multilingual_parts(tmp_path, [], [piqa], ["eng"])
    (said,) = (each for each in missing_of(parts) if each.startswith(piqa.key))
    assert said == f"{piqa.key}: no table in {piqa.full}; x.json has no JSON object a line"


def test_the_organisers_files_of_text_are_read_and_those_for_evaluation_are_not(tmp_path):
    folder = tmp_path / "babylm"
    for part, count in (("train_10M", 4), ("dev", 7), ("test", 9)):
        ending = part.partition("_")[0]
        (folder / part).mkdir(parents=True)
        for name in ("bnc_spoken", "childes"):
            (folder / part / f"{name}.{ending}").write_text("word " * count, encoding="utf-8")
    assert asked(folder, tmp_path / "out").settings.words == 8
    assert asked(folder / "train_10M" / "childes.train", tmp_path / "out").settings.words == 4
    with pytest.raises(UserError, match="a folder without text"):
        asked(folder / "dev", tmp_path / "out")


def test_a_text_without_words_is_refused_and_leaves_nothing(text, tmp_path):
    text.write_text("\n \n", encoding="utf-8")
    with pytest.raises(UserError, match=r"text\.txt: holds no words$"):
        babylm("strict-small", "gpt-tiny", text, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_words_are_counted_anew_until_there_is_a_corpus_of_them(text, tmp_path):
    folder = EntryFolder(tmp_path / "out")
    folder.begin(asked(text, tmp_path / "out").settings)
    text.write_text("now five words are here", encoding="utf-8")
    again = asked(text, tmp_path / "out").settings
    assert again.words == 5
    with pytest.raises(UserError, match="out: begun with words 4, not 5"):
        folder.begin(again)
    folder.corpus.mkdir()
    assert asked(text, tmp_path / "out").settings.words == 4


def test_labels_that_have_changed_are_fine_tuned_on_anew(text, tmp_path, monkeypatch):
    write_labels(tmp_path / "evaluation" / PLACE)
    monkeypatch.setattr(asking, "TASKS", [task for task in TASKS if task.name == "rte"])
    monkeypatch.setattr(
        entry, "scores_of", lambda task, runs: [(path / "results.json").read_text() for path in runs.values()]
    )
    tuned = []

    def fine_tune(task, run, tables, out: Path, *others):
        out.mkdir(parents=True)
        (out / "results.json").write_text(json.dumps(len(tables[1].read_text(encoding="utf-8").splitlines())))
        tuned.append(out.name)

    monkeypatch.setattr(entry, "fine_tune", fine_tune)
    entered = asked(text, tmp_path / "out", tmp_path / "evaluation")
    lines = []
    assert entry._labelled(entered, False, lines.append) == {"rte": ["12"] * 3}
    assert entry._labelled(entered, False, lines.append) == {"rte": ["12"] * 3}
    assert tuned == ["rte-42", "rte-43", "rte-44"]
    write_labels(tmp_path / "evaluation" / PLACE, rows=14)
    assert entry._labelled(entered, False, lines.append) == {"rte": ["14"] * 3}
    assert tuned == 2 * ["rte-42", "rte-43", "rte-44"]
    assert "rte: its files have changed, and what was fine-tuned on them is made anew" in lines
