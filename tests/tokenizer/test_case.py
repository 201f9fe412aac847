"""Lower-casing: of any script the words stay what they are, and rare accents are stripped as BERT does."""

import unicodedata

import pytest

from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig

WRITTEN = {
    "Devanagari": "नदी बहुत पुरानी है और दिल्ली में पत्थर नया है",
    "Bengali": "নদী অনেক পুরানো এবং পাথর নতুন",
    "Thai": "แม่น้ำ เก่า มาก และ หิน ใหม่",
    "kana": "がぎぐ ぱぴぷ ガラス パン",
    "Hangul": "강은 매우 오래되었고 돌은 새것입니다",
    "Vietnamese": "má mà mả mã mạ sông rất cũ",
    "German": "über die brücke führt ein weg für füße",
    "Arabic with vowels": "كَتَبَ الوَلَدُ",
}
KINDS = ["wordpiece", "byte_bpe", "char_bpe", "unigram", "word", "whitespace", "character"]


def trained(kind, text):
    config = TokenizerConfig(kind=kind, size=500, lowercase=True)
    return Tokenizer.train(config, [unicodedata.normalize("NFC", text)] * 30)


def read(tokenizer, text):
    (ids, _), *_ = tokenizer.encode([unicodedata.normalize("NFC", text)])
    return unicodedata.normalize("NFC", tokenizer.decode(ids)).replace(" ", "")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("script", WRITTEN)
def test_marks_that_belong_to_the_writing_stay(kind, script):
    tokenizer = trained(kind, WRITTEN[script])
    assert read(tokenizer, WRITTEN[script]) == unicodedata.normalize("NFC", WRITTEN[script]).replace(" ", "")
    assert tokenizer.hidden([WRITTEN[script]]).hidden == 0
    assert read(tokenizer, WRITTEN[script].title()) == read(tokenizer, WRITTEN[script])


@pytest.mark.parametrize("kind", KINDS)
def test_accents_that_are_rare_are_stripped(kind):
    text = "The café is old and the river is long." + " A cafe and another text without any mark is here." * 5
    rare, often = trained(kind, text), trained(kind, "Le café est à côté, où il était.")
    assert read(rare, "CAFÉ") == read(rare, "cafe") == "cafe"
    assert read(often, "CAFÉ") == "café"
    assert rare.config.lowercase
    assert often.config.lowercase


def test_the_share_of_letters_decides():
    for count, kept in ((98, True), (99, False)):
        assert (read(trained("character", "a" * count + "é"), "é") == "é") == kept
