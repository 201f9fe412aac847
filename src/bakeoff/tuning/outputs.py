"""The files of a finished search: the recipe with the best values, the results, and the report."""

import json
from pathlib import Path
from typing import Any

from bakeoff import checksums
from bakeoff.display.text import visible
from bakeoff.display.wording import budget, counted
from bakeoff.durable import write_atomically
from bakeoff.recipe import Recipe
from bakeoff.tuning.ranges import RATE
from bakeoff.tuning.report import carried_lines, seeds_text, write_report
from bakeoff.tuning.results import RECIPE, REPORT, RESULTS, TuningResults


def write_outputs(results: TuningResults, recipe: Recipe, out: Path) -> None:
    """Write recipe.yaml, results.json and report.html, each whole or not at all.

    Args:
        results: results of the search.
        recipe: recipe of the best trial, with the budget of the searched recipe, or with the budget that was asked for
            and the rate carried to it.
        out: directory of the search.
    """
    write_atomically(out / RECIPE, _comment(results) + recipe.to_yaml())  # without a checksum: people change it
    checksums.forget(out, [REPORT])
    checksums.write(out / RESULTS, results.model_dump_json(indent=2) + "\n")
    write_report(results, recipe, out / REPORT)
    checksums.record(out, [REPORT])


def _comment(results: TuningResults) -> str:
    """Lines of comment on the search that found the recipe."""
    winner = results.winner
    finished = results.states.count("finished")
    lr = "" if results.carried is None else f"--set {RATE}={_plain(winner.values[RATE])} "
    lines = [
        f"{results.recipe} with the best values of {counted(len(results.trials), 'trial')} by `bakeoff tune`, of "
        f"{budget(results.budget)} each, {finished} of them trained to the end",
        *(
            f"{each.key}: {_plain(winner.values[each.key])}, before {_plain(each.own)}; {each.text}"
            for each in results.ranges
        ),
        f"held-out loss {winner.losses[-1]:.6g} on the corpus {results.corpus_fingerprint}, {seeds_text(results)}",
        *carried_lines(results),
        f"the best trial again: {lr}--budget steps={winner.steps} --seed {results.seed}"
        + (f" --threads {threads}" if (threads := results.environment.get("threads")) else ""),
    ]
    return "".join(f"# {visible(line)}\n" for line in lines)


def _plain(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
