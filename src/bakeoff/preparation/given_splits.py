"""Splits of a corpus from separate files, such as the official validation and test texts of a benchmark."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from bakeoff.errors import UserError
from bakeoff.preparation.encoding.pool import encode_jobs
from bakeoff.preparation.encoding.split_writer import SplitWriter
from bakeoff.preparation.encoding.text_encoding import Ends, encode_job, jobs_of
from bakeoff.preparation.options import Texts
from bakeoff.preparation.planning.sampling import CutPoint
from bakeoff.preparation.progress import ReadingProgress
from bakeoff.reading.files import find_files
from bakeoff.reading.hub import HubFile
from bakeoff.reading.pieces import BEGINNING, TextPosition
from bakeoff.reading.sources import TextReader
from bakeoff.text.word_order import NgramShuffle
from bakeoff.tokenizer.tokenizer import Tokenizer

_FIRST_PIECES = {"validation": 1 << 44, "test": 1 << 45}
"""Number of the first piece of each split, above all numbers of the text's pieces: keys for the shuffling of words."""


def read_given(text: TextReader, given: Mapping[str, Texts], skips: Counter[str]) -> dict[str, TextReader]:
    """Readers of the files of given splits, with the options of the text's reader.

    Args:
        text: reader of the text.
        given: files, folders and globs of each split.
        skips: counts files in folders that are of no supported kind.

    Raises:
        UserError: a file does not exist, or also belongs to the text or another split.
    """
    readers = {name: text.like(find_files(texts, skips)) for name, texts in given.items()}
    require_apart({"text": text.files, **{f"--{name}": reader.files for name, reader in readers.items()}})
    return readers


def require_apart(splits: Mapping[str, Sequence[Path | HubFile]]) -> None:
    """Refuse a file that belongs to two splits.

    Raises:
        UserError: a file belongs to two splits.
    """
    owners: dict[object, str] = {}
    for name, files in splits.items():
        for file in files:
            identity = file.resolve() if isinstance(file, Path) else str(file)
            if (owner := owners.setdefault(identity, name)) != name:
                raise UserError(f"{file}: given as {owner} and as {name}; what is learned is no test, give it once")


def require_text(readers: Mapping[str, TextReader]) -> None:
    """Read the beginning of each file.

    Raises:
        UserError: a file has no text, or cannot be read.
    """
    for name, reader in readers.items():
        for number, file in enumerate(reader.files):
            if next(reader.read(TextPosition(number, 0, 0, 0), TextPosition(number + 1, 0, 0, 0)), None) is None:
                raise UserError(f"{file}: there is no text here, but it was given as --{name}")


def encode_given(
    readers: Mapping[str, TextReader],
    splits: Mapping[str, SplitWriter],
    tokenizer: Tokenizer,
    shuffle: NgramShuffle | None,
    workers: int,
    shown: ReadingProgress,
) -> tuple[int, int]:
    """Encode the files of all given splits, in their order.

    Args:
        readers: the reader of each split's files.
        splits: the writer of each split.
        tokenizer: the tokenizer.
        shuffle: as for `encode_job`.
        workers: as for `encode_jobs`.
        shown: the display of the progress.

    Returns:
        The number of documents, and the number of empty documents, which the first does not count.
    """
    documents = empty = 0
    for name, reader in readers.items():
        ends: Ends = Ends()
        pieces = ((0, piece) for piece in shown.phase(f"encoding {name}", reader))
        jobs = jobs_of(pieces, CutPoint(BEGINNING, _FIRST_PIECES[name], 0), documents, False, ends)
        for encoded, _ in encode_jobs(tokenizer, jobs, workers, partial(encode_job, shuffle=shuffle)):
            splits[name].append(*encoded)
            _, documents = ends.popleft()
        empty += reader.skips["empty documents"]
    return documents, empty
