"""The README.md of an exported model, with the YAML front matter that the Hugging Face Hub reads."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bakeoff.display import markdown
from bakeoff.display.wording import capitalised, number
from bakeoff.objectives.held_out import at_most
from bakeoff.runs.run import Run
from bakeoff.tasks.finetuned_run import FinetunedRun

WITHOUT_PIPELINE = ("multiple-choice", "question-answering")
"""Purposes for which transformers 5 has classes, but no pipeline."""


def model_card(path: Path, auto: str, purpose: str | None, remarks: list[str], has_code: bool = True) -> str:
    """The README.md for the export of a run to transformers.

    Args:
        path: the run.
        auto: the class of transformers that loads the model.
        purpose: transformers' name of the model's pipeline; None: there is none.
        remarks: what the export leaves out.
        has_code: whether a file of code lies beside the weights.
    """
    trusted = ", trust_remote_code=True" if has_code else ""
    finetuned = FinetunedRun.open(path) if FinetunedRun.at(path) else None
    run = Run(path)
    recipe = run.recipe
    name = recipe.name if finetuned is None else f"{recipe.name}, fine-tuned for {finetuned.results.task}"
    imported = finetuned is not None and finetuned.environment.get("imported") is not None
    parts = [_origin(finetuned or run)] if imported else [*(_finetuned(finetuned) if finetuned else _pretrained(run))]
    limits = "\n".join(f"- {markdown.text(each)}" for each in [*_limits(finetuned, imported), *remarks])
    body = "\n\n".join(parts)
    lines = [
        f"from transformers import AutoTokenizer, {auto}, pipeline",
        f"model = {auto}.from_pretrained(FOLDER{trusted})",
        f"tokenizer = AutoTokenizer.from_pretrained(FOLDER{trusted})",
    ]
    if purpose is not None and purpose not in WITHOUT_PIPELINE:
        lines.append(f'ask = pipeline("{purpose}", model=FOLDER{trusted})')
    else:
        lines[0] = lines[0].removesuffix(", pipeline")
    code = "\n".join(lines)
    return f"""---
{_front(recipe.name, purpose, None if imported else finetuned)}---

# {markdown.text(name)}

{body}

## How to load it
{_WARNING if has_code else ""}
{markdown.block(code)}

## Limits

{limits}
"""


_WARNING = """
`trust_remote_code` runs `modeling_bakeoff.py`, which lies beside the weights; read it first.
"""


def _front(recipe: str, purpose: str | None, run: FinetunedRun | None) -> str:
    """The front matter: YAML with values in JSON, which is valid YAML; licence and language are left to the user."""
    values: dict[str, Any] = {"library_name": "transformers", "tags": ["bakeoff", recipe]}
    if purpose is not None:
        values["pipeline_tag"] = purpose
    if run is not None:
        results = run.results
        metrics = [
            {"type": name, "value": round(value, 6), "name": f"{name} (test)"}
            for name, value in results.scores["test"].items()
        ]
        task = {"type": purpose or results.kind, "name": results.kind}
        data = {"name": results.task, "type": results.task, "split": "test"}
        values["model-index"] = [{"name": recipe, "results": [{"task": task, "dataset": data, "metrics": metrics}]}]
    return "".join(f"{name}: {json.dumps(value)}\n" for name, value in values.items())


def _pretrained(run: Run) -> Iterator[str]:
    recipe = run.recipe
    yield _origin(run)
    environment = run.environment
    corpus = environment.get("corpus") or {}
    rows = [("recipe", markdown.text(recipe.name)), ("objectives", ", ".join(part.kind for part in recipe.objective))]
    if corpus.get("path"):
        rows.append(
            (
                "corpus",
                f"{markdown.text(Path(corpus['path']).name)}, fingerprint {markdown.text(corpus['fingerprint'])}",
            )
        )
    if run.finished:
        summary = run.summary
        rows.append(("parameters", f"{summary['parameters']:,}"))
        if validation := summary["validation"]:  # an imported model has no validation
            rows += [
                ("tokens seen", f"{summary['tokens']:,} in {summary['steps']:,} steps"),
                ("seed", str(summary["seed"])),
                *(
                    (
                        f"held-out loss of {markdown.text(name)}",
                        number(loss) if loss is None else f"{at_most(name)}{loss:.4f} nats",
                    )
                    for name, loss in validation["losses"].items()
                ),
            ]
    else:
        rows.append(("state", f"not finished: the checkpoint of step {run.step():,}"))
    yield "| | |\n|---|---|\n" + "\n".join(f"| {name} | {value} |" for name, value in rows)


def _origin(run: Run | FinetunedRun) -> str:
    """The sentence about the origin of the weights."""
    if origin := run.environment.get("imported") and run.environment.get("origin"):
        return f"{markdown.text(capitalised(origin))} by Bakeoff, and not trained there."
    return (
        f"Pre-trained with Bakeoff; {markdown.text(run.recipe.paper)}"
        if run.recipe.paper
        else "Pre-trained with Bakeoff."
    )


def _finetuned(run: FinetunedRun) -> Iterator[str]:
    results = run.results
    start = "a pre-trained run" if results.source else "random weights, without pre-training"
    yield f"Fine-tuned with Bakeoff from {start}; {results.rows['train']:,} rows of train."
    lines = [
        f"| {markdown.text(name)} | {value:.4f} | {_number(results.scores['dev'].get(name))} | "
        f"{_number(results.simplest.get(name))} |"
        for name, value in results.scores["test"].items()
    ]
    simplest = markdown.text(run.task.simplest)
    rows = f"{results.rows['test']:,} rows"
    yield f"| metric | test ({rows}) | dev | {simplest}, on test |\n|---|---|---|---|\n" + "\n".join(lines)
    yield (
        f"One training of seed {results.seed}; epochs and learning rate were chosen by {markdown.text(results.metric)} "
        f"on dev. How much another seed would give is not known from it."
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _limits(run: FinetunedRun | None, imported: bool) -> list[str]:
    limits = ["it knows the texts it was trained on alone: other languages, fields and times were not tried"]
    if imported and run is not None:
        limits.append(f"texts are read up to {run.config.length} tokens; how good its answers are was not measured")
    elif run is not None:
        limits.append(f"texts are read up to {run.config.length} tokens; the metrics are of one file of test rows")
    else:
        limits.append("its numbers are of held-out text of the same corpus; it was not tried on any task")
    return [*limits, "what it writes or predicts can be wrong, and can repeat what its text says of people"]
