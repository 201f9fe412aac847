"""`bakeoff generate`."""

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.answer_files import Out, require_out, save_answers
from bakeoff.cli.answers import Blank, TextsFile, on_one_line, print_answers, print_json_answers, texts_of
from bakeoff.cli.output import Device, Errors, Json, Seed, remark_unfinished
from bakeoff.cli.shared_options import of_checkpoint
from bakeoff.display.terminal import tell
from bakeoff.display.wording import counted


@of_checkpoint("run")
def generate(
    run: Annotated[Path, typer.Argument(help="A run of a causal or a sequence-to-sequence model.")],
    prompt: Annotated[
        list[str] | None,
        typer.Argument(help="Texts to continue or translate. If there are none, they are read from --texts."),
    ] = None,
    texts: TextsFile = None,
    text_column: Annotated[
        str | None, typer.Option(help="Column or field of --texts with the text. Default: text.")
    ] = None,
    tokens: Annotated[int, typer.Option(min=1, help="Maximal number of tokens to write.")] = 100,
    temperature: Annotated[
        float, typer.Option(min=0.0, help="Temperature of sampling; 0 always takes the most likely token.")
    ] = 1.0,
    top_k: Annotated[int | None, typer.Option(min=1, help="Sample only from the K most likely tokens.")] = None,
    top_p: Annotated[
        float, typer.Option(help="Sample only from the smallest set of tokens whose probabilities sum to P.")
    ] = 1.0,
    beams: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Width of a beam search for the likeliest text, in place of sampling; 1 is --temperature 0.",
        ),
    ] = None,
    length_penalty: Annotated[
        float, typer.Option(min=0.0, help="With --beams: a value above 0 favours longer texts.")
    ] = 0.6,
    seed: Seed = 0,
    out: Out = None,
    errors: Errors = "strict",
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Continue texts, fill in [MASK] with a sequence-to-sequence model, or translate.

    A continuation is printed without its prompt. It begins with a space if a space stands between the two.

    Example: bakeoff generate runs/gpt "The history of the city" --tokens 50 --top-p 0.9

    Example: bakeoff generate runs/de-en --beams 4 < test.de > test.en
    """
    from bakeoff.inference.generate import write
    from bakeoff.inference.generation_config import GenerationConfig
    from bakeoff.runs.run import Run

    config = GenerationConfig.parse(
        {
            "tokens": tokens,
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "beams": beams,
            "length_penalty": length_penalty,
            "seed": seed,
        },
        "generate",
    )
    require_out(out)
    opened = Run.open_trained(run)
    remark_unfinished(opened)
    arguments = list(prompt or [])
    prompts = texts_of([arguments], texts, [text_column or "text"], text_column is not None, errors, ["--text-column"])
    blank = Blank(opened.tokenizer)
    parts = (blank.counted(part) for part in write(opened, prompts, config, device=device))
    if out is not None:
        count = save_answers(out, ([each._asdict() for each in part] for part in parts))
        tell(f"{out}: {counted(count, 'text')}")
    elif json:
        print_json_answers([each._asdict() for each in part] for part in parts)
    else:
        # Each of several texts takes one line.
        shown = str if arguments else on_one_line
        print_answers([shown(each.answer) for each in part] for part in parts)
    blank.tell("nothing" if opened.recipe.model.encoder is not None else "a text of the model's own")
