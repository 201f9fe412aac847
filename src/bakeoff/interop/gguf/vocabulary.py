"""A tokenizer as the keys of a GGUF file say it, where llama.cpp cuts texts as it does."""

import json
from typing import Any

from bakeoff.errors import UserError
from bakeoff.tokenizer.tokenizer import Tokenizer

WORD_BEGINS = "\u2581"
"""How llama.cpp spells the begin of a word; what goes on with a word has no mark."""
LOWERCASE = "tokenizer.ggml.normalizer.lowercase"
STRIP_ACCENTS = "tokenizer.ggml.normalizer.strip_accents"
"""Keys that older releases of llama.cpp do not read: they lower-case every text of a WordPiece vocabulary."""
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
"""How GPT-2 cuts a text into words; what else is said of it decides offsets alone."""


class Vocabulary:
    """What goes into a file.

    Args:
        tokenizer: the run's.
        architecture: bert, which reads WordPiece, or gpt2, which reads byte-level BPE.
        where: the run, named in errors.

    Raises:
        UserError: llama.cpp would cut texts in another way.
    """

    def __init__(self, tokenizer: Tokenizer, architecture: str, where: str) -> None:
        self.tokenizer, self.architecture = tokenizer, architecture
        self.state: dict[str, Any] = json.loads(tokenizer.to_string())
        if reason := self._other_cuts():
            raise UserError(f"{where}: {reason}, so it is not written as GGUF; --to hf can take it")

    def _other_cuts(self) -> str | None:
        """Why llama.cpp would cut a text in another way; None: it does not."""
        model, normalizer, cuts = self.state["model"], self.state["normalizer"], self.state["pre_tokenizer"]
        kind = self.tokenizer.config.kind
        wanted = {"bert": "wordpiece", "gpt2": "byte_bpe"}[self.architecture]
        if kind != wanted:
            return f"its tokenizer is of kind {kind}, and llama.cpp reads {wanted} before {self.architecture}"
        if self.architecture == "bert":
            if (normalizer or {}).get("type") != "BertNormalizer":
                return "its tokenizer does not normalise texts as BERT's does"
            if not (normalizer["clean_text"] and normalizer["handle_chinese_chars"]):
                return "its tokenizer keeps control characters, or does not cut Chinese into characters"
            if (cuts or {}).get("type") != "BertPreTokenizer" or model["continuing_subword_prefix"] != "##":
                return "its tokenizer does not cut texts into words as BERT's does"
            return None
        if normalizer is not None:
            return f"its tokenizer normalises texts ({normalizer['type']}), which llama.cpp does not"
        if {key: (cuts or {}).get(key) for key in BYTE_LEVEL} != BYTE_LEVEL:
            return "its tokenizer does not cut texts into words as GPT-2's does"
        if model.get("ignore_merges") or model.get("end_of_word_suffix") or model.get("continuing_subword_prefix"):
            return "its tokenizer does not merge bytes as GPT-2's does"
        return None

    def tokens(self, rows: int, kinds: Any) -> tuple[list[str], list[Any]]:
        """Each token as llama.cpp spells it, and its kind.

        Args:
            rows: of the model's table; those that no token has are unused ones.
            kinds: gguf's `TokenType`.
        """
        named = dict(self.state["model"]["vocab"])
        added = {token["content"]: token["id"] for token in self.state["added_tokens"]}
        by_id = {number: name for name, number in (named | added).items()}
        special = set(map(int, self.tokenizer.special_ids))
        tokens, types = [], []
        for number in range(rows):
            name = by_id.get(number)
            if name is None:
                tokens.append(f"[PAD{number}]")
                types.append(kinds.UNUSED)
            elif number in special:
                tokens.append(name)
                types.append(kinds.CONTROL)
            else:
                tokens.append(self._spelt(name))
                types.append(kinds.USER_DEFINED if name in added else kinds.NORMAL)
        return tokens, types

    def _spelt(self, name: str) -> str:
        if self.architecture == "gpt2":
            return name
        return name.removeprefix("##") if name.startswith("##") and len(name) > 2 else WORD_BEGINS + name

    def write(self, writer: Any, rows: int, kinds: Any) -> None:
        """Give a `GGUFWriter` all of it; the arguments are those of `tokens`."""
        own = self.tokenizer
        tokens, types = self.tokens(rows, kinds)
        writer.add_tokenizer_model(self.architecture)
        writer.add_tokenizer_pre("default" if self.architecture == "bert" else "gpt-2")
        writer.add_token_list(tokens)
        writer.add_token_types(types)
        if self.architecture == "bert":
            normalizer = self.state["normalizer"]
            strip = normalizer["strip_accents"]
            writer.add_bool(LOWERCASE, normalizer["lowercase"])
            writer.add_bool(STRIP_ACCENTS, normalizer["lowercase"] if strip is None else strip)
            writer.add_bos_token_id(own.start)
        else:
            merges = self.state["model"]["merges"]
            writer.add_token_merges([each if isinstance(each, str) else " ".join(each) for each in merges])
            writer.add_bos_token_id(own.opening)
        writer.add_eos_token_id(own.separator)
        writer.add_sep_token_id(own.separator)
        writer.add_pad_token_id(own.pad)
        writer.add_mask_token_id(own.mask)
        if own.unknown is not None:
            writer.add_unk_token_id(own.unknown)
        writer.add_add_bos_token(True)  # a row begins with it, before an encoder and before a decoder
        if self.architecture == "bert":
            writer.add_add_sep_token(True)
        else:
            writer.add_add_eos_token(False)
