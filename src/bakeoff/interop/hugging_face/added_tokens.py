"""Tokens that were added to a published vocabulary, in files of their own where there is no tokenizer.json."""

from collections.abc import Iterator, Mapping
from typing import Any

import tokenizers
from tokenizers import AddedToken

from bakeoff.errors import UserError
from bakeoff.interop.hugging_face.folder import Folder
from bakeoff.tokenizer.file import guarded

ADDED, SPECIAL = "added_tokens.json", "special_tokens_map.json"
FLAGS = ("lstrip", "rstrip", "single_word", "normalized", "special")


def with_added(text: str, folder: Folder, settings: Mapping[str, Any]) -> str:
    """The text of a tokenizer.json with the tokens of `added_tokens_decoder`, or else of added_tokens.json.

    Args:
        text: the text of a tokenizer.json.
        folder: the model's folder.
        settings: the content of its tokenizer_config.json.

    Raises:
        UserError: a token has another id than its own or the next one after the vocabulary, or the files are damaged.
    """
    inner = tokenizers.Tokenizer.from_str(text)
    for number, token in sorted(_said(folder, settings), key=lambda each: each[0]):
        if inner.token_to_id(token.content) is None:
            (inner.add_special_tokens if token.special else inner.add_tokens)([token])
        if (there := inner.token_to_id(token.content)) != number:
            raise UserError(
                f"{folder.path}: the added token {token.content!r:.50} has the id {number}, and after its vocabulary "
                f"{there}; AutoTokenizer.from_pretrained(DIR).save_pretrained(DIR) of transformers writes a "
                "tokenizer.json that is read"
            )
    return inner.to_str(pretty=True)


def _said(folder: Folder, settings: Mapping[str, Any]) -> Iterator[tuple[int, AddedToken]]:
    """The id and the token of each added token."""
    with guarded(str(folder.path), "its added tokens are damaged"):
        if decoder := settings.get("added_tokens_decoder"):
            for number, said in decoder.items():
                flags = {flag: bool(said[flag]) for flag in FLAGS if flag in said}
                yield int(number), AddedToken(said["content"], **flags)
            return
        special = {name for each in (settings, folder.json(SPECIAL)) for name in _special(each)}
        for name, number in folder.json(ADDED).items():
            yield int(number), AddedToken(name, special=name in special, normalized=name not in special)


def _special(settings: Mapping[str, Any]) -> Iterator[str]:
    """The special tokens that a file of settings names."""
    for key, value in settings.items():
        for each in value if isinstance(value, list) else [value]:
            name = each.get("content") if isinstance(each, dict) else each
            if isinstance(name, str) and key.endswith(("_token", "special_tokens")):
                yield name
