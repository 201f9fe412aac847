"""How much text a tokenizer is trained on: as much as was asked for, unless its trainer would take too much memory."""

from collections.abc import Iterable
from typing import Any

from bakeoff.display.wording import quantity
from bakeoff.preparation.planning.sampling import Sample
from bakeoff.preparation.progress import ReadingProgress
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.tokenizer.tokenizer_config import TokenizerConfig
from bakeoff.tokenizer.training import new_words
from bakeoff.tokenizer.word_counts import WordCounts
from bakeoff.workers.allocator import return_memory

_LONG_WORD = 24  # bytes

_TRAINER_BYTES = {"wordpiece": 8_000_000, "char_bpe": 8_000_000, "byte_bpe": 8_000_000, "unigram": 1_600_000}
"""Weighted bytes of distinct words (see `_distinct_bytes`) with which a trainer takes less than 350 MB, measured."""


def sample_for(config: TokenizerConfig, limit: int, seed: int) -> Sample | WordCounts:
    """What takes the text that a tokenizer is trained on; for kind whitespace, which needs all words, their counts.

    Args:
        config: the tokenizer.
        limit: UTF-8 bytes of text to take at most.
        seed: draws them.
    """
    return WordCounts() if config.kind == "whitespace" else Sample(limit, seed)


def train_tokenizer(
    sample: Sample | WordCounts, config: TokenizerConfig, seed: int, asked: int, shown: ReadingProgress
) -> tuple[Tokenizer, dict[str, Any]]:
    """Train a tokenizer on a sample, shrunk until that fits in memory.

    Args:
        sample: the text to train on, for kind whitespace its words; it is emptied.
        config: the tokenizer's settings.
        seed: the seed with which the sample was drawn.
        asked: bytes of text that were asked for.
        shown: the display of the progress.

    Returns:
        The tokenizer, and what the manifest records of the sample.
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
    """UTF-8 bytes of all different words between spaces, which trainers hold in memory at 35 to 190 bytes for each.

    Long ones count twice: a text without spaces (Chinese) has far more different pieces than one with them.
    """
    total = 0
    for words in new_words(sample):
        for word in words:
            size = len(word.encode())
            total += size if size <= _LONG_WORD else 2 * size
    return total
