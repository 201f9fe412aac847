import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.display.spreadsheet import write_table
from bakeoff.display.text import visible


def written(*row):
    file = io.StringIO()
    write_table(file, [row])
    return next(csv.reader(io.StringIO(file.getvalue())))


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", '=HYPERLINK("x")', "-bert", "＝1"])
def test_a_name_that_begins_like_a_formula_is_a_text(text):
    assert written(text) == ["'" + text]


@pytest.mark.parametrize("value", [-0.5, 3, None, "-0.5", "+1", "-1e-05", "bert-mini", "a=1", "", "'=1"])
def test_numbers_and_other_texts_stay(value):
    assert written(value, 1) == ["" if value is None else str(value), "1"]


@given(st.text() | st.text(st.sampled_from("=+-@\t\r\n\"',;ab1")))
def test_no_text_is_lost(text):
    (found,) = written(text) or [""]
    assert found in (visible(text), "'" + visible(text))
    assert not found.startswith(("=", "@", "\t", "\r"))
