"""Rows on the terminal; targets stand in brackets, so that they stand out without colour, too."""

import re

from rich.text import Text

from bakeoff.display.console import Console
from bakeoff.display.text import escaped
from bakeoff.display.wording import counted, percent, quantity
from bakeoff.inspection.peek import Drawn, Peek
from bakeoff.inspection.rows import Row, RowText
from bakeoff.objectives.registry import OBJECTIVES
from bakeoff.tokenizer.pieces import TokenRun
from bakeoff.training.row_use import RowUse

STYLES = {
    "special": "dim",
    "mark": "bold green",
    "masked": "bold magenta",
    "replaced": "bold yellow",
    "kept": "bold cyan",
    "shuffled": "bold blue",
    "ordered": "bold magenta",
    "next": "bold magenta",
}

MEANINGS = {
    "mark": "a span of the text is missing here",
    "masked": "x is hidden, and predicted",
    "replaced": "y is read in the place of x, and x predicted",
    "kept": "x is read, and predicted all the same",
    "shuffled": "x y z are read in another order, and predicted in their own; {=x y z} is the same by chance",
    "ordered": "x is predicted second, from all that has no number and from number 1",
    "next": "x comes next; it is predicted from all before it, as is every token after the first",
}

COUNTS = {"masked": "hidden", "replaced": "replaced", "kept": "shown"}


def print_peek(peek: Peek) -> None:
    """Print the meaning of the brackets, the rows and the counts of targets, in lines of the terminal's width."""
    console = Console()
    which = "held-out rows" if peek.held_out else "rows"
    draws = "" if peek.held_out else f", seed {peek.seed}"
    shown = f"{len(peek.rows):,} of {peek.epoch_rows:,} {which} of {peek.corpus}"
    if len(peek.rows) > peek.epoch_rows:  # later epochs show the same text with targets that are drawn anew
        shown = f"{counted(len(peek.rows), 'row')} of {peek.corpus}, which has {peek.epoch_rows:,} an epoch"
    _print(console, peek.recipe, Text(f"{shown}{draws}"))
    samples = _samples(peek)
    width = max((sample.cell_len for sample, _ in samples), default=0)
    for sample, meaning in samples:
        sample.pad_right(width - sample.cell_len)
        _print(console, Text("  ").append_text(sample), Text(meaning))
    for row in peek.rows:
        console.print()
        _print(console, f"row {row.number}", Text(_header(row)))
        padding = {"source": row.source_length - row.source_tokens, row.lines[-1].name: row.length - row.tokens}
        lines = {line.name: _body(line, padding.get(line.name, 0)) for line in row.lines}
        lines |= _order(row)
        width = max(map(len, lines))
        for name, body in lines.items():
            _print(console, Text(f"  {name:<{width}}", "dim"), body)
    console.print()
    whose = "the targets'" if peek.rows[0].source_length else "the"
    rows = {drawn.objective: _drawn(drawn, whose) for drawn in peek.drawn}
    if peek.packing is not None:
        rows["packing"] = _packing(peek.packing, peek.held_out)
    width = max(map(len, rows))
    for name, text in rows.items():
        _print(console, f"{name:<{width}}", Text(text))


def _packing(packing: RowUse, held_out: bool) -> str:
    reader = "the held-out loss reads" if held_out else "an epoch reads"
    text = f"{percent(packing.filled)} % of the places hold tokens, the rest is padding"
    if packing.read is not None:
        text += f"; {reader} {percent(packing.read)} % of the {'held-out ' if held_out else ''}text"
    if packing.repeated:
        text += f", {percent(packing.repeated)} % more than once"
    if packing.sampled:
        text += f" (measured on {quantity(packing.measured_tokens)} of its tokens)"
    return text


def _print(console: Console, label: str | Text, body: Text) -> None:
    """Print a label and a text beside it, all of whose lines begin in the same column."""
    head = Text(label, "bold") if isinstance(label, str) else label
    head.append("  ")
    for line in body.wrap(console, max(console.width - head.cell_len, 20)):
        line.rstrip()
        console.print(Text.assemble(head, line), soft_wrap=True)  # Text addition would give both the head's style
        head = Text(" " * head.cell_len)


