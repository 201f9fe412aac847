"""Scores of a run on tasks of every kind, against the same architecture from scratch and against no neural network.

    python benchmarks/every_task.py RUN DATA OUT [--tasks SST-2 TREC ...] [--rates 1e-3 3e-3] [--seeds 0 1 2]
        [--threads 1]

DATA has one folder for each data set, with the files as their authors publish them. Dev chooses the learning rate and
the epoch; test is scored once. With several seeds of fine-tuning, a score is the mean ± the standard deviation over
seeds. OUT/table.md has the table, and the runs are beside it; runs that exist are not made again.
"""

import argparse
import gzip
import json
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from bakeoff.comparison.running.tasks import baselines
from bakeoff.runs.run import Run
from bakeoff.tasks.data import load_task
from bakeoff.tasks.datasets.named import dataset_task
from bakeoff.tasks.finetune import finetune
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetunedRun
from bakeoff.tasks.task_config import TaskConfig


@dataclass(frozen=True)
class Tried:
    """A task in the table."""

    dataset: str
    """The published name of the data set."""
    folder: str
    """The folder in DATA."""
    files: dict[str, str] = field(default_factory=dict)
    """Names of files by part, where they differ from the published names."""
    task: dict[str, Any] = field(default_factory=dict)
    """Settings of the task."""
    training: dict[str, Any] = field(default_factory=dict)
    """Settings of the training."""


TASKS = {
    "SST-2": Tried(
        "sst2",
        "sst2",
        {"train": "train.tsv", "dev": "dev.tsv", "test": "test-labeled.tsv"},
        {"train_rows": 2000},
        {"epochs": 5, "length": 64},
    ),
    "TREC": Tried("trec", "trec", training={"epochs": 5, "length": 64}),
    "CoLA": Tried("cola", "cola", training={"epochs": 3, "length": 64}),
    "RTE": Tried("rte", "rte", {"train": "train_full_2490.tsv", "test": "dev.tsv"}, training={"epochs": 3}),
    "MRPC": Tried("mrpc", "mrpc", {"train": "msr_train_4076.tsv", "test": "test.tsv"}, training={"epochs": 3}),
    "STS-B": Tried("stsb", "stsb", training={"epochs": 3}),
    "EWT, parts of speech": Tried("universal_dependencies", "ewt", training={"epochs": 2, "length": 64}),
    "IMDb": Tried("imdb", "imdb", training={"epochs": 3, "truncate": "head+tail"}),
    "SQuAD 1.1, by article": Tried(
        "squad", "squad", task={"train_rows": 3000}, training={"epochs": 2, "batch": 16, "learning_rate": 1e-3}
    ),
    "ChnSentiCorp": Tried("chnsenticorp", "chnsenticorp", task={"train_rows": 2000}, training={"epochs": 2}),
    "People's Daily": Tried(
        "peopledaily",
        "peopledaily",
        task={"train_rows": 5000, "dev_share": 0.02},
        training={"epochs": 2, "length": 128},
    ),
}
ENGLISH = [name for name in TASKS if name not in ("ChnSentiCorp", "People's Daily")]


def task_of(name: str, data: Path, out: Path) -> TaskConfig:
    """The config of a task; SQuAD's dev is divided by articles, and IMDb, which is sorted, cut to every N-th row."""
    tried = TASKS[name]
    if tried.dataset == "imdb":
        some = {part: _every(data / f"imdb/{part}.jsonl.gz", step, out) for part, step in (("train", 25), ("test", 10))}
        return dataset_task("imdb", None, name=name, **some)
    if tried.dataset == "squad":
        files = _articles(data / "squad_dev" / "dev-1.1.json.gz", out)
        return dataset_task("squad", None, name=name, **files, **tried.task)
    files = {part: data / tried.folder / file for part, file in tried.files.items()}
    task = dataset_task(tried.dataset, data / tried.folder, name=name, **files, **tried.task)
    return task.model_copy(update={"dev": None}) if task.dev == task.test else task


def _every(path: Path, step: int, out: Path) -> Path:
    """A file with every `step`-th line of another file."""
    found = out / f"imdb-{path.name.removesuffix('.gz')}"
    found.write_bytes(b"".join(gzip.decompress(path.read_bytes()).splitlines(keepends=True)[::step]))
    return found


def _articles(path: Path, out: Path) -> dict[str, Path]:
    """SQuAD's dev as three files: every fifth article is dev, the article after it test, the others train."""
    whole = json.loads(gzip.decompress(path.read_bytes()))
    parts = {"dev": whole["data"][::5], "test": whole["data"][1::5]}
    parts["train"] = [each for place, each in enumerate(whole["data"]) if place % 5 > 1]
    found = {}
    for part, articles in parts.items():
        found[part] = out / f"squad-{part}.json"
        found[part].write_text(json.dumps({"version": "1.1", "data": articles}), encoding="utf-8")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tasks", nargs="*", default=ENGLISH, choices=list(TASKS))
    parser.add_argument("--rates", nargs="*", type=float, default=[1e-3, 3e-3])
    parser.add_argument("--seeds", nargs="*", type=int, default=[0])
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    run = Run.open_finished(options.run)
    lines = [
        "| | metric | pre-trained | from scratch | without a neural network | without a model |",
        "|---|---|---|---|---|---|",
    ]
    for name in options.tasks:
        task = task_of(name, options.data, options.out)
        loaded = load_task(task)
        common = {"learning_rate": options.rates, "evaluations": 10, "patience": 4, "least_steps": 0}
        config = FinetuneConfig(**common | TASKS[name].training)
        metric = loaded.task.metric
        cells = []
        for start, source in (("pretrained", run), ("scratch", run.recipe)):
            scores = []
            for seed in options.seeds:
                folder = options.out / task.title.replace(" ", "-").replace(",", "") / f"{start}-{seed}"
                if not FinetunedRun.at(folder):
                    folder.parent.mkdir(parents=True, exist_ok=True)
                    tokenizer = None if source is run else run.path
                    settings: dict[str, Any] = {"seed": seed, "tokenizer": tokenizer, "threads": options.threads}
                    finetune(source, task, folder, config=config, resume=True, **settings)
                scores.append(FinetunedRun.open(folder).results.scores["test"][metric])
            cells.append(f"{mean(scores):.3f}" + (f" ± {stdev(scores):.3f}" if len(scores) > 1 else ""))
        found = baselines(name, loaded)
        learned = [f"{baseline.test[metric]:.3f}" for baseline in found if baseline.kind == "learned"]
        simplest = next(baseline for baseline in found if baseline.kind == "simplest")
        cells += [learned[0] if learned else "", f"{simplest.test[metric]:.3f} ({simplest.name})"]
        lines.append(f"| {name} | {type(task).described(metric).title} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
        (options.out / "table.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
