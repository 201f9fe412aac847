"""A unigram tokenizer (SentencePiece) in the keys of a GGUF file."""

import base64
from typing import Any, ClassVar

from typing_extensions import override

from bakeoff.interop.families.seq2seq import writing_of
from bakeoff.interop.gguf.vocabulary import WORD_BEGINS, Vocabulary
from bakeoff.runs.run import Run
from bakeoff.tokenizer.steps import WHITE_SPACES

SPACES = (*WHITE_SPACES, " {2,}")
"""Patterns that reduce white space to one space; Bakeoff's texts have single spaces anyway."""
UNLIKELY = -1000.0
"""The score of tokens without one, as in llama.cpp's converter."""


class Unigram(Vocabulary):
    """T5's vocabulary: pieces with scores, and perhaps a table that replaces characters before the text is cut."""

    architecture: ClassVar[str] = "t5"
    kind: ClassVar[str] = "unigram"

    def __init__(self, run: Run, where: str) -> None:
        self.characters = b""
        """SentencePiece's table of characters, which normalises texts; empty: none."""
        super().__init__(run, where)
        self.objective = writing_of(run.recipe)
        self.marks = self.objective.mark_ids(run.tokenizer)

    @override
    def other_cuts(self) -> str | None:
        model = self.state["model"]
        if model.get("byte_fallback"):
            return "its tokenizer falls back to bytes, which llama.cpp does not do for t5"
        if model.get("unk_id") is None:
            return "its tokenizer has no unknown token"
        for index, step in enumerate(_steps(self.state["normalizer"], "normalizers")):
            if step["type"] == "Replace" and step["pattern"].get("Regex") in SPACES and step["content"] == " ":
                continue
            if step["type"] != "Precompiled" or index:
                return f"its tokenizer normalises texts ({step['type']}), which llama.cpp does not do for t5"
            self.characters = base64.b64decode(step["precompiled_charsmap"])
        cuts = _steps(self.state["pre_tokenizer"], "pretokenizers")
        if cuts and cuts[0]["type"] == "WhitespaceSplit":
            cuts = cuts[1:]
        usual = {"type": "Metaspace", "replacement": WORD_BEGINS, "prepend_scheme": "always", "split": True}
        if [{key: each.get(key, True) for key in usual} for each in cuts] != [usual]:
            return "its tokenizer does not cut texts into words as T5's does"
        if WORD_BEGINS not in dict(model["vocab"]):
            return "its tokenizer has no token for the begin of a word alone"
        return None

    @override
    def named(self) -> dict[int, str]:
        names = {number: name for number, (name, _) in enumerate(self.state["model"]["vocab"])}
        names |= {token["id"]: token["content"] for token in self.state["added_tokens"]}
        for number, token in enumerate(self.marks):
            names.setdefault(token, f"<extra_id_{number}>")
        return names

    @override
    def tokens(self, rows: int, kinds: Any) -> tuple[list[str], list[Any]]:
        """Tokens and types as for any vocabulary; marks of gaps are user-defined, so that texts may name them."""
        tokens, types = super().tokens(rows, kinds)
        for token in self.marks:
            types[token] = kinds.USER_DEFINED
        for number, (name, kind) in enumerate(zip(tokens, types, strict=True)):
            if kind == kinds.NORMAL and WORD_BEGINS in name[1:]:  # several words: texts are cut into words first
                types[number] = kinds.CONTROL
        assert self.tokenizer.unknown is not None
        types[self.tokenizer.unknown] = kinds.UNKNOWN
        return tokens, types

    @override
    def write(self, writer: Any, rows: int, kinds: Any) -> None:
        super().write(writer, rows, kinds)
        scores = [score for _, score in self.state["model"]["vocab"]][:rows]
        writer.add_token_scores(scores + [UNLIKELY] * (rows - len(scores)))

    @override
    def write_rest(self, writer: Any) -> None:
        tokenizer = self.tokenizer
        writer.add_add_space_prefix(True)
        writer.add_remove_extra_whitespaces(True)
        if self.characters:
            writer.add_precompiled_charsmap(self.characters)
        begins = self.objective.before_source(tokenizer)
        if begins:
            writer.add_bos_token_id(begins[0])
        writer.add_add_bos_token(bool(begins))
        writer.add_add_eos_token(True)
        writer.add_decoder_start_token_id(self.objective.prompt(tokenizer)[0])


def _steps(node: Any, key: str) -> list[dict[str, Any]]:
    """The steps of a normalizer or a pre-tokenizer, which may be a nested sequence."""
    if node is None:
        return []
    return [each for part in node[key] for each in _steps(part, key)] if node["type"] == "Sequence" else [node]
