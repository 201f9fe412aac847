"""The one reader of YAML: whatever a file holds, it is read or refused in a line that names the file."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.errors import UserError
from bakeoff.yaml_files import DEEPEST, dump_yaml, parse_value, parse_yaml, read_yaml

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])) | st.sampled_from(
    [
        "no",
        "1e3",
        "1e-3",
        "010",
        "0x1f",
        "12:30",
        "2024-01-01",
        "~",
        "null",
        "",
        "<<",
        "=",
        ".5",
        "1_000",
        ".inf",
        "true",
    ]
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**90), 10**90) | NUMBERS | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=10,
)


@given(st.dictionaries(TEXT, VALUES))
def test_what_is_written_is_read(values):
    assert parse_yaml(dump_yaml(values), "file") == values


@given(st.text(alphabet="abc01.-:?,[]{}&*!|>'\"%@#\n\t ~<=e_"))
def test_any_text_is_read_or_refused_in_one_line(text):
    message = None
    try:
        parse_value(text, "some/file.yaml")
    except UserError as error:
        message = str(error)
    assert message is None or (message.startswith("some/file.yaml") and "\n" not in message)


def test_values_are_those_of_yaml_1_2():
    text = (
        "{a: 2024-01-01, b: 12:30, c: 010, d: no, e: 1e-3, f: 0x1f, g: 1_000, h: .5, i: 1., j: -2, k: , l: true, m: ~}"
    )
    assert parse_yaml(text, "file") == {
        **{"a": "2024-01-01", "b": "12:30", "c": "010", "d": "no", "e": 0.001, "f": 31, "g": 1000},
        **{"h": 0.5, "i": 1.0, "j": -2, "k": None, "l": True, "m": None},
    }
    merged = parse_yaml("base: &base {width: 8, depth: 2}\nwide: {<<: *base, width: 9}", "file")
    assert merged["wide"] == {"width": 9, "depth": 2}


TENFOLD = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 30)
)
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 200))
SIGNS = ("[A] b", "*A* b", "@home", "%age", '"x" y', "{a} b", "& more", "`code`")
"""Titles as people write them, which YAML takes for something of its own."""
REFUSED = [
    ("", "expected keys and values, found nothing"),
    ("- a", "expected keys and values, found list"),
    ("a", "expected keys and values, found str"),
    ("a: 1\nb: 2\na: 3", "line 3: the key 'a' comes twice"),
    ("a: {b: 1, b: 2}", "file.yaml: the key 'b' comes twice"),
    ("1: a", "a key has to be a name, '1' is none"),
    ("true: a", "a key has to be a name, 'true' is none"),
    ("[a]: b", "a key has to be a name, a list or mapping is none"),
    ("a: .nan", ".nan is no finite number"),
    ("a: -.inf", "-.inf is no finite number"),
    ("a: 1e400", "1e400 is no finite number"),
    ("a: " + "9" * 5000, "a number of 5000 digits"),
    ("a: !!timestamp 2024-01-01", "timestamp"),
    ("a: !!binary aGk=", "binary"),
    ("a: !!python/object/apply:os.getcwd []", "python"),
    ("a: !!int x", "not valid YAML"),
    ("a: !!bool x", "not valid YAML"),
    ("[" * 10**6, f"more than {DEEPEST} lists and mappings"),
    ("- " * 10**5, f"more than {DEEPEST} lists and mappings"),
    ("{a: " * 10**5, f"more than {DEEPEST} lists and mappings"),
    ("a: &a [*a]", "one within itself"),
    (TENFOLD, "values, aliases counted each time"),
    (CHAIN, f"more than {DEEPEST} lists and mappings"),
    ("a: b: c", "file.yaml: not valid YAML"),
    ("a:\n\tb: 1\n", "; indent with spaces, and not with tabs"),
    *((f"title: {text}", "a text that begins with a sign of YAML's is quoted, 'like this'") for text in SIGNS),
    ("- a: " * 60 + "x\n  y: 'z", "not valid YAML"),
    ("- " * 60 + "a: " * 10 + "x", "not valid YAML"),
    ("a: 1\n---\nb: 2", "another document"),
    ("a: \0", "control characters"),
]


@pytest.mark.parametrize("text", [",", "||", ":", "*", "&", "%", "@"])
def test_a_value_that_is_a_sign_of_yaml_is_said_to_need_quotes(text):
    """As after `--option between_labels=`."""
    with pytest.raises(UserError, match="a text that begins with a sign of YAML's is quoted, 'like this'"):
        parse_value(text, "--option")
    assert parse_value(f'"{text}"', "--option") == text


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_no_mapping_of_plain_values_is_refused_at_once(text, message, tmp_path):
    (tmp_path / "file.yaml").write_text(text)
    began = time.process_time()
    with pytest.raises(UserError) as caught:
        read_yaml(tmp_path / "file.yaml")
    assert time.process_time() - began < 2
    assert str(caught.value).startswith(str(tmp_path / "file.yaml"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_text_that_is_not_utf8_is_refused(tmp_path):
    (tmp_path / "file.yaml").write_bytes(b"a: \xff")
    with pytest.raises(UserError, match=r"file\.yaml: cannot be read: not UTF-8 text \(byte 3\)"):
        read_yaml(tmp_path / "file.yaml")


def test_what_stands_in_two_places_is_written_in_both():
    shared = {"length": 64}
    assert dump_yaml({"a": shared, "b": shared}) == "a:\n  length: 64\nb:\n  length: 64\n"
