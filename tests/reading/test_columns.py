"""Parquet and Arrow files; what `datasets` writes is written here by `pyarrow` in the same form."""

import json
from collections import Counter

import pytest

from bakeoff.errors import UserError
from bakeoff.preparation.prepare import prepare
from bakeoff.reading.files import find_files
from bakeoff.reading.pieces import DOCUMENT
from bakeoff.reading.sources import SourceOptions, TextReader
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

pyarrow = pytest.importorskip("pyarrow", reason='needs pyarrow: pip install -e ".[hub]"')
parquet = pytest.importorskip("pyarrow.parquet", reason='needs pyarrow: pip install -e ".[hub]"')

BYTES = TokenizerConfig(kind="byte_bpe", size=300)
TEXTS = ["One.\nTwo.", "", "  Three é  房间", None, 'Four "4"']
FORMS = ["parquet", "stream", "file"]


def write(path, form, columns):
    """A table in Parquet of two row groups, or in Arrow's streamed form (as `save_to_disk` writes) or its other one."""
    table = columns if isinstance(columns, pyarrow.Table) else pyarrow.table(columns)
    if form == "parquet":
        parquet.write_table(table, path.with_suffix(".parquet"), row_group_size=(len(table) + 1) // 2 or 1)
        return path.with_suffix(".parquet")
    path = path.with_suffix(".arrow")
    new = pyarrow.ipc.new_stream if form == "stream" else pyarrow.ipc.new_file
    with new(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return path


def read(*paths, **options):
    reader = TextReader(find_files(paths, Counter()), SourceOptions(**options))
    documents: list[list[str]] = []
    for piece in reader:
        if piece.opens == DOCUMENT:
            documents.append([])
        documents[-1].append(piece.text)
        assert 0 <= reader.bytes_read() <= sum(reader.sizes)
    assert reader.bytes_read() == sum(reader.sizes)
    return documents, dict(reader.skips)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "kind",
    [
        pyarrow.string(),
        pyarrow.large_string(),
        pyarrow.binary(),
        pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
    ],
    ids=str,
)
def test_rows_are_documents(tmp_path, form, kind):
    texts = [text.encode() if text is not None and kind == pyarrow.binary() else text for text in TEXTS]
    column = pyarrow.array(texts, pyarrow.string() if isinstance(kind, pyarrow.DictionaryType) else kind)
    column = column.dictionary_encode() if isinstance(kind, pyarrow.DictionaryType) else column
    file = write(tmp_path / "a", form, {"id": list(range(5)), "text": column})
    assert read(file) == ([["One.", "Two."], ["Three é 房间"], ['Four "4"']], {"empty documents": 2})


@pytest.mark.parametrize("form", FORMS)
def test_a_file_without_rows_is_read_like_any_other(tmp_path, form):
    """Programs that write a table in parts leave some of them without rows."""
    nothing = pyarrow.table({"text": pyarrow.array([], pyarrow.string())})
    (tmp_path / "parts").mkdir()
    write(tmp_path / "parts/0", form, nothing)
    write(tmp_path / "parts/1", form, {"text": ["One.", "Two."]})
    assert read(tmp_path / "parts") == ([["One."], ["Two."]], {})


@pytest.mark.parametrize("form", FORMS)
def test_the_same_corpus_as_from_lines(tmp_path, form):
    """In several batches, with another column's name, and beside a file of another format."""
    texts = [f"Document {i} of many.\nIts second paragraph." for i in range(700)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"body": text}) + "\n" for text in texts))
    (tmp_path / "b.jsonl").write_text("".join(json.dumps({"body": text}) + "\n" for text in texts[:350]))
    file = write(tmp_path / "c", form, {"body": texts[350:], "label": [0] * 350})
    calls: list[tuple[str, int, int]] = []
    first = prepare(tmp_path / "a.jsonl", tmp_path / "first", tokenizer=BYTES, field="body")
    second = prepare(
        [tmp_path / "b.jsonl", file],
        tmp_path / "second",
        tokenizer=BYTES,
        field="body",
        progress=lambda *call: calls.append(call),
    )
    assert first.fingerprint == second.fingerprint
    assert [source.path for source in second.manifest.sources][1] == str(file)
    assert all(0 <= done <= total for _, done, total in calls)
    assert calls[-1][1] == calls[-1][2]


