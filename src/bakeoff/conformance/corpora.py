"""Small corpora, made without downloads."""

from pathlib import Path

import numpy as np
import pytest

from bakeoff.conformance.texts import digit_pairs, sentences
from bakeoff.corpus.store import Corpus
from bakeoff.preparation.prepare import prepare
from bakeoff.preparation.prepare_pairs import prepare_pairs
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig


@pytest.fixture(scope="session")
def text_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one file of 240 documents, each a line of 3 to 12 sentences."""
    folder = tmp_path_factory.mktemp("text")
    generator = np.random.default_rng(1)
    all_sentences = iter(sentences(240 * 12))
    counts = generator.integers(3, 13, size=240)
    lines = [" ".join(next(all_sentences) for _ in range(count)) for count in counts]
    (folder / "documents.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def corpus(text_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """A small prepared corpus."""
    out = tmp_path_factory.mktemp("corpora") / "small"
    return prepare(
        [text_folder], out, tokenizer=TokenizerConfig(size=160), validation=0.1, document_per_line=True, workers=0
    )


@pytest.fixture(scope="session")
def parallel_corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """A small prepared corpus of pairs of several lengths."""
    folder = tmp_path_factory.mktemp("parallel")
    for name, side in (("digits.txt", 0), ("words.txt", 1)):
        text = "".join(pair[side] + "\n" for pair in digit_pairs(600, longest=10))
        (folder / name).write_text(text, encoding="utf-8")
    config = TokenizerConfig(size=100)
    out = folder / "corpus"
    return prepare_pairs(folder / "digits.txt", folder / "words.txt", out, tokenizer=config, validation=0.1, workers=0)
