"""The index of a format's rows, with start and stop of each: made once, and kept beside a large corpus."""

import contextlib
import glob
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bakeoff.corpus.split import Split, map_array
from bakeoff.digests import checked_once, digest
from bakeoff.durable import as_new, own_folder, sync

VERSION = 2
"""Version of the index; a change that gives other rows for the same key and text has to raise it."""
KEPT_FROM = 1 << 20
"""Number of sentences from which on the indexes of a text are kept; smaller texts are quickly indexed again."""
AT_ONCE = 1 << 28
"""Number of tokens in the documents that are indexed at a time."""

Integers = NDArray[np.int64]
Find = Callable[[Integers, Integers], Sequence[Integers]]
"""A function from (s,) starts of sentences and (d,) starts of documents in a stretch of the text, each followed by the
stretch's end, to the (n,) starts and (n,) stops of rows."""


def row_index(split: Split, key: str, find: Find) -> Integers:
    """The start and stop of each row that `find` finds in the text.

    A bounded number of documents is indexed at a time, so that memory does not grow with the corpus. A damaged index is
    made anew.

    Args:
        split: the text.
        key: a name that tells the index from others, fit for a file name.
        find: finds rows in a stretch of the text.

    Returns:
        (2, n) int64 starts and stops; memory-mapped if the index is kept.
    """
    if split.index_path is None or len(split.sentences) < KEPT_FROM:
        return index_in_memory(split, find)
    stem = split.index_path.with_name(f"{split.index_path.name}.{key}.{VERSION}")
    index = _kept(stem, len(split.tokens))
    if index is None:
        try:
            _keep(stem, split, find)
        except OSError:  # a corpus that may only be read, or a full disk: made again next time
            return index_in_memory(split, find)
        index = _kept(stem, len(split.tokens))
        assert index is not None
    return index


def index_in_memory(split: Split, find: Find) -> Integers:
    """`row_index` without a file: (2, n) starts and stops of rows."""
    return np.concatenate([np.stack(find(*stretch)) for stretch in _stretches(split)], axis=1)


def _keep(stem: Path, split: Split, find: Find) -> None:
    """Write the (n, 2) index to a file whose name has the content's digest, so that damage is noticed."""
    own_folder(stem.parent).mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=stem.parent, prefix=f".{stem.name}.", delete=False) as file:
        beside = Path(file.name)
        try:
            for stretch in _stretches(split):
                np.stack(find(*stretch), axis=1).tofile(file)
            file.flush()
            sync(beside)
            as_new(beside)
            beside.replace(stem.with_name(f"{stem.name}.{digest(beside)}.rows"))
        except BaseException:
            with contextlib.suppress(OSError):
                beside.unlink()
            raise


def _kept(stem: Path, tokens: int) -> Integers | None:
    """The (2, n) index that `_keep` wrote; None: there is none, or the file has changed since."""
    for path in sorted(stem.parent.glob(f"{glob.escape(stem.name)}.*.rows")):
        try:
            if path.name != f"{stem.name}.{digest(path)}.rows" or path.stat().st_size % 16:
                continue
            rows: Integers = map_array(path, "int64", scattered=True).reshape(-1, 2)
            checked_once(path, f"bounds {tokens}", partial(_check, rows, tokens))
        except (OSError, ValueError):
            continue
        return rows.T
    return None


def _check(rows: Integers, tokens: int) -> None:
    """Raise a ValueError for rows that are not in the text."""
    for first in range(0, len(rows), AT_ONCE >> 8):
        chunk = rows[first : first + (AT_ONCE >> 8)]
        if chunk.min() < 0 or chunk.max() > tokens:
            raise ValueError


def _stretches(split: Split) -> Iterator[tuple[Integers, Integers]]:
    """Starts of sentences (s,) and documents (d,), each with the end, of stretches of about `AT_ONCE` tokens."""
    sentences, documents = np.asarray(split.sentences), np.asarray(split.documents)
    begins = np.arange(0, len(split.tokens), AT_ONCE)
    cuts = np.unique(np.append(np.searchsorted(documents, begins), len(documents) - 1))
    for first, last in itertools.pairwise(cuts) if len(cuts) > 1 else [(0, 0)]:  # a text without a document
        low, high = np.searchsorted(sentences, [documents[first], documents[last]])
        yield sentences[low : high + 1], documents[first : last + 1]
