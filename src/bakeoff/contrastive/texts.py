"""The texts that a run learns vectors from: token ids, one text after the other, each different text once."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bakeoff.corpus.split import Split
from bakeoff.corpus.store import Corpus
from bakeoff.display.wording import counted
from bakeoff.errors import UserError
from bakeoff.randomness.draws import key_of
from bakeoff.randomness.order import shuffle
from bakeoff.reading.aligned import clean
from bakeoff.reading.text_files import Texts
from bakeoff.runs.run import Run
from bakeoff.tasks.rows.inputs import InputFormat
from bakeoff.tokenizer.hidden import HiddenText
from bakeoff.tokenizer.tokenizer import Tokenizer

HELD_OUT, MOST_HELD_OUT = 0.05, 512
"""The share of the texts that is held out, and the most of them."""

FEWEST = 4
"""The fewest different texts: two to learn from, and two that are held out."""

COUNTED = 100_000
"""The most texts whose tokens are counted."""

SPECIAL = 1e-6
"""The weight of special tokens in a mean in which rare tokens count more; a row without words has no others."""

_ENCODED = 1024
"""The number of texts that are encoded at once."""


@dataclass(frozen=True, eq=False)
class TokenTexts:
    """N texts as token ids, one after the other."""

    tokens: NDArray[np.integer]
    """The ids of all texts, and of what is between them."""
    starts: NDArray[np.int64]
    """(N,) the position of the first token of each text."""
    lengths: NDArray[np.int64]
    """(N,) the number of tokens of each text, at least one."""

    def __getitem__(self, index: int) -> NDArray[np.int64]:
        """The ids of a text."""
        start = int(self.starts[index])
        return self.tokens[start : start + int(self.lengths[index])].astype(np.int64)

    @property
    def count(self) -> int:
        """N."""
        return len(self.starts)

    def chosen(self, indices: NDArray[np.int64]) -> "TokenTexts":
        """Some of the texts."""
        return TokenTexts(self.tokens, self.starts[indices], self.lengths[indices])


class ReadTexts(NamedTuple):
    """Texts to learn from and texts that are held out, and where they came from."""

    train: TokenTexts
    """The texts to learn from."""
    held_out: TokenTexts
    """The texts on which is measured how well views are told apart."""
    name: str
    """The file or the corpus, for the record."""
    digest: str
    """A digest of all texts, in hexadecimal digits."""
    notes: list[str]
    """What was left out, for the user."""
    meant: TokenTexts
    """The texts of the kind that the vectors are for, over which they are whitened: those to learn from, unless others
    are given."""


def texts_of(texts: Texts, name: str, format: InputFormat, seed: int) -> ReadTexts:
    """The texts of a file or in memory; a share is held out, by the seed.

    Raises:
        UserError: there are too few different texts, the tokenizer knows nothing of them, or the file has a mistake.
    """
    parts: list[NDArray[np.int32]] = []
    lengths: list[int] = []
    seen: set[bytes] = set()
    read = blank = repeated = 0
    encoded = _Encoded((text for (text,) in texts), format)
    for ids in encoded:
        read += 1
        known = hashlib.blake2b(ids.tobytes(), digest_size=16).digest()
        if not len(ids):
            blank += 1
        elif known in seen:
            repeated += 1
        else:
            seen.add(known)
            parts.append(ids.astype(np.int32))
            lengths.append(len(ids))
    if len(lengths) < FEWEST:
        different = counted(len(lengths), "different text")
        raise UserError(f"{name}: {different} with words; telling texts apart needs {FEWEST} at least")
    if encoded.hidden.all_unknown:
        raise UserError(f"{name}: {encoded.hidden}; give a run whose tokenizer knows this writing")
    tokens, sizes = np.concatenate(parts), np.array(lengths, np.int64)
    whole = TokenTexts(tokens, np.cumsum(sizes) - sizes, sizes)
    order = shuffle(whole.count, key_of(seed, 0, "held-out texts"))
    count = min(MOST_HELD_OUT, max(2, round(HELD_OUT * whole.count)))
    notes = [f"{blank:,} of {read:,} texts blank: left out"] if blank else []
    notes += [f"{repeated:,} of {read:,} texts repeat others: each is read once"] if repeated else []
    notes += [str(encoded.hidden)] if str(encoded.hidden) else []
    digest = hashlib.sha256(tokens.tobytes() + sizes.tobytes()).hexdigest()
    train, held_out = (whole.chosen(np.sort(part)) for part in (order[count:], order[:count]))
    return ReadTexts(train, held_out, name, digest, notes, train)


def texts_of_corpus(corpus: Corpus, run: Run) -> ReadTexts:
    """The documents of a corpus; those of its held-out split are held out.

    Raises:
        UserError: the corpus has pairs, another tokenizer than the run, or too few documents.
    """
    if corpus.pairs:
        raise UserError(f"{corpus.path}: a corpus of pairs for translation; give the texts of one language by --texts")
    run.require_tokenizer_of(corpus)
    train, held_out = _documents(corpus.train), _documents(corpus.validation)
    if train.count < 2 or held_out.count < 2:
        few = f"{counted(train.count, 'document')} to learn from and {held_out.count:,} held out"
        raise UserError(f"{corpus.path}: {few}; telling documents apart needs two of each at least")
    held_out = held_out.chosen(np.arange(min(MOST_HELD_OUT, held_out.count)))
    return ReadTexts(train, held_out, str(corpus.path), corpus.fingerprint, [], train)


def rare_tokens(texts: ReadTexts, tokenizer: Tokenizer, least: float) -> Tensor:
    """(V,) the weight a / (a + p) of each token, with p its share of the tokens of the texts to learn from.

    Special tokens, which every row has, hardly count. `COUNTED` texts are read at most.

    Args:
        texts: the texts.
        tokenizer: the tokenizer.
        least: a.
    """
    counts, train = np.zeros(tokenizer.size), texts.train
    chosen = np.linspace(0, train.count - 1, min(train.count, COUNTED)).astype(np.int64)
    for begin in range(0, len(chosen), _ENCODED):
        part = np.concatenate([train[int(index)] for index in chosen[begin : begin + _ENCODED]])
        counts += np.bincount(part, minlength=tokenizer.size)[: tokenizer.size]
    weights = least / (least + counts / counts.sum())
    weights[tokenizer.special_ids] = SPECIAL
    return torch.from_numpy(weights).float()


def _documents(split: Split) -> TokenTexts:
    bounds = np.asarray(split.documents)
    starts, lengths = bounds[:-1], np.diff(bounds)
    whole = TokenTexts(split.tokens, starts, lengths)
    return whole.chosen(np.flatnonzero(lengths > 0))


class _Encoded:
    """The token ids of texts, one after the other.

    Attributes:
        hidden: what the tokenizer does not know of the texts that were read, of the first `COUNTED` at most.
    """

    def __init__(self, texts: Iterable[str], format: InputFormat) -> None:
        self._texts, self._format, self.hidden = texts, format, HiddenText()

    def __iter__(self) -> Iterator[NDArray[np.int64]]:
        texts, read = iter(self._texts), 0
        while part := list(islice(texts, _ENCODED)):
            if read < COUNTED:
                self.hidden += self._format.tokenizer.hidden([clean(text) for text in part])
            read += len(part)
            yield from self._format.ids(part)


def joined(learned: ReadTexts, meant: ReadTexts) -> ReadTexts:
    """The texts of a corpus to learn from, and others of the kind that the vectors are for."""
    digest = hashlib.sha256(f"{learned.digest} {meant.digest}".encode()).hexdigest()
    return learned._replace(digest=digest, notes=meant.notes, meant=meant.train)
