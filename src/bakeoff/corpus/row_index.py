"""Where the rows of a format start and stop: made once, and kept beside a large corpus."""

import contextlib
import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bakeoff.corpus.store import Split, map_array
from bakeoff.durable import own_folder, sync

VERSION = 1
"""To be raised where the same key and text give other rows."""
KEPT_FROM = 1 << 20
"""Sentences of a text from which on its indexes are kept; below it takes no time to make them again."""
AT_ONCE = 1 << 28
"""Tokens of the documents from which an index is made at a time."""

Integers = NDArray[np.int64]
Find = Callable[[Integers, Integers], Sequence[Integers]]
"""From (s,) where the sentences and (d,) where the documents of a part of the text start, the part's end behind both,
makes two arrays of (n,)."""


def row_index(split: Split, key: str, find: Find) -> Integers:
    """What `find` makes of where sentences and documents start.

    It is made from some documents at a time, so that the memory for it does not grow with the corpus. What is found
    damaged is made anew.

    Args:
        split: the text.
        key: what tells the index from others, fit for a file's name.
        find: finds rows in a part of the text.

    Returns:
        (2, n) int64; memory-mapped where it is kept.
    """
    if split.index_path is None or len(split.sentences) < KEPT_FROM:
        return _in_memory(split, find)
    path = split.index_path.with_name(f"{split.index_path.name}.{key}.{VERSION}.rows")
    found = _kept(path)
    if found is None:
        try:
            _keep(path, split, find)
        except OSError:  # a corpus that may only be read, or a full disk: made again next time
            return _in_memory(split, find)
        found = _kept(path)
        assert found is not None
    return found


def _in_memory(split: Split, find: Find) -> Integers:
    return np.concatenate([np.stack(find(*part)) for part in _parts(split)], axis=1)


def _keep(path: Path, split: Split, find: Find) -> None:
    """Write (n, 2) numbers, and a last row which says how many there are."""
    own_folder(path.parent).mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
        partial, count = Path(file.name), 0
        try:
            for part in _parts(split):
                rows = np.stack(find(*part), axis=1)
                rows.tofile(file)
                count += len(rows)
            np.array([-1, count], np.int64).tofile(file)
            file.flush()
            sync(partial)
            partial.chmod(0o644)  # temporary files are their owner's alone
            partial.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                partial.unlink()
            raise


def _kept(path: Path) -> Integers | None:
    """What `_keep` has written; None where there is nothing, or not all of it."""
    try:
        if path.stat().st_size % 16:
            return None
        rows: Integers = map_array(path, "int64", scattered=True).reshape(-1, 2)
    except OSError:
        return None
    if len(rows) == 0 or rows[-1].tolist() != [-1, len(rows) - 1]:
        return None
    return rows[:-1].T


def _parts(split: Split) -> Iterator[tuple[Integers, Integers]]:
    """(s,) where sentences and (d,) where documents start, and the end, of documents of `AT_ONCE` tokens and more."""
    sentences, documents = np.asarray(split.sentences), np.asarray(split.documents)
    begins = np.arange(0, len(split.tokens), AT_ONCE)
    cuts = np.unique(np.append(np.searchsorted(documents, begins), len(documents) - 1))
    for first, last in itertools.pairwise(cuts) if len(cuts) > 1 else [(0, 0)]:  # a text without a document
        low, high = np.searchsorted(sentences, [documents[first], documents[last]])
        yield sentences[low : high + 1], documents[first : last + 1]
