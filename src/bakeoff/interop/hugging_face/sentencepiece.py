"""SentencePiece's model file, a protocol buffer, read without SentencePiece's library."""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from bakeoff.errors import UserError
from bakeoff.interop.families.t5 import MARKS
from bakeoff.tokenizer.file import guarded

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
"""Types of pieces, numbered as in sentencepiece_model.proto."""


_FAMILIES = ("albert", "xlnet", "t5")
"""Families whose ids are those of the file's pieces; XLM-RoBERTa's are others."""
_MARKS = 100
"""The number of T5's marks of gaps, which stand after the pieces, the last one first."""


class Pieces(NamedTuple):
    """The content of a model file."""

    pieces: list[tuple[str, float, int]]
    """Text, score and type of each piece, by id."""
    unigram: bool
    """Whether the model is a unigram model; false: BPE, words or characters."""
    characters: bytes
    """The table of characters that normalises texts (`precompiled_charsmap`); empty: none."""


def read_pieces(data: bytes, where: str) -> Pieces:
    """Read a model file; `where` is its path, for errors.

    Raises:
        UserError: the file is damaged, or no model of SentencePiece.
    """
    pieces, kind, characters = [], 1, b""
    try:
        for field, value in _fields(data):
            if field == 1 and isinstance(value, bytes):
                fields = dict(_fields(value))
                text, score = fields[1], fields.get(2, b"\0\0\0\0")
                assert isinstance(text, bytes)
                assert isinstance(score, bytes)
                number = fields.get(3, NORMAL)
                assert isinstance(number, int)
                pieces.append((text.decode(), struct.unpack("<f", score)[0], number))
            elif field == 2 and isinstance(value, bytes):
                model_kind = dict(_fields(value)).get(3, 1)
                kind = model_kind if isinstance(model_kind, int) else 0
            elif field == 3 and isinstance(value, bytes):
                table = dict(_fields(value)).get(2, b"")
                characters = table if isinstance(table, bytes) else b""
    except (AssertionError, IndexError, KeyError, ValueError, struct.error):
        pieces = []
    if not pieces:
        raise UserError(f"{where}: not a model of SentencePiece, or damaged; get it again")
    return Pieces(pieces, kind == 1, characters)


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field of a protocol buffer message."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        if tag & 7 == 0:
            value, position = _varint(data, position)
            yield tag >> 3, value
            continue
        if tag & 7 == 2:
            size, position = _varint(data, position)
        elif tag & 7 in (1, 5):
            size = 8 if tag & 7 == 1 else 4
        else:
            raise ValueError("no such kind of field")
        if position + size > len(data):
            raise ValueError("cut short")
        yield tag >> 3, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position
        if shift > 63:
            raise ValueError("a number without end")


def unigram_of(data: bytes, where: str, settings: dict[str, Any], model_type: str) -> str:
    """The text of a tokenizer.json that cuts texts as the tokenizers of ALBERT, XLNet and T5 do.

    Raises:
        UserError: the file is damaged, its model is not a unigram model, or the family is another one.
    """
    model = read_pieces(data, where)
    if not model.unigram or model_type not in _FAMILIES:
        raise UserError(
            f"{where}: only unigram models of SentencePiece are read, of {', '.join(_FAMILIES)}; convert it once with "
            "transformers: AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR) writes tokenizer.json"
        )
    marks = settings.get("extra_ids", _MARKS)
    if not isinstance(marks, int) or not 0 <= marks <= 100 * _MARKS:
        raise UserError(f"{where}: extra_ids in tokenizer_config.json: a number of marks is wanted, not {marks!r:.50}")
    unknown = next((number for number, piece in enumerate(model.pieces) if piece[2] == UNKNOWN), None)
    lowercase = bool(settings.get("do_lower_case", model_type == "albert"))
    steps: list[Any] = []
    if model_type in ("albert", "xlnet"):
        steps += [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
        if not settings.get("keep_accents", False):
            steps += [normalizers.NFKD(), normalizers.StripAccents()]
        if lowercase:
            steps.append(normalizers.Lowercase())
    if model.characters:
        steps.append(normalizers.Precompiled(model.characters))
    elif model_type == "t5":
        steps.append(normalizers.NFKC())
    steps.append(normalizers.Replace(Regex(" {2,}"), " "))
    with guarded(where, "not a vocabulary of unigrams"):
        inner = tokenizers.Tokenizer(models.Unigram([piece[:2] for piece in model.pieces], unknown, False))
        inner.normalizer = normalizers.Sequence(steps)
        inner.pre_tokenizer = (
            pre_tokenizers.Sequence(
                [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")]
            )
            if model_type in ("albert", "xlnet")
            else pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
        )
        inner.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
        for text, _, kind in model.pieces:
            if kind in (UNKNOWN, CONTROL):
                inner.add_special_tokens([AddedToken(text, normalized=False)])
        user = [text for text, _, kind in model.pieces if kind == USER_DEFINED]
        special = {text for text in user if text.startswith(("[", "<")) and len(text) > 1}
        inner.add_special_tokens([text for text in user if text in special])
        if model_type == "t5" and inner.token_to_id(MARKS.replace("{}", "0")) is None:
            inner.add_special_tokens([MARKS.replace("{}", str(number)) for number in reversed(range(marks))])
        return inner.to_str(pretty=True)
