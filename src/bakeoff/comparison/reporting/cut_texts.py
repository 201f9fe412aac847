"""The test texts that recipes did not read whole, in sentences."""

from collections import defaultdict
from typing import NamedTuple

from bakeoff.comparison.results import SPLITS, Results
from bakeoff.display.wording import listed, quoted, quoted_list
from bakeoff.tasks.cut_rows import CutRows

TOLERATED = 0.05
"""Share of the test rows above which their being cut is a caution, and not only a note."""


class CutTask(NamedTuple):
    """The rows of a task that were cut for some recipes in the same way."""

    task: str
    """The task's name."""
    recipes: list[str]
    """The labels of the recipes."""
    everyone: bool
    """Whether these are all recipes."""
    cut: dict[str, CutRows]
    """The cut rows, by split."""

    def sentence(self, splits: tuple[str, ...]) -> str:
        """The rows of some splits in words."""
        parts = [
            f"{cut.rows:,} of the {cut.of_rows:,} {name} rows ({cut.percent} of their tokens)"
            for name in splits
            if (cut := self.cut[name]).rows
        ]
        who = "" if self.everyone else f" for {quoted_list(self.recipes)}"
        cut = self.cut[splits[0]]
        targets = "" if cut.longest is None else f" with targets of at most {cut.longest:,}"
        rows = f"rows of {cut.length:,} tokens{targets}{who}"
        return f"on {quoted(self.task)}, {rows} leave out a part of {listed(parts)}"


def cut_tasks(results: Results, task: str) -> list[CutTask]:
    """The ways in which the rows of a task were cut, each with its recipes, in the recipes' order."""
    ways: dict[str, list[str]] = defaultdict(list)
    cuts: dict[str, dict[str, CutRows]] = {}
    for entry in results.recipes:
        for score in entry.scores:
            if score.task == task and set(SPLITS) <= score.cut.keys():  # none in results of older versions
                key = repr(
                    [(each.length, each.longest, each.rows, each.of_rows, each.percent) for each in score.cut.values()]
                )
                cuts[key] = score.cut
                if entry.label not in ways[key]:
                    ways[key].append(entry.label)
    alone = len(cuts) == 1
    return [
        CutTask(task, ways[key], alone and len(ways[key]) == len(results.recipes), cut) for key, cut in cuts.items()
    ]


def cut_notes(results: Results, task: str, splits: tuple[str, ...] = ("test", "dev", "train")) -> list[str]:
    """A sentence for each way in which rows of these splits were cut; empty where all were read whole."""
    return [
        f"On{way.sentence(splits)[2:]}."
        for way in cut_tasks(results, task)
        if any(way.cut[name].rows for name in splits)
    ]


def cut_cautions(results: Results) -> list[str]:
    """A caution where many test rows were cut, or recipes read unlike parts of them."""
    sentences = []
    for task in results.tasks:
        ways = cut_tasks(results, task.name)
        many = [way for way in ways if way.cut["test"].rows > TOLERATED * way.cut["test"].of_rows]
        unlike = len({way.cut["test"].tokens for way in ways}) > 1
        sentences += [way.sentence(("test",)) for way in ways if way.cut["test"].rows and (many or unlike)]
    return [f"Texts were cut. On{'; '.join(sentences)[2:]}."] if sentences else []
