"""One model, one budget, other objectives: mlm, permutation and clm, and mlm with dynamic and with static masks.

    python benchmarks/objectives.py CORPUS DATA OUT [--flops 1.5e13] [--seeds 1] [--only objectives|masking]

CORPUS is a prepared text. DATA holds the files of the tasks, and `enwiki/shard_0.jsonl.gz`, as `RAW` and `TASKS` name
them. Every recipe is two layers of relative attention, 128 wide, without positions in the embedding, on rows of 128
tokens of running text; they differ in the objective alone, clm also in that its layers see what comes before only.

There are two comparisons, OUT/objectives and OUT/masking, each of which `bakeoff compare OUT/NAME/plan.yaml --out
OUT/NAME` repeats. Static masks are other masks only from the second epoch on, so the second comparison is on the first
articles of the encyclopedia alone (OUT/text), through which the budget goes some six times, with CORPUS's tokenizer.
What has finished is not run again.
"""

import argparse
import gzip
from itertools import islice
from pathlib import Path
from typing import Any

import yaml
from public_tasks import public_tasks, table

from bakeoff.comparison.execution import compare
from bakeoff.comparison.plan import Plan
from bakeoff.comparison.terminal import print_results
from bakeoff.preparation.prepare import prepare

RAW = "enwiki/shard_0.jsonl.gz"
ARTICLES = 100
"""Of the text on which masks are compared: some 0.6 million tokens."""

STACK: dict[str, Any] = {
    "width": 128,
    "layers": 2,
    "block": {
        "kind": "transformer",
        "norm": "post",
        "mixer": {"kind": "relative_attention", "heads": 2, "memory": 0},
        "ffn": {"width": 512, "activation": "gelu"},
    },
}
SHARED: dict[str, Any] = {
    "model": {"embedding": {"positions": "none"}, "encoder": STACK, "dropout": 0.1},
    "input": {"format": "blocks", "length": 128, "isolate": False},
    "training.batch": 32,
    "training.optimizer.lr": 1.0e-3,
    "training.validations": 10,
}
"""What bert-tiny is made into; its optimizer, its schedule and its size stay."""

DYNAMIC: dict[str, Any] = {"objective": [{"kind": "mlm"}]}
COMPARISONS: dict[str, dict[str, dict[str, Any]]] = {
    "objectives": {
        "mlm": DYNAMIC,
        "permutation": {"objective": [{"kind": "permutation"}]},
        "clm": {
            "model.encoder": None,
            "model.decoder": STACK,
            "objective": [{"kind": "clm"}],
        },
    },
    "masking": {
        "mlm, dynamic masks": DYNAMIC,
        "mlm, static masks": {"objective": [{"kind": "mlm", "masking": "static"}]},
    },
}

TASKS: dict[str, dict[str, Any]] = {
    "TREC": {"finetune": {"epochs": 5, "length": 64}},
    "SST-2": {"train_rows": 2000, "finetune": {"epochs": 5, "length": 64}},
    "RTE": {"finetune": {"epochs": 3, "least_steps": 0}},
}
FINE_TUNING = {"learning_rate": 1.0e-3, "pooling": "mean", "evaluations": 8, "patience": 4}
"""The same pooling for all: each objective's natural one would be another difference between them."""

PUBLISHED = """\
What the papers found, at BERT-base's size and after much longer training. Static and dynamic masks: 78.3 and 78.7 on
SQuAD 2.0 (F1), 84.3 and 84.0 on MNLI, 92.5 and 92.9 on SST-2 (Liu et al. 2019, table 1; ten static masks of each row,
each seen four times). RoBERTa's mlm with full sentences and XLNet's permutation with K = 6: 79.1 and 81.0 on SQuAD 2.0,
84.7 and 85.6 on MNLI, 92.5 and 93.4 on SST-2, 64.8 and 66.7 on RACE (the same, table 2). mlm and left-to-right, both
without nsp: 83.9 and 82.1 on MNLI, 86.5 and 77.5 on MRPC, 92.6 and 92.1 on SST-2 (Devlin et al. 2019, table 5)."""


def plan(name: str, corpus: Path, data: Path, out: Path, flops: float, seeds: int) -> dict[str, Any]:
    """A comparison's plan, as its YAML file has it."""
    return {
        "title": f"One model, one budget: {name}",
        "corpus": str(corpus),
        "recipes": [
            {"recipe": "bert-tiny", "name": label, "set": {**SHARED, **changes}}
            for label, changes in COMPARISONS[name].items()
        ],
        "budget": f"flops={flops:g}",
        "seeds": seeds,
        "tasks": public_tasks(TASKS, FINE_TUNING, data, out),
        "from_scratch": name == "objectives",  # there are the same models in the other one
    }


def small_text(corpus: Path, data: Path, out: Path) -> Path:
    """The corpus of the first articles alone, of an earlier call or a new one."""
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
    parser.add_argument("--flops", type=float, default=1.5e13, help="budget of each pre-training")
    parser.add_argument("--seeds", type=int, default=1)
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
        results = compare(Plan.read(folder / "plan.yaml"), folder, progress=lambda line: print(line, flush=True))
        print_results(results, folder)
        tables.append(f"{name}, test accuracy in percent, pre-trained (from scratch):\n\n{table(results)}\n")
    print("\n".join([*tables, PUBLISHED]))


if __name__ == "__main__":
    main()
