"""Published data sets as tasks of a comparison's plan, and a comparison's results as a Markdown table.

Several benchmarks share this file, which is none itself. DATA has one folder for each data set, with the files as their
authors publish them.
"""

from pathlib import Path
from typing import Any

from bakeoff.comparison.planning.task_plan import TaskPlan
from bakeoff.comparison.results import Results

TASKS: dict[str, dict[str, Any]] = {
    "TREC": {"train": "trec/train.tsv", "test": "trec/test.tsv", "text_column": "text", "label_column": "label"},
    "SST-2": {
        "train": "sst2/train.tsv",
        "dev": "sst2/dev.tsv",
        "test": "sst2/test-labeled.tsv",
        "text_column": "sentence",
        "label_column": "label",
    },
    "RTE": {
        "train": "rte/train_full_2490.tsv",
        "test": "rte/dev.tsv",  # the labels of RTE's own test rows are not public
        "text_column": "sentence1",
        "pair_column": "sentence2",
        "label_column": "label",
    },
    "CoLA": {
        "train": "cola/in_domain_train.tsv",
        "test": ["cola/in_domain_dev.tsv", "cola/out_of_domain_dev.tsv"],  # likewise; both are GLUE's dev
        "text_column": "sentence",
        "label_column": "label",
        "metric": "matthews",
    },
    **{
        f"SIB-200, {language}": {
            "train": f"sib200/{code}_train.jsonl.gz",
            "test": f"sib200/{code}_valid.jsonl.gz",  # as BabyLM's multilingual track has it
            "text_column": "sentence",
            "label_column": "label",
        }
        for language, code in {"English": "en", "Dutch": "nl", "Chinese": "zh"}.items()
    },
    "MultiNLI": {
        "train": "mnli_10k/train.jsonl.gz",
        "test": "mnli_10k/valid.jsonl.gz",  # as BabyLM's multilingual track has it
        "text_column": "premise",
        "pair_column": "hypothesis",
        "label_column": "label",
    },
    "EWT": {
        "kind": "tagging",
        "train": "ewt/en_ewt-ud-train.conllu",
        "dev": "ewt/en_ewt-ud-dev.conllu",
        "test": "ewt/en_ewt-ud-test.conllu",
        "metric": "accuracy",
    },
    "People's Daily": {
        "kind": "tagging",
        "train": "peopledaily/train.txt",
        "test": "peopledaily/dev.txt",  # its test part is not at hand
        "text_column": "1",
        "label_column": "-1",
        "metric": "f1",
    },
    "ChnSentiCorp": {
        **{part: f"chnsenticorp/{part}.tsv" for part in ("train", "dev", "test")},
        "text_column": "text_a",
        "label_column": "label",
    },
}
"""Tasks by name; paths of files are relative to DATA; several files without headers are one split."""

FINE_TUNING: dict[str, Any] = {"learning_rate": [3.0e-4, 1.0e-3, 3.0e-3], "evaluations": 10, "patience": 4}
"""What minutes_that_pay.py and runs_that_pay.py fine-tune all tasks with; dev chooses the rate."""

SETTINGS: dict[str, dict[str, Any]] = {
    "TREC": {"train_rows": 2000, "finetune": {"epochs": 10, "length": 64}},
    "SST-2": {"train_rows": 2000, "finetune": {"epochs": 5, "length": 64}},
    "RTE": {"finetune": {"epochs": 5}},
    "CoLA": {"finetune": {"epochs": 5, "length": 64, "learning_rate": [1.0e-4, 3.0e-4, 1.0e-3, 3.0e-3]}},
}
"""What each of the four tasks is given besides, there."""

