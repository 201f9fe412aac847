"""`bakeoff generate`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from bakeoff.cli.shared.decorators import noted, of_checkpoint, taking
from bakeoff.cli.shared.makers import options_of
from bakeoff.cli.shared.options import Device, Errors, Json, Precision
from bakeoff.cli.shared.output_files import Out, require_out, save_records
from bakeoff.cli.shared.printing import remark_unfinished
from bakeoff.cli.shared.texts import Blank, TextColumn, TextsFile, on_one_line, print_json, print_lines, texts_of
from bakeoff.display.terminal import tell
from bakeoff.display.wording import counted
from bakeoff.generation.config import GenerationConfig


@noted
@of_checkpoint("run")
@taking(chosen=options_of(GenerationConfig))
def generate(
    run: Annotated[Path, typer.Argument(help="A run of a causal or a sequence-to-sequence model.")],
    prompt: Annotated[
        list[str] | None,
        typer.Argument(help="Texts to continue or translate. If there are none, they are read from --texts."),
    ] = None,
    texts: TextsFile = None,
    text_column: TextColumn = None,
    *,
    chosen: dict[str, Any],
    out: Out = None,
    errors: Errors = "strict",
    device: Device = "auto",
    precision: Precision = "float32",
    json: Json = False,
) -> None:
    """Continue texts, fill in [MASK] with a sequence-to-sequence model, or translate.

    A continuation is printed without its prompt. It begins with a space if a space stands between the two.

    Example: bakeoff generate runs/gpt "The history of the city" --tokens 50 --top-p 0.9

    Example: bakeoff generate runs/de-en --beams 4 < test.de > test.en
    """
    from bakeoff.generation.generate import write
    from bakeoff.generation.prompts import MASK, has_gaps
    from bakeoff.runs.run import Run

    config = GenerationConfig.parse(chosen, "generate")
    require_out(out)
    opened = Run.open_trained(run)
    remark_unfinished(opened)
    arguments = list(prompt or [])
    prompts = texts_of([arguments], texts, [text_column or "text"], text_column is not None, errors, ["--text-column"])
    blank = Blank(opened.tokenizer, MASK if has_gaps(opened) else "")
    parts = (blank.counted(part) for part in write(opened, prompts, config, device=device, precision=precision))
    if out is not None:
        count = save_records(out, ([each._asdict() for each in part] for part in parts))
        tell(f"{out}: {counted(count, 'text')}")
    elif json:
        print_json([each._asdict() for each in part] for part in parts)
    else:
        # Each of several texts takes one line.
        shown = str if arguments else on_one_line
        print_lines([shown(each.output) for each in part] for part in parts)
    blank.tell("nothing" if opened.recipe.model.encoder is not None else "a text of the model's own")
