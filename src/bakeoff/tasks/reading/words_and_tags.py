"""Files of words with a tag each: CoNLL columns, CoNLL-U; .jsonl, .parquet, .arrow and `hub:` with lists, or spans.

A sentence ends at a blank line, and a document begins at a line -DOCSTART- (CoNLL-2003) or `# newdoc` (CoNLL-U). These
and other comments are skipped (in CoNLL-U all lines that begin with #, else see `CommentLines`), and so are CoNLL-U's
words of several tokens (1-2) and empty words (1.1).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from typing_extensions import override

from bakeoff.display.wording import counted
from bakeoff.errors import UserError
from bakeoff.reading.files import COLUMNAR, LineReader, kind_of, require_file
from bakeoff.reading.hub import on_hub
from bakeoff.reading.records import foreign_line
from bakeoff.reading.table_reader import text_value
from bakeoff.reading.tables import open_table
from bakeoff.tasks.examples import Example
from bakeoff.tasks.reading.labels import label_text
from bakeoff.tasks.reading.texts_with_spans import tagged_words, words_of
from bakeoff.tasks.reading.word_lines import CommentLines, Widths, cells_of

CONLLU = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""The columns of CoNLL-U (Universal Dependencies, version 2)."""
COLUMNS = (".conll", ".conllu", ".txt", ".tsv", ".iob", ".bio", ".bmes", ".train", ".dev", ".test", ".testa", ".testb")
"""Endings of files with a word on each line; the last endings are those of published files (CoNLL-2003)."""
_TOO_LONG = 1000  # words that are no sentence


@dataclass(frozen=True)
class TaggedSentence(Example):
    """A sentence with its tags; `texts` holds the words of the sentence."""

    tags: tuple[str, ...] | None = None
    """The tag of each word; None where tags are not known."""
    offsets: tuple[tuple[int, int], ...] | None = field(default=None, compare=False)
    """The place of each word in the raw text, as of `WordsOfText`; None where words were given."""
    raw: str | None = field(default=None, compare=False)
    """The raw text; None where words were given."""
    widened: int = field(default=0, compare=False)
    """The number of spans that were widened to whole grapheme clusters."""
    document: int = field(default=0, compare=False)
    """The number of the sentence's document, from 1 on; 0 where the file marks none."""

    @property
    @override
    def as_read(self) -> tuple[str, ...]:
        return (" ".join(self.texts),)

    @property
    @override
    def as_given(self) -> tuple[str, ...]:
        return self.as_read if self.raw is None else (self.raw,)

    @property
    @override
    def cluster(self) -> tuple[str, ...]:
        return (str(self.document),) if self.document else self.together

    @property
    @override
    def labels(self) -> Sequence[tuple[str, str]]:
        return list(zip(self.tags or (), self.texts, strict=False))


class Columns(NamedTuple):
    """The columns of words and of tags in a file, as far as the user names them."""

    words: str | None
    """The column of the words, by its number from 1 or, in CoNLL-U, its name (default: form, else the first); in .jsonl
    the field with the list of words, or with the text where there are spans."""
    tags: str | None
    """The column of the tags (default: upos, else the last); in .jsonl the field with the list of tags."""
    spans: str | None
    """The field of .jsonl with a list of {start, end, label}, in characters of the text."""


def read_tagged(
    path: Path, columns: Columns, labelled: bool, errors: Literal["strict", "replace"], encoding: str = "utf-8"
) -> Iterator[TaggedSentence]:
    """The sentences of a file.

    Args:
        path: .conllu; .conll, .iob, .bio, .bmes or .txt with a word a line; or .jsonl, .parquet, .arrow or `hub:`.
        columns: the columns of words and tags.
        labelled: whether tags are read.
        errors: invalid UTF-8 is an error, or is replaced.
        encoding: the encoding of the file.

    Raises:
        UserError: there is no such file or column, or a mistake in it; with its line.
    """
    if not on_hub(path):
        require_file(path)
    if has_fields(path):
        yield from _records(path, columns, labelled, errors, encoding)
        return
    suffixes = path.suffixes[:-1] if path.suffix in (".gz", ".zst") else path.suffixes
    if not suffixes or suffixes[-1] not in COLUMNS:
        raise UserError(
            f"{path}: words and tags are read from .jsonl, .parquet, .arrow, .conllu or columns ({', '.join(COLUMNS)})"
        )
    if columns.spans is not None:
        words, tags = ("form", "upos") if suffixes[-1] == ".conllu" else (1, 2)
        named = f"name the columns of words and tags in their place: --text-column {words} --label-column {tags}"
        advice = named if labelled else "give a file of texts, such as .txt or .jsonl"
        raise UserError(f"{path}: spans stand in raw texts, not among words; {advice}")
    universal = suffixes[-1] == ".conllu"
    word_column = _column(columns.words or ("form" if universal else "1"), universal, path)
    tag_column = _column(columns.tags or ("upos" if universal else "-1"), universal, path) if labelled else None
    likely = -1 if universal else _column(columns.tags or "-1", universal, path)
    comments = CommentLines(LineReader(path, errors, encoding=encoding), likely)
    pairs: list[tuple[str, str]] = []
    number = words = document = 0
    before = ""  # the number of the word on the line before, or the sign of a comment
    widths = Widths(-1 in (word_column, tag_column))
    for number, text, _ in LineReader(path, errors, encoding=encoding).whole():
        line = text.rstrip("\r\n")
        begins = line.startswith(("-DOCSTART-", "# newdoc") if universal else "-DOCSTART-")  # a document
        if begins or not line.strip():
            if pairs:
                yield _sentence(number, pairs, labelled, document)
            pairs, document = [], document + begins
            widths.begin_sentence()
            if not begins:
                continue
        if ("\r" in line or "\0" in line) and (problem := foreign_line(line)):
            raise UserError(f"{path}:{number}: {problem}")
        if line.startswith("-DOCSTART-") or (line.startswith("#") and (universal or (not pairs and line in comments))):
            before = "#"
            continue
        cells = line.split("\t") if universal else cells_of(line)
        if universal and (len(cells) != len(CONLLU) or not cells[0].replace("-", "").replace(".", "").isdigit()):
            raise UserError(f"{path}:{number}: no row of CoNLL-U, whose ten columns have a tab between each; mend it")
        if universal and not cells[0].isdigit():
            continue
        if universal and pairs and cells[0] == "1" != before:
            raise UserError(f"{path}:{number}: a sentence begins without a blank line before it; put one there")
        before = cells[0]
        width = len(cells)
        if problem := widths.problem(width):
            raise UserError(f"{path}:{number}: {problem}")
        if max(word_column, tag_column or 0) >= width or (tag_column is not None and width == 1):
            what, option = ("tag", "--label-column") if labelled else ("word", "--text-column")
            raise UserError(
                f"{path}:{number}: {counted(width, 'column')}; there is none for the {what}; name it by {option}"
            )
        words += 1
        pairs.append((cells[word_column], "" if tag_column is None else label_text(cells[tag_column])))
        if tag_column is not None and not pairs[-1][1]:
            raise UserError(f"{path}:{number}: the tag is empty; every word needs one")
    if len(pairs) == words >= _TOO_LONG:
        raise UserError(
            f"{path}: no blank line ends a sentence, so that all of its {words:,} words are one; put one after each"
        )
    if pairs:
        yield _sentence(number, pairs, labelled, document)


