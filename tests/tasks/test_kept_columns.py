"""`predict --keep-columns`: every column of the file beside the answers, in any form, in and out."""

import csv
import datetime
import json

import pytest

from bakeoff.cli import run as command
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.kinds.tagging import TaggingConfig
from bakeoff.tasks.predict import predict

ROWS = [
    {"id": "a,1", "text": "baran apple saw", "label": "fruit", "note": 'said "no"\nand left'},
    {"id": "b\t2", "text": "", "label": "", "note": ""},
    {"id": "=c3", "text": "saw, baran lion", "label": "animal", "note": "café"},
]


def write(path, rows=ROWS):
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    elif path.suffix == ".parquet":
        pyarrow = pytest.importorskip("pyarrow")
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
    else:
        lines = [list(rows[0]), *(row.values() for row in map(on_one_line, rows))]
        path.write_text("".join("\t".join(line) + "\n" for line in lines), encoding="utf-8")
    return path


def on_one_line(row):
    """The values without what a .tsv cannot hold."""
    return {key: value.replace("\t", " ").replace("\n", " ") for key, value in row.items()}


def read(path):
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if path.suffix == ".parquet":
        return pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


@pytest.fixture(scope="module")
def tagged(recipe, corpus, tmp_path_factory):
    """A run that was fine-tuned to tag words, for one step."""
    folder = tmp_path_factory.mktemp("tagged")
    for name in ("train", "dev", "test"):
        (folder / f"{name}.conll").write_text("the DET\napple NOUN\nsaw VERB\n\n" * 4)
    task = TaggingConfig(**{name: folder / f"{name}.conll" for name in ("train", "dev", "test")})
    config = FinetuneConfig(learning_rate=[1e-3], epochs=1, least_steps=0, evaluations=1)
    made = finetune(recipe, task, folder / "run", config=config, tokenizer=corpus, device="cpu", progress=False)
    return made.path


@pytest.mark.parametrize("out", [".jsonl", ".csv", ".parquet"])
@pytest.mark.parametrize("given", [".jsonl", ".csv", ".tsv", ".parquet"])
def test_columns_come_out_as_they_went_in(given, out, fitted, tmp_path):
    if ".parquet" in (given, out):
        pytest.importorskip("pyarrow.parquet")
    texts, answers = write(tmp_path / f"texts{given}"), tmp_path / f"answers{out}"
    arguments = ["predict", str(fitted.path), "--texts", str(texts), "--keep-columns", "--out", str(answers)]
    assert command([*arguments, "--device", "cpu"]) == 0
    rows, expected = read(answers), predict(fitted.path, [row["text"] for row in ROWS], device="cpu")
    kept = [on_one_line(row) for row in ROWS] if given == ".tsv" else ROWS
    assert [{key: row[key] for key in ROWS[0]} for row in rows] == kept
    assert [row["predicted_label"] for row in rows] == [each["label"] for each in expected]
    assert [float(row["probability"]) for row in rows] == pytest.approx([each["probability"] for each in expected])
    assert set(rows[0]) == {*ROWS[0], "predicted_label", "probability"}


def test_no_answer_takes_the_place_of_a_value(fitted, tmp_path):
    """Neither where rows have other columns than the first, nor where the file has the answers of another model."""
    rows = [{"text": "apple saw baran"}, {"text": "lion", "label": "mine"}, {"text": "plum", "probability": 3}]
    texts, answers, again = write(tmp_path / "texts.jsonl", rows), tmp_path / "answers.jsonl", tmp_path / "again.csv"

    def answer(given, out):
        arguments = ["predict", str(fitted.path), "--texts", str(given), "--keep-columns", "--out", str(out)]
        assert command([*arguments, "--device", "cpu"]) == 0
        return read(out)

    found = answer(texts, answers)
    assert [row.get("label") for row in found] == [None, "mine", None]
    assert [row.get("probability") for row in found] == [None, None, 3]
    assert all({"predicted_label", "predicted_probability"} <= row.keys() for row in found)
    others = write(tmp_path / "others.csv", [{"text": "lion", "label": "mine", "predicted_label": "another's"}])
    (row,) = answer(others, again)
    assert (row["label"], row["predicted_label"]) == ("mine", "another's")
    assert row["predicted_predicted_label"] == predict(fitted.path, ["lion"], device="cpu")[0]["label"]


def test_rows_that_are_left_out_and_values_of_other_types(fitted, tmp_path, capsys):
    """Each answer stands beside its row, where rows before it have none."""
    texts = tmp_path / "texts.csv"
    texts.write_text("1,apple saw baran\n2\n3,lion baran saw\n4,x,y\n5,plum\n", encoding="utf-8")
    arguments = ["predict", str(fitted.path), "--texts", str(texts), "--keep-columns", "--json", "--device", "cpu"]
    form = ["header=false", "broken_rows=skip"]
    assert command([*arguments, "--text-column", "2", *(word for each in form for word in ("--option", each))]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["1"], row["2"]) for row in rows] == [("1", "apple saw baran"), ("3", "lion baran saw"), ("5", "plum")]
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    day = datetime.date(2026, 1, 2)
    table = pyarrow.Table.from_pylist([{"text": "apple", "day": day, "list": [1, None], "number": 0.5}])
    parquet.write_table(table, tmp_path / "texts.parquet")
    arguments[3] = str(tmp_path / "texts.parquet")
    assert command(arguments) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["day"], row["list"], row["number"]) == ("2026-01-02", [1, None], 0.5)


