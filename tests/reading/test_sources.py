import gzip
import json
import os
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.errors import UserError
from bakeoff.reading.files import find_files
from bakeoff.reading.pieces import DOCUMENT, PARAGRAPH
from bakeoff.reading.sources import SourceOptions, TextReader


def read(*files: Path, **options) -> tuple[list[list[str]], dict[str, int]]:
    """Documents as lists of paragraphs, and what was skipped."""
    reader = TextReader(find_files(files, Counter()), SourceOptions(**options))
    documents: list[list[str]] = []
    for piece in reader:
        if piece.opens == DOCUMENT:
            documents.append([piece.text])
        elif piece.opens == PARAGRAPH:
            documents[-1].append(piece.text)
        else:
            documents[-1][-1] += piece.text
    assert reader.bytes_read() == sum(reader.sizes)
    return documents, dict(reader.skips)


def write(path: Path, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    if path.suffix == ".gz":
        data = gzip.compress(data)
    elif path.suffix == ".zst":
        data = zstandard.compress(data)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_text_file_is_one_document(tmp_path, suffix):
    file = write(tmp_path / f"a.txt{suffix}", "\ufeffOne\nline.\r\n\r\n \nTwo  é.\n\n\n")
    assert read(file) == ([["One line.", "Two é."]], {})


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_records(tmp_path, suffix):
    lines = [{"text": "a\nb\n\nc", "x": 1}, {"text": ""}, {"text": None}, {"text": 'd "e" \\ \U0001f389'}]
    jsonl = write(tmp_path / f"a.jsonl{suffix}", "\n".join(map(json.dumps, lines)) + "\n\n")
    assert read(jsonl) == ([["a", "b", "c"], ['d "e" \\ \U0001f389']], {"empty documents": 2})
    table = write(tmp_path / f"a.csv{suffix}", 'id,text\n1,"a ""b"", c\nd"\n2,e\n')
    assert read(table) == ([['a "b", c', "d"], ["e"]], {})
    table = write(tmp_path / f"a.tsv{suffix}", 'id\ttext\n1\t"an open quotation mark\n2\te\n')
    assert read(table) == ([['"an open quotation mark'], ["e"]], {})


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_json_lines_are_read_whatever_they_are_called(tmp_path, suffix):
    lines = '\n{"text": "One.\\nTwo.", "other": [1]}\n{"text": "Three."}\n'
    file = write(tmp_path / f"a.json{suffix}", lines)
    assert read(file) == ([["One.", "Two."], ["Three."]], {})
    with pytest.raises(UserError, match=r"a folder without text"):  # where settings may lie beside the text
        find_files(tmp_path, Counter())
    assert find_files(str(tmp_path / "*.json*"), Counter()) == [file]
    for content in ('[{"text": "One."}]', '{\n"text": "One."\n}\n', '"text"\n', "", "{" * 100_000):
        with pytest.raises(UserError, match=r"a\.json.*: no object stands in its first line; write one object a line"):
            read(write(file, content))


@pytest.mark.parametrize("closed", ["texts", "texts/inner"])
def test_a_folder_that_may_not_be_read_is_not_passed_over(closed, tmp_path, monkeypatch):
    (tmp_path / "texts" / "inner").mkdir(parents=True)
    (tmp_path / "texts" / "a.txt").write_text("A river.", encoding="utf-8")
    scan = os.scandir

    def refusing(path):
        if Path(path) == tmp_path / closed:
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refusing)  # root, who may run this test, reads everything
    with pytest.raises(UserError, match=f"^{tmp_path / closed}: cannot be read .Permission denied.; "):
        find_files(tmp_path / "texts", Counter())


def test_document_per_line_and_separator(tmp_path):
    file = write(tmp_path / "a.txt", "one\n\ntwo\nthree<sep>four\n<sep>\nfive\n")
    assert read(file, document_per_line=True)[0] == [["one"], ["two"], ["three<sep>four"], ["<sep>"], ["five"]]
    assert read(file, document_separator="<sep>")[0] == [["one", "two three"], ["four"], ["five"]]
    assert read(file, document_separator="^$")[0] == [["one"], ["two three<sep>four <sep> five"]]


def test_skips_are_counted(tmp_path):
    write(tmp_path / "a.txt", "")
    write(tmp_path / "b.txt", " \n\n")
    write(tmp_path / "c.txt", "text")
    assert read(tmp_path) == ([["text"]], {"empty files": 1, "empty documents": 1})


@given(st.lists(st.lists(st.text(alphabet="ab \t房é🎉ש\u0301\u3000.", max_size=8), max_size=5), min_size=1, max_size=4))
@settings(max_examples=50, deadline=None)
def test_any_paragraphs(tmp_path_factory, documents):
    folder = tmp_path_factory.mktemp("any")
    cleaned = [[" ".join(unicodedata.normalize("NFC", p).split()) for p in document] for document in documents]
    expected = [kept for kept in ([p for p in document if p] for document in cleaned) if kept]
    lines = "".join(json.dumps({"text": "\n".join(document)}) + "\n" for document in documents)
    assert read(write(folder / "a.jsonl", lines))[0] == expected
    separated = "\n<end>\n".join("\n\n".join(document) for document in documents)
    assert read(write(folder / "a.txt", separated), document_separator="<end>")[0] == expected


