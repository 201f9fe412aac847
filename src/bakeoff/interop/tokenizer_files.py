"""The files of a run's tokenizer for transformers: the same ids, and special tokens where the model expects them."""

import json
from pathlib import Path
from typing import Any, Literal, NamedTuple

import tokenizers
from tokenizers import normalizers, processors

from bakeoff.interop.export import write_json
from bakeoff.interop.families.t5 import MARKS
from bakeoff.recipe import Recipe
from bakeoff.tokenizer.steps import WHITE_SPACE
from bakeoff.tokenizer.tokenizer import Tokenizer, TwoVocabularies

Frame = Literal["start", "start_last", "separator", "separator_closed", "opening", "source", "prompt"]
"""The special tokens around a text A: start is [CLS] A [SEP]; start_last is A [SEP] [CLS]; separator is [SEP] A;
separator_closed is the same with [SEP] after pairs; opening is O A with the token O that begins documents; source is
A [SEP]; prompt is O A [SEP]."""

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
    """The settings of a tokenizer that a model needs."""

    frame: Frame
    """Special tokens around a text."""
    longest: int | None
    """Largest length of a row in tokens; None: there is no limit."""
    segments: bool = False
    """Whether the model reads `token_type_ids`."""
    generates: bool = False
    """Whether the model continues texts."""
    pads_before: bool = False
    """Whether padding stands before the tokens of a text."""
    cleans: bool = True
    """Whether the tokenizer brings texts to NFC and white space to single spaces, as `bakeoff prepare` does."""
    marks: int = 0
    """Number of marks of gaps after the vocabulary, see `with_marks`."""
    separators: int = 1
    """Number of separators between the texts of a pair."""
    plain: bool = False
    """Whether `[MASK]` and the like in a text are text, as in Bakeoff, and not the special tokens of these names."""
    rows: int | None = None
    """Rows of the model's table; special tokens with ids from here on are left out together with their roles; None: the
    table has all of them."""


def frame_of(recipe: Recipe, closed: bool = False) -> Frame:
    """The special tokens around a text that a task head reads, as in `bakeoff.tasks.rows.inputs.InputFormat`.

    Args:
        recipe: the run's.
        closed: whether a pair that a causal model reads ends with a separator.
    """
    if recipe.model.encoder is None:
        return "separator_closed" if closed else "separator"
    return "start_last" if recipe.input.start_last else "start"


def with_marks(tokenizer: Tokenizer, count: int) -> Tokenizer:
    """The tokenizer with `count` marks of gaps after its tokens, named as in T5 (`<extra_id_N>`)."""
    if not count:
        return tokenizer
    inner = tokenizers.Tokenizer.from_str(tokenizer.to_string())
    inner.add_special_tokens(_marks(count))
    return Tokenizer.from_string(inner.to_str())


def write_tokenizer(tokenizer: Tokenizer, folder: Path, settings: TokenizerSettings) -> list[str]:
    """Write tokenizer.json and tokenizer_config.json.

    Returns:
        Remarks about what is left out. Tokenizers with two vocabularies, which transformers lacks, are not written.
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
        clean_first(inner, settings.plain)
    if tokenizer.end_of_line is not None:
        remarks.append("the ends of lines are tokens; a text is to be given with a space before and after each")
    inner.save(str(folder / "tokenizer.json"))
    values: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "padding_side": "left" if settings.pads_before else "right",
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", *(["token_type_ids"] if settings.segments else []), "attention_mask"],
        **{f"{role}_token": token for role, token in named.items()},
    }
    if settings.plain:
        values["split_special_tokens"] = True
    if settings.longest is not None:
        values["model_max_length"] = settings.longest
    if settings.generates and "sep" in named:
        values |= {"eos_token": named["sep"], "bos_token": opening}
    if settings.marks:
        values["additional_special_tokens"] = _marks(settings.marks)
    write_json(folder / "tokenizer_config.json", values)
    return remarks


def clean_first(inner: tokenizers.Tokenizer, plain: bool) -> None:
    """Have a tokenizer first bring texts to NFC, and white space to single spaces, as `bakeoff prepare` does.

    Args:
        inner: the tokenizer, which is changed.
        plain: whether it takes the names of special tokens in a text for text. White space around a text is left out
            then; otherwise a stretch between special tokens would lose its own.
    """
    steps = [normalizers.NFC(), normalizers.Replace(tokenizers.Regex(WHITE_SPACE), " ")]
    if plain:
        steps.append(normalizers.Strip())
    inner.normalizer = normalizers.Sequence([*steps, *([inner.normalizer] if inner.normalizer else [])])


def _marks(count: int) -> list[str]:
    return [MARKS.replace("{}", str(number)) for number in range(count)]


def _within(tokenizer: Tokenizer, rows: int | None) -> tokenizers.Tokenizer:
    """The tokenizer without special tokens whose ids lie beyond a table of `rows` rows.

    The mask token includes the white space before it, since that alone would be a token that texts do not have; `fill`
    reads texts in the same way.
    """
    state: dict[str, Any] = json.loads(tokenizer.to_string())
    state["added_tokens"] = [
        token | ({"lstrip": True} if token["id"] == tokenizer.mask else {})
        for token in state["added_tokens"]
        if rows is None or token["id"] < rows
    ]
    return tokenizers.Tokenizer.from_str(json.dumps(state))


def _put_around(inner: tokenizers.Tokenizer, single: list[str], pair: list[str], shown: dict[str, str | None]) -> None:
    """Put the special tokens of the templates around texts; none at all if one of them is missing."""
    wanted = {name for piece in pair if (name := piece.partition(":")[0]) in shown}
    tokens = {name: shown[name] for name in wanted}
    if None in tokens.values():
        inner.post_processor = None
        return
    names = {name: str(token) for name, token in tokens.items()}

    def filled(template: list[str]) -> list[str]:
        parts = (piece.partition(":") for piece in template)
        return [f"{names.get(name, name)}{colon}{segment}" for name, colon, segment in parts]

    inner.post_processor = processors.TemplateProcessing(
        single=filled(single),
        pair=filled(pair),
        special_tokens=sorted((token, inner.token_to_id(token)) for token in set(names.values())),
    )
