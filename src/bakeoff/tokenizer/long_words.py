"""Words that are too long for WordPiece: BERT's makes a single unknown token of a word of more than 100 characters."""

from tokenizers import Regex, normalizers, pre_tokenizers

LONGEST_WORD = 100
"""Largest number of characters of a word that WordPiece is given."""
LONG_WORD_PATTERN = rf"[\s\S]{{1,{LONGEST_WORD}}}"
"""The parts of a longer word, each of which WordPiece takes for a word. Its time grows with the square of a word."""


def bert_normalizer(lowercase: bool) -> normalizers.Normalizer:
    """BERT's normalizer, which strips accents where it lower-cases."""
    return normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, lowercase=lowercase, strip_accents=lowercase
    )


def words_of_any_length() -> pre_tokenizers.PreTokenizer:
    """BERT's cuts of a text into words, and of longer words into parts of `LONGEST_WORD` characters."""
    cut = pre_tokenizers.Split(Regex(LONG_WORD_PATTERN), behavior="isolated")
    return pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(), cut])
