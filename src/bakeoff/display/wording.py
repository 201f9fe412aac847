"""Numbers in readable form: percent, thousands, minutes."""

import re
from collections.abc import Collection, Iterable, Sequence

MINUS = "\N{MINUS SIGN}"


def percent(fraction: float, digits: int = 1) -> str:
    """A fraction in percent without the sign: 0.8123 as 81.2."""
    return f"{100 * fraction:z.{digits}f}".replace("-", MINUS)


def share_text(fraction: float) -> str:
    """A share with its sign: 0.0312 as `3.1 %`; a share that is not quite nothing, or not quite all, shows so."""
    if 0 < fraction < 0.0005:
        return "under 0.1 %"
    return "over 99.9 %" if 0.9995 <= fraction < 1 else f"{percent(fraction)} %"


def points(fraction: float, digits: int = 1) -> str:
    """A difference of fractions in percentage points, always with its sign."""
    return f"{100 * fraction:+z.{digits}f}".replace("-", MINUS)


def number(value: float | None, digits: int = 4) -> str:
    """A number with so many decimals; None in words."""
    return "no number" if value is None else f"{value:.{digits}f}"


def quantity(value: float) -> str:
    """A number with a unit prefix: 12345678 as 12.3 M."""
    for limit, unit in ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * limit:
            scaled = value / limit
            return f"{scaled:.{0 if scaled >= 99.95 else 1}f} {unit}"
    return f"{value:.0f}"


def memory(value: float | None) -> str:
    """Bytes in MiB or GiB; None as "not measured"."""
    if value is None:
        return "not measured"
    return f"{value / 2**30:.1f} GiB" if value >= 2**30 else f"{value / 2**20:.0f} MiB"


def duration(seconds: float) -> str:
    """A duration in s, min or h."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def p_value(p: float) -> str:
    """A p-value: 0.0312 as 0.031, and below 0.001 as a bound."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def listed(names: Sequence[str], last: str = "and") -> str:
    """Names as a list in a sentence: A, B and C."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}" if names else ""


def counted(number: int, singular: str) -> str:
    """A number with its noun: 1 seed, 3,000 seeds."""
    return f"{number:,} {singular}" if number == 1 else f"{number:,} {singular}s"


def verb(number: int, singular: str, plural: str) -> str:
    """The form of a verb after so many: 1 repeats, 3 repeat."""
    return singular if number == 1 else plural


def budget(text: str) -> str:
    """A budget in words: minutes=10 as 10 minutes, flops=18000000000.0 as 1.8e10 FLOPs."""
    kind, _, amount = text.partition("=")
    if kind == "flops":
        amount = f"{float(amount):.4g}".replace("e+", "e")
    return f"{amount} {'FLOPs' if kind == 'flops' else kind.removesuffix('s') if amount == '1' else kind}"


def quoted(name: str) -> str:
    """A name that a user gave, in a sentence: in quotation marks where it could be read as words of the sentence.

    A name without white space that has a digit, a hyphen or the like, or two capitals, cannot: bert-mini, SST-2, TREC.
    """
    plain = re.fullmatch(r"[\w./@+:-]*\w", name) and re.search(r"[\d_./@+:-]|[A-Z].*[A-Z]", name)
    return name if plain else f"“{name}”"


def quoted_list(names: Iterable[str]) -> str:
    """Names that a user gave as a list in a sentence: bert-mini, “one” and “two”."""
    return listed([quoted(name) for name in names])


def states_of(layers: Sequence[int]) -> str:
    """The states of layers that are averaged, as `embed --layers` numbers them, in words."""
    if list(layers) == [-1]:
        return "the last layer's states"
    return f"the states of {'layer' if len(layers) == 1 else 'layers'} {listed([str(each) for each in layers])}"


def capitalised(text: str) -> str:
    """A text that begins a sentence."""
    return text[:1].upper() + text[1:]


def aligned(rows: Sequence[Sequence[str]], numbers: Collection[int] = ()) -> list[str]:
    """The lines of a table for people, without columns that are empty.

    Args:
        rows: cells, as many in each row.
        numbers: the columns that end at one place; others begin at one.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if column in numbers else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            if width
        ).rstrip()
        for row in rows
    ]
