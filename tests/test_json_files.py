"""The one reader of JSON: whatever a file holds, it is read or refused in a line that names the file."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.errors import UserError
from bakeoff.json_files import (
    DEEPEST,
    JsonError,
    RepeatedKey,
    json_value,
    parse_any_json,
    parse_json,
    read_json,
    read_json_lines,
)

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**90), 10**90) | NUMBERS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES)
def test_what_json_writes_is_read(value):
    assert parse_any_json(json.dumps(value).encode(), "file") == value
    assert (
        parse_any_json(json.dumps(value, ensure_ascii=False, indent=1).encode("utf-8", "surrogatepass"), "file")
        == value
    )


@given(st.text(alphabet='\\u"dD8cC0fF9 ', max_size=40) | st.text(alphabet=st.characters(categories=["Cs", "Lu"])))
def test_what_is_read_can_be_written(text):
    for content in (f'"{text}"', json.dumps(text)):
        try:
            value = parse_any_json(content.encode("utf-8", "surrogatepass"), "file")
        except UserError:
            continue
        json.dumps(value, ensure_ascii=False).encode()


@given(st.binary() | st.text(alphabet='[]{}",:0123456789eE+-.truefalsn\\ "').map(str.encode))
def test_any_bytes_are_read_or_refused_in_one_line(content):
    message = None
    try:
        parse_any_json(content, "some/file.json")
    except UserError as error:
        message = str(error)
    assert message is None or (message.startswith("some/file.json: ") and "\n" not in message)


REFUSED = [
    (b"", "is empty"),
    (b" \n", "is empty"),
    (b'{"a": "\xff"}', "not UTF-8 text (byte 7)"),
    (b"[]", "expected a JSON object with keys and values, found a list"),
    (b'"x"', "found a string"),
    (b"3", "found a number"),
    (b"true", "found a truth value"),
    (b"null", "found null"),
    (b'{"a": 1', "line 1, column 8"),
    (b'{"a": NaN}', "NaN is no number"),
    (b'{"a": -Infinity}', "-Infinity is no number"),
    (b'{"a": 1e400}', "the number 1e400 is too large"),
    (b'{"a": ' + b"1" * 5000 + b"}", "a number of 5000 digits"),
    (b'{"a": {"b": 1, "c": 2, "b": 3}}', "the key 'b' comes twice (line 1, column 24)"),
    (b'{"b": "{\\"a\\": 1", "a": [{"b": 0}, {"b": 0}],\n "\\u0061": 2}', "the key 'a' comes twice (line 2, column 2)"),
    (
        b'{"a": "\\ud83d\\ude00",\n "b": ["\\ud83d", 1]}',
        "half of a surrogate pair (\\ud8...) is not a character (line 2, column 8)",
    ),
    (b'{"\\\\ud800": 1, "\\\\\\uDFFF": 2}', "half of a surrogate pair"),
    (b'{"a":' * 10**6, f"more than {DEEPEST} brackets"),
    (b"[" * 10**6 + b"]" * 10**6, f"more than {DEEPEST} brackets"),
]


@pytest.mark.parametrize(("content", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_what_is_no_object_is_refused_with_the_file_and_the_reason(content, message, tmp_path):
    (tmp_path / "file.json").write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_json(tmp_path / "file.json")
    assert str(caught.value).startswith(f"{tmp_path / 'file.json'}: ")
    assert message in str(caught.value)


def test_brackets_in_strings_are_no_brackets():
    text = json.dumps({"a": '[{"' * 1000, "b": "\\" * 99})
    assert parse_json(text.encode(), "file")["a"] == '[{"' * 1000
    deepest = b"[" * DEEPEST + b'"["' + b"]" * DEEPEST
    assert parse_any_json(deepest, "file")
    with pytest.raises(UserError, match="brackets"):
        parse_any_json(b"[" + deepest + b"]", "file")


def test_a_line_that_is_wrong_is_named(tmp_path):
    (tmp_path / "lines.jsonl").write_text('{"a": 1}\n{"a": 2.5}\n')
    assert read_json_lines(tmp_path / "lines.jsonl") == [{"a": 1}, {"a": 2.5}]
    (tmp_path / "lines.jsonl").write_text('{"a": 1}\n{"a": \n')
    with pytest.raises(UserError, match=r"lines\.jsonl:2: not valid JSON"):
        read_json_lines(tmp_path / "lines.jsonl")
    with pytest.raises(UserError, match="absent: cannot be read: No such file"):
        read_json(tmp_path / "absent")


def test_numbers_keep_their_values():
    found = parse_json(b'{"a": 123456789012345678901234567890, "b": 1e-300, "c": -0.0}', "file")
    assert found["a"] == 123456789012345678901234567890
    assert found["b"] > 0
    assert math.copysign(1, found["c"]) == -1


def test_keys_are_compared_in_linear_time():
    keys = ", ".join(f'"k{number}": 1' for number in range(40_000))  # each with each would be half a minute
    with pytest.raises(UserError, match="the key 'k39999' comes twice"):
        parse_json(f'{{{keys}, "k39999": 1}}'.encode(), "file")


@given(st.lists(st.text(max_size=2), max_size=6), st.booleans())
def test_an_object_is_read_if_its_keys_differ(names, any_number):
    text = "{" + ", ".join(f"{json.dumps(name)}: [{{}}, 1]" for name in names) + "}"
    twice = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if twice is None:
        assert list(json_value(text, any_number)) == names
        return
    with pytest.raises(RepeatedKey) as caught:
        json_value(text, any_number)
    assert caught.value.problem == f"the key '{twice}' comes twice"


def test_data_may_hold_numbers_that_settings_may_not():
    found = json_value('{"a": NaN, "b": 1e999, "c": ' + "1" * 200 + "}", any_number=True)
    assert math.isnan(found["a"])
    assert found["b"] == math.inf
    with pytest.raises(JsonError, match="Exceeds the limit"):
        json_value("1" * 5000, any_number=True)
