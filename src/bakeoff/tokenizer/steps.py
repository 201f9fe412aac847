"""The steps of a tokenizer before its model: which of them treat the words of a text one by one."""

from typing import Any

import tokenizers

from bakeoff.tokenizer.long_words import LONG_WORD_PATTERN
from bakeoff.tokenizer.training import LINE_PATTERN, OLD_WORD_PATTERN, WORD_PATTERN

LONGEST_READ = 10_000
"""Largest number of characters of a word that is known to WordPiece, whose time grows with the square: 1 s here."""

WHITE_SPACE = r"[\s\x1c-\x1f]+"
"""The pattern of what `str.split` splits a text at, by which exports clean texts."""
WHITE_SPACES = (WHITE_SPACE, r"\s+")
"""The same, and what earlier exports and other programs have."""

_SEPARATE_NORMALIZERS = frozenset(
    ("BertNormalizer", "Lowercase", "StripAccents", "NFC", "NFD", "NFKC", "NFKD", "Replace"),
)
_SEPARATE_PRE_TOKENIZERS = frozenset(("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "ByteLevel", "Metaspace"))


def make_plain(inner: tokenizers.Tokenizer) -> None:
    """Switch off padding, truncation and BPE-dropout, which makes the encoding of a text random, and bound words."""
    inner.no_padding()
    inner.no_truncation()
    model = inner.model
    if isinstance(model, tokenizers.models.BPE):
        model.dropout = None
    elif isinstance(model, tokenizers.models.WordPiece):
        model.max_input_chars_per_word = min(model.max_input_chars_per_word, LONGEST_READ)


def separates_words(state: dict[str, Any]) -> bool:
    """Whether a tokenizer, given as JSON, encodes a text word by word, each word with the space before it."""
    if any(not token["special"] for token in state["added_tokens"]):
        return False  # such a token is matched in the text first, and may hold spaces
    if state["model"]["type"] == "BPE" and state["model"].get("ignore_merges"):
        return False
    normalizers = _flatten(state["normalizer"], "normalizers")
    for step in normalizers:
        if step["type"] not in _SEPARATE_NORMALIZERS:
            return False
        if step["type"] == "Replace" and not (step["pattern"].get("Regex") in WHITE_SPACES and step["content"] == " "):
            return False
    steps = _flatten(state["pre_tokenizer"], "pretokenizers")
    if len(steps) == 2 and cuts_long_words(steps[1]):
        steps = steps[:1]
    if len(steps) != 1:
        return False
    step = steps[0]
    if step["type"] == "ByteLevel":
        return bool(step["use_regex"]) and not step["add_prefix_space"]
    if step["type"] == "Metaspace":
        return bool(step.get("split", True)) and step["prepend_scheme"] == "always"
    if step["type"] == "Split":
        words = [{"Regex": pattern} for pattern in (WORD_PATTERN, OLD_WORD_PATTERN, LINE_PATTERN)]
        return step["behavior"] == "Removed" and bool(step["invert"]) and step["pattern"] in words
    return step["type"] in _SEPARATE_PRE_TOKENIZERS


def cuts_long_words(step: dict[str, Any]) -> bool:
    """Whether a step of a pre-tokenizer cuts words that are too long for WordPiece, and changes nothing else."""
    cut = {"type": "Split", "pattern": {"Regex": LONG_WORD_PATTERN}, "behavior": "Isolated", "invert": False}
    return step == cut


def of_bytes(state: dict[str, Any]) -> bool:
    """Whether the pieces of a tokenizer, given as JSON, are made of bytes, so that every character has a token."""
    steps = _flatten(state["pre_tokenizer"], "pretokenizers")
    return any(step["type"] == "ByteLevel" for step in steps)


def _flatten(step: dict[str, Any] | None, key: str) -> list[dict[str, Any]]:
    if step is None:
        return []
    if step["type"] == "Sequence":
        return [inner for part in step[key] for inner in _flatten(part, key)]
    return [step]
