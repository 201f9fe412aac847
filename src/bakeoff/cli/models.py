"""`bakeoff recipes`, `show` and `pretrain`."""

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.output import Device, Json, Seed, Set, losses_text, print_json, print_table


def recipes(json: Json = False) -> None:
    """List the recipes that come with Bakeoff.

    Example: bakeoff recipes
    """
    from bakeoff.recipe import load_recipe, recipe_names

    papers = {name: load_recipe(name).paper for name in recipe_names()}
    if json:
        print_json(papers)
    else:
        print_table(papers)


def show(
    recipe: Annotated[str, typer.Argument(help="A recipe's name or file.")],
    set: Set = [],  # noqa: B006
    vocabulary: Annotated[int | None, typer.Option(min=1, help="Size of the vocabulary; the recipe's.")] = None,
    json: Json = False,
) -> None:
    """Print a complete recipe, its parameters and what it costs.

    Example: bakeoff show albert-base --set model.encoder.layers=6
    """
    from bakeoff.recipe import load_recipe
    from bakeoff.training.costs import costs_of

    loaded = load_recipe(recipe, set)
    costs = costs_of(loaded, vocabulary or loaded.tokenizer.size)
    if json:
        print_json({"recipe": loaded.model_dump(mode="json"), **costs.model_dump()})
        return
    print(loaded.to_yaml())
    parts = ", ".join(f"{name} {count:,}" for name, count in costs.parts.items())
    print_table(
        {
            "parameters": f"{costs.parameters:,} ({parts}) with a vocabulary of {costs.vocabulary:,}",
            "FLOPs a token": f"{costs.flops_per_token:,} in training, forward and backward",
            "receptive field": "the whole row"
            if costs.receptive_field is None
            else f"{costs.receptive_field:,} tokens, its own among them",
            "memory": f"{costs.state_bytes / 1e6:,.1f} MB for weights, gradients and optimizer, without activations",
        }
    )


def pretrain(
    recipe: Annotated[str, typer.Argument(help="A recipe's name or file.")],
    corpus: Annotated[Path, typer.Option(help="Directory that `bakeoff prepare` made.")],
    out: Annotated[Path, typer.Option(help="Directory of the run.")],
    budget: Annotated[
        str | None, typer.Option(help="tokens=5M, flops=1e15, minutes=10 or steps=1000. Default: the recipe's.")
    ] = None,
    set: Set = [],  # noqa: B006
    seed: Seed = 0,
    device: Device = "auto",
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run, exactly.")] = False,
    json: Json = False,
) -> None:
    """Pre-train a model on a corpus.

    Example: bakeoff pretrain bert-mini --corpus corpora/mine --out runs/bert --budget minutes=10
    """
    from bakeoff.optimization.budget import Budget
    from bakeoff.recipe import load_recipe
    from bakeoff.training.pretrain import pretrain as pretrain_model
    from bakeoff.training.progress import duration

    run = pretrain_model(
        load_recipe(recipe, set),
        corpus,
        out,
        seed=seed,
        budget=None if budget is None else Budget.parse_text(budget),
        device=device,
        resume=resume,
    )
    summary = run.summary
    if json:
        print_json(summary)
        return
    print_table(
        {
            "run": run.path,
            "trained": f"{summary['steps']:,} steps, {summary['tokens']:,} tokens in {duration(summary['seconds'])} "
            f"({summary['tokens_per_second']:,.0f} tokens/s)",
            "parameters": f"{summary['parameters']:,}",
            **losses_text(summary["validation"]),
            "unigram entropy": f"{summary['unigram_entropy']:.4f} nats, the loss from the tokens' frequencies alone",
        }
    )
