"""What is probably a mistake in labelled data, or will mislead those who read results."""

from collections import defaultdict
from collections.abc import Iterator

from bakeoff.tasks.checks.findings import PartFinding, TaskFindings

FEW = 10
"""Examples of a label below which it is hardly learned, and its scores are chance."""
MOST = 0.8
"""The share of one label from which accuracy says little."""
CUT = 0.1
"""The share of rows that are cut from which a longer length is worth a thought."""
SHARED = 0.01
"""The share of dev or test that train has, from which scores are too good."""
_NAMED = 8  # labels of a warning


def warnings_of(found: TaskFindings) -> list[str]:
    """One line for each thing that a user should look at."""
    return [*_parts(found), *_labels(found), *_overlaps(found)]


def _parts(found: TaskFindings) -> Iterator[str]:
    for part in found.parts:
        count = f"of the {part.examples:,} examples of {part.part}"
        if part.contradictory:
            one, other = part.first_contradiction or (0, 0)
            yield (
                f"{part.contradictory:,} {count} have the texts of another one with another label, as lines {one} and "
                f"{other}: one of them is wrong"
            )
        if part.repeated:
            yield f"{part.repeated:,} {count} repeat an earlier one"
        if part.blank:
            yield f"{part.blank:,} texts of {part.part} are blank"
        if part.damaged:
            yield (
                f"{part.damaged:,} {count} hold U+FFFD, which stands for characters that were lost: were they read or "
                "saved in the wrong encoding? (--option encoding=latin-1)"
            )
        lengths = part.lengths
        if lengths.longer is not None and lengths.longer >= CUT:
            yield (
                f"{lengths.longer:.1%} of the rows of {part.part} are longer than {lengths.limit} tokens; half of all "
                f"have {lengths.quantiles['50 %']}, and 90 % at most {lengths.quantiles['90 %']} (--length)"
            )


def _labels(found: TaskFindings) -> Iterator[str]:
    by_part = {part.part: part for part in found.parts}
    train = by_part.get("train")
    if train is None or not train.labels:
        return
    most = train.labels[0]
    if most.share >= MOST and len(train.labels) > 1:
        yield (
            f"{most.share:.1%} of train are '{most.label}': a model that answers nothing else is right as often; look "
            "at other scores than accuracy"
        )
    if rare := [f"{each.label} ({each.count})" for each in train.labels if each.count < FEW]:
        yield f"{len(rare)} labels have fewer than {FEW} examples in train: {_some(rare)}"
    for spelt in _spellings(found.parts):
        yield f"the labels {spelt} differ in capitals or spaces alone; are they one?"
    known = {each.label for each in train.labels}
    for name in ("dev", "test"):
        if name in by_part and by_part[name].labels:
            own = {each.label for each in by_part[name].labels}
            if missing := sorted(known - own):
                yield f"{len(missing)} labels of train do not occur in {name}: {_some(missing)}"
            if unseen := sorted(own - known):
                yield f"{len(unseen)} labels of {name} do not occur in train: {_some(unseen)}"


def _spellings(parts: list[PartFinding]) -> Iterator[str]:
    alike: defaultdict[str, set[str]] = defaultdict(set)
    for part in parts:
        for each in part.labels:
            alike["".join(each.label.casefold().split())].add(each.label)
    for spelt in alike.values():
        if len(spelt) > 1:
            yield ", ".join(f"'{label}'" for label in sorted(spelt))


def _overlaps(found: TaskFindings) -> Iterator[str]:
    sizes = {part.part: part.examples for part in found.parts}
    for names, count in found.overlaps.items():
        part, _, other = names.partition(" in ")
        if count >= SHARED * sizes[part]:
            yield f"{count:,} of the {sizes[part]:,} examples of {part} have texts that {other} has, too"


def _some(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
