"""Splitting a paragraph into sentences: one rule for all scripts that mark where sentences end."""

import re
from unicodedata import category

from bakeoff.text.sentence_marks import ANY, SPACED, UNSPACED, WIDE_PERIODS, WITHOUT_SPACES

RULE = "all-scripts-2"
"""Name and version of the rule, recorded in every corpus; the version rises when the result for any text changes."""

LINES = "lines"
"""Recorded instead of the rule if each line is a sentence."""

_CLOSERS = "\"'”’»›)\\]}」』）】》〉"
_OPENERS = "\"'“‘«‹([{「『（【《〈¿¡"
_NUMBERS = "0-9A-Za-z０-９Ａ-Ｚａ-ｚ"
_VERSE = "(?<=\u0965)\\s*\\d+\\s*\u0965"  # a verse ends with its number between two marks
_TAIL = "\\s+[\u0f0d-\u0f12]"  # Tibetan marks come in twos, a space between
_ETC = "\u179b\u17d4"  # after a Khmer full stop
_CANDIDATE = re.compile(
    f"[{ANY}](?:"  # one set at the beginning is matched fast
    f"(?:(?<=[{UNSPACED}])(?!{_ETC})(?:[{UNSPACED}!?…]|{_VERSE}|{_TAIL})*[{_CLOSERS}]*"
    f"|(?<=[^{_NUMBERS}][{WIDE_PERIODS}])(?![{_NUMBERS}])[{WIDE_PERIODS}!?…]*[{_CLOSERS}]*)(?P<sure>)"
    f"|(?<=[!?\u203c\u203d\u2047-\u2049])[!?。！？]*[{_CLOSERS}]*(?=[{WITHOUT_SPACES}])"
    f"|(?<=[{SPACED}])[{SPACED}]*+[{_CLOSERS}]*+(?=\\s+[{_OPENERS}]*[^\\s{_OPENERS}])"
    ")"
)
_NEXT = re.compile(f"\\s*[{_OPENERS}]*(.)", re.DOTALL)
_LAST_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|[.'’](?=[^\W\d_]))*$")
_INITIALS = re.compile(r"(?:[^\W\d_가-힣]\.)*[^\W\d_가-힣]")  # a Korean syllable alone is a word

# Followed by a name: never the end of a sentence.
_TITLES = frozenset(
    (
        "mr",
        "mrs",
        "ms",
        "mx",
        "dr",
        "prof",
        "st",
        "mt",
        "ft",
        "gen",
        "col",
        "lt",
        "cpl",
        "sgt",
        "capt",
        "cmdr",
        "adm",
        "maj",
        "rev",
        "hon",
        "gov",
        "sen",
        "rep",
        "pres",
        "supt",
        "messrs",
        "mme",
        "mlle",
        "vs",
        "cf",
        "viz",
        "approx",
        "ca",
        "esp",
        "incl",
        "resp",
    )
)
# Followed by a number: not the end either.
_BEFORE_NUMBERS = frozenset(
    (
        "no",
        "nos",
        "vol",
        "vols",
        "p",
        "pp",
        "fig",
        "figs",
        "eq",
        "eqs",
        "ch",
        "sec",
        "art",
        "nr",
        "jan",
        "feb",
        "mar",
        "apr",
        "jun",
        "jul",
        "aug",
        "sep",
        "sept",
        "oct",
        "nov",
        "dec",
    )
)
_LONGEST_WORD = 24


def split_sentences(paragraph: str) -> list[str]:
    """Split a paragraph into sentences; joined without anything between, they are the paragraph again.

    A sentence ends with its closing quotes and brackets; the whitespace between two sentences opens the second.
    Marks with no other use (`。`, the danda) end a sentence wherever they stand; other marks end a sentence before a
    space, unless a small letter follows. A period does not end a sentence after an initial or a title (`J. Smith`,
    `Dr. Smith`, `e.g.`), after an abbreviation such as `No.` before a number, or after the number of a list item.

    Args:
        paragraph: any text.

    Returns:
        The sentences, none of them empty.
    """
    sentences: list[str] = []
    start = 0
    for match in _CANDIDATE.finditer(paragraph):
        end = match.end()
        if match.lastgroup != "sure" and _goes_on(paragraph, start, match.start(), end):
            continue
        sentences.append(paragraph[start:end])
        start = end
    if start < len(paragraph):
        if sentences and not paragraph[start:].strip():
            sentences[-1] += paragraph[start:]
        else:
            sentences.append(paragraph[start:])
    return sentences


def _goes_on(text: str, start: int, mark: int, end: int) -> bool:
    """Whether the sentence that began at `start` goes on after the end mark in [mark, end)."""
    following = _NEXT.match(text, end)
    first = following.group(1) if following else ""
    if first.islower():
        return True
    if text[mark] != "." or end - mark > 1:  # an abbreviation is followed by its period and a space only
        return False
    before = text[max(start, mark - _LONGEST_WORD) : mark]
    if before.strip().isdecimal() and mark - start <= _LONGEST_WORD:
        return True
    word = _LAST_WORD.search(before)
    if word is None:
        return False
    if _INITIALS.fullmatch(word.group()):
        # For `re` the vowel signs of Indian scripts are no part of words: a letter after one is no initial.
        inside = word.start() > 0 and category(before[word.start() - 1]).startswith("M")
        return word.group() != "I" and not inside
    lowered = word.group().lower()
    return lowered in _TITLES or (lowered in _BEFORE_NUMBERS and first.isdecimal())
