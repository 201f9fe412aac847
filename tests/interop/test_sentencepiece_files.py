"""Models of SentencePiece that are published with settings of their tokenizer, from files that are made here."""

import struct

import pytest

from bakeoff.errors import UserError
from bakeoff.interop.hugging_face.sentencepiece import CONTROL, NORMAL, UNKNOWN, USER_DEFINED, read_pieces, unigram_of
from bakeoff.tokenizer.tokenizer import Tokenizer

SPECIAL = [("<unk>", UNKNOWN), ("<s>", CONTROL), ("</s>", CONTROL), ("<pad>", CONTROL), ("<mask>", USER_DEFINED)]
SPECIAL += [("[CLS]", CONTROL), ("[SEP]", CONTROL), ("[MASK]", USER_DEFINED), ("<cls>", CONTROL), ("<sep>", CONTROL)]
LETTERS = [*"acefhortTC", "é", "▁", '"', "▁the", "▁cafe"]


def number(value: int) -> bytes:
    """A number as protocol buffers write it, seven bits a byte and the lowest first."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def field(place: int, data: bytes) -> bytes:
    return number(place << 3 | 2) + number(len(data)) + data


def model() -> bytes:
    """A file with the pieces of this test."""
    pieces = [(text, 0.0, kind) for text, kind in SPECIAL]
    pieces += [(text, -1.0 - place, NORMAL) for place, text in enumerate(LETTERS)]
    every = b""
    for text, score, kind in pieces:
        own = field(1, text.encode()) + number(2 << 3 | 5) + struct.pack("<f", score) + number(3 << 3) + number(kind)
        every += field(1, own)
    return every + field(2, number(3 << 3) + number(1))


def ids(text: str, family: str, **settings: bool) -> list[int]:
    tokenizer = Tokenizer.from_string(unigram_of(model(), "spiece.model", settings, family))
    return tokenizer.encode([text])[0][0].tolist()


def test_pieces_have_their_texts_scores_and_kinds():
    found = read_pieces(model(), "spiece.model")
    assert [(text, kind) for text, _, kind in found.pieces] == [*SPECIAL, *((text, NORMAL) for text in LETTERS)]
    assert [score for _, score, _ in found.pieces][-2:] == [-14.0, -15.0]
    assert (found.unigram, found.characters) == (True, b"")


@pytest.mark.parametrize(
    ("family", "lowers", "strips"), [("albert", True, True), ("xlnet", False, True), ("t5", False, False)]
)
def test_a_setting_that_is_left_out_is_that_of_the_family(family, lowers, strips):
    """As by AlbertTokenizer, XLNetTokenizer and T5Tokenizer of transformers."""
    assert (ids("The", family) == ids("the", family)) is lowers
    assert (ids("café", family) == ids("cafe", family)) is strips
    assert (ids("``the", family) == ids('"the', family)) is strips  # both families of Google's, not T5


@pytest.mark.parametrize("family", ["albert", "xlnet"])
@pytest.mark.parametrize("lowers", [True, False])
@pytest.mark.parametrize("keeps", [True, False])
def test_settings_are_followed(family, lowers, keeps):
    settings = {"do_lower_case": lowers, "keep_accents": keeps}
    assert (ids("The", family, **settings) == ids("the", family, **settings)) is lowers
    assert (ids("café", family, **settings) == ids("cafe", family, **settings)) is not keeps


def test_marks_of_t5_stand_after_the_pieces_the_last_one_first():
    """As T5Tokenizer of transformers numbers them; version 1.1 is published without a tokenizer.json."""
    pieces = len(SPECIAL) + len(LETTERS)
    for settings, count in (({}, 100), ({"extra_ids": 7}, 7)):
        tokenizer = Tokenizer.from_string(unigram_of(model(), "spiece.model", settings, "t5"))
        found = [tokenizer.id_of(f"<extra_id_{number}>") for number in range(count)]
        assert found == list(range(pieces + count - 1, pieces - 1, -1))
        assert tokenizer.id_of(f"<extra_id_{count}>") is None
    for wrong in ("many", -1, 10**9):
        with pytest.raises(UserError, match=r"extra_ids in tokenizer_config.json: a number of marks is wanted, not "):
            unigram_of(model(), "spiece.model", {"extra_ids": wrong}, "t5")


def test_families_that_number_their_pieces_otherwise_are_refused():
    """XLM-RoBERTa's first piece is its fifth token."""
    with pytest.raises(UserError, match=r"of SentencePiece are read, of albert, xlnet, t5; convert it once"):
        unigram_of(model(), "sentencepiece.bpe.model", {}, "roberta")
