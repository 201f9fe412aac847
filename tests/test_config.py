"""What holds for every config of the package, whichever it is: a new one is tested on the day it is written."""

import importlib
import pkgutil
from typing import Annotated

import pytest
from pydantic import TypeAdapter

import bakeoff
from bakeoff.config import Config


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
