"""Vectors of texts in memory, and of a file, written to another one; D width of the vectors, N texts."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.arrays import write_array
from bakeoff.errors import UserError
from bakeoff.inference.text_files import Texts, in_memory, is_blank, read_ahead
from bakeoff.reading.aligned import clean
from bakeoff.vectors.embedder import Embedder, VectorConfig

TEXTS_AT_ONCE = 2048
"""The most that are read ahead, so that texts of similar length go through the model together."""


class EmbeddedTexts(NamedTuple):
    """What `embed_file` has written."""

    path: Path
    """The file."""
    texts: int
    """N, how many vectors it has."""
    width: int
    """D, numbers of each."""
    blank: int
    """How many texts hold nothing but white space."""
    truncated: int
    """How many were longer than a row and have been cut."""


class VectorChunk(NamedTuple):
    """Some texts with their vectors."""

    texts: list[str]
    """The texts."""
    vectors: NDArray[np.float32]
    """(N, D) their vectors."""
    truncated: int
    """How many of the texts have been cut."""


def embed(
    run: str | Path,
    texts: Sequence[str],
    *,
    pooling: Literal["mean", "cls", "last", "max"] = "mean",
    layers: Sequence[int] = (-1,),
    length: int | None = None,
    device: str = "auto",
) -> NDArray[np.float32]:
    """A vector for each text: the hidden states of a run, pooled over the text's tokens, (N, D).

    Args:
        run: a pre-trained or a fine-tuned run, which is used as it is.
        texts: N texts; a blank one has a vector, too, that of a row of special tokens.
        pooling: mean or max over all tokens, the special ones among them; cls or last, the states at [CLS], or at the
            last token.
        layers: whose output is pooled, several averaged; 0 is what comes into the first layer, -1 what leaves the last.
        length: the most tokens of a row, longer ones are cut; absent: as in pre-training, or in fine-tuning.
        device: auto, cpu, cuda or mps.

    Returns:
        (N, D) float32. A text's vector is the same whatever others there are, up to rounding, and texts that are the
        same have the same.

    Raises:
        UserError: no such run, layer or position, or a pooling that the run has nothing for.
    """
    config = VectorConfig.parse({"pooling": pooling, "layers": layers, "length": length}, "embed")
    embedder = Embedder(run, config, device)
    return vectors_of(embedder, [text for (text,) in in_memory(texts)])[0]


def vectors_of(embedder: Embedder, texts: Sequence[str]) -> tuple[NDArray[np.float32], int]:
    """(N, D) vectors of texts, and how many of them were cut; those that are the same go through the model once."""
    cleaned = [clean(text) for text in texts]
    distinct = list(dict.fromkeys(cleaned))
    found = np.empty((len(distinct), embedder.width), np.float32)
    cut = np.zeros(len(distinct), bool)
    for first in range(0, len(distinct), TEXTS_AT_ONCE):
        part = slice(first, first + TEXTS_AT_ONCE)
        found[part], cut[part] = embedder(distinct[part])
    place = {text: number for number, text in enumerate(distinct)}
    own = np.array([place[text] for text in cleaned], np.int64)
    return found[own], int(cut[own].sum())


def embedded(embedder: Embedder, texts: Texts) -> Iterator[VectorChunk]:
    """The vectors of texts in their order, some at once, so that memory does not grow with their number.

    Raises:
        UserError: there is a mistake in the file.
    """
    for read in read_ahead(texts, TEXTS_AT_ONCE):
        part = [text for (text,) in read]
        yield VectorChunk(part, *vectors_of(embedder, part))


def embed_file(embedder: Embedder, texts: Texts, out: Path) -> EmbeddedTexts:
    """Write the vectors of texts to a .npy file, (N, D) float32, which `numpy.load(out, mmap_mode="r")` opens.

    It appears when it is complete, and memory does not grow with it.

    Args:
        embedder: gives the vectors.
        texts: a file, or texts in memory.
        out: the file; one that is there is refused.

    Raises:
        UserError: `out` is there, is no .npy or cannot be written, or there is a mistake in the file of texts.
    """
    require_npy(out)
    blank = truncated = 0

    def vectors() -> Iterator[NDArray[np.float32]]:
        nonlocal blank, truncated
        for part in embedded(embedder, texts):
            blank += sum(is_blank([text]) for text in part.texts)
            truncated += part.truncated
            yield part.vectors

    count = write_array(out, vectors(), (embedder.width,), "<f4")
    return EmbeddedTexts(out, count, embedder.width, blank, truncated)


def require_npy(out: Path) -> None:
    """Refuse what vectors cannot be written to.

    Raises:
        UserError: it is no .npy, is there already, or its folder is not there.
    """
    if out.suffix != ".npy":
        raise UserError(
            f"{out}: vectors are written to a .npy; for JSON lines leave --out away and redirect the output"
        )
    if out.exists():
        raise UserError(f"{out}: is there already; choose another --out")
    if not out.absolute().parent.is_dir():
        raise UserError(f"{out.parent}: no such folder")
