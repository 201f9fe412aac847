"""Where the tokens of a text begin words, by the characters that they stand for."""

import unicodedata

import pytest
from tests.conftest import sentences

from bakeoff.scoring.methods import WordStarts
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

TEXT = 'The old-stone. (river) "finds" 5$ a+b, don\'t gardening... end.The'


def punctuation(character):
    return character != "" and unicodedata.category(character)[0] == "P"


@pytest.mark.parametrize("kind", ["wordpiece", "byte_bpe", "char_bpe", "whitespace"])
def test_words_begin_behind_spaces_and_on_either_side_of_punctuation(kind):
    tokenizer = Tokenizer.train(TokenizerConfig(kind=kind, size=330), [TEXT] * 9 + sentences(30))
    ((ids, spaced),), (placed,) = tokenizer.encode([TEXT]), tokenizer.encode_placed([TEXT])
    expected, before = [], ""
    for begin, end in zip(placed.begin.tolist(), placed.end.tolist(), strict=True):
        token = TEXT[begin:end].strip()
        behind_space = begin == 0 or TEXT[begin].isspace() or TEXT[begin - 1].isspace()
        expected.append(behind_space or punctuation(token[:1]) or punctuation(before))
        before = token[-1:]
    assert WordStarts(tokenizer).starts(ids, spaced).tolist() == expected
