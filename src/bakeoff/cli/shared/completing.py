"""Completion in the shell: names of recipes and data sets, folders of runs; without torch, whose import is slow."""

from importlib import resources
from pathlib import Path

MOST = 200
"""The most entries of a folder that are searched."""


def complete_recipe(incomplete: str) -> list[str]:
    """The names of recipes that begin with the typed text."""
    folder = resources.files("bakeoff.recipes")
    names = sorted(each.name.removesuffix(".yaml") for each in folder.iterdir() if each.name.endswith(".yaml"))
    return [name for name in names if name.startswith(incomplete)]


def complete_source(incomplete: str) -> list[str]:
    """The folders of runs, and the names of recipes, that begin with the typed text."""
    return [*complete_run(incomplete), *complete_recipe(incomplete)]


def complete_run(incomplete: str) -> list[str]:
    """The folders that begin with the typed text: runs first, then folders that may hold runs."""
    parent, _, start = incomplete.rpartition("/")
    folder = Path(parent or ("/" if incomplete.startswith("/") else "."))
    prefix = incomplete[: len(incomplete) - len(start)]
    try:
        inside = sorted(each for each in folder.iterdir() if each.name.startswith(start) and each.is_dir())[:MOST]
    except OSError:
        return []
    shown = [each for each in inside if start.startswith(".") or not each.name.startswith(".")]
    runs = [each for each in shown if (each / "recipe.yaml").is_file()]
    return [f"{prefix}{each.name}" for each in runs] + [f"{prefix}{each.name}/" for each in shown if each not in runs]


def complete_dataset(incomplete: str) -> list[str]:
    """The names of published data sets that begin with the typed text."""
    from bakeoff.tasks.datasets.dataset import dataset_names

    return [name for name in dataset_names() if name.startswith(incomplete)]


def complete_tracker(incomplete: str) -> list[str]:
    """The names of trackers that begin with the typed text."""
    from bakeoff.tracking.track import TRACKERS

    return [name for name in TRACKERS if name.startswith(incomplete)]
