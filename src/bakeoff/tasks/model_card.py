"""The README.md of a fine-tuned run."""

import shlex
from typing import Any

from bakeoff.display import markdown
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetune_results import FinetuneResult
from bakeoff.tasks.task_config import TaskConfig


def model_card(task: TaskConfig, config: FinetuneConfig, result: FinetuneResult, environment: dict[str, Any]) -> str:
    """The text of README.md: results, data, training and environment of a fine-tuned run."""
    start = (
        f"the pre-trained run {markdown.code(result.source)}" if result.source else "random weights (no pre-training)"
    )
    scores = "\n".join(
        f"| {markdown.text(split)} | {result.rows[split]:,} | "
        + " | ".join(f"{values[name]:.4f}" if name in values else "" for name in result.scores["test"])
        + " |"
        for split, values in result.scores.items()
    )
    notes = "".join(f"- {markdown.text(note)}\n" for note in result.notes)
    columns = markdown.text(" and ".join(task.text_columns))
    classes = ", ".join(map(markdown.text, result.classes[:20])) + (", ..." if len(result.classes) > 20 else "")
    class_row = f"| classes | {len(result.classes)}: {classes} |\n" if result.classes else ""
    how = "" if task.head != "row" else f", pooling {config.pooling}"
    arguments = {1: '"TEXT"', 2: '"TEXT" --pair "TEXT"', None: '"CONTEXT" "CHOICE" "CHOICE"'}[task.input_sides]
    run = shlex.quote(str(result.path))
    commands = f"bakeoff predict {run} {arguments}\nbakeoff evaluate {run} --data FILE"
    rate = f"learning rate {result.learning_rate:g}"
    if result.trials:
        rate += f", the best of {len(result.trials)} trainings"
    # A loss has no value without a model; the other metrics stand in for it.
    compared = [result.metric] if result.metric in result.simplest else list(result.simplest)
    baseline = ", ".join(f"the {name} of {task.simplest} is {result.simplest[name]:.4f}" for name in compared)
    return f"""# {markdown.text(result.recipe)}, fine-tuned for {markdown.text(result.task)}

Fine-tuned with Bakeoff {environment["versions"]["bakeoff"]} from {start}.

| split | rows | {" | ".join(result.scores["test"])} |
|---|---|{"---|" * len(result.scores["test"])}
{scores}

Epochs and learning rates were chosen by {result.metric} on dev; the numbers to report are those of test, where
{baseline}.

| | |
|---|---|
| input | {columns}, at most {config.length} tokens{how} |
{class_row}| training | best at epoch {result.best_epoch:g} of {result.epochs:g}, {rate} |
| seed | {result.seed} |
| tensors | {result.transferred_tensors} of {result.total_tensors} from pre-training; {result.parameters:,} parameters |
| time | {result.seconds:.0f} s on {markdown.text(environment["device_name"])} |

{notes}
`task.yaml` has all settings, `metrics.jsonl` every evaluation on dev, `predictions.jsonl` every row of test.
What it can be used for:

{markdown.block(commands)}
"""