def has_fields(path: Path) -> bool:
    """Whether a file has named fields with lists of words and tags, or with texts and spans, not a word a line."""
    return on_hub(path) or kind_of(path) in (".jsonl", *COLUMNAR)


def gives_words(path: Path, columns: Columns, column: str | None, encoding: str = "utf-8") -> bool:
    """Whether a file to be predicted has words, as files of fine-tuning have, or raw texts with spans; not texts alone.

    Args:
        path: the file.
        columns: the columns of fine-tuning.
        column: the column that the user names; None: the user names none.
        encoding: the encoding of the file.
    """
    if not has_fields(path):
        # A .txt may have a text a line, and a .tsv a column of them: a column that is called by its number says it.
        unsaid = set() if column is not None and column.isdigit() else {".txt", ".tsv"}
        return bool(set(path.suffixes) & (set(COLUMNS) - unsaid))
    if column is None or columns.spans is not None or on_hub(path) or not path.is_file():
        return columns.words is not None
    return any(
        isinstance(value, list) for _, (value,) in islice(open_table(path, "replace", encoding).rows([column]), 1)
    )


def _sentence(line: int, pairs: Sequence[tuple[str, str]], labelled: bool, document: int) -> TaggedSentence:
    words, tags = zip(*pairs, strict=True)
    return TaggedSentence(line, words, tags if labelled else None, document=document)


def _column(name: str, universal: bool, path: Path) -> int:
    """The index of a column; -1 is the last."""
    if universal and name in CONLLU:
        return CONLLU.index(name)
    try:
        number = int(name)
    except ValueError:
        number = 0
    if number == 0 or number < -1:
        known = f" or one of {', '.join(CONLLU)}" if universal else ""
        raise UserError(f"{path}: '{name}' is no column: give its number, 1 for the first, -1 for the last{known}")
    return number - 1 if number > 0 else -1


def _records(
    path: Path, columns: Columns, labelled: bool, errors: Literal["strict", "replace"], encoding: str
) -> Iterator[TaggedSentence]:
    words, tags, spans = columns
    if words is None or (labelled and (tags is None) == (spans is None)):
        raise UserError(
            f"{path}: name the fields: text_column with label_column for lists of words and of tags, text_column with "
            "spans_column for raw text"
        )
    label = (spans or tags) if labelled else None
    if label == words:
        raise UserError(f"{path}: words and tags need a column each, and both are '{words}'")
    for line, cells in open_table(path, errors, encoding).rows([words, *([label] if label else [])]):
        where = f"{path}:{line}"
        if spans is not None:
            text = text_value(cells[0], where, words, errors)
            tagged = tagged_words(text, cells[1], f"{where}: '{spans}'") if labelled else words_of(text)
            yield TaggedSentence(line, tagged.words, tagged.tags, tagged.offsets, text, tagged.widened)
            continue
        texts = _texts(cells[0], where, words, errors)
        if not labelled or tags is None:
            yield TaggedSentence(line, texts, None)
            continue
        labels = tuple(map(label_text, _texts(cells[1], where, tags, errors)))
        if len(labels) != len(texts):
            raise UserError(f"{where}: {len(texts)} words and {len(labels)} tags; each word needs one")
        if not all(labels):
            raise UserError(f"{where}: '{tags}' holds an empty tag; every word needs one")
        yield TaggedSentence(line, texts, labels)


def _texts(value: Any, where: str, name: str, errors: str) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise UserError(f"{where}: '{name}' holds {type(value).__name__} instead of a list")
    return tuple(text_value(each, where, name, errors) for each in value)
