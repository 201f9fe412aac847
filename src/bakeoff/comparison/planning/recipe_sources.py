"""What the names of a plan stand for: recipes, runs, models elsewhere, corpora."""

import re
from collections.abc import Iterable
from pathlib import Path

from bakeoff.corpus.mixture import mixture_entries
from bakeoff.errors import UserError, at_home

YAML = (".yaml", ".yml")

HUB = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*(@[\w./-]+)?")
"""A name on the Hub: OWNER/NAME, with @REVISION or not."""


SEED = "{seed}"
"""What stands, in a start, for the number of each seed."""


def label_of(recipe: str) -> str:
    """The label of a recipe that has none in the plan; of a start for each seed, the part above that of the seed."""
    if recipe.endswith(YAML):
        return Path(recipe).stem
    if SEED in recipe:
        above = Path(recipe.partition(SEED)[0] + "-").parent.name
        return above or recipe
    last = Path(recipe.partition("@")[0] if HUB.fullmatch(recipe) else recipe).name
    return last or recipe


def elsewhere(name: str, folder: Path) -> str | None:
    """The source of weights that a name stands for: a folder's absolute path, or a name on the Hub; None: neither.

    A name on the Hub is one whose first part is no folder here.
    """
    path = (folder / at_home(name)).resolve()
    if path.is_dir():
        return str(path)
    # Beside other runs, what is not there is a run that is missing, and no name on the Hub.
    return name if HUB.fullmatch(name) and not path.parent.is_dir() else None


def of_seed(source: str, seed: int) -> str:
    """The source of weights for a seed."""
    return source.replace(SEED, str(seed))


def source_of(name: str, folder: Path, seeds: Iterable[int]) -> str | None:
    """The source that a name stands for, as of `elsewhere`, with `{seed}` in it where the name has it."""
    if SEED not in name:
        return elsewhere(name, folder)
    if any(elsewhere(of_seed(name, seed), folder) is None for seed in seeds):
        return None
    path = (folder / at_home(name)).resolve()
    return str(path) if any(Path(of_seed(str(path), seed)).is_dir() for seed in seeds) else name


def found_corpus(corpus: Path, folder: Path, where: str) -> Path:
    """A corpus, or a mixture of several, with absolute paths.

    Args:
        corpus: the directory, or directories with weights.
        folder: the folder to which paths are relative.
        where: the file and the key that an error message begins with.

    Raises:
        UserError: there is no such directory.
    """

    def find(path: Path) -> Path:
        resolved = (folder / at_home(path)).resolve()
        if not resolved.is_dir():
            raise UserError(f"{where}: there is no directory {resolved}; make it with `bakeoff prepare`")
        return resolved

    if entries := mixture_entries(str(corpus)):
        return Path(",".join(f"{find(each)}:{weight}" for each, weight in entries))
    if "," in str(corpus):
        raise UserError(f"{where}: of several give each with its weight, wiki:0.7,novels:0.3")
    return find(corpus)
