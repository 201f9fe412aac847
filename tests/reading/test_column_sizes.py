"""Columns whose values are far larger than their files: read in bounded memory, or refused in one line."""

import tracemalloc
from contextlib import suppress
from itertools import islice

import pytest

from bakeoff.errors import UserError
from bakeoff.reading import columns
from bakeoff.reading.columns import ColumnReader
from bakeoff.reading.parquet_pages import pages

pyarrow = pytest.importorskip("pyarrow")
ipc, parquet = pytest.importorskip("pyarrow.ipc"), pytest.importorskip("pyarrow.parquet")


def values(path, name="text"):
    return [value for _, (value,) in ColumnReader(path, "strict").rows([name])]


TEXTS = [None if i % 7 == 6 else f"text {i % 50} " * (i % 5) for i in range(700)]
LISTS = [None if i % 7 == 6 else [f"word {j}" for j in range(i % 5)] for i in range(700)]
FORMS = {
    "usual": {},
    "no dictionary": {"use_dictionary": False},
    "version 2": {"data_page_version": "2.0", "version": "2.6"},
    "small pages": {"data_page_size": 64, "dictionary_pagesize_limit": 64, "row_group_size": 90},
    "brotli": {"compression": "brotli"},
    "no compression": {"compression": "none", "write_statistics": False},
    "checksums": {"write_page_checksum": True, "write_page_index": True},
}


@pytest.mark.parametrize("form", FORMS)
def test_what_was_written_is_read_and_the_pages_are_all_there(tmp_path, form):
    path = tmp_path / "t.parquet"
    table = pyarrow.table({"text": TEXTS, "list": LISTS, "a.b": TEXTS, "number": range(700)})
    parquet.write_table(table, path, **FORMS[form])
    assert (values(path), values(path, "list"), values(path, "a.b")) == (TEXTS, LISTS, TEXTS)
    with path.open("rb") as raw:
        metadata = parquet.read_metadata(path)
        for group in range(metadata.num_row_groups):
            for number in range(metadata.num_columns):
                column = metadata.row_group(group).column(number)
                found = list(pages(raw, column))
                assert sum(page.dictionary for page in found) == column.has_dictionary_page
                headers = column.total_uncompressed_size - sum(page.size for page in found)
                assert 10 * len(found) < headers < 200 * len(found)  # the total counts them, too


@pytest.mark.parametrize("rows", [1, 3, 1000])
@pytest.mark.parametrize("streamed", [True, False])
def test_arrow_is_read_in_the_asked_column_alone(tmp_path, monkeypatch, rows, streamed):
    monkeypatch.setattr(columns, "_AT_ONCE", 40 * rows)
    path = tmp_path / "t.arrow"
    table = pyarrow.table({"other": range(700), "text": pyarrow.array(TEXTS).dictionary_encode(), "list": LISTS})
    with (ipc.new_stream if streamed else ipc.new_file)(path, table.schema) as file:
        file.write_table(table, max_chunksize=100)
    assert (values(path), values(path, "list"), values(path, "other")) == (TEXTS, LISTS, list(range(700)))


def of_memory(path, count):
    """The first values, and the peak of Python's memory and of the library's while they are read, in bytes."""
    pool = pyarrow.default_memory_pool()
    tracemalloc.start()
    try:
        found = []
        for _, (value,) in islice(ColumnReader(path, "strict").rows(["text"]), count):
            found.append(len(value))
        return found, tracemalloc.get_traced_memory()[1] + pool.bytes_allocated()
    finally:
        tracemalloc.stop()


def test_one_value_that_every_row_repeats(tmp_path):
    path = tmp_path / "t.parquet"
    long = "xy " * 5_000_000
    column = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 300, pyarrow.int32()), pyarrow.array([long]))
    parquet.write_table(pyarrow.table({"text": column}), path, compression="zstd")
    assert path.stat().st_size < 1 << 16
    found, peak = of_memory(path, 20)
    assert found == [len(long)] * 20
    assert peak < 16 * len(long)  # of 256 at once


def test_rows_of_lists_that_are_nothing_in_the_file(tmp_path):
    path = tmp_path / "t.parquet"
    lists = pyarrow.ListArray.from_arrays(range(0, 6_000_001, 200_000), pyarrow.array(["a"] * 6_000_000))
    parquet.write_table(pyarrow.table({"text": lists}), path, compression="zstd")
    assert path.stat().st_size < 1 << 16
    found, peak = of_memory(path, 3)
    assert found == [200_000] * 3
    assert peak < 200 << 20


def test_a_page_that_is_too_large_is_refused_before_it_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "LARGEST_PAGE", 1 << 20)
    path = tmp_path / "t.parquet"
    table = pyarrow.table({"text": ["ab " * 700_000], "short": ["a"]})
    parquet.write_table(table, path, compression="zstd", use_dictionary=False)
    with pytest.raises(
        UserError, match=r"t\.parquet: text: a page of 2,100,0\d\d bytes, .*; write the file with smaller"
    ):
        values(path)
    assert values(path, "short") == ["a"]


def test_damaged_headers_are_one_line(tmp_path):
    path = tmp_path / "t.parquet"
    parquet.write_table(pyarrow.table({"text": TEXTS}), path, compression="none")
    content = path.read_bytes()
    for place in range(4, 60):
        for value in (0x00, 0xFF, 0x1C, 0x15):
            path.write_bytes(content[:place] + bytes([value]) + content[place + 1 :])
            with suppress(UserError):  # any other error would be a traceback
                values(path)