def test_a_folder_of_save_to_disk(tmp_path):
    folder = tmp_path / "mine"
    for split in ("train", "test"):
        (folder / split).mkdir(parents=True)
        write(folder / split / "data-00000-of-00002", "stream", {"text": [f"{split} 0"]})
        write(folder / split / "data-00001-of-00002", "stream", {"text": [f"{split} 1"]})
        write(folder / split / "cache-0123456789abcdef", "stream", {"text": ["a copy"]})
        (folder / split / "state.json").write_text("{}")
        (folder / split / "dataset_info.json").write_text("{}")
    (folder / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    assert read(folder)[0] == [["test 0"], ["test 1"], ["train 0"], ["train 1"]]
    assert read(folder / "train")[0] == [["train 0"], ["train 1"]]


def test_a_data_set_of_the_library(tmp_path):
    datasets = pytest.importorskip("datasets", reason="needs Hugging Face datasets", exc_type=ImportError)
    made = datasets.Dataset.from_dict({"text": ["one", "two", "three"], "label": [0, 1, 0]})
    datasets.DatasetDict({"train": made.select([2, 0]), "test": made.select([1])}).save_to_disk(tmp_path / "mine")
    made.to_parquet(tmp_path / "mine.parquet")
    assert read(tmp_path / "mine")[0] == [["two"], ["three"], ["one"]]
    assert read(tmp_path / "mine.parquet")[0] == [["one"], ["two"], ["three"]]


@pytest.mark.parametrize("form", FORMS)
def test_invalid_text(tmp_path, form):
    wrong = pyarrow.array([b"fine", b"no\xff"], pyarrow.binary()).view(pyarrow.string())
    file = write(tmp_path / "a", form, {"text": wrong})
    with pytest.raises(UserError, match=r"a\.\w+, row 2: '\w+' is not valid UTF-8 \(byte 0xff\).*--errors replace"):
        read(file)
    assert read(file, errors="replace")[0] == [["fine"], ["no\ufffd"]]


@pytest.mark.parametrize("form", FORMS)
def test_bad_files_are_one_clear_line(tmp_path, form):
    file = write(tmp_path / "a", form, {"txet": ["some text"] * 1000, "id": [3] * 1000})
    for field, message in (
        ("text", r"no column 'text'; did you mean 'txet'\? \(columns here: txet, id\); name the one .* --field"),
        ("id", r"row 1: 'id' holds int instead of text"),
    ):
        with pytest.raises(UserError, match=message) as caught:
            read(file, field=field)
        assert "\n" not in str(caught.value)
    whole = file.read_bytes()
    for data in (b"no such format at all", whole[: len(whole) // 2]):
        file.write_bytes(data)
        with pytest.raises(UserError, match="cannot be read") as caught:
            read(file, field="txet")
        assert "\n" not in str(caught.value)


def test_compressed_once_more_is_another_kind(tmp_path):
    (tmp_path / "a.parquet.gz").write_bytes(b"")
    with pytest.raises(UserError, match=r"not a text file that can be read; .*\.parquet, \.arrow; unpack it$"):
        read(tmp_path / "a.parquet.gz")


@pytest.mark.parametrize(("name", "way"), [("a.xz", "unpack it"), ("a.txt.ZIP", "unpack it"), ("a.md", "call it .txt")])
def test_what_to_do_with_a_file_of_no_known_kind_is_said(name, way, tmp_path):
    (tmp_path / name).write_bytes(b"A text.")
    with pytest.raises(UserError, match=rf"not a text file that can be read; .*; {way}"):
        read(tmp_path / name)
