"""`bakeoff generate`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.output import Device, Json, Seed, print_json, remark_unfinished
from bakeoff.cli.tasks import lines
from bakeoff.display.terminal import write


def generate(
    run: Annotated[Path, typer.Argument(help="A run of a causal or a sequence-to-sequence model.")],
    prompt: Annotated[list[str] | None, typer.Argument(help="Texts; absent: one a line from standard input.")] = None,
    tokens: Annotated[int, typer.Option(min=1, help="The most tokens to write.")] = 100,
    temperature: Annotated[float, typer.Option(min=0.0, help="0 takes the most likely token always.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(min=1, help="Sample from the so many most likely tokens.")] = None,
    top_p: Annotated[float, typer.Option(help="Sample from the fewest tokens that have this share together.")] = 1.0,
    beams: Annotated[
        int | None, typer.Option(min=1, help="Search for the likeliest text instead; 1: as --temperature 0.")
    ] = None,
    length_penalty: Annotated[float, typer.Option(min=0.0, help="Of the search: above 0 favours longer texts.")] = 0.6,
    seed: Seed = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Continue texts, fill in [MASK] with a sequence-to-sequence model, or translate.

    Example: bakeoff generate runs/gpt "The history of the city" --tokens 50 --top-p 0.9

    Example: bakeoff generate runs/de-en --beams 4 < test.de > test.en
    """
    from bakeoff.inference.generate import generate as generate_texts
    from bakeoff.inference.generation import GenerationConfig
    from bakeoff.training.run import Run

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
    opened = Run.open_trained(run)
    remark_unfinished(run)
    # A translation has as many lines as its source, blank ones included.
    prompts = list(prompt or []) or lines(sys.stdin, blank=opened.recipe.input.parallel)
    written = generate_texts(opened, prompts, config, device=device)
    if json:
        print_json([{"prompt": text, "text": found} for text, found in zip(prompts, written, strict=True)])
        return
    for found in written:
        write(found)
