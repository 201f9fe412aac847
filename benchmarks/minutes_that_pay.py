"""Gain by some minutes of pre-training on a laptop, on TREC, SST-2, RTE and CoLA, for each laptop recipe.

    python benchmarks/minutes_that_pay.py CORPUS DATA OUT [--minutes 10] [--size tiny] [--seeds 1] [--jobs auto]
        [--recipes laptop-encoder-tiny ...]

TREC and SST-2 have 2,000 labels each. The learning rate of each pre-training is searched first, in trials of a tenth of
the minutes, and transferred to the whole time; that of each fine-tuning is chosen by dev. The comparison is written as
OUT/plan.yaml, which `bakeoff compare OUT/plan.yaml --out OUT` repeats or resumes.
"""

import argparse
from pathlib import Path

import yaml
from public_tasks import FINE_TUNING, SETTINGS, public_tasks, table

from bakeoff.cli.shared.options import jobs_of
from bakeoff.comparison.execution import compare
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.reporting.terminal import print_results
from bakeoff.tuning.ranges import RATE

KINDS = ("encoder", "conv", "hybrid", "decoder")
RATES = [5.0e-3, 1.0e-2, 2.0e-2, 4.0e-2]
"""Learning rates of pre-training that are tried, for a tenth of ten minutes."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--size", default="tiny", choices=["tiny", "mini", "small"])
    parser.add_argument("--recipes", nargs="*", default=[])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--finetune-seeds", type=int, default=2)
    parser.add_argument("--jobs", default="auto")
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    plan = {
        "title": f"What {options.minutes:g} minutes of pre-training are worth",
        "corpus": str(options.corpus.resolve()),
        "recipes": options.recipes or [f"laptop-{kind}-{options.size}" for kind in KINDS],
        "budget": f"minutes={options.minutes:g}",
        "seeds": options.seeds,
        "finetune_seeds": options.finetune_seeds,
        "search": {"trials": len(RATES), "budget": "10 %", "over": {RATE: RATES}},
        "tasks": public_tasks(SETTINGS, FINE_TUNING, options.data.resolve(), out),
    }
    (out / "plan.yaml").write_text(yaml.safe_dump(plan, sort_keys=False, width=100), encoding="utf-8")
    said = {"progress": lambda line: print(line, flush=True)}
    results = compare(Plan.read(out / "plan.yaml"), out, jobs=jobs_of(options.jobs), **said)
    print_results(results, out)
    print(table(results))


if __name__ == "__main__":
    main()
