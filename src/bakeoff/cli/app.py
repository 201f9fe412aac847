"""The application: its verbs in the order in which `bakeoff --help` lists them."""

import platform
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main
from typer.core import TyperGroup
from typing_extensions import override

from bakeoff.cli.shared.once import Verb
from bakeoff.display.terminal import show
from bakeoff.extras import version_of
from bakeoff.machine.launch import require_no_torchrun

VERBS = {
    "demo": "Try everything in minutes, on text that ships with Python",
    "recipes": "List the recipes that come with Bakeoff",
    "show": "Print a whole recipe, its size and its cost",
    "prepare": "Turn your text into a corpus, once, for all other commands",
    "peek": "See what a model reads and predicts in training",
    "pretrain": "Train a new model on a corpus",
    "distill": "Train a model on what trained ones predict, too",
    "tune": "Find the best learning rate of a recipe",
    "finetune": "Teach a pre-trained model your labels",
    "evaluate": "Measure a model on held-out text or on labelled data",
    "predict": "Label texts with a fine-tuned model",
    "fill": "Fill in each [MASK] of a text",
    "score": "Say how probable texts are",
    "generate": "Continue texts, or translate them",
    "embed": "Give each text a vector",
    "contrast": "Teach a model vectors of your texts, without labels",
    "similarity": "Measure how alike texts are, without training",
    "inspect": "See what each layer of a model does",
    "compare": "Find out which recipe is better, and by how much",
    "babylm": "Make an entry to the BabyLM challenge, from text to submission",
    "runs": "List what was trained, or draw its curves",
    "watch": "Follow a training until it ends",
    "speed": "Measure how fast recipes are on this machine",
    "check": "Find damage in files, and mistakes in labelled data",
    "import": "Turn a model that others have trained into a run",
    "export": "Write a model for transformers, ONNX, GGUF and others",
    "serve": "Try models in a browser, or answer programs over HTTP",
}
"""What each verb is for; its function stands in the file of its name."""

TOGETHER = frozenset({"pretrain", "distill", "finetune", "contrast", "evaluate"})
"""Verbs that several processes of torchrun do together."""

_NO_NAMES = {"import": "import_model"}
"""Functions of verbs whose names are words of Python."""


class Commands(Mapping[str, Any]):
    """The commands by their verbs; a verb's file is imported when its command is asked for."""

    def __init__(self) -> None:
        self._imported: dict[str, Any] = {}

    @override
    def __getitem__(self, verb: str) -> Any:
        if verb not in self._imported:
            if verb not in VERBS:
                raise KeyError(verb)
            name = _NO_NAMES.get(verb, verb)
            alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
            alone.command(verb, cls=Verb, short_help=VERBS[verb])(getattr(import_module(f"bakeoff.cli.{name}"), name))
            self._imported[verb] = typer.main.get_command(alone)
        if verb not in TOGETHER:
            require_no_torchrun(verb)
        return self._imported[verb]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    @override
    def __len__(self) -> int:
        return len(VERBS)


class Verbs(TyperGroup):
    """The group of all verbs, which lists them without importing them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = Commands()

    @override
    def list_commands(self, ctx: Any) -> list[str]:
        return list(VERBS)

    @override
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


app = typer.Typer(
    name="bakeoff",
    cls=Verbs,
    help="Pre-train language models on your own text, and measure which one to use instead of guessing.",
    epilog="Each command has --help with an example. New here? Begin with docs/first-hour.md, or with: bakeoff demo",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        import torch

        from bakeoff.resources.device import device_name, resolve_device

        device = resolve_device("auto")
        show(
            f"bakeoff {version_of('bakeoff')}, torch {torch.__version__}, Python {platform.python_version()}, "
            f"device {device.type} ({device_name(device)})"
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
