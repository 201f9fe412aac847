"""The tokenizer of a corpus: the `tokenizers` library with known special tokens and word starts."""

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers

from bakeoff.errors import UserError, path_of
from bakeoff.json_files import json_value
from bakeoff.tokenizer import file as tokenizer_file
from bakeoff.tokenizer.encoding import Encoder, JoinedTexts, unpack
from bakeoff.tokenizer.file import guarded
from bakeoff.tokenizer.given_words import EncodedWords, with_every_word, words_of_tokens
from bakeoff.tokenizer.hidden import HiddenText
from bakeoff.tokenizer.kind import kind_of, lowercases, reads_lines
from bakeoff.tokenizer.offsets import PlacedTokens, cleaned
from bakeoff.tokenizer.special_tokens import NAMES, SPECIAL_TOKENS, SPECIAL_TOKENS_OF_WORDS, tokens_by_role
from bakeoff.tokenizer.steps import make_plain
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.tokenizer.training import train, train_whitespace
from bakeoff.tokenizer.word_counts import WordCounts

_LINE_END = re.compile(" ?\n ?")
_FAILS = "this tokenizer fails on a text; take another"

_TWO = '{"bakeoff": "two vocabularies",'
"""Beginning of a file of `TwoVocabularies`."""


class Tokenizer:
    """A tokenizer, from text to ids and back.

    Attributes:
        size: number of ids (V).
        pad, start, separator, mask: ids of the padding token, of `[CLS]`, of `[SEP]` and of `[MASK]`.
        unknown: id of the unknown token; None: no text is unknown (byte-level BPE from elsewhere).
        end_of_line: id of the end of a line, for tokenizers of lines, each of which is a sentence; else None.
        special_ids: (n,) int64, sorted ids of all special tokens, the unknown token among them.
        target_ids: the ids of targets of pairs of texts, special tokens aside; all ids if source and target have one
            vocabulary.
    """

    pad: int
    unknown: int | None
    start: int
    separator: int
    mask: int
    end_of_line: int | None

    def __init__(self, inner: tokenizers.Tokenizer, where: str = "tokenizer") -> None:
        """Wrap a tokenizer of the library, which is changed: missing special tokens are added at the end.

        `where` names the tokenizer's file in errors.
        """
        self._inner, self._where = inner, where
        make_plain(inner)
        state: dict[str, Any] = json.loads(inner.to_str())
        tokens = tokens_by_role(inner, state)
        # Special tokens that a file has as ordinary vocabulary become special too, so that no text is taken for them.
        inner.add_special_tokens([name for name in tokens.values() if name is not None])
        inner.encode_special_tokens = True
        for role, token in tokens.items():
            setattr(self, role, None if token is None else inner.token_to_id(token))
        special = {i for i, token in inner.get_added_tokens_decoder().items() if token.special}
        self.special_ids = np.array(sorted(special), dtype=np.int64)
        self.size = max(inner.get_vocab(with_added_tokens=True).values()) + 1
        self._forbidden = self.special_ids[self.special_ids != (-1 if self.unknown is None else self.unknown)]
        self._stand_in = self.mask if self.unknown is None else self.unknown
        self._encoder = Encoder(inner, self._forbidden, self.unknown)
        self.target_ids = range(self.size)
        self.end_of_line = inner.token_to_id("\n") if reads_lines(state) else None

    @cached_property
    def config(self) -> TokenizerConfig:
        """The settings that describe the tokenizer: its kind, actual size, and treatment of case and line ends."""
        state, end_of_line = json.loads(self._inner.to_str()), self.end_of_line is not None
        values = {"kind": kind_of(state, end_of_line), "size": self.size, "lowercase": lowercases(state)}
        return TokenizerConfig.parse({**values, "end_of_line": end_of_line}, "tokenizer")

    @classmethod
    def train(cls, config: TokenizerConfig, texts: Iterable[str] | WordCounts) -> "Tokenizer":
        """Train on texts; the same texts in the same order give the same tokenizer, byte for byte.

        Args:
            config: the tokenizer's settings.
            texts: the texts; with `end_of_line`, lines without their ends; kind whitespace also takes word counts.

        Raises:
            UserError: the vocabulary is too small for its kind, or the text holds nothing to learn from.
        """
        size, lowercase, lines = config.size, config.lowercase, config.end_of_line
        if config.kind == "whitespace":
            counts = texts if isinstance(texts, WordCounts) else WordCounts(texts)
            return cls(train_whitespace(size, lowercase, SPECIAL_TOKENS_OF_WORDS, counts, lines))
        assert not isinstance(texts, WordCounts)
        return cls(train(config.kind, size, lowercase, SPECIAL_TOKENS, texts, lines))

    @classmethod
    def load(cls, path: str | Path, rows: int | None = None) -> "Tokenizer":
        """Read any `tokenizer.json` of the `tokenizers` library, or a folder that holds one.

        Special tokens are recognised by their usual names (`[PAD]`, `<pad>`, ...); missing ones are added at the end.
        Padding, truncation and BPE-dropout that the file asks for are switched off. `rows` are those of the table of
        the model that the tokenizer is for, where it is known.

        Raises:
            UserError: no such file, no tokenizer, one that fails on some kind of character, or has more ids than rows.
        """
        path = path_of(path, "tokenizer")
        file = path / "tokenizer.json" if path.is_dir() else path
        return cls.from_string(tokenizer_file.read(file), str(file), rows)

    @classmethod
    def from_string(cls, text: str, where: str = "tokenizer", rows: int | None = None) -> "Tokenizer":
        """Build from the text of a `tokenizer.json`, or of two (`TwoVocabularies`); `where` names it in errors."""
        if text.startswith(_TWO):
            with guarded(where, "not the file of two vocabularies"):
                sides = json_value(text)
                source, target = sides["source"], sides["target"]
            return TwoVocabularies(_one(source, where, rows), _one(target, where, rows))
        return _one(text, where, rows)

    def to_string(self) -> str:
        """The text of the `tokenizer.json`."""
        return self._inner.to_str(pretty=True)

    def save(self, path: str | Path) -> None:
        """Write a `tokenizer.json` that this class and the `tokenizers` and `transformers` libraries read."""
        Path(path).write_text(self.to_string(), encoding="utf-8")

    def id_of(self, token: str) -> int | None:
        """The id of the token with this spelling; None: there is none."""
        return self._inner.token_to_id(token)

    @property
    def opening(self) -> int:
        """Id of the token after which a text begins for a model that reads forwards.

        `[SEP]`, which separates documents; or the end of a line, if ends of lines are tokens.
        """
        return self.separator if self.end_of_line is None else self.end_of_line

    def encode(self, texts: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Encode texts without adding special tokens, on all cores.

        The name of a special token in a text is text: ids never include a special token but the unknown token.

        Returns:
            For each text its ids, (T,) int64, and whether each token starts a word, (T,) bool. Words are separated by
            whitespace; in scripts without spaces (Chinese) each character is a word.
        """
        with guarded(self._where, _FAILS):
            unpacked = [unpack(packed) for packed in self._encoder.encode(texts).packed]
        return [(ids.astype(np.int64), starts) for ids, starts in unpacked]

    def encode_words(self, sentences: Sequence[Sequence[str]], marks: bool = True) -> list[EncodedWords]:
        """Encode sentences whose words are given, as the text of these words with a space between each two.

        Every word has at least one token: a word that the tokenizer leaves out gets the unknown token. `marks`: see
        `words_of_tokens`.
        """
        cleaned = [[" ".join(unicodedata.normalize("NFC", word).split()) for word in words] for words in sentences]
        with guarded(self._where, _FAILS):
            encodings = self._inner.encode_batch([" ".join(words) for words in cleaned], add_special_tokens=False)
        made = []
        for words, encoding in zip(cleaned, encodings, strict=True):
            owners = words_of_tokens(words, encoding.tokens, encoding.offsets, marks)
            tokens = list(zip(self._allowed(encoding.ids).tolist(), owners, strict=True))
            made.append(with_every_word(tokens, len(words), self._stand_in))
        return made

    def encode_placed(self, texts: Sequence[str], targets: bool = False) -> list[PlacedTokens]:
        """The tokens of `encode` for texts, or targets of pairs, read as in a corpus, with their offsets in them."""
        clean = [cleaned(text) for text in texts]
        with guarded(self._where, _FAILS):
            encodings = self._encoder.place([each.text for each in clean])
        return [
            each.place(np.array(ids, np.int64), offsets) for each, (ids, offsets) in zip(clean, encodings, strict=True)
        ]

    def _allowed(self, ids: list[int]) -> np.ndarray:
        """(T,) int64 ids with the unknown token instead of special tokens that a text names."""
        allowed = np.array(ids, np.int64)
        allowed[np.isin(allowed, self._forbidden)] = self._stand_in
        return allowed

    def encode_joined(self, texts: list[str]) -> JoinedTexts:
        """Encode texts as one sequence, and count what is hidden."""
        with guarded(self._where, _FAILS):
            return self._encoder.joined(texts)

    def hidden(self, texts: list[str]) -> HiddenText:
        """Counts of unknown tokens of texts, and of the characters that have no other token; see `HiddenText`."""
        return self.encode_joined(texts).hidden

    def encode_targets(self, texts: list[str]) -> JoinedTexts:
        """`encode_joined` for the targets of pairs of texts."""
        return self.encode_joined(texts)

    def decode(self, ids: Iterable[int] | np.ndarray, skip_special: bool = True) -> str:
        """The text of ids, exact for byte-level BPE, and for characters if none is unknown; else up to whitespace.

        The end of a line is a line break.

        Args:
            ids: (T,) ids.
            skip_special: leave special tokens out; False: show their names.
        """
        with guarded(self._where, "fails on these ids"):
            text = self._inner.decode([int(i) for i in ids], skip_special_tokens=skip_special)
        return text if self.end_of_line is None or self._inner.decoder else _LINE_END.sub("\n", text)


class TwoVocabularies(Tokenizer):
    """A tokenizer with one vocabulary for the sources of pairs of texts, and another one for the targets.

    The ids of the targets' vocabulary follow those of the sources', so that one table of the model holds both. Special
    tokens are those of the sources' vocabulary. The file is one JSON object with the texts of both tokenizers, which
    other libraries do not read.
    """

    def __init__(self, source: Tokenizer, target: Tokenizer) -> None:
        """Put a tokenizer of targets after one of sources."""
        self.source, self.target = source, target
        for role in NAMES:
            setattr(self, role, getattr(source, role))
        self.size = source.size + target.size
        self.end_of_line = None
        self.special_ids = np.concatenate([source.special_ids, source.size + target.special_ids])
        self.target_ids = range(source.size, self.size)

    @cached_property
    def config(self) -> TokenizerConfig:
        """The config of the sources' tokenizer, with the size of both vocabularies."""
        return self.source.config.model_copy(update={"size": self.size})

    def id_of(self, token: str) -> int | None:
        """The id of a token of the sources; None: there is none."""
        return self.source.id_of(token)

    def to_string(self) -> str:
        """The text of the file."""
        sides = {"source": self.source.to_string(), "target": self.target.to_string()}
        return _TWO + json.dumps(sides, indent=1, ensure_ascii=False).removeprefix("{")

    def encode(self, texts: list[str]) -> list[tuple[np.ndarray, np.ndarray]]:
        """Encode sources; see `Tokenizer.encode`."""
        return self.source.encode(texts)

    def encode_words(self, sentences: Sequence[Sequence[str]], marks: bool = True) -> list[EncodedWords]:
        """Encode sources; see `Tokenizer.encode_words`."""
        return self.source.encode_words(sentences, marks)

    def encode_placed(self, texts: Sequence[str], targets: bool = False) -> list[PlacedTokens]:
        """Encode sources, or targets; see `Tokenizer.encode_placed`."""
        placed = (self.target if targets else self.source).encode_placed(texts)
        return [each._replace(ids=each.ids + self.source.size * targets) for each in placed]

    def encode_joined(self, texts: list[str]) -> JoinedTexts:
        """Encode sources; see `Tokenizer.encode_joined`."""
        return self.source.encode_joined(texts)

    def encode_targets(self, texts: list[str]) -> JoinedTexts:
        """Encode targets; see `Tokenizer.encode_joined`."""
        encoded = self.target.encode_joined(texts)
        return encoded._replace(ids=encoded.ids + np.uint32(self.source.size))

    def decode(self, ids: Iterable[int] | np.ndarray, skip_special: bool = True) -> str:
        """The text of ids, decoded separately for each vocabulary; see `Tokenizer.decode`."""
        border = self.source.size
        texts = []
        for is_target, run in groupby(map(int, ids), key=lambda i: i >= border):
            tokenizer, first = (self.target, border) if is_target else (self.source, 0)
            texts.append(tokenizer.decode([i - first for i in run], skip_special))
        return " ".join(text for text in texts if text)


def _one(text: Any, where: str, rows: int | None) -> Tokenizer:
    """The tokenizer in the text of one `tokenizer.json`, tried out on `PROBE`."""
    if not isinstance(text, str):
        raise UserError(f"{where}: not the file of two vocabularies (one of them is no text)")
    tokenizer_file.bounded(text, where, rows)
    with tokenizer_file.quiet():
        with guarded(where, "not a tokenizer.json of the tokenizers library"):
            inner = tokenizers.Tokenizer.from_str(text)
        with guarded(where, "not a tokenizer that can be used"):
            made = Tokenizer(inner, where)
            made.encode([tokenizer_file.PROBE, *tokenizer_file.PROBE.split(), ""])
            made.decode(range(min(made.size, 256)), skip_special=False)
    return made
