"""Tags of words without a network: each word's most frequent one."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence


def most_frequent_tags(
    train: Iterable[tuple[Sequence[str], Sequence[str]]], sentences: Iterable[Sequence[str]]
) -> list[list[str]]:
    """The tag that each word of some sentences has most often in train; of unknown words the most frequent one of all.

    Args:
        train: words and tags of sentences.
        sentences: words of others.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    every = Counter[str]()
    for words, tags in train:
        for word, tag in zip(words, tags, strict=True):
            counts[word][tag] += 1
            every[tag] += 1

    def first(counted: Counter[str]) -> str:
        return min(counted, key=lambda tag: (-counted[tag], tag))

    known, other = {word: first(counted) for word, counted in counts.items()}, first(every)
    return [[known.get(word, other) for word in words] for words in sentences]
