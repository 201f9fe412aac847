"""Random text from which any objective makes rows without padding; speed does not depend on the words."""

import numpy as np
from tokenizers import Tokenizer as Inner
from tokenizers import models

from bakeoff.corpus.manifest import SplitCounts
from bakeoff.corpus.split import Split
from bakeoff.tokenizer.special_tokens import SPECIAL_TOKENS
from bakeoff.tokenizer.tokenizer import Tokenizer

DOCUMENTS = 2
"""Number of documents; next-sentence prediction needs two, since its negatives come from another document."""

FRAME = 3
"""Number of special tokens of a segment pair; lengths of documents are multiples of the rest, so that all rows are
full."""


class RandomText(Split):
    """Uniformly random ids in memory. Every token is a word and a sentence, so that segments end where a row ends.

    With `pairs`, the text has pairs whose sources and targets fill a row each.
    """

    def __init__(self, rows: int, length: int, vocabulary: int, pairs: bool = False) -> None:
        """Text for at least `rows` rows of `length` tokens, without the special tokens, which begin the vocabulary."""
        documents = rows if pairs else DOCUMENTS
        each = 2 * (length - 1) if pairs else 2 * (rows + 1) * (length - FRAME)
        count = documents * each
        self.tokens = np.random.default_rng(0).integers(len(SPECIAL_TOKENS), vocabulary, count, dtype=np.uint32)
        self.sentences = np.arange(0, count + 1, length - 1 if pairs else 1, dtype=np.int64)
        self.documents = np.arange(documents + 1, dtype=np.int64) * each
        self.originals = np.arange(documents, dtype=np.int64)
        self._words = np.full((count + 7) // 8, 255, dtype=np.uint8)
        self.bytes = count
        self.counts = SplitCounts(
            tokens=count,
            sentences=len(self.sentences) - 1,
            documents=documents,
            words=count,
            bytes=count,
            unigram_entropy=float(np.log(vocabulary)),
            target_tokens=count // 2 if pairs else None,
            target_bytes=count // 2 if pairs else None,
        )


def numbered_tokenizer(size: int) -> Tokenizer:
    """A tokenizer with `size` tokens: the special tokens, and numbers as words."""
    words = {word: i for i, word in enumerate([*SPECIAL_TOKENS, *map(str, range(size - len(SPECIAL_TOKENS)))])}
    return Tokenizer(Inner(models.WordLevel(words, unk_token="[UNK]")))
