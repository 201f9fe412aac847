"""Comparison of objectives with one model and one budget, each at its own searched learning rate.

    python benchmarks/objectives.py CORPUS DATA OUT [--flops 5e12] [--seeds 1] [--jobs auto] [--only NAME]

CORPUS is a prepared text. DATA holds the files of the tasks and `enwiki/shard_0.jsonl.gz`, under the names in `RAW` and
`TASKS`. There are three comparisons OUT/NAME; `bakeoff compare OUT/NAME/plan.yaml --out OUT/NAME` repeats each:

- objectives: laptop-encoder-tiny with mlm, with rtd (ELECTRA's masks and weights) and with clm, for which its layers
  are causal.
- streams: mlm and permutation. Permutation needs two streams, which relative attention has: two layers of
  relative attention, 128 wide, without the laptop recipe's convolutions.
- masking: mlm with dynamic and with static masks. These differ only from the second epoch on, so the text is the first
  articles of the encyclopedia alone (OUT/text), with CORPUS's tokenizer.

The learning rate of each is searched first, in three trials of a quarter of the budget. Finished runs are not repeated.
"""

import argparse
import gzip
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from public_tasks import public_tasks, table

from bakeoff.cli.shared.options import jobs_of
from bakeoff.comparison.execution import compare
from bakeoff.comparison.planning.plan import Plan
from bakeoff.comparison.reporting.terminal import print_results
from bakeoff.preparation.prepare import prepare
from bakeoff.recipe_files import load_recipe
from bakeoff.tuning.ranges import RATE

RAW = "enwiki/shard_0.jsonl.gz"
ARTICLES = 40
"""Number of articles on which masks are compared: about 0.25 million tokens, read about four times."""

ENCODER = load_recipe("laptop-encoder-tiny").model.model_dump(mode="json")["encoder"]
FORWARDS: dict[str, Any] = {"model.encoder": None, "model.decoder": ENCODER, "objective": [{"kind": "clm"}]}
DETECTION = [{"kind": "mlm", "rate": 0.15, "mask": 0.85, "random": 0.0}, {"kind": "rtd"}]
TWO_STREAMS: dict[str, Any] = {
    "model.encoder.block.mixer": {"kind": "relative_attention", "heads": 2, "memory": 0},
    "model.encoder.block.ffn.convolution": None,
    "input.isolate": False,
}
COMPARISONS: dict[str, dict[str, dict[str, Any]]] = {
    "objectives": {"mlm": {}, "rtd": {"objective": DETECTION}, "clm": FORWARDS},
    "streams": {
        "mlm, relative attention": TWO_STREAMS,
        "permutation, relative attention": {**TWO_STREAMS, "objective": [{"kind": "permutation"}]},
    },
    "masking": {
        "mlm, dynamic masks": {},
        "mlm, static masks": {"objective": [{"kind": "mlm", "rate": 0.3, "masking": "static"}]},
    },
}
"""The arms of each comparison by name: overrides of laptop-encoder-tiny."""

RATES = [1.0e-2, 2.0e-2, 4.0e-2]
"""Learning rates of pre-training that are tried, for a quarter of the budget."""

TASKS: dict[str, dict[str, Any]] = {
    "TREC": {"train_rows": 2000, "finetune": {"epochs": 8, "length": 64}},
    "SST-2": {"train_rows": 2000, "finetune": {"epochs": 5, "length": 64}},
}
FINE_TUNING = {"learning_rate": [1.0e-3, 3.0e-3], "pooling": "mean", "evaluations": 8, "patience": 4}
"""Settings of fine-tuning. The pooling is the same for all, since each objective's natural pooling would add a
difference."""

PUBLISHED = """\
What the papers found, at BERT-base's size and after much longer training. Static and dynamic masks: 78.3 and 78.7 on
SQuAD 2.0 (F1), 84.3 and 84.0 on MNLI, 92.5 and 92.9 on SST-2 (Liu et al. 2019, table 1; ten static masks of each row,
each seen four times). RoBERTa's mlm with full sentences and XLNet's permutation with K = 6: 79.1 and 81.0 on SQuAD 2.0,
84.7 and 85.6 on MNLI, 92.5 and 93.4 on SST-2, 64.8 and 66.7 on RACE (the same, table 2). mlm and left-to-right, both
without nsp: 83.9 and 82.1 on MNLI, 86.5 and 77.5 on MRPC, 92.6 and 92.1 on SST-2 (Devlin et al. 2019, table 5)."""


def plan(name: str, corpus: Path, data: Path, out: Path, flops: float, seeds: int) -> dict[str, Any]:
    """The plan of a comparison, as values for its YAML file."""
    return {
        "title": f"One model, one budget: {name}",
        "corpus": str(corpus),
        "recipes": [
            {"recipe": "laptop-encoder-tiny", "name": label, "set": {"training.validations": 10, **changes}}
            for label, changes in COMPARISONS[name].items()
        ],
        "budget": f"flops={flops:g}",
        "seeds": seeds,
        "tasks": public_tasks(TASKS, FINE_TUNING, data, out),
        "search": {"trials": len(RATES), "budget": "25 %", "over": {RATE: RATES}},
        "from_scratch": False,  # docs/results.md has the gain of these models over training from scratch
    }


def small_text(corpus: Path, data: Path, out: Path) -> Path:
    """The corpus of the first articles, made unless it exists."""
    made = out / "text"
    if not made.exists():
        articles = out / "text.jsonl"
        with gzip.open(data / RAW, "rt", encoding="utf-8") as lines:
            articles.write_text("".join(islice(lines, ARTICLES)), encoding="utf-8")
        prepare(articles, made, tokenizer=corpus / "tokenizer.json", validation=0.05)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--flops", type=float, default=5e12, help="budget of each pre-training")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--jobs", default="auto")
    parser.add_argument("--only", choices=list(COMPARISONS))
    options = parser.parse_args()
    corpus, data, out = options.corpus.resolve(), options.data.resolve(), options.out.resolve()
    tables = []
    for name in [options.only] if options.only else COMPARISONS:
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        text = small_text(corpus, data, out) if name == "masking" else corpus
        written = yaml.safe_dump(
            plan(name, text, data, folder, options.flops, options.seeds), sort_keys=False, width=100
        )
        (folder / "plan.yaml").write_text(written, encoding="utf-8")
        said = {"progress": lambda line: print(line, flush=True)}
        results = compare(Plan.read(folder / "plan.yaml"), folder, jobs=jobs_of(options.jobs), **said)
        print_results(results, folder)
        tables.append(f"{name}, test accuracy in percent, pre-trained (from scratch):\n\n{table(results)}\n")
    print("\n".join([*tables, PUBLISHED]))


if __name__ == "__main__":
    main()
