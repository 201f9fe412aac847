"""`bakeoff show`."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli.shared.completing import complete_recipe
from bakeoff.cli.shared.options import Device, Json, Set
from bakeoff.cli.shared.printing import print_json, print_table
from bakeoff.display.terminal import tell, write

if TYPE_CHECKING:
    from bakeoff.recipe import Published
    from bakeoff.resources.costs import Costs, StackSize
    from bakeoff.resources.memory_need import MemoryNeed


def show(
    recipe: Annotated[str, typer.Argument(help="A recipe's name or file.", autocompletion=complete_recipe)],
    set: Set = [],  # noqa: B006
    vocabulary: Annotated[
        int | None, typer.Option(min=1, max=2**32, help="Size of the vocabulary. Default: the recipe's.")
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(min=1, max=2**32, help="Rows in a batch, for the estimate of memory. Default: the recipe's."),
    ] = None,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Print a complete recipe, to save and change as your own, and on standard error its parameters and costs.

    Example: bakeoff show albert-base --set model.encoder.layers=6 --batch 32

    Example: bakeoff show bert-mini > mine.yaml
    """
    from bakeoff.interop.hugging_face.membership import membership
    from bakeoff.recipe_files import load_recipe
    from bakeoff.resources.costs import costs_of
    from bakeoff.resources.device import resolve_device
    from bakeoff.resources.memory_need import memory_need
    from bakeoff.resources.micro_batch import rows_that_fit

    loaded = load_recipe(recipe, set)
    size = vocabulary or loaded.tokenizer.size
    costs, memory = costs_of(loaded, size), memory_need(loaded, size, resolve_device(device), batch)
    published = loaded.published
    counted = costs if published is None or published.vocabulary == size else costs_of(loaded, published.vocabulary)
    belongs, fits = membership(loaded), rows_that_fit(loaded, size)
    if json:
        print_json(
            {
                "recipe": loaded.model_dump(mode="json"),
                **costs.model_dump(),
                "published": published and {**published.model_dump(), "counted": counted.parameters},
                "transformers": {**belongs._asdict(), "changes": dict(belongs.changes)},
                "memory": {**memory.model_dump(), "total": memory.total},
                "fits": {f"{size} GB": rows for size, rows in fits.items()},
            }
        )
        return
    write(loaded.to_yaml().rstrip())  # a recipe's file: all else goes to standard error
    sys.stdout.flush()
    tell("")
    family = f"of the family {belongs.family}: `export --to hf` needs no code of its own"
    rows = {
        "layers": _by_stack({name: _layers_text(stack) for name, stack in costs.stacks.items()}),
        "parameters": _parameters_text(costs),
        **({} if published is None else {"published": _published_text(published, counted.parameters)}),
        "FLOPs a token": f"{costs.flops_per_token:,} in training, forward and backward",
        "receptive field": _by_stack({name: _field_text(field) for name, field in costs.receptive_field.items()}),
        "memory": _memory_text(memory),
        "fits on a GPU": _fits_text(fits, loaded.input.length),
        "transformers": belongs.told() or family,
    }
    print_table(rows, tell)


def _layers_text(stack: "StackSize") -> str:
    return f"{stack.layers}, with {stack.parts} distinct parts applied {stack.applications} times"


def _parameters_text(costs: "Costs") -> str:
    parts = ", ".join(f"{name} {count:,}" for name, count in costs.parts.items())
    return f"{costs.parameters:,} ({parts}) with a vocabulary of {costs.vocabulary:,}"


def _published_text(published: "Published", counted: int) -> str:
    """The number of parameters that a paper states, and ours with the same vocabulary."""
    text = (
        f"{published.parameters:,} with a vocabulary of {published.vocabulary:,}; here {counted:,} with that "
        f"vocabulary ({100 * (counted / published.parameters - 1):+.1f} %)"
    )
    return f"{text}: {published.differs}" if published.differs else text


def _field_text(field: int | None) -> str:
    return "the whole row" if field is None else f"{field:,} tokens, its own among them"


def _memory_text(memory: "MemoryNeed") -> str:
    needs = {"weights": memory.weights, "gradients": memory.gradients, "optimizer": memory.optimizer}
    needs[f"activations of {memory.rows:,} row{'s' if memory.rows > 1 else ''}"] = memory.activations
    if memory.remembered:
        needs["remembered rows"] = memory.remembered
    if memory.update > memory.activations:
        needs["in place of the activations the optimizer's step"] = memory.update
    return (
        f"{memory.total / 1e9:,.2f} GB: {', '.join(f'{name} {size / 1e9:,.2f}' for name, size in needs.items())} "
        f"({memory.precision} on {memory.device}, not compiled); --batch N for other rows at once, "
        "training.micro_batch to train so"
    )


def _fits_text(fits: dict[int, int], length: int) -> str:
    """The largest micro-batches of full rows on GPUs of usual sizes."""
    from bakeoff.resources.micro_batch import MOST

    sizes = ", ".join(
        f"{rows:,}{' or more' if rows == MOST else ''} on {size} GB" if rows else f"none on {size} GB"
        for size, rows in fits.items()
    )
    return f"rows of {length:,} tokens at once, counted in bfloat16: {sizes}; training.micro_batch=auto takes as many"


def _by_stack(texts: dict[str, str]) -> str:
    """The text of a single stack, or the texts of several stacks, each after its stack's name."""
    return "; ".join(f"{name} {text}" for name, text in texts.items()) if len(texts) > 1 else next(iter(texts.values()))
