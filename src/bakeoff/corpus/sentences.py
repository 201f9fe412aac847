"""Splitting a paragraph into sentences: one rule for English and other Western scripts, and for Chinese."""

import re

RULE = "western-and-chinese-1"
"""Name and version of the rule, recorded in every corpus; the number rises whenever the result for any text changes."""

_CLOSERS = "\"'”’»›)\\]}」』）】》〉"
_OPENERS = "\"'“‘«‹([{「『（【《〈¿¡"
_UNSPACED = "\u2e80-\u9fff\uf900-\ufaff\uff01-\uff65\U00020000-\U0003ffff"

_CANDIDATE = re.compile(
    f"[。！？｡][。！？｡!?…]*[{_CLOSERS}]*"  # Chinese ends need no space after them
    f"|[!?][!?。！？]*[{_CLOSERS}]*(?=[{_UNSPACED}])"  # Western marks in Chinese text
    f"|[.!?…]+[{_CLOSERS}]*(?=\\s+[{_OPENERS}]*[^\\s{_OPENERS}])"
)
_NEXT = re.compile(f"\\s*[{_OPENERS}]*(.)", re.DOTALL)
_LAST_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|[.'’](?=[^\W\d_]))*$")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")

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
    A period does not end a sentence before a small letter, after an initial or a title (`J. Smith`, `Dr. Smith`,
    `e.g.`), after an abbreviation such as `No.` before a number, or after the number of a list item.

    Args:
        paragraph: any text.

    Returns:
        The sentences, none of them empty.
    """
    sentences: list[str] = []
    start = 0
    for match in _CANDIDATE.finditer(paragraph):
        end = match.end()
        mark = paragraph[match.start()]
        if mark in ".!?…" and _goes_on(paragraph, start, match.start(), end):
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
    """Whether the sentence that began at `start` goes on after the Western end mark in [mark, end)."""
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
        return word.group() != "I"
    lowered = word.group().lower()
    return lowered in _TITLES or (lowered in _BEFORE_NUMBERS and first.isdecimal())
