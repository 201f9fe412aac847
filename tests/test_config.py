"""What holds for every config of the package, whichever it is: a new one is tested on the day it is written."""

import importlib
import inspect
import pkgutil
import re
from typing import Annotated

import pytest
from pydantic import TypeAdapter

import bakeoff
from bakeoff.config import Config
from bakeoff.errors import UserError
from bakeoff.optimization.budget import Budget
from bakeoff.recipe import Recipe
from bakeoff.recipe_files import load_recipe


def every_config():
    """All configs of the package, by their names."""
    for module in pkgutil.walk_packages(bakeoff.__path__, "bakeoff."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found, new = set(), {Config}
    while new:
        found |= new
        new = {each for config in new for each in config.__subclasses__()} - found
    return sorted(
        (each for each in found if each.__module__.startswith("bakeoff.")), key=lambda each: each.__qualname__
    )


CONFIGS = every_config()


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.__name__)
def test_defaults_are_values_that_the_fields_take(config):
    for name, field in config.model_fields.items():
        if not field.is_required():
            adapter = TypeAdapter(Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation)
            default = field.get_default(call_default_factory=True)
            assert adapter.validate_python(default) == default, name


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.__name__)
def test_every_field_says_what_it_is(config):
    for name, field in config.model_fields.items():
        assert field.description, name


@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config.__name__)
def test_keys_that_are_no_more_are_no_fields(config):
    assert not config.retired.keys() & {*config.model_fields, *config.read_before}


MADE = [config for config in CONFIGS if not inspect.isabstract(config)]


@pytest.mark.parametrize("config", MADE, ids=lambda config: config.__name__)
def test_python_gets_the_error_of_a_file_in_one_line(config):
    with pytest.raises(UserError, match=rf"^{config.__name__}: [^\n]*'no_such_key'[^\n]*$"):
        config(no_such_key=1)


def test_an_error_in_python_says_where_it_stands_in_the_whole():
    values = load_recipe("bert-tiny").model_dump()
    values["model"]["encoder"]["layers"] = -1
    with pytest.raises(UserError, match=r"^Recipe: model\.encoder\.layers: input should be greater than 0, not -1$"):
        Recipe(**values)
    with pytest.raises(UserError, match=r"^Budget: minutes: input should be greater than 0, not -1$"):
        Budget(minutes=-1)


@pytest.mark.parametrize("config", MADE, ids=lambda config: config.__name__)
def test_no_error_speaks_of_python(config):
    """A file is YAML, whose writer knows null, true, lists and keys."""
    for name in config.model_fields:
        for value in ([["a"]], {"a": None}, None, 3.5, "many words", True):
            try:
                config.parse({name: value}, "mine.yaml")
            except UserError as error:
                said = str(error).replace(repr(value), "")
                assert not re.search(r"instance of|<class|None|\bTrue|tuple|dictionary|mapping|parse string", said)
