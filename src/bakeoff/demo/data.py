"""The demo's files: text to pre-train on, and labelled paragraphs of files that are held out of it."""

import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import numpy as np

from bakeoff.corpus.draws import Draws
from bakeoff.demo.docstrings import PACKAGES, docstrings, package_folders, prose

Item = TypeVar("Item")

HELD_OUT_FILES = 5
"""One file in so many is held out for the labelled paragraphs."""

ROWS = {"train": 20, "dev": 20, "test": 300}
"""Labelled paragraphs of each class in each part, the test part taking what there is up to this number."""

FEWEST_TEST_ROWS = 100
"""A class with fewer test rows than this is left out."""

LONGEST = 400
"""Characters of a labelled paragraph at most."""

_GIVEAWAYS = re.compile(
    r"\b(np|scikit|scikit-learn|pytorch|python|lightning|vega|vega-lite|" + "|".join(PACKAGES) + r")\b", re.IGNORECASE
)
"""A paragraph that names a package would be no task."""


def write_files(folder: Path) -> list[str]:
    """Write text.jsonl (a document a source file) and train.tsv, dev.tsv and test.tsv (label, text).

    Which package does a paragraph of documentation come from? Paragraphs that name a package are left out, and so are
    packages with too few paragraphs.

    Returns:
        The classes.
    """
    labelled: dict[str, list[str]] = {}
    with open(folder / "text.jsonl", "w", encoding="utf-8") as file:
        for package, paragraphs, held_out in _files():
            if held_out:
                fitting = [p for p in paragraphs if len(p) <= LONGEST and not _GIVEAWAYS.search(p)]
                labelled.setdefault(package, []).extend(fitting)
            else:
                file.write(json.dumps({"text": "\n".join(paragraphs)}, ensure_ascii=False) + "\n")
    needed = ROWS["train"] + ROWS["dev"] + FEWEST_TEST_ROWS
    classes = sorted(package for package, paragraphs in labelled.items() if len(paragraphs) >= needed)
    begin = 0
    for part, count in ROWS.items():
        rows = [
            (package, paragraph)
            for package in classes
            for paragraph in _shuffled(labelled[package], package)[begin : begin + count]
        ]
        begin += count
        lines = [f"{package}\t{paragraph}\n" for package, paragraph in _shuffled(rows, part)]
        (folder / f"{part}.tsv").write_text("label\ttext\n" + "".join(lines), encoding="utf-8")
    return classes


def _files() -> Iterator[tuple[str, list[str], bool]]:
    """For each source file its package, the paragraphs that no earlier file had, and whether it is held out."""
    seen: set[str] = set()
    for package, folder in package_folders().items():
        for path, texts in docstrings(folder):
            paragraphs = list(dict.fromkeys(p for text in texts for p in prose(text) if p not in seen))
            seen.update(paragraphs)
            if paragraphs:
                yield package, paragraphs, zlib.crc32(f"{package}/{path}".encode()) % HELD_OUT_FILES == 0


def _shuffled(items: list[Item], name: str) -> list[Item]:
    """The items in an order that depends on nothing but their number and the name."""
    indices = np.arange(len(items))
    order = np.argsort(Draws(0, np.zeros_like(indices), indices).words(name, 1)[:, 0], kind="stable")
    return [items[index] for index in order]
