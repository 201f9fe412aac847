"""The application: its verbs in the order in which `bakeoff --help` lists them."""

import platform
from importlib import metadata
from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli import (
    check,
    comparison,
    demo,
    evaluate,
    filling,
    finetune,
    inference,
    inspection,
    interop,
    models,
    predict,
    prepare,
    runs,
    score,
    serve,
    speed,
    tune,
    vectors,
)
from bakeoff.display.terminal import show

app = typer.Typer(
    name="bakeoff",
    help="Pre-train language models on your own text, and measure which one to use instead of guessing.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        import torch

        from bakeoff.resources.device import processor_name, resolve_device

        device = resolve_device("auto")
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else processor_name()
        show(
            f"bakeoff {metadata.version('bakeoff')}, torch {torch.__version__}, Python {platform.python_version()}, "
            f"device {device.type} ({name})"
        )
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_version,
            is_eager=True,
            help="Print the versions of Bakeoff, torch and Python, and the device.",
        ),
    ] = False,
    plugin: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="A Python file with parts of your own (docs/plugins.md); may be repeated."),
    ] = None,
) -> None:
    if plugin:
        from bakeoff.plugins import load_plugin

        for path in plugin:
            load_plugin(path)


app.command()(demo.demo)
app.command()(models.recipes)
app.command()(models.show)
app.command()(prepare.prepare)
app.command()(inspection.peek)
app.command()(models.pretrain)
app.command()(tune.tune)
app.command()(finetune.finetune)
app.command()(evaluate.evaluate)
app.command()(predict.predict)
app.command()(filling.fill)
app.command()(score.score)
app.command()(inference.generate)
app.command()(vectors.embed)
app.command()(vectors.similarity)
app.command()(inspection.inspect)
app.command()(comparison.compare)
app.command()(runs.runs)
app.command()(runs.watch)
app.command()(speed.speed)
app.command()(check.check)
app.command("import")(interop.import_model)
app.command()(interop.export)
app.command()(serve.serve)
