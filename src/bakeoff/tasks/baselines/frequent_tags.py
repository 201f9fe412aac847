"""Tags of words without a network: the most frequent tag of each word."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from unicodedata import normalize


def most_frequent_tags(
    train: Iterable[tuple[Sequence[str], Sequence[str]]], sentences: Iterable[Sequence[str]]
) -> list[list[str]]:
    """The tag that each word has most often in train; for an unknown word, the most frequent tag of all.

    Args:
        train: words and tags of the sentences to learn from.
        sentences: words of the sentences to tag.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    every = Counter[str]()
    for words, tags in train:
        for word, tag in zip(words, tags, strict=True):
            counts[normalize("NFC", word)][tag] += 1
            every[tag] += 1

    def first(counted: Counter[str]) -> str:
        return min(counted, key=lambda tag: (-counted[tag], tag))

    known, other = {word: first(counted) for word, counted in counts.items()}, first(every)
    return [[known.get(normalize("NFC", word), other) for word in words] for words in sentences]
