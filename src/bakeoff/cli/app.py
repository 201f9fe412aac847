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
    pretrain,
    runs,
    score,
    serve,
    speed,
    tune,
    vectors,
)
from bakeoff.cli.shared_options import noted
from bakeoff.display.terminal import show

app = typer.Typer(
    name="bakeoff",
    help="Pre-train language models on your own text, and measure which one to use instead of guessing.",
    epilog="Each command has --help with an example. New here? Begin with docs/first-hour.md, or with: bakeoff demo",
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
        typer.Option(
            metavar="FILE",
            help="Python file with layers, objectives or other parts of yours (docs/plugins.md). May be repeated.",
        ),
    ] = None,
) -> None:
    if plugin:
        from bakeoff.plugins import load_plugin

        for path in plugin:
            load_plugin(path)


app.command(short_help="Try everything in minutes, on text that ships with Python")(noted(demo.demo))
app.command(short_help="List the recipes that come with Bakeoff")(models.recipes)
app.command(short_help="Print a whole recipe, its size and its cost")(models.show)
app.command(short_help="Turn your text into a corpus, once, for all other commands")(noted(prepare.prepare))
app.command(short_help="See what a model reads and predicts in training")(inspection.peek)
app.command(short_help="Train a new model on a corpus")(noted(pretrain.pretrain))
app.command(short_help="Find the best learning rate of a recipe")(noted(tune.tune))
app.command(short_help="Teach a pre-trained model your labels")(noted(finetune.finetune))
app.command(short_help="Measure a model on held-out text or on labelled data")(noted(evaluate.evaluate))
app.command(short_help="Label texts with a fine-tuned model")(noted(predict.predict))
app.command(short_help="Fill in each [MASK] of a text")(filling.fill)
app.command(short_help="Say how probable texts are")(noted(score.score))
app.command(short_help="Continue texts, or translate them")(noted(inference.generate))
app.command(short_help="Give each text a vector")(noted(vectors.embed))
app.command(short_help="Measure how alike texts are, without training")(noted(vectors.similarity))
app.command(short_help="See what each layer of a model does")(noted(inspection.inspect))
app.command(short_help="Find out which recipe is better, and by how much")(noted(comparison.compare))
app.command(short_help="List what was trained, or draw its curves")(runs.runs)
app.command(short_help="Follow a training until it ends")(runs.watch)
app.command(short_help="Measure how fast recipes are on this machine")(noted(speed.speed))
app.command(short_help="Find damage in files, and mistakes in labelled data")(noted(check.check))
app.command("import", short_help="Turn a model that others have trained into a run")(noted(interop.import_model))
app.command(short_help="Write a model for transformers, ONNX, GGUF and others")(noted(interop.export))
app.command(short_help="Try models in a browser, or answer programs over HTTP")(serve.serve)
