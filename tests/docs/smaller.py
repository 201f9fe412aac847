"""What the test changes in commands before it runs them, so that all of them together take minutes.

Nothing else is changed, and nothing in the pages: a command has the options below in place of its own, or added.
"""

import re
from pathlib import Path
from typing import Any

import yaml

STEPS = "steps=3"
"""Of every pre-training."""

STOPPED = "steps=40"
"""What was planned for a pre-training that a page assumes to have been stopped."""

GOES_ON = "steps=60"
"""Of one that is resumed to another end: more than those that were stopped have."""

INSTEAD: dict[str, dict[str, str]] = {
    "demo": {"--scale": "0.01"},
    "tune": {"--budget": "steps=3", "--trials": "2", "--jobs": "1"},
    "speed": {"--lengths": "16,32", "--seconds": "0.01", "--batch-tokens": "64", "--vocabulary": "300"},
    "compare": {"--jobs": "1"},
    "contrast": {"--budget": "steps=3"},
}
"""Options that stand in place of the page's, by verb."""

FINE_TUNING = {"epochs": 1, "least_steps": 0, "evaluations": 1}
SMALL_RECIPES = {
    "transformer-base-wmt": "transformer-translation-tiny",
    "bart-base": "bart-tiny",
    "laptop-hybrid-small": "laptop-hybrid-tiny",
    "laptop-hybrid-mini": "laptop-conv-tiny",
}
"""Recipes in the place of large ones, where they are trained or measured."""

PRETRAINING = {"training.validation_examples": 16}
PLAN = {"budget": "steps=4", "seeds": 1}
SEARCHED = {"budget": "steps=50", "search": {"trials": 2, "budget": "100 %"}}
"""Of a plan; one with a search has as many steps as a trial must have."""

ROWS, DOCUMENTS = 200, 400
"""Of the files that the demo writes."""

TRAIN_ROWS = 64
"""Of each task of a plan."""

SERVED = "127.0.0.1:8000"
"""Where pages ask `bakeoff serve`, which listens at a free port instead."""

PYTHON = [  # patterns, and what stands in their place
    (r"Budget\([^)]*\)", "Budget(steps=3)"),
    (r"ContrastConfig\(batch=32\)", "ContrastConfig(batch=8, budget=bakeoff.Budget(steps=3))"),
    (r"\bover=", "trials=2, jobs=1, over="),
    (r"\[128, 1024\], vocabulary=8192", "[16, 32], vocabulary=300, seconds=0.01, batch_tokens=64"),
    (r'"bert-mini", 1024\)', '"bert-mini", 32)'),
]


def smaller(arguments: list[str]) -> list[str]:
    """The arguments that are run."""
    verb = next((word for word in arguments if not word.startswith("-")), "")
    if verb in ("pretrain", "distill", "tune", "speed"):
        arguments = [SMALL_RECIPES.get(word, word) for word in arguments]
    for option, value in INSTEAD.get(verb, {}).items():
        arguments = instead(arguments, option, value)
    if verb in ("pretrain", "distill") and "--texts" not in arguments:
        return _pretraining(arguments)
    if verb in ("finetune", "distill") and "--resume" not in arguments:
        options = [f"--option={key}={value}" for key, value in FINE_TUNING.items()]
        return [*arguments, *options]
    if verb == "compare":
        _shrink_plan(Path(arguments[arguments.index("compare") + 1]))
    return arguments


def _pretraining(arguments: list[str]) -> list[str]:
    if "--resume" in arguments or "--finish-now" in arguments:
        return instead(arguments, "--budget", GOES_ON) if "--budget" in arguments else arguments
    settings = [f"--set={key}={value}" for key, value in PRETRAINING.items()]
    return [*instead(arguments, "--budget", STEPS), *([] if "--from" in arguments else settings)]


def instead(arguments: list[str], option: str, value: str) -> list[str]:
    """The arguments with another value of an option, or with the option where they have none."""
    if option in arguments:
        at = arguments.index(option)
        arguments = arguments[:at] + arguments[at + 2 :]
    return [*arguments, option, value]


def _shrink_plan(path: Path) -> None:
    plan: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    plan |= SEARCHED | {"seeds": 1} if "search" in plan else PLAN
    for task in plan["tasks"]:
        task["train_rows"] = TRAIN_ROWS
        task["finetune"] = {**task.get("finetune", {}), **FINE_TUNING}
    path.write_text(yaml.safe_dump(plan), encoding="utf-8")


def shrink_files(folder: Path) -> None:
    """Of the demo's files keep the first rows and documents, and the longest rows, of which the page has a note."""
    for path in folder.iterdir():
        header, *rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
        long = [] if path.suffix == ".jsonl" else sorted(rows[ROWS:], key=len)[-3:]
        kept = [*rows[: DOCUMENTS if path.suffix == ".jsonl" else ROWS], *long]
        path.write_text("".join([header, *kept]), encoding="utf-8")


def smaller_python(text: str) -> str:
    """The Python that is run."""
    for pattern, replacement in PYTHON:
        text = re.sub(pattern, replacement, text)
    return text
