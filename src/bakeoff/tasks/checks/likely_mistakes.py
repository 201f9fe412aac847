"""Probable mistakes in labelled data, and properties of the data that mislead readers of results."""

import unicodedata
from collections import defaultdict
from collections.abc import Iterator

from bakeoff.display.wording import counted, verb
from bakeoff.tasks.checks.findings import SplitFinding, TaskFindings
from bakeoff.tasks.label_counts import in_one_split, most_of_train, some_of
from bakeoff.tokenizer.hidden import MOST_HIDDEN

FEW = 10
"""The number of examples below which a label is hardly learned, and its scores are chance."""
CUT = 0.1
"""The share of cut rows from which a longer length is worth a thought."""
SHARED = 0.01
"""The share of dev or test that is in train, too, from which scores are too good."""
_ACCENTS = frozenset(map(chr, range(0x300, 0x370)))  # those of Latin, Greek and Cyrillic letters, no vowels of scripts


def warnings_of(findings: TaskFindings) -> list[str]:
    """Warnings, one line each, on the findings that a user should look at."""
    return [*_splits(findings), *_labels(findings), *_overlaps(findings)]


def _splits(findings: TaskFindings) -> Iterator[str]:
    for split in findings.splits:
        count = f"of the {split.examples:,} examples of {split.split}"
        if split.contradictory:
            one, other = split.first_contradiction or (0, 0)
            yield (
                f"{split.contradictory:,} {count} {verb(split.contradictory, 'has', 'have')} the texts of another one "
                f"with another label, as lines {one} and {other}: one of them is wrong"
            )
        if split.repeated:
            yield f"{split.repeated:,} {count} {verb(split.repeated, 'repeats', 'repeat')} an earlier one"
        if split.blank:
            yield f"{counted(split.blank, f'blank {split.blank_unit}')} in {split.split}"
        if split.damaged:
            yield (
                f"{split.damaged:,} {count} {verb(split.damaged, 'holds', 'hold')} U+FFFD, which stands for characters "
                "that were lost: were they read or saved in the wrong encoding? (--option encoding=latin-1)"
            )
        lengths = split.lengths
        if lengths.longer is not None and lengths.longer >= CUT:
            yield (
                f"{lengths.longer:.1%} of the rows of {split.split} are longer than {lengths.limit} tokens; half of "
                f"all have {lengths.quantiles['50 %']}, and 90 % at most {lengths.quantiles['90 %']} (--length)"
            )
        if split.hidden is not None and split.hidden.share > MOST_HIDDEN:
            yield f"{split.split}: {split.hidden}: a model with this tokenizer does not see them"


def _labels(findings: TaskFindings) -> Iterator[str]:
    by_split = {split.split: split for split in findings.splits}
    train = by_split.get("train")
    if train is None or not train.labels:
        return
    counts = {split.split: {each.label: each.count for each in split.labels} for split in findings.splits}
    yield from most_of_train(counts, findings.kind)
    if rare := {each.label: each.count for each in train.labels if each.count < FEW}:
        yield f"{counted(len(rare), 'label')} with fewer than {FEW} examples in train: {some_of(list(rare), rare)}"
    for spelt in _spellings(findings.splits):
        yield f"the labels {spelt} differ in capitals, accents, spaces or invisible signs alone; are they one?"
    yield from in_one_split(counts)


def _spellings(splits: list[SplitFinding]) -> Iterator[str]:
    alike: defaultdict[str, set[str]] = defaultdict(set)
    for split in splits:
        for each in split.labels:
            alike[_bare(each.label)].add(each.label)
    for spelt in alike.values():
        if len(spelt) > 1:
            yield ", ".join(f"'{label}'" for label in sorted(spelt))


def _bare(label: str) -> str:
    """A label in small letters of one width, without accents, spaces and invisible signs."""
    letters = unicodedata.normalize("NFKD", label.casefold())
    return "".join(
        each for each in letters if not (each.isspace() or each in _ACCENTS or unicodedata.category(each) == "Cf")
    )


def _overlaps(findings: TaskFindings) -> Iterator[str]:
    sizes = {split.split: split.examples for split in findings.splits}
    for names, count in findings.overlaps.items():
        split, _, other = names.partition(" in ")
        if count >= SHARED * sizes[split]:
            yield f"{other} has the texts of {count:,} of the {counted(sizes[split], 'example')} of {split}, too"
