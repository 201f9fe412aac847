"""Settings of recipes that are refused."""

import pytest

from bakeoff.errors import UserError
from bakeoff.recipe_files import load_recipe


def check_refusal(name, setting, message):
    """A setting of a recipe is refused in one line, which begins with this pattern and has no second mistake."""
    with pytest.raises(UserError, match=rf"^{name}\.yaml: training\.optimizer{message}") as caught:
        load_recipe(name, [setting])
    assert "\n" not in str(caught.value)
    assert "; training" not in str(caught.value)