@pytest.mark.parametrize("unit", ["word ", "房", "xé"])
def test_a_long_line_comes_in_pieces(tmp_path, unit):
    text = unit * 150_000
    file = write(tmp_path / "a.txt", text)
    pieces = list(TextReader([file], SourceOptions()))
    assert max(len(piece.text) for piece in pieces) < 40_000
    assert "".join(piece.text for piece in pieces) == text.strip()
    assert read(file)[0] == [[text.strip()]]
    file = write(tmp_path / "a.jsonl", json.dumps({"text": text}))
    assert read(file)[0] == [[text.strip()]]
    if " " in unit:  # a piece ends between two words, which a tokenizer would cut otherwise
        assert {piece.text[0] for piece in [*TextReader([file], SourceOptions())][1:]} == {" "}


@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_a_last_line_is_whole_with_and_without_a_line_end(tmp_path, suffix, end):
    """A piece ends its sentence: the last one of a file was cut in two before its last word."""
    file = write(tmp_path / f"a.txt{suffix}", f"One.\nThe last line is whole.{end}")
    for lines in (True, False):
        pieces = TextReader([file], SourceOptions(document_per_line=lines))
        assert [piece.text for piece in pieces][-1].endswith("The last line is whole.")


def test_long_paragraph_of_short_lines(tmp_path):
    text = "a line of text\n" * 10_000
    assert read(write(tmp_path / "a.txt", text))[0] == [[" ".join(text.split())]]


