"""The README.md of a fine-tuned run."""

import shlex
from typing import Any

from bakeoff.display import markdown
from bakeoff.tasks.data import TaskConfig
from bakeoff.tasks.finetune_config import FinetuneConfig
from bakeoff.tasks.finetuned_run import FinetuneResult


def model_card(task: TaskConfig, config: FinetuneConfig, result: FinetuneResult, environment: dict[str, Any]) -> str:
    """The README.md of a fine-tuned run."""
    start = (
        f"the pre-trained run {markdown.code(result.source)}" if result.source else "random weights (no pre-training)"
    )
    scores = "\n".join(
        f"| {markdown.text(part)} | {result.rows[part]:,} | "
        + " | ".join(f"{values[name]:.4f}" for name in values)
        + " |"
        for part, values in result.scores.items()
    )
    notes = "".join(f"- {markdown.text(note)}\n" for note in result.notes)
    columns = markdown.text(f"{task.text_column} and {task.pair_column}" if task.pair_column else task.text_column)
    classes = ", ".join(map(markdown.text, result.classes[:20])) + (", ..." if len(result.classes) > 20 else "")
    run, second = shlex.quote(str(result.path)), ' --pair "TEXT"' if task.pair_column else ""
    commands = f'bakeoff predict {run} "TEXT"{second}\nbakeoff evaluate {run} --data FILE'
    return f"""# {markdown.text(result.recipe)}, fine-tuned for {markdown.text(result.task)}

Fine-tuned with Bakeoff {environment["versions"]["bakeoff"]} from {start}.

| part | rows | {" | ".join(result.scores["test"])} |
|---|---|{"---|" * len(result.scores["test"])}
{scores}

Epochs and learning rates were chosen by {result.metric} on dev; the numbers to report are those of test, where always
naming the most frequent class has an accuracy of {result.majority:.4f}.

| | |
|---|---|
| input | {columns}, at most {config.length} tokens, pooling {config.pooling} |
| classes | {len(result.classes)}: {classes} |
| training | best at epoch {result.best_epoch:g} of {result.epochs:g}, learning rate {result.learning_rate:g} |
| seed | {result.seed} |
| tensors | {result.transferred_tensors} of {result.total_tensors} from pre-training; {result.parameters:,} parameters |
| time | {result.seconds:.0f} s on {markdown.text(environment["device_name"])} |

{notes}
`task.yaml` has all settings, `metrics.jsonl` every look at dev, `predictions.jsonl` every row of test.
What it can be used for:

{markdown.block(commands)}
"""
