"""Pairs of sources and targets in two plain files, whose lines belong together: train.de.gz and train.en.gz."""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from bakeoff.errors import UserError
from bakeoff.reading.aligned import PairOptions, PairReader, clean
from bakeoff.reading.files import COLUMNAR, LineReader, kind_of, require_file

_COMPRESSIONS = (".gz", ".zst")


def is_plain(path: Path) -> bool:
    """Whether a file has a text on each line, and no columns."""
    return kind_of(path) in (None, ".txt") and ".json" not in path.suffixes and kind_of(path) not in COLUMNAR


def other_side(path: Path, ending: str) -> Path:
    """The file beside another one, with another ending: for train.de.gz and the ending en, train.en.gz.

    `.txt` and the ending of a compression stay: train.de.txt becomes train.en.txt, and source.txt becomes target.txt.
    """
    name, suffixes = path.name, ""
    for endings in (_COMPRESSIONS, (".txt",)):
        if (end := next((end for end in endings if name.endswith(end)), None)) is not None:
            name, suffixes = name.removesuffix(end), end + suffixes
    before, dot, _ = name.rpartition(".")
    return path.with_name(f"{before}{dot}{ending}{suffixes}")


def read_pairs(
    path: Path, ending: str, labelled: bool, errors: Literal["strict", "replace"]
) -> Iterator[tuple[int, str, str | None]]:
    """The line of each source, the source, and its target, if `labelled`.

    Args:
        path: the file of sources.
        ending: the ending of the file of targets.
        labelled: whether targets are read.
        errors: invalid text is an error, or is replaced.

    Raises:
        UserError: there is no such file, an empty target, or not one target for each source.
    """
    require_file(path)
    if not labelled:
        yield from ((line, clean(text), None) for line, text, _ in LineReader(path, errors).whole())
        return
    targets = other_side(path, ending)
    if targets == path or not targets.is_file():
        raise UserError(
            f"{path}: the targets of its lines are looked for in {targets}, and there is "
            f"{'nothing else than itself' if targets == path else 'no such file'}; name their ending by --label-column"
        )
    for line, pair in enumerate(PairReader([path], [targets], PairOptions(errors=errors)), 1):
        if not pair.target:
            raise UserError(f"{targets}:{line}: the target is empty; every source needs one")
        yield line, pair.source, pair.target