def test_values_that_json_has_not_and_keys_that_come_later_are_kept(fitted, tmp_path, capsys):
    """pandas writes NaN for what is missing; no line of JSON has it, and other programs would refuse the file."""
    texts = tmp_path / "texts.jsonl"
    rows = ['"n": NaN', '"n": 0.5, "later": ["x"]', '"n": 1e400', '"n": 2, "note": "\\ud800"']
    texts.write_text("".join(f'{{"text": "apple saw baran", {row}}}\n' for row in rows))
    arguments = ["predict", str(fitted.path), "--texts", str(texts), "--keep-columns", "--device", "cpu"]
    assert command([*arguments, "--json"]) == 2
    assert f"{texts}:4: 'note': half of a surrogate pair" in capsys.readouterr().err
    named = tmp_path / "named.jsonl"
    named.write_text('{"text": "apple", "k\\udc00": {"a": 1}}\n')
    for out in ("a.csv", "a.jsonl"):
        asked = [str(named) if each == str(texts) else each for each in arguments]
        assert command([*asked, "--out", str(tmp_path / out)]) == 2
        assert f"{named}:1: a name: half of a surrogate pair" in capsys.readouterr().err
        assert not (tmp_path / out).exists()
    arguments += ["--errors", "replace"]
    for out in (".jsonl", ".parquet"):
        if out == ".parquet":
            pytest.importorskip("pyarrow.parquet")
        assert command([*arguments, "--out", str(tmp_path / f"answers{out}")]) == 0
        found = read(tmp_path / f"answers{out}")
        assert [row["n"] for row in found] == [None, 0.5, None, 2]
        assert [row.get("later") for row in found] == [None, ["x"], None, None]
        assert [row.get("note") for row in found] == [None, None, None, "\ufffd"]


def test_a_column_of_several_types_is_no_column_of_parquet(fitted, tmp_path, capsys):
    pytest.importorskip("pyarrow.parquet")
    texts, out = tmp_path / "texts.jsonl", tmp_path / "out.parquet"
    for others in (["x"], [2] * 5000 + ["x"]):
        texts.write_text("".join(json.dumps({"text": "apple", "id": each}) + "\n" for each in [1, *others]))
        arguments = ["predict", str(fitted.path), "--texts", str(texts), "--keep-columns", "--device", "cpu"]
        assert command([*arguments, "--out", str(out)]) == 2
        wrong = "the values of 'id' have several types, and a column of a .parquet one; write them to a .jsonl"
        assert wrong in capsys.readouterr().err
        assert not out.exists()


def test_what_has_no_columns_is_refused(fitted, tmp_path, capsys):
    def refused(message, *words):
        assert command(["predict", str(fitted.path), "--keep-columns", *map(str, words)]) == 2
        assert message in capsys.readouterr().err

    out = tmp_path / "out.csv"
    (tmp_path / "texts.txt").write_text("apple\n")
    refused("give --out FILE or --json", "--texts", tmp_path / "texts.txt")
    refused("texts.txt has no columns with a row for each prediction", "--texts", tmp_path / "texts.txt", "--out", out)
    refused("the texts are in no file", "apple", "--json")
    twice = tmp_path / "twice.csv"
    twice.write_text("text,id,id\napple,1,2\n")
    refused("twice.csv:1: 2 columns are called 'id'; rename all but one", "--texts", twice, "--out", out)
    assert not out.exists()


def test_a_sentence_with_tags_is_one_text_however_many_words_it_has(tagged, tmp_path, capsys):
    sentences = ["the apple  saw", "", "baran\tapple", "lion", "apple"]
    (tmp_path / "texts.txt").write_text("\n".join(sentences) + "\n")
    for out in (tmp_path / "out.csv", tmp_path / "out.jsonl"):
        asked = ["predict", str(tagged), "--texts", str(tmp_path / "texts.txt"), "--out", str(out), "--device", "cpu"]
        assert command(asked) == 0, capsys.readouterr().err
        assert [row["text"] for row in read(out)] == sentences
        assert set(read(out)[0]) == {"text", "words", "tags"}
    words = tmp_path / "words.conll"
    words.write_text("apple\nsaw\n\nlion\n\nthe\nbig\nlion\n")
    asked = ["predict", str(tagged), "--texts", str(words), "--out", str(tmp_path / "words.csv"), "--device", "cpu"]
    assert command(asked) == 0, capsys.readouterr().err
    assert [row["text"] for row in read(tmp_path / "words.csv")] == ["apple saw", "lion", "the big lion"]


