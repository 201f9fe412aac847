"""The sample that a tokenizer is trained on, as large as asked for unless the trainer would take too much memory."""

from collections.abc import Iterable
from typing import Any

from bakeoff.display.wording import quantity
from bakeoff.machine.allocator import return_memory
from bakeoff.preparation.planning.sampling import Sample
from bakeoff.preparation.progress import ReadingProgress
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.tokenizer.training import new_words
from bakeoff.tokenizer.word_counts import WordCounts

_LONG_WORD = 24  # bytes

_TRAINER_BYTES = {"wordpiece": 8_000_000, "char_bpe": 8_000_000, "byte_bpe": 8_000_000, "unigram": 1_600_000}
"""Bytes of distinct words (see `_distinct_bytes`) with which each trainer was measured to take less than 350 MB."""


def sample_for(config: TokenizerConfig, limit: int, seed: int, whole: bool = False) -> Sample | WordCounts:
    """An empty sample for a tokenizer's training; for kind whitespace, which needs all words, empty word counts.

    Args:
        config: the tokenizer's settings.
        limit: largest size of the sample in UTF-8 bytes.
        seed: seed of the sample.
        whole: texts are encoded as they are, not cut into sentences and joined to documents.
    """
    whole = whole or config.end_of_line
    if config.kind == "whitespace":
        return WordCounts(sentences=not whole)
    return Sample(limit, seed, breaks=config.kind == "character" and not whole)  # other kinds take it for a space


def train_tokenizer(
    sample: Sample | WordCounts, config: TokenizerConfig, seed: int, asked: int, shown: ReadingProgress
) -> tuple[Tokenizer, dict[str, Any]]:
    """Train a tokenizer on a sample, which is shrunk until the training fits in memory.

    Args:
        sample: the sample, or for kind whitespace the word counts; emptied by the training.
        config: the tokenizer's settings.
        seed: the seed with which the sample was drawn.
        asked: bytes of text that were asked for.
        shown: the display of the progress.

    Returns:
        The tokenizer, and the manifest's record of the sample.
    """
    shown.note(f"training a {config.kind} tokenizer on {quantity(sample.bytes)}B of text")
    limit = _TRAINER_BYTES.get(config.kind)
    if limit is not None and isinstance(sample, Sample):
        while (distinct := _distinct_bytes(sample)) > limit and sample.bytes > 1:
            sample.shrink(int(sample.bytes * max(0.5, min(0.95, limit / distinct))))
    record = {"asked_bytes": asked, "bytes": sample.bytes, "paragraphs": len(sample), "seed": seed}
    tokenizer = Tokenizer.train(config, sample)
    sample.clear()
    return_memory()
    return tokenizer, record


def _distinct_bytes(sample: Iterable[str]) -> int:
    """UTF-8 bytes of all distinct words between spaces, which trainers hold in memory at 35 to 190 bytes for each byte.

    Long words count twice: a text without spaces (Chinese) has far more distinct pieces than a text with spaces.
    """
    total = 0
    for words in new_words(sample):
        for word in words:
            size = len(word.encode())
            total += size if size <= _LONG_WORD else 2 * size
    return total