def test_files_folders_globs(tmp_path):
    (tmp_path / "sub" / ".hidden").mkdir(parents=True)
    for name in ("b.txt", "a.txt", "sub/c.jsonl.gz", "sub/.hidden/d.txt", "sub/e.pdf"):
        write(tmp_path / name, "x")
    skips: Counter[str] = Counter()
    names = [file.name for file in find_files([tmp_path], skips)]
    assert names == ["a.txt", "b.txt", "c.jsonl.gz"]
    assert skips == {"files of another kind": 1}
    found = find_files([tmp_path / "b.txt", str(tmp_path / "**" / "*"), tmp_path / "b.txt"], skips)
    assert [file.name for file in found] == ["b.txt", "a.txt", "c.jsonl.gz"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"fine\nno\xff\n", r"a\.txt:2: not valid UTF-8 .*--errors replace"),
        ("a.txt.gz", b"fine\n\xe6\x88", r"a\.txt\.gz:2: not valid UTF-8"),
        ("a.jsonl", b'{"text": "a"}\n{"text": \n', r"a\.jsonl:2: broken JSON"),
        ("a.jsonl", b'{"txet": "a", "id": 1}', r":1: no field 'text'; did you mean 'txet'\? \(fields here: txet, id\)"),
        ("a.jsonl", b'{"text": 3}', r"a\.jsonl:1: 'text' holds int"),
        ("a.jsonl", b"[1]", r"a\.jsonl:1: not a JSON object"),
        ("a.jsonl", b'{"text": "\\ud800"}', r"a\.jsonl:1: half of a surrogate .* where the command has it"),
        ("a.csv", b"id,body\n1,x\n", r"a\.csv:1: no column 'text' \(columns here: id, body\).*--field"),
        ("a.csv", b"id,text\n1,x\n2\n", r"a\.csv:3: the row has 1 column,"),
        ("a.tsv", b"1\tsome words\n", r"a\.tsv:1: no column 'text'"),
        ("a.csv", b"id;text\n", r"no column 'text' \(columns here: id;text\); if .* semicolons, write it with commas"),
        ("a.csv", b"text\tid\n", r"a\.csv:1: no column 'text' \(.*\); if .* between tabs, call it \.tsv$"),
        ("a.jsonl", b'{"a": {"text": "x"}}', r"a\.jsonl:1: no field 'text' \(fields here: a\)"),
        ("a.docx", b"x", r"a\.docx: not a text file"),
        ("a.txt", "A line.\nAnother.\n".encode("utf-16-le"), r"a\.txt:1: it holds NUL bytes.*iconv -f utf-16le"),
        ("a.txt", "Ah\n\nAnother line.\n".encode("utf-16-be"), r"a\.txt:1: it holds NUL bytes.*iconv -f utf-16be"),
        ("a.txt", b"A line.\n" * 9 + "Some other lines.\n".encode("utf-16-be"), r"a\.txt:10: it holds NUL bytes"),
        ("a.jsonl", '{"text": "a"}\n'.encode("utf-16-le"), r"a\.jsonl:1: it holds NUL bytes"),
        ("a.txt", "A line.\n".encode("utf-32"), r"a\.txt:1: it is of UTF-32; convert it: iconv -f utf-32"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_line(tmp_path, name, content, message):
    file = write(tmp_path / name, content)
    with pytest.raises(UserError, match=message) as caught:
        read(file)
    assert "\n" not in str(caught.value)


def test_damaged_compression(tmp_path):
    for suffix in (".gz", ".zst"):
        file = write(tmp_path / f"a.txt{suffix}", "text " * 10_000)
        data = file.read_bytes()
        for broken in (data[:-10], b"not compressed at all"):
            file.write_bytes(broken)
            with pytest.raises(UserError, match="damaged"):
                read(file)
        file.write_bytes(data + data)  # compressed files may be concatenated
        assert read(file)[0] == [[" ".join(["text"] * 20_000)]]


SCRIPTS = {
    "Latin": "The river is old. Who finds the stones?",
    "Cyrillic": "В лесу родилась ёлочка, в лесу она росла.",
    "Greek": "Η θάλασσα είναι μεγάλη και βαθιά.",
    "Arabic": "النهر قديم جدا، والحجر جديد.",
    "Hebrew": "הנהר ישן מאוד והאבן חדשה.",
    "Devanagari": "नदी बहुत पुरानी है और पत्थर नया है।",
    "Gurmukhi": "ਨਦੀ ਬਹੁਤ ਪੁਰਾਣੀ ਹੈ ਅਤੇ ਪੱਥਰ ਨਵਾਂ ਹੈ।",
    "Thai": "แม่น้ำ เก่ามาก และหินใหม่",
    "Han": "河流非常古老，石头是新的。一条河有一块石头。",
    "Kana": "川はとても古いです。石は新しいです。",
    "Hangul": "강은 매우 오래되었고 돌은 새것입니다.",
    "Georgian": "მდინარე ძალიან ძველია და ქვა ახალია.",
    "emoji": "A stone 🪨 and a river 🏞️, and nothing else 🙂.",
}


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("order", ["utf-16le", "utf-16be"])
@pytest.mark.parametrize("form", ["a.txt", "a.tsv", "a.jsonl", "a.txt.gz"])
@pytest.mark.parametrize("count", [1, 300])
def test_utf16_without_its_mark_is_known_in_every_script_by_its_order(tmp_path, script, order, form, count):
    line = {"a.tsv": "text\n{}", "a.jsonl": '{{"text": "{}"}}'}.get(form, "{}").format(SCRIPTS[script])
    content = f"{line}\n" * count
    file = write(tmp_path / form, content.encode(order))
    with pytest.raises(UserError, match=rf":1: it holds NUL bytes, .*iconv -f {order} -t utf-8 FILE$"):
        read(file)
    for other in ("utf-8", "utf-16"):  # with its mark
        assert read(write(tmp_path / form, content.encode(other)))[0]


def test_some_nul_bytes_are_no_sign_of_another_encoding(tmp_path):
    line = "\0, \x01 and A\0B\0 stand in a text that is long enough"
    assert read(write(tmp_path / "a.txt", line.encode()))[0] == [[line]]


def test_replacing_invalid_bytes(tmp_path):
    assert read(write(tmp_path / "a.txt", b"no\xff."), errors="replace")[0] == [["no\ufffd."]]
    assert read(write(tmp_path / "a.jsonl", b'{"text": "a\\ud800"}'), errors="replace")[0] == [["a\ufffd"]]


def test_paths_that_lead_nowhere(tmp_path):
    with pytest.raises(UserError, match="no such file or folder"):
        read(tmp_path / "absent.txt")
    with pytest.raises(UserError, match="folder without text"):
        read(tmp_path)
    with pytest.raises(UserError, match="no text file matches"):
        read(tmp_path / "*.txt")
    with pytest.raises(UserError, match=r"^one of the texts has an empty name; name files or folders$"):
        read("")


@pytest.mark.skipif(sys.platform == "darwin", reason="whose file systems have names in UTF-8 alone")
def test_a_name_that_no_record_can_hold_is_refused_before_the_work(tmp_path):
    write(tmp_path / "a.txt", "fine")
    write(tmp_path / os.fsdecode(b"\xff.txt"), "fine")
    for text in (tmp_path, tmp_path / "*.txt", tmp_path / os.fsdecode(b"\xff.txt")):
        with pytest.raises(UserError, match=r"\\udcff\.txt' is not valid UTF-8; rename the file"):
            read(text)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_a_library_that_is_missing_is_named_before_anything_is_read(tmp_path, name, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    files = [write(tmp_path / "a.txt", "text"), write(tmp_path / name, "x")]
    with pytest.raises(UserError, match=rf"{name}: .* run pip install 'pyarrow>="):
        TextReader(files, SourceOptions())


def test_bad_options(tmp_path):
    file = write(tmp_path / "a.txt", "x")
    with pytest.raises(UserError, match="not a regular expression"):
        read(file, document_separator="(")
    with pytest.raises(UserError, match="exclude each other"):
        read(file, document_separator="x", document_per_line=True)
