"""The plan of the demo's comparison: recipes, tasks and budget."""

from typing import Any

FLOPS = 1.1e12
"""Floating-point operations of each pre-training at scale 1: about half a minute of one core. The budget is work, not
time, so that the results are the same each time."""

EPOCHS = 2
"""Passes over the training sentences of the word-order task at scale 1."""

PACKAGE_STEPS = 80
"""Fewest steps of fine-tuning on the package task, which has few labels, at scale 1."""

SHARED: dict[str, Any] = {
    "input.length": 64,
    "training.batch": 16,
    "training.validations": 8,
    "training.validation_examples": 256,
    "training.optimizer.lr": 2.0e-2,
}
"""Changes of all recipes. Rows have 64 tokens, and batches have as many rows as give the recipes' tokens per batch;
the rate is the one with which the demo was measured (docs/results.md)."""

RECIPES = ("laptop-encoder-tiny", "laptop-conv-tiny", "laptop-hybrid-tiny", "laptop-decoder-tiny")
"""Recipes with attention, convolution, one layer of each, and causal attention; all have two layers of width 128."""


def demo_plan(scale: float) -> dict[str, Any]:
    """The demo's plan, as the values of a comparison's YAML file.

    Args:
        scale: factor of the budget.
    """
    fine_tuning = min(1.0, scale)

    def task(name: str, epochs: int, **settings: Any) -> dict[str, Any]:
        files = {split: f"{name}-{split}.tsv" for split in ("train", "dev", "test")}
        columns = {"text_column": "text", "label_column": "label"}
        common = {
            "epochs": max(1, round(epochs * fine_tuning)),
            "learning_rate": 1.0e-3,
            "length": 64,
            "evaluations": 4,
        }
        return {"name": name, **files, **columns, "finetune": {**common, **settings}}

    return {
        "title": "Bakeoff demo: four small models on Python's documentation",
        "corpus": "corpus",
        "recipes": [{"recipe": name, "set": SHARED} for name in RECIPES],
        "budget": f"flops={FLOPS * scale:g}",
        "seeds": 3,
        "tasks": [
            # A swapped pair of words is local: a maximum over positions finds it, a mean dilutes it.
            task("word-order", EPOCHS, pooling="max", patience=2, least_steps=0),
            # With so few labels each model needs its own rate, which dev chooses.
            task(
                "package",
                10,
                least_steps=max(10, round(PACKAGE_STEPS * fine_tuning)),
                learning_rate=[3.0e-3, 6.0e-3],
            ),
        ],
    }
