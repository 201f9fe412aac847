"""Seeds that are added to a finished comparison, and the record of the verdicts that were seen before."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from bakeoff import checksums
from bakeoff.comparison.planning.names import MOST_SEEDS
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.results import RESULTS
from bakeoff.comparison.running.spendable import BUDGET
from bakeoff.comparison.statistics.noise import SEEDS_FOR_A_CLAIM
from bakeoff.config import LARGEST, Record
from bakeoff.errors import UserError
from bakeoff.json_files import read_json

SEEDS = "seeds.json"
"""The file of a comparison's directory with the seeds that were added and the looks before them."""


class Published(Record):
    """What the growth of a comparison has to know of its results.json."""

    planned_seeds: list[int]
    """The seeds that were planned."""
    finished_seeds: list[int]
    """Those that had finished."""


class Growth(NamedTuple):
    """How a comparison has grown by seeds."""

    added: list[int]
    """The seeds that were added to those of the plan."""
    looks: list[int]
    """The numbers of seeds at which verdicts were seen before, with other seeds than the present ones."""
    seen: list[list[int]]
    """The seeds themselves of every look, also of one with the present seeds."""

    def write(self, out: Path) -> None:
        """Write `seeds.json`, unless nothing but the present seeds was ever seen."""
        if self.added or self.seen:
            checksums.write(out / SEEDS, json.dumps(self._asdict()) + "\n")


class _Written(Record):
    """The content of seeds.json."""

    added: list[int] = Field(default=[])
    looks: list[int] = Field(default=[])
    seen: list[list[int]] = Field(default=[])
    """Missing in files of older versions, whose comparisons have only grown."""


def require_number(add_seeds: int | None, only: Sequence[str]) -> None:
    """Refuse a number of seeds to add that adds none, or more than any comparison has, or adds them for some recipes.

    Raises:
        UserError: it is below 1, or above `MOST_SEEDS`; or `only` some recipes are asked for, and all are compared over
            the same seeds.
    """
    if add_seeds is not None and only:
        raise UserError("--add-seeds: all recipes are compared over the same seeds; leave --only out")
    if add_seeds is not None and add_seeds < 1:
        raise UserError(f"--add-seeds: {add_seeds} is below 1; give the number of seeds to add")
    if add_seeds is not None and add_seeds > MOST_SEEDS:
        raise UserError(f"--add-seeds: {add_seeds} are too many; give {MOST_SEEDS:,} at most")


def grown(plan: Plan, out: Path, add_seeds: int | None) -> tuple[Plan, Growth]:
    """The plan with the seeds that were added to it, and are now.

    Args:
        plan: the plan as it is written.
        out: the comparison's directory.
        add_seeds: the number of seeds to add to a finished comparison; of one that has begun to grow, the seeds that
            were added are finished first, and no others are added.

    Raises:
        UserError: seeds are to be added to a comparison that is not finished, or seeds would be beyond 64 bits.
    """
    written = _Written()
    if (out / SEEDS).is_file():
        written = _Written(**_Written.check(read_json(out / SEEDS), str(out / SEEDS)))
    before: list[int] = []
    if (path := out / RESULTS[0]).is_file() and (out / BUDGET).is_file():
        published = Published.check(read_json(path), str(path))
        if set(published["planned_seeds"]) == set(published["finished_seeds"]):
            before = published["planned_seeds"]
    added = [seed for seed in written.added if seed not in plan.seeds]
    seeds = [*plan.seeds, *added]
    if add_seeds is not None and set(seeds) <= set(before):
        first = max(seeds) + 1
        if first + add_seeds - 1 > LARGEST:
            raise UserError(f"--add-seeds: seeds after {first - 1} are beyond the whole numbers of 64 bits")
        added += range(first, first + add_seeds)
        seeds = [*plan.seeds, *added]
    elif add_seeds is not None and not added:
        raise UserError(
            f"--add-seeds: {out} is not finished; the same command without it goes on, and then it may grow"
        )
    # Kept for good: a plan with fewer seeds, or others, overwrites the results but not what was seen in them.
    seen = written.seen or [seeds[:number] for number in written.looks]
    if len(before) >= SEEDS_FOR_A_CLAIM and set(before) not in [set(seeds), *map(set, seen)]:
        seen = [*seen, before]
    looks = [len(each) for each in seen if set(each) != set(seeds)]
    return plan.model_copy(update={"seeds": seeds}), Growth(added, looks, seen)