PAYING: dict[str, dict[str, Any]] = {
    **{f"SIB-200, {each}": {"finetune": {"epochs": 20, "length": 96}} for each in ("English", "Dutch", "Chinese")},
    "TREC": SETTINGS["TREC"],
    "MultiNLI": {"finetune": {"epochs": 4, "length": 96}},
    "EWT": {"train_rows": 2000, "finetune": {"epochs": 10, "length": 96}},
    "People's Daily": {"train_rows": 5000, "dev_share": 0.02, "finetune": {"epochs": 5, "length": 128}},
    "ChnSentiCorp": {"train_rows": 2000, "finetune": {"epochs": 5, "length": 128}},
}
"""Tasks on which pre-training of minutes pays, and what each is given."""

HEADERS = {"CoLA": ["source", "label", "star", "sentence"]}
"""Columns of files without a header, by name of the task."""


def _found(path: Path) -> Path:
    """The file, or what it is compressed to where that alone is there."""
    compressed = path.with_name(f"{path.name}.gz")
    return compressed if compressed.exists() and not path.exists() else path


def public_task(name: str, data: Path, out: Path, **settings: Any) -> dict[str, Any]:
    """A task of a plan.

    Args:
        name: one of TASKS.
        data: the folder of the data sets.
        out: the folder for copies of files that need a header.
        settings: further settings of the task.
    """
    task = {"name": name, **TASKS[name], **settings}
    for part in ("train", "dev", "test"):
        if part not in task:
            continue
        if name not in HEADERS:
            task[part] = str(_found(data / task[part]))
            continue
        files = task[part] if isinstance(task[part], list) else [task[part]]
        lines = [line for each in files for line in (data / each).read_text(encoding="utf-8").splitlines()]
        path = out / f"{name}-{part}.tsv"
        path.write_text("\n".join(["\t".join(HEADERS[name]), *lines]) + "\n", encoding="utf-8")
        task[part] = str(path)
    return task


KNOWN = {**PAYING, **SETTINGS}
"""The settings of every task that has any, by its name."""


def known_task(name: str, data: Path, out: Path) -> TaskPlan:
    """A task with the settings of these benchmarks; `data` and `out` as of `public_task`."""
    settings = KNOWN[name] | {"finetune": FINE_TUNING | KNOWN[name]["finetune"]}
    return TaskPlan.model_validate(public_task(name, data.resolve(), out, **settings))


def public_tasks(
    settings: dict[str, dict[str, Any]], finetune: dict[str, Any], data: Path, out: Path
) -> list[dict[str, Any]]:
    """Several tasks of a plan with their own settings; `finetune` has the common settings of fine-tuning."""
    return [
        public_task(name, data, out, **own | {"finetune": finetune | own["finetune"]}) for name, own in settings.items()
    ]


def table(results: Results) -> str:
    """A table of held-out losses and test metrics in percent, pre-trained and (from scratch), as means over seeds."""
    tasks = {task.name: task.metric for task in results.tasks}
    lines = [
        "| | tokens, M | minutes | held-out loss, nats | " + " | ".join(tasks) + " |",
        "|---" * (4 + len(tasks)) + "|",
    ]
    for entry in results.recipes:
        runs = entry.runs
        tokens = sum(run.tokens for run in runs) / len(runs)
        seconds = sum(run.seconds for run in runs) / len(runs)
        loss = sum(next(iter(run.curve[-1].losses.values())) for run in runs) / len(runs)
        cells = []
        for task, metric in tasks.items():
            means = []
            for initialisation in ("pretrained", "scratch"):
                own = [s.test[metric] for s in entry.scores if (s.task, s.initialisation) == (task, initialisation)]
                means += [f"{100 * sum(own) / len(own):.1f}"] if own else []
            cells.append(means[0] + (f" ({means[1]})" if means[1:] else ""))
        spent = f"{tokens / 1e6:.2f} | {seconds / 60:.1f} | {loss:.2f}"
        lines.append(f"| {entry.label} | {spent} | " + " | ".join(cells) + " |")
    for name in dict.fromkeys(baseline.name for baseline in results.baselines):
        own = [
            f"{100 * baseline.test[tasks[baseline.task]]:.1f}"
            for baseline in results.baselines
            if baseline.name == name
        ]
        lines.append(f"| {name} | | | | " + " | ".join(own) + " |")
    return "\n".join(lines)
