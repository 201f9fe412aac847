"""The kind of tokenizer in a `tokenizer.json`, whoever trained it."""

from collections.abc import Iterator, Mapping
from typing import Any

from bakeoff.tokenizer.training import (
    CHARACTER_PATTERN,
    LINE_CHARACTER_PATTERN,
    LINE_PATTERN,
    OLD_CHARACTER_PATTERN,
)

_LINES = {LINE_PATTERN, LINE_CHARACTER_PATTERN, OLD_CHARACTER_PATTERN}
_CHARACTERS = {CHARACTER_PATTERN, LINE_CHARACTER_PATTERN, OLD_CHARACTER_PATTERN}


def kind_of(state: Mapping[str, Any], end_of_line: bool) -> str:
    """The kind of a tokenizer (`TokenizerConfig.kind`); for a file from elsewhere, the nearest kind.

    Args:
        state: the tokenizer as JSON.
        end_of_line: whether the end of a line is a token.
    """
    model = state["model"]["type"]
    if model == "WordPiece":
        return "wordpiece"
    if model == "Unigram":
        return "unigram"
    cuts = list(_steps(state["pre_tokenizer"]))
    types = {step["type"] for step in cuts}
    if model == "BPE":
        return "byte_bpe" if "ByteLevel" in types else "char_bpe"
    patterns = _patterns(state)
    if patterns & _CHARACTERS:
        return "character"
    return "whitespace" if end_of_line or "WhitespaceSplit" in types or LINE_PATTERN in patterns else "word"


def reads_lines(state: Mapping[str, Any]) -> bool:
    """Whether the tokenizer was made for lines; for other tokenizers a line break is text like any other."""
    return state["model"]["type"] == "WordLevel" and bool(_patterns(state) & _LINES)


def lowercases(state: Mapping[str, Any]) -> bool:
    """Whether the tokenizer lower-cases text."""
    steps = _steps(state["normalizer"])
    return any(step["type"] == "Lowercase" or bool(step.get("lowercase")) for step in steps)


def _patterns(state: Mapping[str, Any]) -> set[str]:
    """The regular expressions by which the tokenizer cuts a text."""
    cuts = [step["pattern"] for step in _steps(state["pre_tokenizer"]) if step["type"] == "Split"]
    return {pattern["Regex"] for pattern in cuts if "Regex" in pattern}


def _steps(step: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    """A step, or the steps of a sequence."""
    if step is None:
        return
    parts = step.get("normalizers", step.get("pretokenizers"))
    if parts is None:
        yield step
    for part in parts or ():
        yield from _steps(part)
