"""A plan of two tiny recipes and one task of a few words, for comparisons that train."""

import yaml
from tests.conftest import shrink

NAMES = ("gpt-tiny", "laptop-conv-tiny")
"""The recipes."""


def write_plan(folder, corpus, rows, epochs, **changes):
    """Write the recipes, the task's file of `rows` rows and the plan into a folder; returns the plan's path."""
    for name in NAMES:
        (folder / f"{name}.yaml").write_text(shrink(name).to_yaml())
    lines = "".join(f"the {'old' if i % 2 else 'quiet'} river {i % 5}\t{i % 2}\n" for i in range(rows))
    (folder / "rows.tsv").write_text("text\tlabel\n" + lines)
    task = dict.fromkeys(("train", "dev", "test"), "rows.tsv") | {"finetune": {"epochs": epochs, "least_steps": 0}}
    plan = {
        "corpus": str(corpus.path),
        "recipes": [f"{name}.yaml" for name in NAMES],
        "tasks": [{"name": "mood", "text_column": "text", "label_column": "label", **task}],
        "device": "cpu",
        **changes,
    }
    (folder / "plan.yaml").write_text(yaml.safe_dump(plan))
    return folder / "plan.yaml"
