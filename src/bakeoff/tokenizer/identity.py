"""Whether two tokenizers give texts the same ids."""

import json
from itertools import dropwhile
from typing import Any

from bakeoff.tokenizer.steps import WHITE_SPACES
from bakeoff.tokenizer.tokenizer import Tokenizer, TwoVocabularies

_CLEANING = [
    {"type": "NFC"},
    *({"type": "Replace", "pattern": {"Regex": pattern}, "content": " "} for pattern in WHITE_SPACES),
]
"""What exports do before the tokenizer's steps, since others do not clean texts as Bakeoff does before tokenizing."""

_NOT_OF_IDS = ("post_processor", "decoder", "padding", "truncation")
"""What a tokenizer.json says that ids do not depend on, since special tokens are put around texts elsewhere."""


def identity_of(tokenizer: Tokenizer) -> str:
    """What of a tokenizer the ids of cleaned texts depend on (NFC, single spaces): equal for two with the same ids.

    An export has another tokenizer.json than its run: it cleans texts itself, and puts special tokens around them.
    """
    if isinstance(tokenizer, TwoVocabularies):
        return json.dumps([identity_of(tokenizer.source), identity_of(tokenizer.target)])
    state: dict[str, Any] = json.loads(tokenizer.to_string())
    for key in _NOT_OF_IDS:
        state.pop(key, None)
    state["normalizer"] = list(dropwhile(lambda step: step in _CLEANING, _steps(state["normalizer"])))
    return json.dumps(state, sort_keys=True)


def _steps(normalizer: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The steps of a normalizer one after the other, however they are nested."""
    if normalizer is None:
        return []
    if normalizer["type"] != "Sequence":
        return [normalizer]
    return [step for part in normalizer["normalizers"] for step in _steps(part)]


def same_ids(tokenizer: Tokenizer, other: Tokenizer) -> bool:
    """Whether two tokenizers give cleaned texts the same ids."""
    return tokenizer.to_string() == other.to_string() or identity_of(tokenizer) == identity_of(other)
