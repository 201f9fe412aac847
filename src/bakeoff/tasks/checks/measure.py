"""Lengths of the rows of labelled data, by a run, by a recipe and a tokenizer, or by a tokenizer alone."""

from pathlib import Path
from typing import NamedTuple

from bakeoff.errors import UserError
from bakeoff.recipe_files import load_recipe
from bakeoff.runs.checkpoint import run_folder
from bakeoff.tasks.fitting.starting_point import open_source
from bakeoff.tasks.rows.inputs import InputFormat

_ROWS_OF = "bert-tiny"
"""The recipe whose rows are measured where only a tokenizer is given: [CLS] A [SEP] B [SEP]."""


class Measure(NamedTuple):
    """The format in which examples are measured in tokens."""

    format: InputFormat
    """The format of the rows of a model."""
    limit: int | None
    """The length to which rows are cut; None: unknown."""


def measure_of(source: str | None, tokenizer: str | Path | None, length: int | None) -> Measure:
    """The format in which rows are measured.

    Args:
        source: a pre-trained run, or a recipe; None: only the tokenizer is known.
        tokenizer: a tokenizer.json or a directory with one, for a recipe or alone.
        length: the length to which rows will be cut; None: the recipe's, where there is one.

    Raises:
        UserError: no such run or recipe, or no tokenizer.
    """
    named = source or _ROWS_OF
    if source is not None and (run_folder(Path(source)) / "recipe.yaml").is_file():
        begun = open_source(source, tokenizer)
    elif source is not None and Path(source).is_dir():
        raise UserError(f"{source}: not a run; its rows are measured by a run, a recipe or --corpus DIR")
    else:
        begun = open_source(load_recipe(named), tokenizer)
    recipe = begun.recipe
    limit = recipe.input.length if source is not None else None
    return Measure(InputFormat(begun.tokenizer, recipe, recipe.input.length), length or limit)
