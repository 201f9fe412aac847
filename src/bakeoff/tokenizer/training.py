"""Deterministic training of tokenizers of each kind with the `tokenizers` library."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as Inner

from bakeoff.errors import UserError
from bakeoff.text.segmentation import ALPHABETS_WITHOUT_SPACES, IDEOGRAPHS
from bakeoff.tokenizer.case import Case, bert_normalizer, case_normalizer
from bakeoff.tokenizer.long_words import LONGEST_WORD, words_of_any_length
from bakeoff.tokenizer.word_counts import WordCounts

# The words of `bakeoff.text.segmentation` as Oniguruma has them, but that don't, 3.14 and well-known are words, too.
_UNSPACED = f"[{IDEOGRAPHS}{ALPHABETS_WITHOUT_SPACES}]".encode().decode("unicode_escape")
_RUN = rf"(?:(?!{_UNSPACED})\w|\d)(?:(?!{_UNSPACED})\w|\d|\p{{M}})*"
WORD_PATTERN = rf"(?!\d)(?={_UNSPACED})\X\p{{M}}*|{_RUN}(?:['’.,\-]{_RUN})*|(?![\w\s])\X"
OLD_WORD_PATTERN = r"\w+(?:['’.,\-]\w+)*|[^\w\s]"  # of tokenizers that were trained before
# A tokenizer's pieces. That of one whose ends of lines are tokens names these first, by which its file records it.
LINE_PATTERN = r"\n|\S+"  # words between white space, and ends of lines
LINE_CHARACTER_PATTERN = r"\n|[^\n]"
CHARACTER_PATTERN = r"[^\n]|\n"
OLD_CHARACTER_PATTERN = r"[\s\S]"  # of characters, whether of lines or not, before these had patterns of their own
_LEARNED_PATTERN = r"[\s\S]{1,1000}"  # the parts of a word that a trainer learns from, as its time grows alike
_BYTES = 256
_STEP = 0.0001
_NOTHING = "tokenizer: the text is empty, there is nothing to train on"


def train(
    kind: str, size: int, lowercase: bool, specials: Sequence[str], texts: Iterable[str], end_of_line: bool = False
) -> Inner:
    """Train a tokenizer of any kind but whitespace.

    Args:
        kind: see `TokenizerConfig.kind`.
        size: size of the vocabulary with the special tokens.
        lowercase: lower-case, and strip accents where they are rare, see `Case`.
        specials: special tokens, which get the first ids; the second is the unknown token.
        texts: the sample, which is read more than once; an iterator is kept in memory.
        end_of_line: whether each text is a line whose end is a token (kind character).

    Raises:
        UserError: `size` is too small, or there is nothing to learn from.
    """
    _require_size(kind, size, specials)
    if end_of_line or isinstance(texts, Iterator):
        texts = [text + "\n" * end_of_line for text in texts]
    counts = _count_characters(texts)
    if not any(not chr(code).isspace() for code in np.flatnonzero(counts)):
        raise UserError(_NOTHING)
    inner, trainer = _BUILD[kind](size, Case.of(lowercase, counts), list(specials))
    if end_of_line:
        inner.pre_tokenizer = _parts(LINE_CHARACTER_PATTERN)
    if kind in ("wordpiece", "char_bpe", "unigram"):
        # These put every character of the text into the vocabulary, some in two forms. Rare ones are left out, so a
        # text with many characters (Chinese) leaves half of the vocabulary to longer pieces. (The trainers' own limit
        # breaks ties between equally rare characters at random.)
        texts = _WithoutRare(texts, counts, (size - len(specials)) // 2)
    cuts = inner.pre_tokenizer
    if kind in ("byte_bpe", "char_bpe", "unigram"):
        inner.pre_tokenizer = pre_tokenizers.Sequence([cuts, _parts(_LEARNED_PATTERN)])
    try:
        if kind in ("wordpiece", "char_bpe"):
            inner = _train_in_order(inner, trainer, size, list(specials), texts)
        else:
            inner.train_from_iterator(texts, trainer)
    except Exception as error:  # the library raises bare exceptions
        raise UserError(f"tokenizer: {kind} cannot be trained on this text ({error})") from None
    inner.pre_tokenizer = cuts
    return _in_order(inner, list(specials)) if kind == "unigram" else inner


def train_whitespace(
    size: int, lowercase: bool, specials: Sequence[str], counts: WordCounts, end_of_line: bool
) -> Inner:
    """A tokenizer of the most frequent words between white space; equally frequent words are in code point order.

    Args:
        size: as of `train`.
        lowercase: as of `train`.
        specials: as of `train`; their names are not counted as words of the text.
        counts: the counts of the words of all lines.
        end_of_line: whether the end of a line is a token, whose count is the number of lines.

    Raises:
        UserError: as of `train`.
    """
    _require_size("whitespace", size, specials)
    inner = Inner(models.WordLevel({}, unk_token=specials[1]))
    words = counts.words()
    normalizer = case_normalizer(Case.of(lowercase, _characters_of(words))) if lowercase else None
    if normalizer is not None:
        inner.normalizer = normalizer
    known: Counter[str] = Counter()
    for word, count in words.items():
        known[word if normalizer is None else normalizer.normalize_str(word)] += count
    if not known:
        raise UserError(_NOTHING)
    if end_of_line:
        known["\n"] = len(counts)
        inner.pre_tokenizer = pre_tokenizers.Split(Regex(LINE_PATTERN), behavior="removed", invert=True)
    else:
        inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    ranked = sorted((word for word in known if word not in specials), key=lambda word: (-known[word], word))
    vocabulary = [*specials, *ranked[: size - len(specials)]]
    inner.model = models.WordLevel({word: i for i, word in enumerate(vocabulary)}, unk_token=specials[1])
    return inner


def _require_size(kind: str, size: int, specials: Sequence[str]) -> None:
    smallest = len(specials) + (_BYTES if kind == "byte_bpe" else 10)
    if size < smallest:
        raise UserError(f"a vocabulary of {size} is too small for {kind}; give at least {smallest}")


def _train_in_order(inner: Inner, trainer: Any, size: int, specials: list[str], texts: Iterable[str]) -> Inner:
    """Train a tokenizer with single characters numbered in their own order.

    The trainer numbers the forms of a character inside and at the end of a word (`##a`, `a</w>`) as it meets them, in
    the random order of a hash table, and merges equally frequent pairs by number. So a first training without merges
    finds the forms, for which each word is needed once only, and the second starts from them as if they were special
    tokens.
    """
    trainer.vocab_size = 0
    inner.train_from_iterator((" ".join(words) for words in new_words(texts)), trainer)
    forms = sorted(set(inner.get_vocab(with_added_tokens=False)) - set(specials))
    trainer.vocab_size = size
    trainer.special_tokens = [*specials, *forms]
    inner.train_from_iterator(texts, trainer)
    state = json.loads(inner.to_str())
    state["added_tokens"] = [token for token in state["added_tokens"] if token["content"] in specials]
    return Inner.from_str(json.dumps(state))


def new_words(texts: Iterable[str]) -> Iterator[list[str]]:
    """The words between spaces of each text that no earlier text has; words are compared by a 64-bit hash."""
    seen: set[int] = set()
    for text in texts:
        words = text.split()
        new = set(map(hash, words)) - seen
        if new:
            seen |= new
            yield list({word for word in words if hash(word) in new})


def _in_order(inner: Inner, specials: list[str]) -> Inner:
    """A Unigram model with its pieces in a fixed order and scores free of rounding noise.

    The trainer sums in the random order of a hash table, and gives characters that lost all their probability scores in
    steps of 0.0001 above the lowest one, in random order as well.
    """
    state = json.loads(inner.to_str())
    scores = {piece: round(score, 5) for piece, score in state["model"]["vocab"] if piece not in specials}
    lowest = min(scores.values(), default=0.0)
    steps = {piece: round((score - lowest) / _STEP) for piece, score in scores.items() if len(piece) == 1}
    lost = sorted(piece for piece, step in steps.items() if step <= len(steps))
    scores |= dict(zip(lost, sorted((scores[piece] for piece in lost), reverse=True), strict=True))
    ordered = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    state["model"]["vocab"] = [[name, 0.0] for name in specials] + [list(item) for item in ordered]
    state["model"]["unk_id"] = 1
    return Inner.from_str(json.dumps(state))


def _count_characters(texts: Iterable[str]) -> np.ndarray:
    """Counts of all code points, (0x110000,) int64."""
    counts = np.zeros(0x110000, dtype=np.int64)
    pieces: list[str] = []
    length = 0
    for text in texts:
        pieces.append(text)
        length += len(text)
        if length > 1 << 20:
            counts += np.bincount(_codes(pieces), minlength=0x110000)
            pieces, length = [], 0
    if pieces:
        counts += np.bincount(_codes(pieces), minlength=0x110000)
    return counts


def _characters_of(words: Mapping[str, int]) -> np.ndarray:
    """Counts of all code points of counted words, (0x110000,) int64."""
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    times = np.repeat(np.fromiter(words.values(), np.int64, len(words)), lengths)
    return np.bincount(_codes([*words]), times, 0x110000).astype(np.int64)


def _codes(pieces: list[str]) -> np.ndarray:
    return np.frombuffer("".join(pieces).encode("utf-32-le"), dtype=np.uint32).astype(np.int64)


class _WithoutRare:
    """Texts with spaces instead of all characters but the `limit` most frequent ones."""

    def __init__(self, texts: Iterable[str], counts: np.ndarray, limit: int) -> None:
        seen = np.flatnonzero(counts)
        rare = seen[np.argsort(-counts[seen], kind="stable")][limit:]  # ties: the lower code point stays
        self._texts = texts
        self._table = dict.fromkeys(rare.tolist(), " ")

    def __iter__(self) -> Iterator[str]:
        return (text.translate(self._table) for text in self._texts) if self._table else iter(self._texts)


def _wordpiece(size: int, case: Case, specials: list[str]) -> tuple[Inner, Any]:
    inner = Inner(models.WordPiece(unk_token=specials[1], max_input_chars_per_word=LONGEST_WORD))
    inner.normalizer = bert_normalizer(case)
    inner.pre_tokenizer = words_of_any_length()
    inner.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    return inner, trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=2, special_tokens=specials, show_progress=False
    )


def _byte_bpe(size: int, case: Case, specials: list[str]) -> tuple[Inner, Any]:
    inner = Inner(models.BPE())
    normalizer = case_normalizer(case)
    if normalizer is not None:
        inner.normalizer = normalizer
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    inner.decoder = decoders.ByteLevel()
    return inner, trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=specials,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )


def _char_bpe(size: int, case: Case, specials: list[str]) -> tuple[Inner, Any]:
    inner = Inner(models.BPE(unk_token=specials[1], end_of_word_suffix="</w>"))
    inner.normalizer = bert_normalizer(case)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.decoder = decoders.BPEDecoder(suffix="</w>")
    return inner, trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=2,
        special_tokens=specials,
        end_of_word_suffix="</w>",
        show_progress=False,
    )


def _unigram(size: int, case: Case, specials: list[str]) -> tuple[Inner, Any]:
    inner = Inner(models.Unigram())
    # Metaspace knows the space alone; any other whitespace is made one, as SentencePiece does.
    inner.normalizer = case_normalizer(case, normalizers.Replace(Regex(r"\s+"), " "))
    inner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    inner.decoder = decoders.Metaspace(prepend_scheme="always")
    return inner, trainers.UnigramTrainer(
        vocab_size=size, special_tokens=specials, unk_token=specials[1], show_progress=False
    )


def _word(size: int, case: Case, specials: list[str]) -> tuple[Inner, Any]:
    inner = Inner(models.WordLevel(unk_token=specials[1]))
    inner.normalizer = bert_normalizer(case)
    inner.pre_tokenizer = pre_tokenizers.Split(Regex(WORD_PATTERN), behavior="removed", invert=True)
    return inner, trainers.WordLevelTrainer(vocab_size=size, special_tokens=specials, show_progress=False)


def _character(size: int, case: Case, specials: list[str]) -> tuple[Inner, Any]:
    inner = Inner(models.WordLevel(unk_token=specials[1]))
    normalizer = case_normalizer(case)
    if normalizer is not None:
        inner.normalizer = normalizer
    inner.pre_tokenizer = _parts(CHARACTER_PATTERN)
    inner.decoder = decoders.Fuse()
    return inner, trainers.WordLevelTrainer(vocab_size=size, special_tokens=specials, show_progress=False)


def _parts(pattern: str) -> pre_tokenizers.PreTokenizer:
    """A step that cuts its input into the matches of a pattern."""
    return pre_tokenizers.Split(Regex(pattern), behavior="isolated")


_BUILD = {
    "wordpiece": _wordpiece,
    "byte_bpe": _byte_bpe,
    "char_bpe": _char_bpe,
    "unigram": _unigram,
    "word": _word,
    "character": _character,
}
