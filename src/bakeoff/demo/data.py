"""The demo's files: text to pre-train on, and two tasks on files that are held out of it."""

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from bakeoff.demo.docstrings import PACKAGES, docstrings, package_folders, prose
from bakeoff.randomness.draws import Draws
from bakeoff.text.sentences import split_sentences

Item = TypeVar("Item")
Row = tuple[str, str]

HELD_OUT_FILES = 5
"""One file in this many is held out for the tasks."""

PACKAGE_ROWS = {"train": 20, "dev": 20, "test": 200}
"""Labelled paragraphs of each package in each split; for the test split the most, as a package may have fewer."""

FEWEST_TEST_ROWS = 100
"""The fewest test rows with which a package is a class of the task."""

LONGEST_PARAGRAPH = 400
"""The most characters of a labelled paragraph."""

ORDER_ROWS = {"train": 5000, "dev": 500, "test": 2000}
"""Sentences of the word-order task in each split."""

SENTENCE_WORDS = range(7, 21)
"""Numbers of words that a sentence of the word-order task may have."""

_GIVEAWAYS = re.compile(
    r"\b(np|scikit|scikit-learn|pytorch|python|lightning|vega|vega-lite|" + "|".join(PACKAGES) + r")\b", re.IGNORECASE
)
"""Names of packages; a paragraph with one of them would give its class away."""


def write_files(folder: Path) -> list[str]:
    """Write text.jsonl, a document for each source file, and the files of both tasks, with the columns label and text.

    No labelled row has a sentence in common with text.jsonl.

    package: which package does a paragraph of documentation come from? Paragraphs that name a package are left out.
    word-order: were two neighbouring words of a sentence swapped? (After the bigram shift of Conneau et al. 2018,
    arXiv:1805.01070.) No word gives the answer away, and every sentence is labelled by construction.

    Returns:
        The packages that are classes.
    """
    known: set[str] = set()
    held_out: list[tuple[str, list[str]]] = []
    with open(folder / "text.jsonl", "w", encoding="utf-8") as file:
        for package, paragraphs, held in _files():
            if held:
                held_out += [(package, _sentences(paragraph)) for paragraph in paragraphs]
            else:
                known.update(sentence for paragraph in paragraphs for sentence in _sentences(paragraph))
                file.write(json.dumps({"text": "\n".join(paragraphs)}, ensure_ascii=False) + "\n")
    by_package: dict[str, list[str]] = {}
    for package, sentences in held_out:
        paragraph = " ".join(sentences)
        if len(paragraph) <= LONGEST_PARAGRAPH and known.isdisjoint(sentences) and not _GIVEAWAYS.search(paragraph):
            by_package.setdefault(package, []).append(paragraph)
    unseen = [sentence for _, sentences in held_out for sentence in sentences if sentence not in known]
    fewest = PACKAGE_ROWS["train"] + PACKAGE_ROWS["dev"] + FEWEST_TEST_ROWS
    classes = sorted(package for package, paragraphs in by_package.items() if len(paragraphs) >= fewest)
    splits: dict[str, list[Row]] = {split: [] for split in PACKAGE_ROWS}
    for package in classes:
        for split, texts in _cut(_shuffled(by_package[package], package), PACKAGE_ROWS).items():
            splits[split] += [(package, text) for text in texts]
    _write_task(folder, "package", splits)
    _write_task(folder, "word-order", _cut(_word_order(unseen), ORDER_ROWS))
    return classes


def _files() -> Iterator[tuple[str, list[str], bool]]:
    """For each source file: its package, its paragraphs that no earlier file had, and whether it is held out."""
    seen: set[str] = set()
    for package, folder in package_folders().items():
        for path, texts in docstrings(folder):
            paragraphs = list(dict.fromkeys(p for text in texts for p in prose(text) if p not in seen))
            seen.update(paragraphs)
            if paragraphs:
                yield package, paragraphs, zlib.crc32(f"{package}/{path}".encode()) % HELD_OUT_FILES == 0


def _sentences(paragraph: str) -> list[str]:
    return [sentence.strip() for sentence in split_sentences(paragraph)]


def _word_order(sentences: list[str]) -> list[Row]:
    """Rows of the word-order task; every second sentence has two neighbouring words swapped, not the first or last."""
    whole = [sentence for sentence in dict.fromkeys(sentences) if re.fullmatch(r"[A-Z].*\.", sentence)]
    fitting = _shuffled([words for words in map(str.split, whole) if len(words) in SENTENCE_WORDS], "sentences")
    indices = np.arange(len(fitting))
    shares = Draws(0, np.zeros_like(indices), indices).uniform("swap", 1)[:, 0]
    rows = []
    for index, words in enumerate(fitting):
        different = [i for i in range(1, len(words) - 2) if words[i].lower() != words[i + 1].lower()]
        if index % 2 and different:
            at = different[int(shares[index] * len(different))]
            words = [*words[:at], words[at + 1], words[at], *words[at + 2 :]]
            rows.append(("swapped", " ".join(words)))
        else:
            rows.append(("intact", " ".join(words)))
    return rows


def _cut(items: Sequence[Item], counts: dict[str, int]) -> dict[str, Sequence[Item]]:
    """Cut the items into splits, one after the other, each with the number of items that `counts` gives."""
    ends = np.cumsum(list(counts.values())).tolist()
    return {split: items[end - counts[split] : end] for split, end in zip(counts, ends, strict=True)}


def _write_task(folder: Path, name: str, splits: Mapping[str, Sequence[Row]]) -> None:
    for split, rows in splits.items():
        lines = "".join(f"{label}\t{text}\n" for label, text in _shuffled(rows, split))
        (folder / f"{name}-{split}.tsv").write_text(f"label\ttext\n{lines}", encoding="utf-8")


def _shuffled(items: Sequence[Item], name: str) -> list[Item]:
    """The items in a random order that depends on their number and `name` alone."""
    indices = np.arange(len(items))
    order = np.argsort(Draws(0, np.zeros_like(indices), indices).words(name, 1)[:, 0], kind="stable")
    return [items[index] for index in order]
