"""Vectors of texts in memory, and of texts in a file, written to a file. Shapes: N texts, D width of vectors."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bakeoff.arrays import write_array
from bakeoff.errors import UserError
from bakeoff.reading.aligned import clean
from bakeoff.reading.text_files import Texts, in_memory, is_blank, read_ahead
from bakeoff.resources.device import Precision
from bakeoff.tokenizer.hidden import HiddenText
from bakeoff.vectors.embedder import Embedder
from bakeoff.vectors.options import VectorConfig

TEXTS_AT_ONCE = 2048
"""Largest number of texts that are read ahead, so that texts of similar length share a batch."""


class EmbeddedTexts(NamedTuple):
    """The result of `embed_file`."""

    path: Path
    """The file of vectors."""
    texts: int
    """N, number of vectors."""
    width: int
    """D, width of the vectors."""
    blank: int
    """Number of texts with white space alone."""
    truncated: int
    """Number of texts that were longer than a row, and cut."""
    hidden: HiddenText
    """Counts of unknown tokens, and of the characters that they hide."""


class VectorChunk(NamedTuple):
    """A part of the texts, with their vectors."""

    texts: list[str]
    """The texts."""
    vectors: NDArray[np.float32]
    """(N, D) vectors of the texts."""
    truncated: int
    """Number of texts that were cut."""
    hidden: HiddenText
    """Counts of unknown tokens, and of the characters that they hide."""


def embed(
    run: str | Path,
    texts: Sequence[str],
    *,
    pooling: Literal["mean", "cls", "last", "max"] | None = None,
    layers: Sequence[int] | None = None,
    length: int | None = None,
    device: str = "auto",
    precision: Precision = "float32",
) -> NDArray[np.float32]:
    """(N, D) vectors of texts: the hidden states of a run, pooled over the tokens of each text.

    Args:
        run: a pre-trained or a fine-tuned run; it is not trained further.
        texts: N texts; a blank text has the vector of a row of special tokens alone.
        pooling: mean or max over all tokens, special ones included; cls for the state at [CLS]; last for that at the
            last token; None: that for which `bakeoff contrast` has taught the run, else mean.
        layers: the layers whose outputs are pooled, averaged if several: 0 for the input of the first layer, -1 for the
            output of the last; None: those that `bakeoff contrast` has taught the run, if no pooling is named, else -1.
        length: the largest length of a row in tokens; longer texts are cut; None: as in pre-training, or in
            fine-tuning.
        device: auto, cpu, cuda or mps.
        precision: auto, float32 or bfloat16, the precision of products.

    Returns:
        (N, D) float32. A vector depends on the other texts by rounding alone, and equal texts have equal vectors.

    Raises:
        UserError: there is no such run or layer, the model has no positions for `length`, or the run has no state for
            the pooling.
    """
    config = VectorConfig.parse({"pooling": pooling, "layers": layers, "length": length}, "embed")
    embedder = Embedder(run, config, device, precision=precision)
    return vectors_of(embedder, [text for (text,) in in_memory(texts)])[0]


def vectors_of(embedder: Embedder, texts: Sequence[str]) -> tuple[NDArray[np.float32], int]:
    """(N, D) vectors of texts, and the number of texts that were cut; equal texts go through the model once."""
    cleaned = [clean(text) for text in texts]
    distinct = list(dict.fromkeys(cleaned))
    vectors = np.empty((len(distinct), embedder.width), np.float32)
    cut = np.zeros(len(distinct), bool)
    for first in range(0, len(distinct), TEXTS_AT_ONCE):
        part = slice(first, first + TEXTS_AT_ONCE)
        vectors[part], cut[part] = embedder(distinct[part])
    index_of = {text: number for number, text in enumerate(distinct)}
    indices = np.array([index_of[text] for text in cleaned], np.int64)
    return vectors[indices], int(cut[indices].sum())


def embedded(embedder: Embedder, texts: Texts) -> Iterator[VectorChunk]:
    """The vectors of texts in their order, part by part, so that memory does not grow with their number.

    Raises:
        UserError: the file has a mistake.
    """
    for read in read_ahead(texts, TEXTS_AT_ONCE):
        part = [text for (text,) in read]
        hidden = embedder.format.tokenizer.hidden([clean(text) for text in part])
        yield VectorChunk(part, *vectors_of(embedder, part), hidden)


def embed_file(embedder: Embedder, texts: Texts, out: Path) -> EmbeddedTexts:
    """Write the vectors of texts to a .npy file, (N, D) float32, which `numpy.load(out, mmap_mode="r")` opens.

    The file appears when it is complete; memory does not grow with its size.

    Args:
        embedder: the embedder.
        texts: a file of texts, or texts in memory.
        out: the file to write, which must not exist.

    Raises:
        UserError: `out` exists, is no .npy or cannot be written, or the file of texts has a mistake.
    """
    require_npy(out)
    blank = truncated = 0
    hidden = HiddenText()

    def vectors() -> Iterator[NDArray[np.float32]]:
        nonlocal blank, truncated, hidden
        for part in embedded(embedder, texts):
            blank += sum(is_blank([text]) for text in part.texts)
            truncated += part.truncated
            hidden += part.hidden
            yield part.vectors

    count = write_array(out, vectors(), (embedder.width,), "<f4")
    return EmbeddedTexts(out, count, embedder.width, blank, truncated, hidden)


def require_npy(out: Path) -> None:
    """Refuse a path that vectors cannot be written to.

    Raises:
        UserError: the path is no .npy, exists already, or its folder does not exist.
    """
    if out.suffix != ".npy":
        raise UserError(f"{out}: vectors are written to a .npy; for JSON lines leave --out out and redirect the output")
    if out.exists():
        raise UserError(f"{out}: is there already; choose another --out")
    if not out.absolute().parent.is_dir():
        raise UserError(f"{out.parent}: no such folder")
