"""`bakeoff fill`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bakeoff.cli.shared.decorators import of_checkpoint
from bakeoff.cli.shared.options import Device, Errors, Json, Precision
from bakeoff.cli.shared.output_files import Out, require_out, save_records
from bakeoff.cli.shared.printing import remark_unfinished
from bakeoff.cli.shared.texts import TextColumn, TextsFile, on_one_line, print_json, print_lines, texts_of
from bakeoff.display.terminal import tell
from bakeoff.display.wording import counted

if TYPE_CHECKING:
    from bakeoff.using.filling import Filled

TEXTS_AT_ONCE = 2048
"""The most texts that are read ahead, so that texts of similar length go through the model together."""


@of_checkpoint("run")
def fill(
    run: Annotated[Path, typer.Argument(help="A pre-trained run.")],
    text: Annotated[
        list[str] | None, typer.Argument(help="Texts with [MASK]. If there are none, they are read from --texts.")
    ] = None,
    texts: TextsFile = None,
    text_column: TextColumn = None,
    k: Annotated[
        int,
        typer.Option("-k", "--k", min=1, help="Number of tokens to print for each [MASK], the most probable first."),
    ] = 5,
    out: Out = None,
    errors: Errors = "strict",
    device: Device = "auto",
    precision: Precision = "float32",
    json: Json = False,
) -> None:
    """Say which tokens belong at each [MASK] of a text, and how probable each is.

    A line has a mask's tokens with their probabilities, and at its end the text. A run that reads forwards fills a
    [MASK] at the end of a text.

    Example: bakeoff fill runs/bert "The capital of [MASK] is a large city."

    Example: bakeoff fill runs/bert --texts questions.txt -k 1 --out answers.jsonl
    """
    from bakeoff.reading.text_files import read_ahead
    from bakeoff.resources.device import Placement
    from bakeoff.resources.inference import for_inference
    from bakeoff.runs.run import Run
    from bakeoff.using.filling import Filler

    require_out(out)
    opened = Run.open_trained(run)
    remark_unfinished(opened)
    arguments = list(text or [])
    inputs = texts_of([arguments], texts, [text_column or "text"], text_column is not None, errors, ["--text-column"])
    placement = Placement.of(device, precision)
    filler = Filler(opened, for_inference(opened.load(placement.device), placement), placement.precision)

    def answered() -> Iterator[list[tuple[str, "Filled"]]]:
        done = 0
        for part in read_ahead(inputs, TEXTS_AT_ONCE):
            masked = [each for (each,) in part]
            asked = iter(filler.fill([each for each in masked if each.strip()], k, done))
            yield [(each, next(asked) if each.strip() else []) for each in masked]  # a blank text has no mask to fill
            done += len(masked)

    if out is not None:
        count = save_records(out, ([_record(*each) for each in part] for part in answered()))
        tell(f"{out}: {counted(count, 'text')}")
    elif json:
        print_json([_record(*each) for each in part] for part in answered())
    else:
        print_lines([line for each in part for line in _lines(*each)] for part in answered())


def _record(text: str, filled: "Filled") -> dict[str, Any]:
    return {"text": text, "masks": [[each._asdict() for each in mask] for mask in filled]}


def _lines(text: str, filled: "Filled") -> list[str]:
    shown = on_one_line(text, tabs=True)
    return ["\t".join([*(f"{_seen(each.token)} {each.probability:.4f}" for each in mask), shown]) for mask in filled]


def _seen(token: str) -> str:
    """A token as people see it: white space, which is a token of bytes and of characters, in quotation marks."""
    return token if token.strip() else repr(token)
