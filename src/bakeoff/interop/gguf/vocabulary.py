"""A tokenizer as the keys of a GGUF file say it, where llama.cpp cuts texts as it does."""

import json
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from bakeoff.errors import UserError
from bakeoff.runs.run import Run

WORD_BEGINS = "\u2581"
"""How llama.cpp spells the begin of a word; in WordPiece what goes on with a word has no mark."""


class Vocabulary(ABC):
    """What goes into a file.

    Args:
        run: whose tokenizer it is.
        where: the run, named in errors.

    Raises:
        UserError: llama.cpp would cut texts in another way.
    """

    architecture: ClassVar[str]
    """Before which model llama.cpp reads it."""
    kind: ClassVar[str]
    """See `TokenizerConfig.kind`."""
    cuts: ClassVar[str] = "default"
    """How llama.cpp calls the way in which texts are cut before the vocabulary is asked."""

    def __init__(self, run: Run, where: str) -> None:
        self.run, self.tokenizer = run, run.tokenizer
        self.state: dict[str, Any] = json.loads(run.tokenizer.to_string())
        kind = self.tokenizer.config.kind
        reason = f"its tokenizer is of kind {kind}, and llama.cpp reads {self.kind} before {self.architecture}"
        found = reason if kind != self.kind else self.other_cuts()
        if found:
            raise UserError(f"{where}: {found}, so it is not written as GGUF; --to hf can take it")

    @abstractmethod
    def other_cuts(self) -> str | None:
        """Why llama.cpp would cut a text in another way; None: it does not."""

    def named(self) -> dict[int, str]:
        """The tokens by their ids."""
        vocabulary = dict(self.state["model"]["vocab"])
        added = {token["content"]: token["id"] for token in self.state["added_tokens"]}
        return {number: name for name, number in (vocabulary | added).items()}

    def tokens(self, rows: int, kinds: Any) -> tuple[list[str], list[Any]]:
        """Each token as llama.cpp spells it, and its kind.

        Args:
            rows: of the model's table; those that no token has are unused ones.
            kinds: gguf's `TokenType`.
        """
        by_id = self.named()
        added = {token["content"] for token in self.state["added_tokens"]}
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
                tokens.append(self.spelt(name))
                types.append(kinds.USER_DEFINED if name in added else kinds.NORMAL)
        return tokens, types

    def spelt(self, name: str) -> str:
        """A token as llama.cpp spells it."""
        return name

    def write(self, writer: Any, rows: int, kinds: Any) -> None:
        """Give a `GGUFWriter` all of it; the arguments are those of `tokens`."""
        own = self.tokenizer
        tokens, types = self.tokens(rows, kinds)
        writer.add_tokenizer_model(self.architecture)
        writer.add_tokenizer_pre(self.cuts)
        writer.add_token_list(tokens)
        writer.add_token_types(types)
        writer.add_eos_token_id(own.separator)
        writer.add_sep_token_id(own.separator)
        writer.add_pad_token_id(own.pad)
        writer.add_mask_token_id(own.mask)
        if own.unknown is not None:
            writer.add_unk_token_id(own.unknown)
        self.write_rest(writer)

    @abstractmethod
    def write_rest(self, writer: Any) -> None:
        """Give it what the kind of tokenizer has, and which special tokens stand around a text."""


class WordPiece(Vocabulary):
    """BERT's."""

    architecture: ClassVar[str] = "bert"
    kind: ClassVar[str] = "wordpiece"
    lowercase: ClassVar[str] = "tokenizer.ggml.normalizer.lowercase"
    strip_accents: ClassVar[str] = "tokenizer.ggml.normalizer.strip_accents"
    """Keys that older releases of llama.cpp do not read: they lower-case every text of a WordPiece vocabulary."""

    def other_cuts(self) -> str | None:
        """Why llama.cpp would cut a text in another way; None: it does not."""
        model, normalizer, cuts = self.state["model"], self.state["normalizer"], self.state["pre_tokenizer"]
        if (normalizer or {}).get("type") != "BertNormalizer":
            return "its tokenizer does not normalise texts as BERT's does"
        if not (normalizer["clean_text"] and normalizer["handle_chinese_chars"]):
            return "its tokenizer keeps control characters, or does not cut Chinese into characters"
        if (cuts or {}).get("type") != "BertPreTokenizer" or model["continuing_subword_prefix"] != "##":
            return "its tokenizer does not cut texts into words as BERT's does"
        return None

    def spelt(self, name: str) -> str:
        """A begin of a word with a mark, what goes on with one without."""
        return name.removeprefix("##") if name.startswith("##") and len(name) > 2 else WORD_BEGINS + name

    def write_rest(self, writer: Any) -> None:
        """Whether texts are lower-cased; a row has a token at both ends."""
        normalizer = self.state["normalizer"]
        strip = normalizer["strip_accents"]
        writer.add_bool(self.lowercase, normalizer["lowercase"])
        writer.add_bool(self.strip_accents, normalizer["lowercase"] if strip is None else strip)
        writer.add_bos_token_id(self.tokenizer.start)
        writer.add_add_bos_token(True)
        writer.add_add_sep_token(True)


class ByteBpe(Vocabulary):
    """GPT-2's."""

    architecture: ClassVar[str] = "gpt2"
    kind: ClassVar[str] = "byte_bpe"
    cuts: ClassVar[str] = "gpt-2"
    byte_level: ClassVar[dict[str, Any]] = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    """How GPT-2 cuts a text into words; what else is said of it decides offsets alone."""

    def other_cuts(self) -> str | None:
        """Why llama.cpp would cut a text in another way; None: it does not."""
        model, normalizer, cuts = self.state["model"], self.state["normalizer"], self.state["pre_tokenizer"]
        if normalizer is not None:
            return f"its tokenizer normalises texts ({normalizer['type']}), which llama.cpp does not"
        if {key: (cuts or {}).get(key) for key in self.byte_level} != self.byte_level:
            return "its tokenizer does not cut texts into words as GPT-2's does"
        if model.get("ignore_merges") or model.get("end_of_word_suffix") or model.get("continuing_subword_prefix"):
            return "its tokenizer does not merge bytes as GPT-2's does"
        return None

    def write_rest(self, writer: Any) -> None:
        """The merges; a text begins behind the token that ends documents."""
        merges = self.state["model"]["merges"]
        writer.add_token_merges([each if isinstance(each, str) else " ".join(each) for each in merges])
        writer.add_bos_token_id(self.tokenizer.opening)
        writer.add_add_bos_token(True)
        writer.add_add_eos_token(False)
