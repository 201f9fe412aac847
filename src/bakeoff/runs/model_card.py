"""The README.md of a pre-trained run."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bakeoff.display import markdown
from bakeoff.display.wording import number, states_of
from bakeoff.objectives.held_out import at_most
from bakeoff.recipe import Recipe


def model_card(path: Path, recipe: Recipe, environment: dict[str, Any], summary: dict[str, Any]) -> str:
    """The text of the README.md; `environment` and `summary` are the content of the run's JSON files."""
    if environment.get("imported"):
        return _imported(path, recipe, environment, summary)
    start = f"| begun | {markdown.text(environment['origin'])} |\n" if environment.get("origin") else ""
    if taught := environment.get("teachers"):
        start += f"| learned from | the text, and {markdown.text(', '.join(each['run'] for each in taught))} |\n"
    planned, stop = summary.get("planned_steps", summary["steps"]), summary.get("early_stopping") or {}
    if summary.get("saved_at"):
        start += f"| kept on the way | at {summary['saved_at']}, step {summary['steps']:,} of {planned:,} |\n"
    elif stop.get("stopped"):
        start += (
            f"| stopped early | at step {summary['steps']:,} of {planned:,}: the held-out loss was best at step "
            f"{stop['best_step']:,} |\n"
        )
    elif summary["steps"] != planned:
        start += (
            f"| cut short | at step {summary['steps']:,} of {planned:,}: its learning rate did not fall to the end |\n"
        )
    if vectors := environment.get("vectors"):
        states = states_of(vectors["layers"])
        start += f"| vectors of texts | taught without labels: the {vectors['pooling']} of {states} |\n"
    for change in environment.get("budgets", []):
        start += f"| budget changed | at step {change['from_step']:,}, to {change['steps']:,} steps |\n"
    if stop.get("kept_best"):
        start += f"| weights | those of the best held-out loss, at step {stop['best_step']:,} |\n"
    validation, corpus = summary["validation"], environment["corpus"]
    losses = "\n".join(
        f"| {markdown.text(name)} | {at_most(name)}{number(loss)} | {number(validation['accuracy'][name])} |"
        for name, loss in validation["losses"].items()
    )
    commands = _commands_of_vectors(path) if vectors else _commands(path, recipe, corpus["path"])
    return f"""# {markdown.text(recipe.name)}

Pre-trained with Bakeoff {environment["versions"]["bakeoff"]}; {markdown.text(recipe.paper)}

| | |
|---|---|
| parameters | {summary["parameters"]:,} |
| tokens seen | {summary["tokens"]:,} in {summary["steps"]:,} steps |
| training time | {summary["seconds"] / 60:.1f} minutes on {markdown.text(environment["device_name"])} |
| corpus | {markdown.text(corpus["path"])}, fingerprint {markdown.text(corpus["fingerprint"])} |
| seed | {summary["seed"]} |
{start}
Held-out text:

| objective | loss (nats) | accuracy |
|---|---|---|
{losses}

`recipe.yaml` is the complete recipe, `metrics.jsonl` the course of the training, `environment.json` the machine.
What it can be used for:

{markdown.block(chr(10).join(commands))}
"""


def _imported(path: Path, recipe: Recipe, environment: dict[str, Any], summary: dict[str, Any]) -> str:
    """The README.md of an imported model."""
    remarks = "".join(f"\n- {markdown.text(remark)}" for remark in environment["imported"]["remarks"])
    origin = markdown.text(environment["origin"].removeprefix("i"))
    return f"""# {markdown.text(recipe.name)}

I{origin} with Bakeoff {environment["versions"]["bakeoff"]}; {markdown.text(recipe.paper)}

| | |
|---|---|
| parameters | {summary["parameters"]:,} |
| family | {markdown.text(environment["imported"]["model_type"])} |
| training | elsewhere: its text, steps and losses are not known here |
{remarks}

`recipe.yaml` is the recipe by which it would be trained further, `environment.json` has its first configuration.
What it can be used for:

{markdown.block(chr(10).join(_commands(path, recipe, "CORPUS")))}
"""


def _commands_of_vectors(path: Path) -> Iterator[str]:
    """Commands that use a run with vectors that it was taught."""
    run = shlex.quote(str(path))
    yield f"bakeoff embed {run} --texts FILE --out vectors.npy"
    yield f"bakeoff similarity {run} --data FILE --text-column COLUMN --pair-column COLUMN"
    yield f"bakeoff export {run} --to sentence-transformers --out DIRECTORY"
    yield f"bakeoff finetune {run} --train FILE --text-column COLUMN --label-column COLUMN --out DIRECTORY"


def _commands(path: Path, recipe: Recipe, corpus: str) -> Iterator[str]:
    """Commands that use the run, with words in capitals for the user to replace."""
    run, text = shlex.quote(str(path)), shlex.quote(corpus)
    yield f"bakeoff evaluate {run} --corpus {text}"
    if any(part.scoring is not None for part in recipe.objective):
        yield f"bakeoff evaluate {run} --texts FILE"
    if any(part.generates for part in recipe.objective):
        yield f'bakeoff generate {run} "TEXT"'
    yield f"bakeoff inspect {run}"
    yield f"bakeoff finetune {run} --train FILE --text-column COLUMN --label-column COLUMN --out DIRECTORY"
    yield f"bakeoff pretrain --from {run} --corpus {text} --out DIRECTORY"
