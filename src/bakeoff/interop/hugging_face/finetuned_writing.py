"""The run directory of an imported model that was fine-tuned elsewhere."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from bakeoff import checksums
from bakeoff.display import markdown
from bakeoff.interop.hugging_face.imported_head import ImportedHead
from bakeoff.recipe import Recipe
from bakeoff.tasks.finetune_results import FinetuneResult
from bakeoff.tasks.finetuned_run import write_labels, write_results
from bakeoff.tokenizer.tokenizer import Tokenizer
from bakeoff.yaml_files import dump_yaml


def write_finetuned(
    folder: Path,
    recipe: Recipe,
    tokenizer: Tokenizer,
    head: ImportedHead,
    tensors: Mapping[str, Tensor],
    facts: dict[str, Any],
) -> None:
    """Write the directory of a fine-tuned run whose training is unknown.

    Args:
        folder: the directory to write into.
        recipe: the run's.
        tokenizer: the run's.
        head: the imported head, with its task and settings.
        tensors: the weights of the model and its head; a bias that the head's class lacks is zero.
        facts: the content of environment.json.
    """
    module = head.build(recipe, tokenizer.size)
    state = module.state_dict()
    if head.head.bias_in:
        state["output.bias"].zero_()
    assert state.keys() - tensors.keys() <= {"output.bias"}
    module.load_state_dict({**state, **tensors})
    tokenizer.save(folder / "tokenizer.json")
    head_settings = {name: getattr(head.config, name) for name in sorted(head.config.model_fields_set)}
    settings = {"task": head.task.config.model_dump(mode="json"), "finetune": head_settings}
    texts = {
        "recipe.yaml": recipe.to_yaml(),
        "task.yaml": dump_yaml(settings),
        "environment.json": json.dumps(facts, indent=2) + "\n",
        "metrics.jsonl": "",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    write_labels(folder, head.task)
    result = FinetuneResult(
        kind=head.task.config.kind,
        task=head.task.config.title,
        metric=head.task.metric,
        recipe=recipe.name,
        source=None,
        seed=0,
        scores={"dev": {}, "test": {}},
        simplest={},
        transferred_tensors=len(state),
        total_tensors=len(state),
        parameters=sum(parameter.numel() for parameter in module.parameters()),
        learning_rate=0.0,
        epochs=0.0,
        best_epoch=0.0,
        seconds=0.0,
        classes=head.task.classes,
        rows=dict.fromkeys(("train", "dev", "test"), 0),
        notes=[f"{facts['origin']}: its data, training and scores are not known", *facts["imported"]["remarks"]],
    )
    write_results(folder, module.state_dict(), result, [], _card(recipe, head, facts, result))
    checksums.record(folder, [file.name for file in folder.iterdir()])


def _card(recipe: Recipe, head: ImportedHead, facts: dict[str, Any], result: FinetuneResult) -> str:
    notes = "".join(f"- {markdown.text(note)}\n" for note in result.notes)
    classes = ", ".join(map(markdown.text, result.classes[:20])) + (", ..." if len(result.classes) > 20 else "")
    classes_row = f"| classes | {len(result.classes)}: {classes} |\n" if result.classes else ""
    columns = markdown.text(" and ".join(head.task.config.text_columns))
    return f"""# {markdown.text(recipe.name)}, fine-tuned elsewhere for {markdown.text(result.task)}

Imported with Bakeoff {facts["versions"]["bakeoff"]}; {markdown.text(recipe.paper)}

| | |
|---|---|
| family | {markdown.text(facts["imported"]["model_type"])}: {markdown.text(head.head.architecture)} |
| input | {columns}, at most {head.config.length} tokens |
{classes_row}| parameters | {result.parameters:,} |

{notes}
`environment.json` has its first configuration.
"""
