"""`bakeoff recipes`."""

from bakeoff.cli.shared.options import Json
from bakeoff.cli.shared.printing import print_json, print_table


def recipes(json: Json = False) -> None:
    """List the recipes that come with Bakeoff, with their parameters.

    Example: bakeoff recipes
    """
    from bakeoff.display.wording import quantity
    from bakeoff.learner.pretraining_model import build_on_meta
    from bakeoff.recipe_files import load_recipe, recipe_names

    loaded = {name: load_recipe(name) for name in recipe_names()}
    sizes = {name: build_on_meta(each, each.tokenizer.size).parameter_count() for name, each in loaded.items()}
    if json:
        print_json({name: {"parameters": sizes[name], "paper": each.paper} for name, each in loaded.items()})
    else:
        print_table({name: f"{quantity(sizes[name]):>6}  {each.paper}" for name, each in loaded.items()})
