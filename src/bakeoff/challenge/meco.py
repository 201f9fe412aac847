"""Surprisals of the words of MECO's passages, from which the organisers make scores of reading times."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bakeoff.config import Config
from bakeoff.errors import UserError
from bakeoff.reading.tables import open_table
from bakeoff.scoring.completions import Completions

FIRST, SECOND = "meco_l1", "meco_l2"
"""Reading in the own language, and of English by readers of another one."""

_CODES = {"eng": "en", "nld": "du", "zho": "ch_s"}
_COLUMNS = ["itemid", "wordnum", "FullTextMarked"]


class WordToRead(NamedTuple):
    """A word at its place in a passage."""

    name: str
    """The numbers of the passage and of the word, as they are submitted: 1:12."""
    text: str
    """The passage up to the word's end."""
    begin: int
    """The first character of the word."""


class WordSurprisals(Config):
    """The surprisals of the words of passages."""

    surprisals: dict[str, float]
    """In nats, by the names of words."""


def meco_keys(languages: Sequence[str]) -> list[str]:
    """The parts of an entry: a language's own reading each, and that of English where it is learned beside others."""
    second = [SECOND] if "eng" in languages and len(languages) > 1 else []
    return [*(f"{FIRST}_{code}" for code in languages), *second]


def file_of(key: str) -> str:
    """The official file of a part, below the folder `multilingual`."""
    return f"meco/data/{key[: len(FIRST)]}_stims.tsv"


def read_words(path: Path, key: str) -> list[WordToRead]:
    """The words of a part; of two with the same numbers the first, as officially.

    Raises:
        UserError: the file cannot be read, has another form, or has no words of the language.
    """
    code = _CODES.get(key.rpartition("_")[2])
    found: dict[str, WordToRead] = {}
    names = _COLUMNS if code is None else [*_COLUMNS, "lang"]
    for number, (item, word, marked, *language) in open_table(path).rows(names):
        if language and str(language[0]).strip() != code:
            continue
        parts = str(marked).split("*")
        if len(parts) < 2 or not parts[1].strip():
            raise UserError(f"{path}:{number}: no word between asterisks in {marked!r}")
        name = f"{_numbered(item)}:{_numbered(word)}"
        found.setdefault(name, WordToRead(name, parts[0] + parts[1], len(parts[0])))
    if not found:
        raise UserError(f"{path}: holds no words{'' if code is None else f' of the language {code}'}")
    return list(found.values())


def surprisals_of(scorer: Completions, words: Sequence[WordToRead]) -> WordSurprisals:
    """The surprisal of each word, -log p of its tokens after the passage so far.

    Raises:
        UserError: a surprisal is not a finite number.
    """
    values = scorer.score([each.text for each in words], [each.begin for each in words])
    return WordSurprisals(surprisals={each.name: -value for each, value in zip(words, values.tolist(), strict=True)})


def _numbered(cell: object) -> str:
    """A number without an end .0."""
    text = str(cell).strip()
    return text.removesuffix(".0")
