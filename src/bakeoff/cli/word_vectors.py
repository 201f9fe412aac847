"""`bakeoff embed --per word | token`: a vector for each word of a text."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bakeoff.cli.answer_files import save_answers
from bakeoff.display.terminal import tell, write_json

if TYPE_CHECKING:
    from bakeoff.inference.text_files import Texts
    from bakeoff.vectors.embedder import Embedder


def print_words(embedder: "Embedder", texts: "Texts", per: Literal["word", "token"], out: Path | None) -> None:
    """Print a JSON object a line for each word, or write them to a file; .npy holds the vectors alone.

    Raises:
        UserError: the pooling is not the mean, or there is a mistake in the file of texts.
    """
    from bakeoff.arrays import write_array
    from bakeoff.vectors.word_vectors import require_mean, words_embedded

    require_mean(embedder)
    parts = words_embedded(embedder, texts, per)
    if out is None:
        for part in _records(parts):
            for record in part:
                write_json(json.dumps(record, ensure_ascii=False))
        return
    if out.suffix == ".npy":
        vectors = (own.vectors for part in parts for _, own in part)
        count = write_array(out, vectors, (embedder.width,), "<f4")
    else:
        count = save_answers(out, _records(parts))
    tell(f"{out}: {count:,} vectors of {embedder.width} numbers")


def _records(parts: Iterator[list[tuple[str, Any]]]) -> Iterator[list[dict[str, Any]]]:
    """A record of each word, with the number of its text from 1 on."""
    number = 0
    for part in parts:
        found = []
        for _, own in part:
            number += 1
            for word, vector in zip(own.words, own.vectors, strict=True):
                # The fewest digits that give the same float32 again.
                found.append({"number": number, **word._asdict(), "vector": [float(str(each)) for each in vector]})
        yield found
