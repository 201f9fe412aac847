"""Special tokens: their usual names, and the special tokens of a given tokenizer."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import tokenizers

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
"""Special tokens of a trained tokenizer; the id of each is its index here."""
SPECIAL_TOKENS_OF_WORDS = tuple("<unk>" if name == "[UNK]" else name for name in SPECIAL_TOKENS)
"""Special tokens of tokenizers of kind whitespace; the unknown token is spelt as in published corpora of words."""


NAMES = {
    "pad": ("[PAD]", "<pad>", "<|pad|>", "<|padding|>"),
    "unknown": ("[UNK]", "<unk>", "<|unk|>"),
    "start": ("[CLS]", "<cls>", "<s>", "<|startoftext|>", "<bos>"),
    "separator": ("[SEP]", "<sep>", "</s>", "<|endoftext|>", "<eos>"),
    "mask": ("[MASK]", "<mask>", "<|mask|>"),
}
"""Names of the token of each role in files of tokenizers, the usual name first."""


def tokens_by_role(inner: tokenizers.Tokenizer, state: Mapping[str, Any]) -> dict[str, str | None]:
    """The special token of each role: a token of the vocabulary, else the usual name, under which it is to be added.

    Of several names for a start or a separator the one is taken that the file puts around texts: a RoBERTa to which
    somebody has added `[SEP]` still ends its rows with `</s>`.

    Args:
        inner: a tokenizer of the library.
        state: the tokenizer's file, whose section about the model may declare the unknown token.

    Returns:
        The token by role of `NAMES`; None for a missing unknown token.
    """
    around = set(_around(state.get("post_processor")))
    tokens = {
        role: _first_of(inner, sorted(names, key=lambda name: name not in around)) for role, names in NAMES.items()
    }
    tokens["unknown"] = _unknown_token(inner, state["model"]) or tokens["unknown"]
    for role, name in zip(NAMES, SPECIAL_TOKENS, strict=True):
        if tokens[role] is None and role != "unknown":
            tokens[role] = name
    return tokens


def _first_of(inner: tokenizers.Tokenizer, names: Iterable[str]) -> str | None:
    return next((name for name in names if inner.token_to_id(name) is not None), None)


def _around(processor: Any) -> Iterator[str]:
    """The special tokens that a post-processor puts around a text."""
    if not isinstance(processor, dict):
        return
    for inner in processor.get("processors") or []:
        yield from _around(inner)
    for key in ("cls", "sep"):  # of BertProcessing and RobertaProcessing: a token and its id
        if isinstance(pair := processor.get(key), list):
            yield str(pair[0])
    for piece in processor.get("single") or []:
        if "SpecialToken" in piece:
            yield piece["SpecialToken"]["id"]


def _unknown_token(inner: tokenizers.Tokenizer, model: dict[str, Any]) -> str | None:
    """The unknown token that the model declares; None: there is none."""
    if isinstance(model.get("unk_id"), int):
        return inner.id_to_token(model["unk_id"])
    name = model.get("unk_token")
    return name if name and inner.token_to_id(name) is not None else None
