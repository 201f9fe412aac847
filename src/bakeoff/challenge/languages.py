"""The languages of BabyLM's multilingual track: which text is in which, and how many words it counts for.

The budget is in words of English with the same content. BabyBabelLM (arXiv:2510.10159) measures text in bytes: 100 M
words are 543 MB of English, and as many times more in a language as it needs bytes for what English says in one, its
byte premium (Arnett, Chang and Bergen 2024, arXiv:2403.00686): words = bytes / (5.43 * premium).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bakeoff.display.wording import listed
from bakeoff.errors import UserError
from bakeoff.reading.files import find_files
from bakeoff.reading.pieces import PARAGRAPH
from bakeoff.reading.sources import SourceOptions, TextReader

BYTES_PER_WORD = 5.43
"""UTF-8 bytes of an English word with its space, in BabyBabelLM's tiers: 5.43 MB, 54.3 MB and 543 MB."""


class Language(NamedTuple):
    """A language of the track."""

    name: str
    short: str
    """Its code of two letters, which files of labels are named after."""
    premium: float
    """Bytes that it needs for what English says in one, in BabyBabelLM's pipeline."""


LANGUAGES: dict[str, Language] = {
    "eng": Language("English", "en", 1.0),
    "nld": Language("Dutch", "nl", 1.0516739),
    "zho": Language("Chinese", "zh", 0.9893825),
}
"""The languages by their codes of three letters."""

_CODES = {code: code for code in LANGUAGES} | {each.short: code for code, each in LANGUAGES.items()}
_NAMES = {f"{before}{code}": language for code, language in _CODES.items() for before in ("", "babylm-")}
_FORM = "give --data LANGUAGE=PATH with eng, nld or zho, or a folder with folders of these names"


def texts_by_language(data: Sequence[str]) -> dict[str, list[str]]:
    """The files and folders of each language, in the order of `LANGUAGES`.

    Args:
        data: `eng=PATH`, `nld=PATH` or `zho=PATH`; or folders with folders eng, nld or zho (en, nl, zh, babylm-eng).

    Raises:
        UserError: the language of a text is not said.
    """
    found: dict[str, list[str]] = {}
    for each in data:
        code, _, path = each.partition("=")
        if path and code in _CODES:
            found.setdefault(_CODES[code], []).append(path)
            continue
        folder = Path(each)
        inside = sorted(path for path in folder.iterdir() if path.name in _NAMES) if folder.is_dir() else []
        if not inside:
            raise UserError(f"--data {each}: its language is not said; {_FORM}")
        others = [path.name for path in sorted(folder.iterdir()) if path not in inside and path.name[0] != "."]
        if others:
            raise UserError(f"--data {each}: the language of {listed(others[:3])} is not said; {_FORM}")
        for part in inside:
            found.setdefault(_NAMES[part.name], []).append(str(part))
    return {code: found[code] for code in LANGUAGES if code in found}


def premiums_of(text: str | None) -> dict[str, float]:
    """The byte premiums of all languages, those that a text such as `nld=1.05,zho=0.94` gives in place of the known.

    Raises:
        UserError: the text has another form.
    """
    found = {code: language.premium for code, language in LANGUAGES.items()}
    for entry in text.split(",") if text else []:
        code, _, number = entry.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = 0.0
        if code.strip() not in _CODES or not 0 < value < 100:
            raise UserError(f"--byte-premiums {entry}: give a language and a number above 0, such as zho=0.936")
        found[_CODES[code.strip()]] = value
    return found


def words_by_language(
    texts: Mapping[str, Sequence[str]], premiums: Mapping[str, float], options: SourceOptions
) -> dict[str, float]:
    """The words that the text of each language counts for; the text is read once.

    Raises:
        UserError: a file does not exist or cannot be read.
    """
    return {
        code: bytes_of(TextReader(find_files(list(paths), Counter()), options)) / (BYTES_PER_WORD * premiums[code])
        for code, paths in texts.items()
    }


def bytes_of(text: TextReader) -> int:
    """The UTF-8 bytes of a text as corpora have it: in NFC with single spaces, and an end of line after a paragraph."""
    return sum(len(piece.text.encode()) + (piece.opens >= PARAGRAPH) for piece in text)
