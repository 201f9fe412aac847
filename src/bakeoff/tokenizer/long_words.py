"""Words that are too long for WordPiece: BERT's makes a single unknown token of a word of more than 100 characters."""

from tokenizers import Regex, pre_tokenizers

LONGEST_WORD = 100
"""Largest number of characters of a word that WordPiece is given."""
LONG_WORD_PATTERN = rf"[\s\S]{{1,{LONGEST_WORD}}}"
"""The parts of a longer word, each of which WordPiece takes for a word. Its time grows with the square of a word."""


def words_of_any_length() -> pre_tokenizers.PreTokenizer:
    """BERT's cuts of a text into words, and of longer words into parts of `LONGEST_WORD` characters."""
    cut = pre_tokenizers.Split(Regex(LONG_WORD_PATTERN), behavior="isolated")
    return pre_tokenizers.Sequence([pre_tokenizers.BertPreTokenizer(), cut])
