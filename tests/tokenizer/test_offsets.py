"""Where tokens stand in the text as it was given."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.tokenizer.offsets import cleaned
from bakeoff.tokenizer.tokenizer import Tokenizer, TwoVocabularies
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

ODD = "e\u0301\u0323 \u1112\u1161\u11ab \t\n\u00a0\u3000 \u2126ÅI\u0307ß ﬁ \u0958\u09c7\u09be中文字 [SEP] U.S. $12-a"
TEXTS = st.text(st.sampled_from([*ODD, *"abz"]) | st.characters(max_codepoint=0x2FFF), max_size=20)
SAMPLE = ["the quick brown fox, 12 U.S. dollars", "ab", "中文字 é à ñ", "a - b $ 1 2"] * 5


def normalised(text):
    return " ".join(unicodedata.normalize("NFC", text).split())


@pytest.fixture(
    scope="module",
    params=[(kind, lower) for kind in ("wordpiece", "byte_bpe", "unigram", "word", "character") for lower in (0, 1)],
    ids=str,
)
def tokenizer(request):
    kind, lower = request.param
    return Tokenizer.train(TokenizerConfig(kind=kind, size=300, lowercase=bool(lower)), SAMPLE)


@given(TEXTS)
def test_a_cleaned_text_is_that_of_a_corpus_and_each_character_comes_from_what_becomes_it(text):
    found = cleaned(text)
    assert found.text == normalised(text)
    assert len(found.begin) == len(found.end) == len(found.text)
    covered = set()
    for sign, begin, end in zip(found.text, found.begin, found.end, strict=True):
        assert begin < end
        assert sign == " " if text[begin:end].isspace() else sign in unicodedata.normalize("NFC", text[begin:end])
        covered.update(range(begin, end))
    inner = text.strip()
    first = text.index(inner)
    assert covered == set(range(first, first + len(inner)))


@given(texts=st.lists(TEXTS, min_size=1, max_size=3))
def test_ids_are_those_of_encode_and_stretches_run_from_left_to_right(tokenizer, texts):
    found = tokenizer.encode_placed(texts)
    for text, placed, (ids, _) in zip(
        texts, found, tokenizer.encode([normalised(each) for each in texts]), strict=True
    ):
        assert placed.ids.tolist() == ids.tolist()
        assert (placed.begin <= placed.end).all()
        assert (placed.begin[1:] >= placed.begin[:-1]).all()
        assert len(placed.end) == 0 or placed.end.max() <= len(text)


@pytest.mark.parametrize("text", ["[SEP]", "ab [SEP] the", "[MASK] ab [PAD]fox", "fox[CLS] [UNK]"])
def test_names_of_special_tokens_in_a_text_are_text_that_stands_where_it_stands(tokenizer, text):
    """They are cut in two where a vocabulary has them, and the second part begins no word."""
    (placed,), ((ids, starts),) = tokenizer.encode_placed([text]), tokenizer.encode([text])
    assert placed.ids.tolist() == ids.tolist()
    assert not {*tokenizer.special_ids} - {tokenizer.unknown} & {*ids.tolist()}
    assert starts.sum() == len(text.split())
    first = [text[begin:].lstrip()[0] for begin, start in zip(placed.begin, starts, strict=True) if start]
    assert first == [word[0] for word in text.split()]
    covered = {place for begin, end in zip(placed.begin, placed.end, strict=True) for place in range(begin, end)}
    assert {place for place, sign in enumerate(text) if sign != " "} <= covered


def test_a_token_stands_for_its_own_characters_whatever_becomes_of_them():
    tokenizer = Tokenizer.train(TokenizerConfig(kind="word", size=40, lowercase=True), ["iced café , the é"] * 3)
    text = "  Cafe\u0301\n\nThe\u00a0 ICED"
    (placed,) = tokenizer.encode_placed([text])
    assert [text[begin:end] for begin, end in zip(placed.begin, placed.end, strict=True)] == [
        "Cafe\u0301",
        "The",
        "ICED",
    ]
    (both,) = TwoVocabularies(tokenizer, tokenizer).encode_placed([text])
    assert all((one == other).all() for one, other in zip(placed, both, strict=True))


def test_the_name_of_a_special_token_is_no_special_token():
    tokenizer = Tokenizer.train(TokenizerConfig(kind="word", size=40), ["[ SEP ] [SEP] a"] * 3)
    for placed in tokenizer.encode_placed(["[SEP]", "a [CLS] a", "[UNK]"]):
        assert not set(placed.ids.tolist()) & set(tokenizer.special_ids.tolist()) - {tokenizer.unknown}
