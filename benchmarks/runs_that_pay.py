"""What pre-trained runs are worth on labelled tasks, beside the same models from scratch and the counting of words.

    python benchmarks/runs_that_pay.py DATA OUT RUN [RUN ...] [--tasks NAME ...] [--finetune-seeds 3] [--threads 1]

Dev chooses the learning rate and the epoch of each fine-tuning; test is scored once. A cell has the mean over the seeds
of fine-tuning and, in brackets, that from scratch. Without --tasks they are the four of `minutes_that_pay.py`. A
fine-tuning that is done already, or was stopped, is gone on with when OUT is the same.
"""

import argparse
import statistics
from pathlib import Path
from typing import Any

from public_tasks import KNOWN, SETTINGS, known_task

import bakeoff
from bakeoff.comparison.planning.task_plan import TaskPlan
from bakeoff.comparison.running.tasks import baselines
from bakeoff.json_files import read_json
from bakeoff.runs.run import Run
from bakeoff.tasks.data import load_task


def score(source: Any, tokenizer: Path | None, task: TaskPlan, out: Path, seed: int, threads: int) -> float:
    """A fine-tuning's metric on test, in percent."""
    if not (out / "results.json").exists():
        bakeoff.finetune(
            source,
            task.data,
            out,
            config=task.finetune,
            seed=seed,
            tokenizer=tokenizer,
            threads=threads,
            resume=True,
            progress=False,
        )
    results = read_json(out / "results.json")
    return 100 * float(results["scores"]["test"][results["metric"]])


def without_model(task: TaskPlan) -> dict[str, float]:
    """The metric on test of each baseline that has no neural network, in percent."""
    data = load_task(task.data)
    found = baselines(task.name, data, task.finetune.batch)
    return {each.name: 100 * each.test[data.task.metric] for each, _ in found}


def main() -> None:
    """Fine-tune and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--tasks", nargs="+", choices=list(KNOWN), default=list(SETTINGS))
    parser.add_argument("--finetune-seeds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    tasks = {name: known_task(name, options.data, options.out) for name in options.tasks}
    print("| | " + " | ".join(tasks) + " |\n" + "|---" * (1 + len(tasks)) + "|", flush=True)
    for path in options.runs:
        run, cells = Run.open(path), []
        for name, task in tasks.items():
            means = []
            for kind, source, tokenizer in (("pretrained", run, None), ("scratch", run.recipe, path)):
                outs = [options.out / path.name / name / f"{kind}-{seed}" for seed in range(options.finetune_seeds)]
                scores = [score(source, tokenizer, task, out, seed, options.threads) for seed, out in enumerate(outs)]
                means.append(f"{statistics.mean(scores):.1f}")
                print(f"{path.name} {name} {kind}: " + " ".join(f"{each:.1f}" for each in scores), flush=True)
            cells.append(f"{means[0]} ({means[1]})")
        print(f"| {run.recipe.name} | " + " | ".join(cells) + " |", flush=True)
    counted = {name: without_model(task) for name, task in tasks.items()}
    for baseline in dict.fromkeys(each for scores in counted.values() for each in scores):
        cells = [f"{scores[baseline]:.1f}" if baseline in scores else "" for scores in counted.values()]
        print(f"| {baseline} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
