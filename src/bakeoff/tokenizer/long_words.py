"""Words that are too long for WordPiece: BERT's makes a single unknown token of a word of more than 100 characters."""

import re

from tokenizers import Regex, normalizers, pre_tokenizers

LONGEST_WORD = 100
"""Largest number of characters of a word that WordPiece is given."""
LONG_WORD_PATTERN = rf"[\s\S]{{1,{LONGEST_WORD}}}"
"""The parts of a longer word, each of which WordPiece takes for a word. Its time grows with the square of a word."""

_IDEOGRAPHS = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_LETTERS = rf"[^\s!-/:-@\[-`{{-~{_IDEOGRAPHS}]"  # BERT cuts at ASCII's punctuation and at ideographs
_MADE_OF_ONE = 3  # characters, at most, that taking a letter and its accents apart makes of one
_RUNS = {
    lowercase: re.compile(f"{_LETTERS}{{{LONGEST_WORD // (_MADE_OF_ONE if lowercase else 1) + 1},}}")
    for lowercase in (False, True)
}


def bert_normalizer(lowercase: bool) -> normalizers.Normalizer:
    """BERT's normalizer, which strips accents where it lower-cases."""
    return normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, lowercase=lowercase, strip_accents=lowercase
    )


def words_of_any_length() -> pre_tokenizers.PreTokenizer:
    """BERT's cuts of a text into words, and of longer words into parts of `LONGEST_WORD` characters."""
    cut = pre_tokenizers.Split(Regex(LONG_WORD_PATTERN), behavior="isolated")
    return pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(), cut])


def has_long_word(text: str, lowercase: bool) -> bool:
    """Whether BERT's cuts of a text give a word that is too long for WordPiece."""
    runs = _RUNS[lowercase]
    if max(map(len, text.split()), default=0) * (_MADE_OF_ONE if lowercase else 1) <= LONGEST_WORD:
        return False
    normalizer, cuts = bert_normalizer(lowercase), pre_tokenizers.BertPreTokenizer()
    for run in runs.finditer(text):
        words = cuts.pre_tokenize_str(normalizer.normalize_str(run[0]))
        if any(len(word) > LONGEST_WORD for word, _ in words):
            return True
    return False
