"""The files of a run's tokenizer for transformers: the same ids, special tokens where models expect them."""

import json
from pathlib import Path
from typing import Any, Literal, NamedTuple

import tokenizers
from tokenizers import normalizers, processors

from bakeoff.interop.families.t5 import MARKS
from bakeoff.interop.written_json import write_json
from bakeoff.recipe import Recipe
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
    longest: int | None
    """Tokens of a row, at most; None: there is no limit."""
    segments: bool = False
    """The model reads token_type_ids."""
    writes: bool = False
    """The model goes on with texts."""
    pads_before: bool = False
    """Padding stands before a text."""
    cleans: bool = True
    """Texts are brought to NFC, and runs of white space to one space, as those of a corpus are."""
    marks: int = 0
    """Tokens behind the vocabulary that stand for gaps, see `with_marks`."""
    separators: int = 1
    """Separators between the texts of a pair."""
    rows: int | None = None
    """Special tokens with ids from here on are left out, and what has their roles with them: they are not in the
    model's table; None: all are."""


def frame_of(recipe: Recipe, closed: bool = False) -> Frame:
    """What stands around a text that a head of a task reads, as `bakeoff.tasks.rows.inputs.InputFormat` has it.

    Args:
        recipe: the run's.
        closed: behind a pair of a model that reads forwards there is an end.
    """
    if recipe.model.encoder is None:
        return "separator_closed" if closed else "separator"
    return "start_last" if recipe.input.start_last else "start"


def with_marks(tokenizer: Tokenizer, count: int) -> Tokenizer:
    """The tokenizer with so many marks of gaps behind its own tokens, named as T5 names them."""
    if not count:
        return tokenizer
    inner = tokenizers.Tokenizer.from_str(tokenizer.to_string())
    inner.add_special_tokens(_marks(count))
    return Tokenizer.from_string(inner.to_str())


def write_tokenizer(tokenizer: Tokenizer, folder: Path, settings: TokenizerSettings) -> list[str]:
    """Write tokenizer.json and tokenizer_config.json.

    Returns:
        What does not go along, in words: of two vocabularies nothing does, since transformers has no such tokenizer.
    """
    if isinstance(tokenizer, TwoVocabularies):
        return ["sources and targets have a vocabulary each, which transformers' tokenizers do not have: no tokenizer"]
    inner = _within(tokenizer, settings.rows)
    roles = {"pad": tokenizer.pad, "unk": tokenizer.unknown, "cls": tokenizer.start, "mask": tokenizer.mask}
    roles["sep"] = tokenizer.separator
    there = {
        role: number
        for role, number in roles.items()
        if number is not None and (settings.rows is None or number < settings.rows)
    }
    named = {role: str(inner.id_to_token(number)) for role, number in there.items()}
    opening = str(inner.id_to_token(tokenizer.opening))
    single, pair = _FRAMES[settings.frame]
    pair = pair.replace("[SEP] $B", " ".join([*["[SEP]"] * settings.separators, "$B"]))
    shown = {"[CLS]": named.get("cls"), "[SEP]": named.get("sep"), "[OPENING]": opening}
    _put_around(inner, single.split(), pair.split(), shown)
    remarks = []
    if settings.cleans and tokenizer.end_of_line is None:
        steps = [normalizers.NFC(), normalizers.Replace(tokenizers.Regex(r"\s+"), " ")]
        inner.normalizer = normalizers.Sequence([*steps, *([inner.normalizer] if inner.normalizer else [])])
    if tokenizer.end_of_line is not None:
        remarks.append("the ends of lines are tokens; a text is to be given with a space before and behind each")
    inner.save(str(folder / "tokenizer.json"))
    values: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "padding_side": "left" if settings.pads_before else "right",
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", *(["token_type_ids"] if settings.segments else []), "attention_mask"],
        **{f"{role}_token": token for role, token in named.items()},
    }
    if settings.longest is not None:
        values["model_max_length"] = settings.longest
    if settings.writes and "sep" in named:
        values |= {"eos_token": named["sep"], "bos_token": opening}
    if settings.marks:
        values["additional_special_tokens"] = _marks(settings.marks)
    write_json(folder / "tokenizer_config.json", values)
    return remarks


def _marks(count: int) -> list[str]:
    return [MARKS.replace("{}", str(number)) for number in range(count)]


def _within(tokenizer: Tokenizer, rows: int | None) -> tokenizers.Tokenizer:
    """The tokenizer without special tokens whose ids a table of so many rows does not have."""
    state: dict[str, Any] = json.loads(tokenizer.to_string())
    state["added_tokens"] = [token for token in state["added_tokens"] if rows is None or token["id"] < rows]
    return tokenizers.Tokenizer.from_str(json.dumps(state))


def _put_around(inner: tokenizers.Tokenizer, single: list[str], pair: list[str], shown: dict[str, str | None]) -> None:
    """Have special tokens around texts; none where one of them is missing."""
    wanted = {name for piece in pair if (name := piece.partition(":")[0]) in shown}
    found = {name: shown[name] for name in wanted}
    if None in found.values():
        inner.post_processor = None
        return
    names = {name: str(token) for name, token in found.items()}

    def filled(template: list[str]) -> list[str]:
        parts = (piece.partition(":") for piece in template)
        return [f"{names.get(name, name)}{colon}{segment}" for name, colon, segment in parts]

    inner.post_processor = processors.TemplateProcessing(
        single=filled(single),
        pair=filled(pair),
        special_tokens=sorted((token, inner.token_to_id(token)) for token in set(names.values())),
    )
