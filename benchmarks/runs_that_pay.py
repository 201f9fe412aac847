"""What pre-trained runs are worth on TREC, SST-2, RTE and CoLA, beside the same architectures from scratch.

    python benchmarks/runs_that_pay.py DATA OUT RUN [RUN ...] [--finetune-seeds 2] [--threads 1]

The tasks and the settings of fine-tuning are those of `minutes_that_pay.py`, which pre-trains as well: dev chooses each
fine-tuning's learning rate. A fine-tuning that is done already, or was stopped, is gone on with when OUT is the same.
"""

import argparse
import statistics
from pathlib import Path
from typing import Any

from public_tasks import FINE_TUNING, SETTINGS, public_task

import bakeoff
from bakeoff.json_files import read_json
from bakeoff.runs.run import Run
from bakeoff.tasks.kinds.classification import ClassificationConfig


def score(source: Any, tokenizer: Path | None, task: dict[str, Any], out: Path, seed: int, threads: int) -> float:
    """A fine-tuning's metric on test, in percent."""
    if not (out / "results.json").exists():
        columns = {key: value for key, value in task.items() if key not in ("name", "finetune")}
        bakeoff.finetune(
            source,
            ClassificationConfig.model_validate(columns),
            out,
            config=bakeoff.FinetuneConfig.model_validate(task["finetune"]),
            seed=seed,
            tokenizer=tokenizer,
            threads=threads,
            resume=True,
            progress=False,
        )
    results = read_json(out / "results.json")
    return 100 * float(results["scores"]["test"][results["metric"]])


def main() -> None:
    """Fine-tune and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--finetune-seeds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    print("| | " + " | ".join(SETTINGS) + " |\n" + "|---" * (1 + len(SETTINGS)) + "|", flush=True)
    for path in options.runs:
        run, cells = Run.open(path), []
        for name, own in SETTINGS.items():
            settings = own | {"finetune": FINE_TUNING | own["finetune"]}
            task = public_task(name, options.data.resolve(), options.out, **settings)
            means = []
            for kind, source, tokenizer in (("pretrained", run, None), ("scratch", run.recipe, path)):
                outs = [options.out / path.name / name / f"{kind}-{seed}" for seed in range(options.finetune_seeds)]
                scores = [score(source, tokenizer, task, out, seed, options.threads) for seed, out in enumerate(outs)]
                means.append(f"{statistics.mean(scores):.1f}")
                print(f"{path.name} {name} {kind}: " + " ".join(f"{each:.1f}" for each in scores), flush=True)
            cells.append(f"{means[0]} ({means[1]})")
        print(f"| {run.recipe.name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
