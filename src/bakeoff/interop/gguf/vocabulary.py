"""Tokenizers in the keys of a GGUF file, as far as llama.cpp cuts texts into the same tokens."""

import json
from abc import ABC, abstractmethod
from typing import Any, ClassVar

from bakeoff.errors import UserError
from bakeoff.runs.run import Run
from bakeoff.tokenizer.steps import cuts_long_words

WORD_BEGINS = "\u2581"
"""llama.cpp's mark of the beginning of a word; WordPiece's pieces inside a word have no mark there."""


class Vocabulary(ABC):
    """A tokenizer, as a GGUF file holds it.

    Args:
        run: the run whose tokenizer is written.
        where: the run's path, for errors.

    Raises:
        UserError: llama.cpp would cut texts into other tokens.
    """

    architecture: ClassVar[str]
    """The architecture with which llama.cpp reads it."""
    kind: ClassVar[str]
    """The kind of tokenizer, see `TokenizerConfig.kind`."""
    cuts: ClassVar[str] = "default"
    """llama.cpp's name of the pre-tokenizer, which cuts texts before the vocabulary is applied."""

    def __init__(self, run: Run, where: str) -> None:
        self.run, self.tokenizer = run, run.tokenizer
        self.state: dict[str, Any] = json.loads(run.tokenizer.to_string())
        kind = self.tokenizer.config.kind
        reason = f"its tokenizer is of kind {kind}, and llama.cpp reads {self.kind} for {self.architecture}"
        problem = reason if kind != self.kind else self.other_cuts()
        if problem:
            raise UserError(f"{where}: {problem}, so it is not written as GGUF; --to hf can take it")

    @abstractmethod
    def other_cuts(self) -> str | None:
        """The reason why llama.cpp would cut a text into other tokens; None: it does not."""

    def named(self) -> dict[int, str]:
        """The names of tokens by id."""
        vocabulary = dict(self.state["model"]["vocab"])
        added = {token["content"]: token["id"] for token in self.state["added_tokens"]}
        return {number: name for name, number in (vocabulary | added).items()}

    def tokens(self, rows: int, kinds: Any) -> tuple[list[str], list[Any]]:
        """The spelling and the type of every row of the table in llama.cpp.

        Args:
            rows: number of rows of the model's table of tokens; rows without a token are of the type UNUSED.
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
        """The spelling of a token in llama.cpp."""
        return name

    def write(self, writer: Any, rows: int, kinds: Any) -> None:
        """Write the vocabulary to a `gguf.GGUFWriter`; other arguments as of `tokens`."""
        tokenizer = self.tokenizer
        tokens, types = self.tokens(rows, kinds)
        writer.add_tokenizer_model(self.architecture)
        writer.add_tokenizer_pre(self.cuts)
        writer.add_token_list(tokens)
        writer.add_token_types(types)
        writer.add_eos_token_id(tokenizer.separator)
        writer.add_sep_token_id(tokenizer.separator)
        writer.add_pad_token_id(tokenizer.pad)
        writer.add_mask_token_id(tokenizer.mask)
        if tokenizer.unknown is not None:
            writer.add_unk_token_id(tokenizer.unknown)
        self.write_rest(writer)

    @abstractmethod
    def write_rest(self, writer: Any) -> None:
        """Write what this kind of tokenizer alone has, and the special tokens around a text."""


class WordPiece(Vocabulary):
    """BERT's vocabulary."""

    architecture: ClassVar[str] = "bert"
    kind: ClassVar[str] = "wordpiece"
    lowercase: ClassVar[str] = "tokenizer.ggml.normalizer.lowercase"
    strip_accents: ClassVar[str] = "tokenizer.ggml.normalizer.strip_accents"
    """Keys that older releases of llama.cpp do not read; these lower-case every text of a WordPiece vocabulary."""

    def other_cuts(self) -> str | None:
        """The reason why llama.cpp would cut a text into other tokens; None: it does not."""
        model, normalizer, cuts = self.state["model"], self.state["normalizer"], self.state["pre_tokenizer"]
        if (normalizer or {}).get("type") != "BertNormalizer":
            return "its tokenizer does not normalise texts as BERT's does"
        if not (normalizer["clean_text"] and normalizer["handle_chinese_chars"]):
            return "its tokenizer keeps control characters, or does not cut Chinese into characters"
        steps = cuts["pretokenizers"] if (cuts or {}).get("type") == "Sequence" else [cuts or {}]
        if self.cuts_long_words:
            steps = steps[:-1]
        if [step.get("type") for step in steps] != ["BertPreTokenizer"] or model["continuing_subword_prefix"] != "##":
            return "its tokenizer does not cut texts into words as BERT's does"
        return None

    @property
    def cuts_long_words(self) -> bool:
        """Whether the tokenizer cuts words that are too long for WordPiece, which llama.cpp reads whole."""
        cuts = self.state["pre_tokenizer"] or {}
        return cuts.get("type") == "Sequence" and cuts_long_words(cuts["pretokenizers"][-1])

    def spelt(self, name: str) -> str:
        """The spelling with a mark at the beginning of a word and without one inside a word, the reverse of `##`."""
        return name.removeprefix("##") if name.startswith("##") and len(name) > 2 else WORD_BEGINS + name

    def write_rest(self, writer: Any) -> None:
        """Write whether texts are lower-cased, and that special tokens stand at both ends of a row."""
        normalizer = self.state["normalizer"]
        strip = normalizer["strip_accents"]
        writer.add_bool(self.lowercase, normalizer["lowercase"])
        writer.add_bool(self.strip_accents, normalizer["lowercase"] if strip is None else strip)
        writer.add_bos_token_id(self.tokenizer.start)
        writer.add_add_bos_token(True)
        writer.add_add_sep_token(True)


class ByteBpe(Vocabulary):
    """GPT-2's vocabulary."""

    architecture: ClassVar[str] = "gpt2"
    kind: ClassVar[str] = "byte_bpe"
    cuts: ClassVar[str] = "gpt-2"
    byte_level: ClassVar[dict[str, Any]] = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
    """GPT-2's pre-tokenizer; its other settings change offsets alone."""

    def other_cuts(self) -> str | None:
        """The reason why llama.cpp would cut a text into other tokens; None: it does not."""
        model, normalizer, cuts = self.state["model"], self.state["normalizer"], self.state["pre_tokenizer"]
        if normalizer is not None:
            return f"its tokenizer normalises texts ({normalizer['type']}), which llama.cpp does not"
        if {key: (cuts or {}).get(key) for key in self.byte_level} != self.byte_level:
            return "its tokenizer does not cut texts into words as GPT-2's does"
        if model.get("ignore_merges") or model.get("end_of_word_suffix") or model.get("continuing_subword_prefix"):
            return "its tokenizer does not merge bytes as GPT-2's does"
        return None

    def write_rest(self, writer: Any) -> None:
        """Write the merges, and that a text begins after the token that ends documents."""
        merges = self.state["model"]["merges"]
        writer.add_token_merges([each if isinstance(each, str) else " ".join(each) for each in merges])
        writer.add_bos_token_id(self.tokenizer.opening)
        writer.add_add_bos_token(True)
        writer.add_add_eos_token(False)
