"""Lower-casing: with accents stripped, as uncased BERT does, unless they belong to the writing of the text."""

import unicodedata
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import normalizers

RARE = 0.01
"""The share of letters with a mark below which marks are stripped: an English text has fewer, in words of others."""


class Case(NamedTuple):
    """What is done about the case of a text."""

    lowercase: bool
    """Whether it is lower-cased."""
    strips_accents: bool
    """Whether marks of letters are stripped, too."""

    @classmethod
    def of(cls, lowercase: bool, counts: NDArray[np.int64]) -> "Case":
        """The case of a text with (0x110000,) counts of code points.

        Stripping takes the vowel signs of Devanagari, Bengali and Thai away, the voiced kana and the tones of
        Vietnamese, without which words are others.
        """
        letters = marked = 0
        for code in np.flatnonzero(counts) if lowercase else ():
            letter, count = chr(code), int(counts[code])
            category = unicodedata.category(letter)
            if category[0] in "LM":
                letters += count
                marked += count if category == "Mn" or unicodedata.normalize("NFD", letter) != letter else 0
        return cls(lowercase, lowercase and marked <= RARE * letters)


def bert_normalizer(case: Case) -> normalizers.Normalizer:
    """BERT's normalizer, in that case."""
    return normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, lowercase=case.lowercase, strip_accents=case.strips_accents
    )


def case_normalizer(case: Case, *others: normalizers.Normalizer) -> normalizers.Normalizer | None:
    """The other normalizers, followed by lower-casing and removal of accents if wanted; None: there are no steps."""
    steps = list(others)
    if case.strips_accents:
        steps += [normalizers.NFD(), normalizers.StripAccents()]
    if case.lowercase:
        steps += [normalizers.Lowercase(), normalizers.NFC()]
    return normalizers.Sequence(steps) if steps else None
