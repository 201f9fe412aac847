"""A fine-tuning on the command line: what `bakeoff finetune` and `bakeoff distill` have in common."""

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from bakeoff.cli.shared.printing import print_json, print_table, simplest_text
from bakeoff.display.terminal import suggest
from bakeoff.display.wording import counted
from bakeoff.errors import UserError
from bakeoff.unread_keys import require_effect

if TYPE_CHECKING:
    from bakeoff.tasks.finetune_results import FinetuneResult


def print_result(result: "FinetuneResult", out: Path, json: bool) -> None:
    """Print what came of a fine-tuning, as a table with the next command, or as JSON."""
    if json:
        print_json(result.model_dump(mode="json"))
        return
    scores = {
        part: "  ".join(f"{name} {value:.4f}" for name, value in metrics.items())
        for part, metrics in result.scores.items()
    }
    print_table(
        {
            "run": out,
            "rows": "  ".join(f"{part} {count:,}" for part, count in result.rows.items()),
            "pre-trained": f"{result.transferred_tensors} of {result.total_tensors} tensors",
            **scores,
            **simplest_text(result.kind, result.simplest),
            **_search(result),
            **{f"note {number + 1}": note for number, note in enumerate(result.notes)},
        }
    )
    suggest(f"bakeoff predict {quote(str(out))} --texts FILE")


def _search(result: "FinetuneResult") -> dict[str, str]:
    """Rows on the setting that dev chose among several, and on the cost of trying all of them."""
    if not result.trials:
        return {}
    several = len({trial.epochs for trial in result.trials}) > 1
    epochs = f" and {counted(result.planned_epochs, 'epoch')}" if several and result.planned_epochs else ""
    return {
        "chosen": f"learning rate {result.learning_rate:g}{epochs}, the best of {len(result.trials)} trainings, which "
        f"took {result.seconds:.0f} s together"
    }


def source_of(source: str, overrides: Sequence[str], *, scratch: bool) -> Any:
    """The path of the run that is fine-tuned, or the recipe that is trained from scratch.

    Args:
        source: the run's path, or the recipe's name or file.
        overrides: changes to the recipe.
        scratch: whether there is a tokenizer for a training from scratch.

    Raises:
        UserError: there is no such run or recipe; a recipe has no tokenizer; changes are to a run.
    """
    from bakeoff.recipe_files import load_recipe, recipe_names

    path = Path(source)
    if path.exists() and path.suffix not in (".yaml", ".yml"):
        if overrides:
            raise UserError(f"--set changes a recipe, but {source} is a run, whose model is fixed")
        return path
    if not scratch and source not in recipe_names() and path.suffix == "":
        raise UserError(f"{source}: no such run (nor a recipe: `bakeoff recipes` lists them)")
    require_effect("finetune", overrides)
    recipe = load_recipe(source, overrides)
    if not scratch:
        needs = "a recipe is trained from scratch and needs a tokenizer: give --corpus or --tokenizer"
        raise UserError(f"{source}: {needs}")
    return recipe
