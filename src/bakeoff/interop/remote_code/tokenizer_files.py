"""The files of a run's tokenizer for transformers: the same ids, special tokens where models expect them."""

import json
from pathlib import Path
from typing import Any, Literal, NamedTuple

import tokenizers
from tokenizers import normalizers, processors

from bakeoff.tokenizer.tokenizer import Tokenizer, TwoVocabularies

Frame = Literal["start", "start_last", "separator", "separator_closed", "opening", "source", "prompt"]
"""What stands around a text: [CLS] A [SEP]; A [SEP] [CLS]; [SEP] A, or with an end behind pairs; what a document begins
with and A; A [SEP]; that beginning and A [SEP]."""

_FRAMES: dict[Frame, tuple[str, str]] = {
    "start": ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1"),
    "start_last": ("$A [SEP] [CLS]:2", "$A [SEP] $B:1 [SEP]:1 [CLS]:2"),
    "separator": ("[SEP] $A", "[SEP] $A [SEP] $B:1"),
    "separator_closed": ("[SEP] $A", "[SEP] $A [SEP] $B:1 [SEP]:1"),
    "opening": ("[OPENING] $A", "[OPENING] $A [SEP] $B:1"),
    "source": ("$A [SEP]", "$A [SEP] $B:1 [SEP]:1"),
    "prompt": ("[OPENING] $A [SEP]", "[OPENING] $A [SEP] $B:1 [SEP]:1"),
}


class TokenizerSettings(NamedTuple):
    """What a model wants of its tokenizer."""

    frame: Frame
    """What stands around a text."""
    longest: int
    """Tokens of a row, at most."""
    segments: bool = False
    """The model reads token_type_ids."""
    writes: bool = False
    """The model goes on with texts: padding stands before them."""
    cleans: bool = True
    """Texts are brought to NFC, and runs of white space to one space, as those of a corpus are."""
    marks: int = 0
    """Tokens behind the vocabulary that stand for gaps, <extra_id_0> and so on."""


def write_tokenizer(tokenizer: Tokenizer, folder: Path, settings: TokenizerSettings) -> list[str]:
    """Write tokenizer.json and tokenizer_config.json.

    Returns:
        What does not go along, in words: of two vocabularies nothing does, since transformers has no such tokenizer.
    """
    if isinstance(tokenizer, TwoVocabularies):
        return ["sources and targets have a vocabulary each, which transformers' tokenizers do not have: no tokenizer"]
    inner = tokenizers.Tokenizer.from_str(tokenizer.to_string())
    roles = {"pad": tokenizer.pad, "unk": tokenizer.unknown, "cls": tokenizer.start, "mask": tokenizer.mask}
    roles["sep"] = tokenizer.separator
    named = {role: str(inner.id_to_token(number)) for role, number in roles.items() if number is not None}
    opening = str(inner.id_to_token(tokenizer.opening))
    marks = [f"<extra_id_{number}>" for number in range(settings.marks)]
    if marks:
        inner.add_special_tokens(marks)
    shown = {"[CLS]": named["cls"], "[SEP]": named["sep"], "[OPENING]": opening}
    single, pair = ([_piece(piece, shown) for piece in template.split()] for template in _FRAMES[settings.frame])
    specials = [(token, inner.token_to_id(token)) for token in {named["cls"], named["sep"], opening}]
    inner.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=sorted(specials))
    remarks = []
    if settings.cleans and tokenizer.end_of_line is None:
        steps = [normalizers.NFC(), normalizers.Replace(tokenizers.Regex(r"\s+"), " ")]
        inner.normalizer = normalizers.Sequence([*steps, *([inner.normalizer] if inner.normalizer else [])])
    if tokenizer.end_of_line is not None:
        remarks.append("the ends of lines are tokens; a text is to be given with a space before and behind each")
    inner.save(str(folder / "tokenizer.json"))
    values: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": settings.longest,
        "padding_side": "left" if settings.writes else "right",
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", *(["token_type_ids"] if settings.segments else []), "attention_mask"],
        **{f"{role}_token": token for role, token in named.items()},
    }
    if settings.writes:
        values |= {"eos_token": named["sep"], "bos_token": opening}
    if marks:
        values["additional_special_tokens"] = marks
    text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
    (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")
    return remarks


def _piece(piece: str, shown: dict[str, str]) -> str:
    """A piece of a template with the tokenizer's own names."""
    name, colon, segment = piece.partition(":")
    return f"{shown.get(name, name)}{colon}{segment}"