def test_a_field_has_words_or_texts_whatever_the_files_of_fine_tuning_were(tagged, tmp_path, capsys):
    rows = [{"words": ["the big", "apple"], "text": "the big apple"}, {"words": [], "text": ""}]
    for column, wanted in (("words", ["the big", "apple"]), ("text", ["the", "big", "apple"])):
        out = tmp_path / f"{column}.jsonl"
        asked = ["predict", str(tagged), "--texts", str(write(tmp_path / "rows.jsonl", rows)), "--text-column", column]
        assert command([*asked, "--keep-columns", "--out", str(out), "--device", "cpu"]) == 0, capsys.readouterr().err
        assert [row["predicted_words"] for row in read(out)] == [wanted, []]


def test_carriage_returns_in_a_csv_are_read_again_as_they_were(fitted, tmp_path):
    rows = [{"text": "apple\rsaw", "n": "\r1"}, {"text": "\rlion", "n": 'a\r\n"b",'}]
    texts, answers, again = write(tmp_path / "texts.jsonl", rows), tmp_path / "answers.csv", tmp_path / "again.jsonl"
    for given, out in ((texts, answers), (answers, again)):
        arguments = ["predict", str(fitted.path), "--texts", str(given), "--keep-columns", "--out", str(out)]
        assert command([*arguments, "--device", "cpu"]) == 0
        assert [{key: row[key] for key in rows[0]} for row in read(out)] == rows


@pytest.mark.parametrize("ending", [".csv", ".tsv"])
def test_columns_without_a_name_are_left_out_if_they_hold_nothing(ending, fitted, tmp_path, capsys):
    """As spreadsheets leave them beside a table; two that hold something cannot be told apart."""
    texts, sign = tmp_path / f"texts{ending}", "," if ending == ".csv" else "\t"
    for value, status in ((" ", 0), ("5", 2)):
        out = tmp_path / f"{status}.jsonl"
        lines = ["text,label,,", "apple,x,,", f"lion,y,,{value}", "plum,z,,"]
        texts.write_text("".join(f"{line.replace(',', sign)}\n" for line in lines), encoding="utf-8")
        arguments = ["predict", str(fitted.path), "--texts", str(texts), "--keep-columns", "--out", str(out)]
        assert command([*arguments, "--device", "cpu"]) == status
    assert [list(row) for row in read(tmp_path / "0.jsonl")] == [
        ["text", "label", "predicted_label", "probability"]
    ] * 3
    said = f"bakeoff: {texts}:3: 2 columns have no name, and one of them holds '5'; name all but one"
    assert capsys.readouterr().err.splitlines()[-1] == said
    assert not out.exists()


def test_a_table_has_the_columns_of_all_rows(fitted, tmp_path):
    """Whichever row has them first, so that no answer is lost."""
    rows = [{"text": "apple", "a": 1}, {"text": "lion", "b": 2}, {"c": 3, "text": "plum"}]
    texts = write(tmp_path / "texts.jsonl", rows)
    for ending in (".csv", ".tsv"):
        out = tmp_path / f"out{ending}"
        arguments = ["predict", str(fitted.path), "--texts", str(texts), "--keep-columns", "--out", str(out)]
        assert command([*arguments, "--device", "cpu"]) == 0
        head, *lines = [line.split("," if ending == ".csv" else "\t") for line in out.read_text().splitlines()]
        assert head[:4] == ["text", "a", "b", "c"]
        assert [line[:4] for line in lines] == [["apple", "1", "", ""], ["lion", "", "2", ""], ["plum", "", "", "3"]]


def test_what_a_parquet_cannot_hold_is_said_before_the_first_answer(fitted, tmp_path, capsys, monkeypatch):
    pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("bakeoff.cli.predict.save_records", None)
    for last, problem in (
        ("x", "values of 'v' have several types"),
        (10**30, "numbers of 'v' are too large for a column"),
        (None, "values of 'o' are empty objects"),
    ):
        rows = [*({"text": "apple", "v": n, "o": [{}]} for n in range(9000)), {"text": "b", "v": last}]
        texts = write(tmp_path / "texts.jsonl", rows)
        arguments = ["predict", str(fitted.path), "--texts", str(texts), "--keep-columns", "--device", "cpu"]
        assert command([*arguments, "--out", str(tmp_path / "out.parquet")]) == 2
        assert f"bakeoff: the {problem}" in capsys.readouterr().err


def test_two_columns_of_one_name_are_refused_whatever_the_file(fitted, tmp_path, capsys):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table([pyarrow.array(["apple"]), pyarrow.array([1]), pyarrow.array([2])], names=["text", "n", "n"])
    parquet.write_table(table, tmp_path / "texts.parquet")
    (tmp_path / "texts.csv").write_text("text,n,n\napple,1,2\n")
    for ending in (".parquet", ".csv"):
        arguments = ["predict", str(fitted.path), "--texts", str(tmp_path / f"texts{ending}"), "--device", "cpu"]
        assert command([*arguments, "--text-column", "text"]) == 0
        assert command([*arguments, "--text-column", "text", "--keep-columns", "--json"]) == 2
        assert "2 columns are called 'n'; rename all but one" in capsys.readouterr().err
