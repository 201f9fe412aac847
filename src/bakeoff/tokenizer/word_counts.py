"""Counts of words between spaces: the vocabulary of a text that is cut into words already."""

from collections import Counter
from collections.abc import Iterable

from bakeoff.text.sentences import split_sentences

MOST_WORDS = 4_000_000
"""Largest number of distinct words that are counted at once, in about 600 MB; if a text has more, the rarest are
dropped repeatedly. The billion-word benchmark has 2.4 million."""


class WordCounts:
    """Counts of the words of texts.

    Attributes:
        bytes: UTF-8 bytes of the texts.
    """

    def __init__(self, texts: Iterable[str] = (), sentences: bool = False) -> None:
        """Count the words of `texts`; with `sentences` they end where sentences do, with no space after 。 too."""
        self._counts: Counter[str] = Counter()
        self._sentences = sentences
        self._texts = 0
        self.bytes = 0
        for text in texts:
            self.add(text)

    def __len__(self) -> int:
        """The number of texts that were counted."""
        return self._texts

    def add(self, text: str, later: bool = False) -> None:
        """Count the words of another text; `later` is for samples of characters."""
        words = text.split()
        if self._sentences and not text.isascii():  # marks after which no space has to stand are not in ASCII
            words = [part.strip() for word in words for part in split_sentences(word)]
        self._counts.update(words)
        self._texts += 1
        self.bytes += len(text.encode())
        rarest = 1
        while len(self._counts) > MOST_WORDS:
            self._counts = Counter({word: count for word, count in self._counts.items() if count > rarest})
            rarest *= 2

    def words(self) -> dict[str, int]:
        """Each word with its count."""
        return self._counts

    def clear(self) -> None:
        """Forget the counted words, whose memory is needed for something else."""
        self._counts.clear()
