"""Encoding of text to ids with word starts, several times as fast as the bare library, by a table of known words."""

import json
import re
from array import array
from collections.abc import Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
import tokenizers
from numpy.typing import NDArray

from bakeoff.text.words import words_before
from bakeoff.tokenizer.hidden import HiddenText, hidden_characters
from bakeoff.tokenizer.steps import of_bytes, separates_words

_LONGEST_WORD = 32  # characters; longer pieces are rare and not worth their memory
_MOST_WORDS = 200_000  # about 40 MB


class EncodedTexts(NamedTuple):
    """n texts as entries, each an id with its word start, `2 * id + start` in uint32."""

    packed: list[bytes]
    """The entries of each text."""
    hidden: NDArray[np.int64]
    """(n, 2) the number of hidden characters of each text, and of their UTF-8 bytes; see `HiddenText`."""


class JoinedTexts(NamedTuple):
    """Texts as one sequence of n tokens."""

    ids: np.ndarray
    """(n,) uint32 ids."""
    starts: np.ndarray
    """(n,) bool, whether each token starts a word."""
    lengths: np.ndarray
    """(texts,) int64, the number of tokens of each text."""
    hidden: HiddenText
    """Counts of unknown tokens, and of the characters that have no other token."""


class _Words(NamedTuple):
    """Entries of known words by their keys, and the hidden characters and bytes of words that have any."""

    packed: dict[str, bytes]
    hidden: dict[str, tuple[int, int]]


