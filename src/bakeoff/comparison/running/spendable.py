"""The budget of each recipe of a comparison: fixed once, kept in budget.json, and if in minutes corrected once."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from bakeoff import checksums
from bakeoff.comparison.facts import BudgetFacts
from bakeoff.comparison.planning.own_settings import AS_IT_IS
from bakeoff.comparison.running.correction import Pace
from bakeoff.jobs.runner import Say
from bakeoff.json_files import read_json
from bakeoff.optimization.budget import Budget
from bakeoff.same_settings import require_same
from bakeoff.unfinished import ELSEWHERE

BUDGET = "budget.json"
"""The name of the file that a comparison's directory has before any result."""

Measure = Callable[[list[str]], Sequence[tuple[float, float]]]


class Spendable:
    """The budgets of a plan, with the steps of each recipe that follow from minutes.

    Args:
        text: the budget as the plan gives it, such as `minutes=10`; `AS_IT_IS`: every recipe has one of its own.
        budgets: the budget of each recipe by label; `AS_IT_IS`: it is not trained.
        out: the comparison's directory.
        say: a function that shows one line of progress.

    Raises:
        UserError: an earlier call had another budget.
    """

    def __init__(self, text: str, budgets: Mapping[str, str], out: Path, say: Say) -> None:
        self.path, self.say = out / BUDGET, say
        self.settings: Mapping[str, str] = {}
        self.facts = BudgetFacts(text=text, own={name: own for name, own in budgets.items() if own != text})
        self.begun = self.path.is_file()
        """Whether an earlier call has left a budget.json."""
        if not self.begun:
            checksums.require_present(self.path)
            return
        kept = BudgetFacts.parse(read_json(self.path), str(self.path), strict=True)
        known = {} if AS_IT_IS in (kept.text, text) else {"budget": (kept.text, text)}  # else it says nothing
        known |= {f"budget of {name}": (kept.of(name), budgets[name]) for name in kept.steps if name in budgets}
        before, now = ({key: sides[side] for key, sides in known.items()} for side in (0, 1))
        require_same(out, before, now, f"restore the plan, or {ELSEWHERE}")
        gone = {name: own for name, own in kept.own.items() if name not in budgets}
        self.facts = kept.model_copy(update={"text": text, "own": gone | self.facts.own})

    def minutes(self, name: str) -> float | None:
        """The budget of a recipe in minutes; None: it is in another unit, or there is none."""
        text = self.facts.of(name)
        return None if text == AS_IT_IS else Budget.parse_text(text).minutes

    def write(self) -> None:
        """Write budget.json for the next call."""
        checksums.write(self.path, self.facts.model_dump_json(indent=1) + "\n")

    def settle_threads(self, threads: int | None) -> None:
        """Write the number of threads of every training into budget.json; None: as many as torch has."""
        if threads != self.facts.threads:
            self.facts = self.facts.model_copy(update={"threads": threads})
            self.write()

    def by_recipe(self, names: Iterable[str]) -> dict[str, str]:
        """The budget of each recipe by label, in steps such as `steps=1000` where these are known."""
        steps = self.facts.steps
        return {name: f"steps={steps[name]}" if name in steps else self.facts.of(name) for name in names}

    def fix(self, names: Iterable[str], measure: Measure, settings: Mapping[str, str] | None = None) -> None:
        """Turn minutes into steps, once for all seeds; other budgets need no measurement.

        Args:
            names: labels of the recipes that are trained.
            measure: a function that takes labels and gives for each recipe the seconds of a step on an idle machine
                and the seconds of its work.
            settings: all that decides the pre-trainings of a recipe beside its steps, by label. Of recipes with the
                same settings one is measured, and all have its steps. None: no two are the same.
        """
        self.settings = settings or {}
        minutes = {name: minutes for name in names if (minutes := self.minutes(name)) is not None}
        missing = [name for name in minutes if name not in self.facts.steps]
        firsts: dict[str, str] = {}
        for name in sorted(minutes, key=lambda name: name in missing):
            firsts.setdefault(self.settings.get(name, name), name)
        like = {name: firsts[self.settings.get(name, name)] for name in missing}
        if measured := [name for name in missing if like[name] == name]:
            self.say(f"measuring the speed of {', '.join(measured)}")
            for name, times in zip(measured, measure(measured), strict=True):
                self._take(name, Pace.of(minutes[name], *times))
        for name in missing:
            self._take_over(name, like[name])
        self.write()

    def _take_over(self, name: str, other: str) -> None:
        """Give a recipe all that is known of another with the same pre-trainings."""
        facts, known = self.facts, {}
        for key in ("steps", "seconds_per_step", "work_seconds_per_step"):
            values: dict[str, float] = getattr(facts, key)
            known[key] = values | ({name: values[other]} if other in values else {})
        corrected = [*facts.corrected, *([name] if other in facts.corrected else [])]
        self.facts = facts.model_copy(update={**known, "corrected": corrected})

    def pace(self, name: str) -> Pace | None:
        """The planned pace of a recipe; None: no budget in minutes, or the pace is checked already or unknown."""
        facts, minutes = self.facts, self.minutes(name)
        if minutes is None or name in facts.corrected or name not in facts.work_seconds_per_step:
            return None
        return Pace(
            minutes=minutes,
            steps=facts.steps[name],
            seconds=facts.seconds_per_step[name],
            work_seconds=facts.work_seconds_per_step[name],
        )

    def looked(self, name: str, work_seconds: float | None = None) -> None:
        """Record that the speed of a recipe's first training was checked, and correct its steps if they were wrong.

        Args:
            name: the recipe's label.
            work_seconds: measured seconds of work of a step; None: the speed was as planned.
        """
        before = self.pace(name)
        if before is None:
            return
        pace = before if work_seconds is None else before.found(work_seconds)
        same = [
            other
            for other in self.settings
            if other != name and self.settings[other] == self.settings.get(name) and self.pace(other) == before
        ]
        self._take(name, pace)
        self.facts = self.facts.model_copy(update={"corrected": [*self.facts.corrected, name]})
        for other in same:
            self._take_over(other, name)
        self.write()
        if pace.steps != before.steps:
            self.say(
                f"{name}: {before.steps:,} steps would not take {pace.minutes:g} minutes; anew with {pace.steps:,}"
            )

    def _take(self, name: str, pace: Pace) -> None:
        facts = self.facts
        self.facts = facts.model_copy(
            update={
                "steps": facts.steps | {name: pace.steps},
                "seconds_per_step": facts.seconds_per_step | {name: pace.seconds},
                "work_seconds_per_step": facts.work_seconds_per_step | {name: pace.work_seconds},
            }
        )
