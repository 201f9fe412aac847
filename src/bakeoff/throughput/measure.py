"""`bakeoff speed`: training, inference and generation of recipes against the length of a row."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import torch

from bakeoff.errors import UserError, path_of
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe
from bakeoff.resources.device import resolve_device, resolve_precision
from bakeoff.runs.environment import environment
from bakeoff.throughput.cell import KINDS, Cell
from bakeoff.throughput.page import write_page
from bakeoff.throughput.results import PAGE, SpeedResults, require_place
from bakeoff.tokenizer.special_tokens import SPECIAL_TOKENS
from bakeoff.training.speed import medians_in_turns

LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096)
LONGEST = 2**24
"""Largest length of a row in tokens."""

SHORTEST = 8


def speed(
    recipes: Sequence[str | Path | Recipe],
    lengths: Sequence[int] = LENGTHS,
    *,
    batch_tokens: int = 4096,
    vocabulary: int | None = None,
    device: str = "auto",
    seconds: float = 1.0,
    most_seconds: float = 60.0,
    out: str | Path | None = None,
    progress: Callable[[str], None] | None = None,
) -> SpeedResults:
    """Measure training steps, inference, latency, generation and memory on random text.

    Recipes take turns at each length, and every figure is the median of at least three calls. Each row is full and one
    document, so that attention needs no mask.

    Args:
        recipes: names, files or recipes.
        lengths: lengths of rows in tokens.
        batch_tokens: tokens in a step. The number of rows is this divided by their length, but at least one.
        vocabulary: size of the vocabulary of every recipe; None: the recipe's.
        device: auto, cpu, cuda or mps.
        seconds: seconds for each measurement of one recipe at one length.
        most_seconds: measure a recipe at no greater length once one step takes longer than this, in seconds.
        out: a folder for speed.json, speed.csv and speed.html; None: nothing is written.
        progress: a function that is called with a line for each length.

    Raises:
        UserError: an argument is invalid, a recipe is given twice, or `out` cannot be made or holds other files under
            the names of these.
    """
    loaded = [each if isinstance(each, Recipe) else load_recipe(each) for each in recipes]
    names = [recipe.name for recipe in loaded]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{name}: given twice; give the copy that you have changed a 'name' of its own")
    if not loaded or not lengths:
        raise UserError("speed needs a recipe and a length at least")
    for value, option, least in (
        (min(lengths), "--lengths", SHORTEST),
        (batch_tokens, "--batch-tokens", 1),
        (vocabulary or len(SPECIAL_TOKENS) + 1, "--vocabulary", len(SPECIAL_TOKENS) + 1),
    ):
        if value < least:
            raise UserError(f"{option} {value}: give at least {least}")
    on = resolve_device(device)
    if out is not None:
        require_place(path_of(out, "out"))
    results = SpeedResults(
        environment=environment(on, ", ".join(sorted({resolve_precision(r.training.precision, on) for r in loaded}))),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        batch_tokens=batch_tokens,
        seconds=seconds,
        vocabulary={recipe.name: vocabulary or recipe.tokenizer.size for recipe in loaded},
        precision={recipe.name: resolve_precision(recipe.training.precision, on) for recipe in loaded},
        measurements=[],
    )
    ended: dict[str, int] = {}  # lengths at which recipes were too slow
    with torch.random.fork_rng(devices=[]):
        # The first model of a process loads libraries, whose memory and time would count as the first recipe's.
        Cell(loaded[0], min(lengths), 1, results.vocabulary[names[0]], on, most_seconds).prepare()
        for length in sorted(set(lengths)):
            cells = []
            for recipe in loaded:
                rows = max(1, batch_tokens // length)
                cell = Cell(recipe, length, rows, results.vocabulary[recipe.name], on, most_seconds)
                if recipe.name in ended:
                    cell.problem = f"not tried, too slow at length {ended[recipe.name]}"
                else:
                    cell.prepare()
                if cell.too_long:
                    ended[recipe.name] = length
                cells.append(cell)
            _measure(cells, seconds)
            measurements = [*results.measurements, *(cell.result() for cell in cells)]
            results = results.model_copy(update={"measurements": measurements})
            if out is not None:  # at every length, so that a stopped measurement keeps its results
                results.write(Path(out))
            if progress is not None:
                progress(f"length {length}: {sum(cell.problem is None for cell in cells)} of {len(cells)} recipes")
    if out is not None:
        write_page(results, Path(out) / PAGE)
    return results


def _measure(cells: Sequence[Cell], seconds: float) -> None:
    """Time all cells of one length in turns."""
    for kind in KINDS:
        ready = [cell for cell in cells if kind in cell.calls]
        medians = medians_in_turns([partial(cell.time, kind) for cell in ready], seconds) if ready else []
        for cell, median in zip(ready, medians, strict=True):
            cell.seconds[kind] = median


def parse_lengths(text: str) -> list[int]:
    """Parse lengths such as `64,128,256`, or `64..4096` for all doublings from the first to the last.

    Raises:
        UserError: the text has another form, or a length is too large.
    """
    if match := re.fullmatch(r"(\d+)\.\.(\d+)", text):
        first, last = int(match[1]), int(match[2])
        if 0 < first <= last <= LONGEST:
            return [first << i for i in range((last // first).bit_length())]
    elif re.fullmatch(r"\d+(,\d+)*", text) and max(map(int, text.split(","))) <= LONGEST:
        return [int(part) for part in text.split(",")]
    raise UserError(
        f"--lengths {text}: expected lengths such as 64,128,256, or 64..4096 for doublings, of {LONGEST:,} at most"
    )
