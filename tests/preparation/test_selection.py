import json
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.errors import UserError
from bakeoff.preparation.encoding import text_encoding
from bakeoff.preparation.planning.selection import SelectionOptions, select
from bakeoff.preparation.prepare import prepare
from bakeoff.reading.files import find_files
from bakeoff.reading.pieces import CONTINUATION, DOCUMENT, PARAGRAPH, TextPiece
from bakeoff.reading.sources import SourceOptions, TextReader
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

BYTES = TokenizerConfig(kind="byte_bpe", size=300)
ONCE = SelectionOptions(deduplicate=True)


def pieces_of(documents):
    """Each document a list of paragraphs."""
    return [TextPiece(PARAGRAPH if i else DOCUMENT, text) for document in documents for i, text in enumerate(document)]


def kept(documents, options):
    pieces = pieces_of(documents)
    selection = select(pieces, options)
    left: list[list[str]] = []
    for piece in selection.keep(pieces):
        if piece.opens == DOCUMENT:
            left.append([])
        left[-1].append(piece.text)
    return left, selection.skips


@given(st.lists(st.lists(st.sampled_from(["a", "b", "aa", "房"]), min_size=1, max_size=3), max_size=30))
def test_the_first_of_equal_documents_is_kept(documents):
    expected = [document for i, document in enumerate(documents) if document not in documents[:i]]
    missing = len(documents) - len(expected)
    assert kept(documents, ONCE) == (expected, {"duplicate documents": missing} if missing else {})


@given(st.lists(st.lists(st.text("ab房", min_size=1, max_size=4), min_size=1, max_size=3), max_size=20), st.booleans())
def test_short_documents_are_left_out(documents, deduplicate):
    texts = ["\n".join(document) for document in documents]
    long = [document for document, text in zip(documents, texts, strict=True) if len(text) >= 5]
    left, skips = kept(documents, SelectionOptions(minimum_characters=5, deduplicate=deduplicate))
    assert left == [document for i, document in enumerate(long) if not (deduplicate and document in long[:i])]
    assert skips.get("documents below 5 characters", 0) == len(documents) - len(long)
    assert skips.get("duplicate documents", 0) == len(long) - len(left)


def test_where_paragraphs_and_pieces_end(tmp_path):
    assert kept([["ab"], ["a", "b"]], ONCE)[1] == {}
    cut = [TextPiece(DOCUMENT, "ab"), TextPiece(CONTINUATION, " cd"), TextPiece(DOCUMENT, "ab cd")]
    assert select(cut, ONCE).left_out.tolist() == [False, True]
    # The same long text out of a file in which a piece ends elsewhere.
    text = "word and another one " * 5_000
    (tmp_path / "a.txt").write_text(text.replace(" and", "  and") + "\n")
    (tmp_path / "b.jsonl").write_text(json.dumps({"text": text}))
    reader = TextReader(find_files([tmp_path], Counter()), SourceOptions())
    assert select(reader, ONCE).left_out.tolist() == [False, True]


def test_a_text_that_grows_is_refused():
    selection = select(pieces_of([["a"]]), ONCE)
    with pytest.raises(UserError, match="has changed"):
        list(selection.keep(pieces_of([["a"], ["b"]])))


def documents_of(corpus):
    return [
        corpus.tokenizer.decode(split.tokens[first:last])
        for split in (corpus.train, corpus.validation)
        for first, last in zip(split.documents[:-1], split.documents[1:], strict=True)
    ]


def test_copies_in_several_files_and_forms(tmp_path):
    texts = [f"Document {i}, a café.\nAnother line." for i in range(250)]
    (tmp_path / "text").mkdir()
    (tmp_path / "text" / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    # Decomposed letters and more spaces are the same text after normalisation.
    (tmp_path / "text" / "b.csv").write_text(
        "text\n" + "".join('"' + text.replace("é", "e\u0301").replace(" a", "  a") + '"\n' for text in texts)
    )
    (tmp_path / "text" / "c.txt").write_text("Document 7,\na  café.\n\nAnother line.\n\n")
    corpus = prepare(tmp_path / "text", tmp_path / "corpus", tokenizer=BYTES, deduplicate=True)
    assert sorted(documents_of(corpus)) == sorted(texts)
    assert corpus.summary()["skips"] == {"duplicate documents": 251}
    assert corpus.summary()["documents"] == 250
    assert corpus.manifest.options["deduplicate"] is True
    # Beside its record it is the corpus of the text without copies.
    alone = prepare(tmp_path / "text" / "a.jsonl", tmp_path / "alone", tokenizer=BYTES)
    assert alone.fingerprint == corpus.fingerprint
    assert alone.manifest.options["deduplicate"] is False


def test_minimum_characters_is_recorded(tmp_path):
    texts = ["word " * (i % 50 + 1) for i in range(250)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    corpus = prepare(tmp_path / "a.jsonl", tmp_path / "corpus", tokenizer=BYTES, minimum_characters=49)
    expected = [text.strip() for text in texts if len(text.strip()) >= 49]
    assert sorted(documents_of(corpus)) == sorted(expected)
    assert corpus.summary()["skips"] == {"documents below 49 characters": 250 - len(expected)}
    assert corpus.manifest.options["minimum_characters"] == 49


@pytest.mark.parametrize(
    ("minimum", "message"), [(-1, "minimum_characters: .* -1"), (500, "no document has 500 characters.*--minimum")]
)
def test_a_minimum_that_leaves_nothing(tmp_path, minimum, message):
    (tmp_path / "a.txt").write_text("A short text.")
    with pytest.raises(UserError, match=message):
        prepare(tmp_path / "a.txt", tmp_path / "corpus", tokenizer=BYTES, minimum_characters=minimum)
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.slow
def test_any_number_of_workers_selects_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(text_encoding, "_JOB", 1 << 16)
    generator = random.Random(0)
    numbers = [generator.randrange(750) for _ in range(2_000)]
    lines = "".join(json.dumps({"text": f"Number {i}. " + "Some words follow. " * (i % 20)}) + "\n" for i in numbers)
    (tmp_path / "a.jsonl").write_text(lines)
    corpora = [
        prepare(tmp_path / "a.jsonl", tmp_path / str(workers), tokenizer=BYTES, deduplicate=True, workers=workers)
        for workers in (0, 1, 3)
    ]
    assert len({corpus.fingerprint for corpus in corpora}) == 1
    assert corpora[0].summary()["skips"] == {"duplicate documents": 2_000 - len(set(numbers))}
    assert corpora[0].manifest == corpora[2].manifest
    lengths = np.concatenate([np.diff(split.documents) for split in (corpora[0].train, corpora[0].validation)])
    assert len(lengths) == len(set(numbers))
