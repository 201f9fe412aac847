"""Encoding of text to ids with word starts, several times as fast as the bare library, by a table of known words."""

import json
from array import array
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
import tokenizers

from bakeoff.text.words import words_before
from bakeoff.tokenizer.training import LINE_PATTERN, OLD_WORD_PATTERN, WORD_PATTERN

_LONGEST_WORD = 32  # characters; longer pieces are rare and not worth their memory
_MOST_WORDS = 200_000  # about 40 MB

_SEPARATE_NORMALIZERS = frozenset(
    ("BertNormalizer", "Lowercase", "StripAccents", "NFC", "NFD", "NFKC", "NFKD", "Replace"),
)
_SEPARATE_PRE_TOKENIZERS = frozenset(("BertPreTokenizer", "Whitespace", "WhitespaceSplit", "ByteLevel", "Metaspace"))


class Encoder:
    """Encoder of texts; an entry of a result is an id with its word start, `2 * id + start` in uint32."""

    def __init__(self, inner: tokenizers.Tokenizer, forbidden: np.ndarray, unknown: int | None) -> None:
        """Encode with `inner`.

        Args:
            inner: a tokenizer of the library that reads the names of special tokens as text.
            forbidden: ids that no text may get.
            unknown: id in place of a forbidden one if cutting the text does not help; None: drop forbidden ids.
        """
        self._inner = inner
        self._forbidden = forbidden
        self._unknown = unknown
        self._by_word = _separates_words(inner)
        self._known: dict[str, bytes] = {}

    def encode(self, texts: Sequence[str]) -> list[bytes]:
        """Encode each text as the library does for the whole text, without special tokens."""
        words: list[list[str] | None] = [None] * len(texts)
        known = self._known
        missing: dict[str, None] = {}
        if self._by_word:
            if len(known) > _MOST_WORDS:
                known = self._known = {}  # another thread goes on with the one that it has
            for i, text in enumerate(texts):
                words[i] = found = _words(text)
                if found is not None:
                    missing.update(dict.fromkeys([word for word in found if word not in known]))
        new = list(missing)
        whole = [text for text, found in zip(texts, words, strict=True) if found is None]
        # Whitespace opens the key of a word that no space stands before; other keys are words after a space.
        spelt = [word[1:] if word[0] == "\n" else " " + word for word in new]
        simple = [word for word in spelt if word.isascii()]
        other = [word for word in spelt if not word.isascii()]
        data_of = dict(zip(simple, self._encode_words(simple), strict=True))
        rest = iter(self._encode(other + whole))
        data_of.update((word, next(rest)) for word in other)
        long: dict[str, bytes] = {}
        for word, spelling in zip(new, spelt, strict=True):
            data = data_of[spelling]
            (known if len(word) <= _LONGEST_WORD else long)[word] = data
        if long:
            known = known | long
        return [next(rest) if found is None else b"".join([known[word] for word in found]) for found in words]

    def _encode(self, texts: list[str]) -> list[bytes]:
        """Encode each text in one piece."""
        if not texts:
            return []
        encodings = self._inner.encode_batch(texts, add_special_tokens=False)
        counts = np.fromiter(map(len, encodings), dtype=np.int64, count=len(texts))
        total = int(counts.sum())
        ids = np.fromiter(chain.from_iterable(one.ids for one in encodings), dtype=np.uint32, count=total)
        offsets = chain.from_iterable(one.offsets for one in encodings)
        ends = np.fromiter((end for _, end in offsets), dtype=np.int64, count=total)
        first = np.cumsum([0, *map(len, texts)])  # character at which each text starts in all of them joined
        before = words_before("".join(texts), first[:-1])
        # A token starts a word if more words have begun by its end than by the end of the token before it: this
        # holds for tokens with and without their leading space, and for the several byte tokens of one character.
        begun = before[ends + np.repeat(first[:-1], counts)]
        bounds = np.cumsum([0, *counts])
        earlier = np.concatenate([[0], begun[:-1]])[:total]
        earlier[bounds[:-1][counts > 0]] = before[first[:-1][counts > 0]]
        packed = (ids << 1 | (begun > earlier)).astype(np.uint32).tobytes()
        parts = [packed[4 * low : 4 * high] for low, high in pairwise(bounds.tolist())]
        bad = np.flatnonzero(np.isin(ids, self._forbidden))
        for i in np.unique(np.searchsorted(bounds, bad, side="right") - 1).tolist():
            parts[i] = self._cut_specials(texts[i], encodings[i])
        return parts

    def _encode_words(self, words: list[str]) -> list[bytes]:
        """Encode words of scripts with spaces between words: only the first token of each starts a word."""
        if not words:
            return []
        forbidden = frozenset(self._forbidden.tolist())
        parts: list[bytes] = []
        for word, encoding in zip(words, self._inner.encode_batch_fast(words, add_special_tokens=False), strict=True):
            ids = encoding.ids
            if not forbidden.isdisjoint(ids):
                parts += self._encode([word])
                continue
            packed = array("I", [2 * i for i in ids])
            if packed:
                packed[0] |= 1
            parts.append(packed.tobytes())
        return parts

    def place(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """The ids of each text as `encode` has them, and the first character of each and the one behind its last."""
        forbidden = frozenset(self._forbidden.tolist())
        found = []
        for text, encoding in zip(texts, self._inner.encode_batch(texts, add_special_tokens=False), strict=True):
            ids, offsets = encoding.ids, encoding.offsets
            if not forbidden.isdisjoint(ids):
                ids, offsets = self._place_without_specials(text, ids, offsets, forbidden)
            found.append((ids, offsets))
        return found

    def _place_without_specials(
        self, text: str, ids: list[int], offsets: list[tuple[int, int]], forbidden: frozenset[int]
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """The tokens of a text with names of special tokens, which are cut in two as by `_cut_specials`."""
        pairs = list(zip(ids, offsets, strict=True))
        cuts = sorted({first + 1 for token, (first, last) in pairs if token in forbidden and last - first > 1})
        if not cuts:
            kept = [(self._unknown if token in forbidden else token, place) for token, place in pairs]
            known = [(token, place) for token, place in kept if token is not None]
            return [token for token, _ in known], [place for _, place in known]
        found: tuple[list[int], list[tuple[int, int]]] = [], []
        for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
            ((own, places),) = self.place([text[begin:end]])
            found[0].extend(own)
            found[1].extend((begin + first, begin + last) for first, last in places)
        return found

    def _cut_specials(self, text: str, encoding: tokenizers.Encoding) -> bytes:
        """Encode a text with names of special tokens that the model finds in its vocabulary: cut these names in two."""
        forbidden = frozenset(self._forbidden.tolist())
        bad = [span for i, span in zip(encoding.ids, encoding.offsets, strict=True) if i in forbidden]
        cuts = sorted({first + 1 for first, last in bad if last - first > 1})
        before = words_before(text)
        if not cuts:
            kept = [
                (self._unknown if i in forbidden else i, before[end])
                for i, (_, end) in zip(encoding.ids, encoding.offsets, strict=True)
                if i not in forbidden or self._unknown is not None
            ]
            begun = np.diff(np.array([count for _, count in kept], dtype=np.int64), prepend=0) > 0
            return (np.array([i for i, _ in kept], dtype=np.uint32) << 1 | begun).astype(np.uint32).tobytes()
        parts: list[bytes] = []
        for first, last in zip([0, *cuts], [*cuts, len(text)], strict=True):
            part = np.frombuffer(b"".join(self._encode([text[first:last]])), dtype=np.uint32).copy()
            if len(part) and first > 0:
                starts = before[first + 1] > before[first]  # a cut inside of a word begins none
                part[0] = part[0] >> 1 << 1 | starts
            parts.append(part.tobytes())
        return b"".join(parts)


def _words(text: str) -> list[str] | None:
    """Keys of the words of a text; None: encoding word by word is not possible, or not worth it."""
    if (text.count(" ") + 1) * 16 < len(text):
        return None  # few spaces, as in Chinese: nothing would be known
    opening = text[:1] if text[:1].isspace() else ""
    body = text[len(opening) :]
    found = body.split()
    if not found or " ".join(found) != body:
        return None  # other whitespace than single spaces between words belongs to no single word
    if opening != " ":
        found[0] = "\n" + opening + found[0]
    return found


def unpack(packed: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Ids, (n,) uint32, and word starts, (n,) bool, of encoded text."""
    values = np.frombuffer(packed, dtype=np.uint32)
    return values >> 1, (values & 1).astype(bool)


def _separates_words(inner: tokenizers.Tokenizer) -> bool:
    """Whether this tokenizer encodes a text as the sequence of its words, each with the space before it."""
    state = json.loads(inner.to_str())
    if any(not token["special"] for token in state["added_tokens"]):
        return False  # such a token is found in the text first, and may hold spaces
    if state["model"]["type"] == "BPE" and state["model"].get("ignore_merges"):
        return False
    normalizers = _flatten(state["normalizer"], "normalizers")
    for step in normalizers:
        if step["type"] not in _SEPARATE_NORMALIZERS:
            return False
        if step["type"] == "Replace" and (step["pattern"], step["content"]) != ({"Regex": r"\s+"}, " "):
            return False
    steps = _flatten(state["pre_tokenizer"], "pretokenizers")
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


def _flatten(step: dict[str, Any] | None, key: str) -> list[dict[str, Any]]:
    if step is None:
        return []
    if step["type"] == "Sequence":
        return [inner for part in step[key] for inner in _flatten(part, key)]
    return [step]