def _samples(peek: Peek) -> list[tuple[Text, str]]:
    """A sample of each kind of bracket and unusual line that the rows have, with its meaning."""
    first: dict[str, TokenRun] = {}
    for row in peek.rows:
        for line in row.lines:
            for piece in line.pieces:
                first.setdefault(piece.kind, piece)
    samples = []
    for kind in MEANINGS:
        if kind in first:
            many = len(first[kind].ids) > 1
            text = {"masked": first[kind].text, "mark": first[kind].text, "shuffled": "y z x"}.get(kind, "y")
            example = {
                "space": False,
                "text": text,
                "ids": [],
                "original": "x y z" if many else "x",
                "order": 2,
            }
            meaning = _meaning(first[kind])
            if peek.rows[0].source_length:
                meaning = meaning.replace("all before it", "the source and all before it")
            samples.append((_printed(first[kind].model_copy(update=example)), meaning))
    if any(line.name.startswith("context") for row in peek.rows for line in row.lines):
        samples.append((Text("context", "dim"), "is read, and not predicted once more"))
    if any(line.name.startswith("prefix") for row in peek.rows for line in row.lines):
        samples.append((Text("prefix", "dim"), "is seen from both sides, and not predicted"))
    if peek.source is not None:
        samples.append((Text("source", "dim"), peek.source))
    if any(line.name == "reused" for row in peek.rows for line in row.lines):
        meaning = "is remembered by the next step's row, which begins after it; it sees nothing of A and B"
        samples.append((Text("reused", "dim"), meaning))
    return samples


def _meaning(piece: TokenRun) -> str:
    """The meaning of the brackets around a piece."""
    note = None if piece.objective is None else OBJECTIVES[piece.objective].peek_note
    return note if piece.kind == "next" and note is not None else MEANINGS[piece.kind]


def _header(row: Row) -> str:
    """The line above a row: tokens, segments, documents, padding, direction of reading, relation of segments."""
    sizes = {line.name: sum(len(piece.ids) for piece in line.pieces) for line in row.lines}
    tokens = counted(row.tokens + row.source_tokens, "token")
    if "A" in sizes or "source" in sizes:
        tokens += f" ({', '.join(f'{name} {size}' for name, size in sizes.items())})"
    elif numbers := {name.partition(" ")[2] for name in sizes} - {""}:
        tokens += f" of {len(numbers)} documents"
    positions = row.length + row.source_length
    padding = positions - row.tokens - row.source_tokens
    share = f"{padding} of padding ({percent(padding / positions)} %)" if padding else "no padding"
    notes = ["read from the text's end"] if row.backwards else []
    if row.both_sides is not None:
        notes.append("read from both sides" if row.both_sides else "read causally")
    notes += [f"{name}: {text}" for name, text in row.relations.items()]
    for name, counts in row.classes.items():
        notes.append(f"{name}: " + ", ".join(f"{count} {each}" for each, count in counts.items()))
    if row.follows is not None:
        notes.append("B follows A" if row.follows else "B comes from elsewhere")
    return "; ".join([f"{tokens}, {share}", *notes])


def _body(line: RowText, padding: int) -> Text:
    text = Text()
    for piece in line.pieces:
        text.append_text(_printed(piece))
    text.append(f" (+ {padding} padding)" if padding else "", "dim")
    return text[1:] if text.plain.startswith(" ") else text


_JOINERS = "\u200c\u200d"
"""Signs without a width by which neighbours are written apart or as one: in Persian, Hindi, and emoji of several."""
_JOINER_ALONE = re.compile(rf"(?<!\S)[{_JOINERS}]+(?!\S)")


def _order(row: Row) -> dict[str, Text]:
    """The original tokens in the order of their prediction; empty if there is no order."""
    ordered = [(piece.order, piece.original) for line in row.lines for piece in line.pieces if piece.order is not None]
    return {"order": Text(" → ".join(_visible(original) for _, original in sorted(ordered)))} if ordered else {}


def _printed(piece: TokenRun) -> Text:
    """A piece with its brackets, and the space before it outside of the brackets."""
    read, original = _visible(piece.text), _visible(piece.original)
    forms = {
        "masked": f"[{read.strip('[]')}→{original}]",
        "replaced": f"[{read}→{original}]",
        "kept": f"[={original}]",
        "shuffled": f"{{={original}}}" if piece.ids == piece.targets else f"{{{read}→{original}}}",
        "ordered": f"[{piece.order}:{original}]",
        "next": f"[→{original}]",
    }
    return Text(" " if piece.space else "").append(forms.get(piece.kind, read), STYLES.get(piece.kind, ""))


def _visible(text: str) -> str:
    """The text with control characters escaped, and a single space as ␣; joiners within words join what they do."""
    text = "␣" if text == " " else _JOINER_ALONE.sub(lambda match: escaped(match[0]), text.replace("\n", "↵"))
    return "".join(char if char.isprintable() or char in _JOINERS else escaped(char) for char in text)


def _drawn(drawn: Drawn, whose: str) -> str:
    counts = ", ".join(f"{count:,} {COUNTS.get(name, name)}" for name, count in drawn.counts.items())
    if not drawn.targets:
        return counts or "nothing is predicted"
    if drawn.generator_learns is not None:
        learns = drawn.generator_learns
        asked = f"is each the original, once a generator has filled what {learns} hides?"
        return f"{percent(drawn.share)} % of {whose} tokens: {asked}"
    return f"{percent(drawn.share)} % of {whose} tokens predicted" + (f": {counts}" if counts else "")