class Encoder:
    """Encoder of texts."""

    def __init__(self, inner: tokenizers.Tokenizer, forbidden: np.ndarray, unknown: int | None) -> None:
        """Encode with `inner`.

        Args:
            inner: a tokenizer of the library that reads the names of special tokens as text.
            forbidden: ids that no text may get.
            unknown: id instead of a forbidden one if cutting the text does not help; None: drop forbidden ids.
        """
        self._inner = inner
        self._forbidden = forbidden
        self._unknown = unknown
        self._lost = forbidden if unknown is None else np.append(forbidden, unknown)
        self._unknown_name = None if unknown is None else inner.id_to_token(unknown)
        state = json.loads(inner.to_str())
        self._by_word, self._of_bytes = separates_words(state), of_bytes(state)
        self._known = _Words({}, {})

    def encode(self, texts: Sequence[str]) -> EncodedTexts:
        """Encode each text as the library does for the whole text, without special tokens."""
        words: list[list[str] | None] = [None] * len(texts)
        known = self._known
        missing: dict[str, None] = {}
        if self._by_word:
            if len(known.packed) > _MOST_WORDS:
                known = self._known = _Words({}, {})  # another thread goes on with the one that it has
            for i, text in enumerate(texts):
                words[i] = split = _words(text)
                if split is not None:
                    missing.update(dict.fromkeys([word for word in split if word not in known.packed]))
        new = list(missing)
        whole = [text for text, split in zip(texts, words, strict=True) if split is None]
        # Whitespace opens the key of a word that no space stands before; other keys are words after a space.
        spelt = [word[1:] if word[0] == "\n" else " " + word for word in new]
        simple = [word for word in spelt if word.isascii()]
        other = [word for word in spelt if not word.isascii()]
        of_simple, of_rest = self._encode_words(simple), self._encode(other + whole)
        data_of = dict(zip(simple, _pairs(of_simple), strict=True))
        rest = iter(_pairs(of_rest))
        data_of.update((word, next(rest)) for word in other)
        long = _Words({}, {})
        for word, spelling in zip(new, spelt, strict=True):
            table = known if len(word) <= _LONGEST_WORD else long
            table.packed[word], hidden = data_of[spelling]
            if hidden != (0, 0):
                table.hidden[word] = hidden
        if long.packed:
            known = _Words(known.packed | long.packed, known.hidden | long.hidden)
        packed, counts = [], np.zeros((len(texts), 2), np.int64)
        for i, split in enumerate(words):
            if split is None:
                data, counts[i] = next(rest)
                packed.append(data)
                continue
            packed.append(b"".join([known.packed[word] for word in split]))
            if known.hidden and not known.hidden.keys().isdisjoint(split):
                counts[i] = np.sum([known.hidden[word] for word in split if word in known.hidden], axis=0)
        return EncodedTexts(packed, counts)

    def joined(self, texts: Sequence[str]) -> JoinedTexts:
        """Encode texts as one sequence, and count what is hidden."""
        encoded = self.encode(texts)
        ids, starts = unpack(b"".join(encoded.packed))
        hidden, hidden_bytes = encoded.hidden.sum(0).tolist()
        hiding = np.flatnonzero(encoded.hidden[:, 0])
        counts = HiddenText(
            tokens=len(ids),
            unknown=0 if self._unknown is None else int(np.count_nonzero(ids == self._unknown)),
            characters=sum(map(_characters, texts)),
            hidden=hidden,
            hidden_bytes=hidden_bytes,
            example=self._example(texts[hiding[0]]) if len(hiding) else "",
        )
        return JoinedTexts(ids, starts, np.array([len(part) // 4 for part in encoded.packed], dtype=np.int64), counts)

    def _example(self, text: str) -> str:
        """The first hidden characters of a text."""
        encoding = self._inner.encode(text, add_special_tokens=False)
        spans, ids = np.array(encoding.offsets, np.int64).reshape(-1, 2), np.array(encoding.ids, np.int64)
        return hidden_characters([text], spans, self._stand_for_text(text, spans, ids)).example

    def _encode(self, texts: list[str]) -> EncodedTexts:
        """Encode each text in one piece."""
        if not texts:
            return EncodedTexts([], np.zeros((0, 2), np.int64))
        encodings = self._inner.encode_batch(texts, add_special_tokens=False)
        counts = np.fromiter(map(len, encodings), dtype=np.int64, count=len(texts))
        total = int(counts.sum())
        ids = np.fromiter(chain.from_iterable(one.ids for one in encodings), dtype=np.uint32, count=total)
        offsets = chain.from_iterable(chain.from_iterable(one.offsets for one in encodings))
        first = np.cumsum([0, *map(len, texts)])  # character at which each text starts in all of them joined
        spans = np.fromiter(offsets, dtype=np.int64, count=2 * total).reshape(-1, 2)
        spans += np.repeat(first[:-1], counts)[:, None]
        joined = "".join(texts)
        before = words_before(joined, first[:-1])
        # A token starts a word if more words have begun by its end than by the end of the token before it: this
        # holds for tokens with and without their leading space, and for the several byte tokens of one character.
        begun = before[spans[:, 1]]
        bounds = np.cumsum([0, *counts])
        earlier = np.concatenate([[0], begun[:-1]])[:total]
        earlier[bounds[:-1][counts > 0]] = before[first[:-1][counts > 0]]
        packed = (ids << 1 | (begun > earlier)).astype(np.uint32).tobytes()
        parts = [packed[4 * low : 4 * high] for low, high in pairwise(bounds.tolist())]
        hidden = hidden_characters(texts, spans, self._stand_for_text(joined, spans, ids)).counts
        bad = np.flatnonzero(np.isin(ids, self._forbidden))
        for i in np.unique(np.searchsorted(bounds, bad, side="right") - 1).tolist():
            parts[i], hidden[i] = self._cut_specials(texts[i], encodings[i], hidden[i])
        return EncodedTexts(parts, hidden)

    def _stand_for_text(self, text: str, spans: NDArray[np.int64], ids: np.ndarray) -> NDArray[np.bool_]:
        """(T,) whether tokens stand for their characters; an unknown token does where the text has its name."""
        known = ~np.isin(ids, self._lost)
        if self._unknown_name is not None:
            named = (ids == self._unknown) & (spans[:, 1] - spans[:, 0] >= len(self._unknown_name))
            for token in np.flatnonzero(named).tolist():
                known[token] = text[slice(*spans[token])].strip() == self._unknown_name
        return known

    def _encode_words(self, words: list[str]) -> EncodedTexts:
        """Encode words of scripts with spaces between words: only the first token of each starts a word."""
        parts: list[bytes] = []
        hidden = np.zeros((len(words), 2), np.int64)
        if not words:
            return EncodedTexts(parts, hidden)
        lost = frozenset(self._lost.tolist())
        dropped = self._dropped
        encodings = self._inner.encode_batch_fast(words, add_special_tokens=False)
        for number, (word, encoding) in enumerate(zip(words, encodings, strict=True)):
            ids = encoding.ids
            if not lost.isdisjoint(ids) or dropped.search(word):
                (part,), hidden[number] = self._encode([word])
                parts.append(part)
                continue
            packed = array("I", [2 * i for i in ids])
            if packed:
                packed[0] |= 1
            parts.append(packed.tobytes())
        return EncodedTexts(parts, hidden)

    @cached_property
    def _dropped(self) -> re.Pattern[str]:
        """The characters of ASCII that may leave no token, so that only offsets tell whether one did."""
        characters = [chr(code) for code in range(128) if not chr(code).isspace()]
        if self._unknown is None and not self._of_bytes:
            return re.compile("")  # each of them, inside a word
        encodings = self._inner.encode_batch_fast(characters, add_special_tokens=False)
        gone = [each for each, encoding in zip(characters, encodings, strict=True) if not encoding.ids]
        return re.compile(f"[{re.escape(''.join(gone))}]" if gone else "(?!)")

    def place(self, texts: Sequence[str]) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """The ids of each text as `encode` has them, and the first character of each and the one after its last."""
        forbidden = frozenset(self._forbidden.tolist())
        placed = []
        for text, encoding in zip(texts, self._inner.encode_batch(texts, add_special_tokens=False), strict=True):
            ids, offsets = encoding.ids, encoding.offsets
            if not forbidden.isdisjoint(ids):
                ids, offsets = self._place_without_specials(text, ids, offsets, forbidden)
            placed.append((ids, offsets))
        return placed

    def _place_without_specials(
        self, text: str, ids: list[int], offsets: list[tuple[int, int]], forbidden: frozenset[int]
    ) -> tuple[list[int], list[tuple[int, int]]]:
        """The tokens of a text with names of special tokens, which are cut in two as by `_cut_specials`."""
        pairs = list(zip(ids, offsets, strict=True))
        cuts = sorted({first + 1 for token, (first, last) in pairs if token in forbidden and last - first > 1})
        if not cuts:
            kept = [(self._unknown if token in forbidden else token, offset) for token, offset in pairs]
            known = [(token, offset) for token, offset in kept if token is not None]
            return [token for token, _ in known], [offset for _, offset in known]
        placed: tuple[list[int], list[tuple[int, int]]] = [], []
        for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
            ((part_ids, part_offsets),) = self.place([text[begin:end]])
            placed[0].extend(part_ids)
            placed[1].extend((begin + first, begin + last) for first, last in part_offsets)
        return placed

    def _cut_specials(
        self, text: str, encoding: tokenizers.Encoding, hidden: NDArray[np.int64]
    ) -> tuple[bytes, NDArray[np.int64]]:
        """Encode a text with names of special tokens that the model finds in its vocabulary: cut these names in two.

        Args:
            text: the text.
            encoding: the encoding of the uncut text.
            hidden: (2,) the characters that are hidden if no name can be cut, and their bytes.

        Returns:
            The entries, and the (2,) numbers of hidden characters and of their bytes.
        """
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
            return (np.array([i for i, _ in kept], dtype=np.uint32) << 1 | begun).astype(np.uint32).tobytes(), hidden
        parts: list[bytes] = []
        hidden = np.zeros(2, np.int64)
        for first, last in zip([0, *cuts], [*cuts, len(text)], strict=True):
            (packed,), (counts,) = self._encode([text[first:last]])
            part = np.frombuffer(packed, dtype=np.uint32).copy()
            hidden += counts
            if len(part) and first > 0:
                starts = before[first + 1] > before[first]  # a cut inside of a word begins none
                part[0] = part[0] >> 1 << 1 | starts
            parts.append(part.tobytes())
        return b"".join(parts), hidden


def _pairs(encoded: EncodedTexts) -> list[tuple[bytes, tuple[int, int]]]:
    """The entries of each text with its numbers of hidden characters and bytes."""
    return [
        (data, (counts[0], counts[1])) for data, counts in zip(encoded.packed, encoded.hidden.tolist(), strict=True)
    ]


def _characters(text: str) -> int:
    """The number of characters of a text other than white space."""
    # Of what is white space, the space alone is printable.
    return len(text) - text.count(" ") if text.isprintable() else len("".join(text.split()))


def _words(text: str) -> list[str] | None:
    """Keys of the words of a text; None: encoding word by word is not possible, or not worth it."""
    if (text.count(" ") + 1) * 16 < len(text):
        return None  # few spaces, as in Chinese: nothing would be known
    opening = text[:1] if text[:1].isspace() else ""
    body = text[len(opening) :]
    words = body.split()
    if not words or " ".join(words) != body:
        return None  # other whitespace than single spaces between words belongs to no single word
    if opening != " ":
        words[0] = "\n" + opening + words[0]
    return words


def unpack(packed: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Ids, (n,) uint32, and word starts, (n,) bool, of encoded text."""
    values = np.frombuffer(packed, dtype=np.uint32)
    return values >> 1, (values & 1).astype(bool)
