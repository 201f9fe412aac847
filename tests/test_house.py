"""The table of CONTRIBUTING.md names every folder and file of the package, and imports run from top to bottom of it;
the faults that `make mutants` plants by hand stand where the code stands.
"""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "bakeoff"
ABOVE_ALL = {"__init__.py", "__main__.py", "py.typed", "__pycache__"}


FOLDERS = ["", "/tasks"]
"""The folders that have a table."""


def rooms(folder):
    """The names of the rows of a folder's table, from top to bottom; rows of several names have one place."""
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition(f"| folder of `src/bakeoff{folder}` |")[2]
    rows = [line.split("|")[1] for line in table.partition("\n\n")[0].splitlines()[2:]]
    return {name: place for place, row in enumerate(rows) for name in re.findall(r"`([^`]+)`", row)}


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_room_is_in_the_table(folder):
    assert {path.name for path in (PACKAGE / folder.strip("/")).iterdir()} - ABOVE_ALL == set(rooms(folder))


@pytest.mark.parametrize("folder", FOLDERS)
def test_imports_run_from_top_to_bottom(folder):
    places = {name.removesuffix(".py"): place for name, place in rooms(folder).items()}
    whole, module = PACKAGE / folder.strip("/"), f"bakeoff{folder}".replace("/", r"\.")
    back = [
        f"{path.relative_to(whole)} imports {imported}"
        for path in whole.rglob("*.py")
        for imported in re.findall(rf"^\s*from {module}\.(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        if places[imported] > places.get(path.relative_to(whole).parts[0].removesuffix(".py"), len(places))
    ]
    assert not back


def test_no_kind_of_task_is_known_by_its_name():
    """But to the registry and to the package, which offers their configs: all others ask a task's config."""
    naming = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if re.search(r"^\s*(?:from|import) bakeoff\.tasks\.kinds", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert naming == {"__init__.py", "tasks/registry.py"}


@pytest.mark.parametrize("name", ["planted", "harmless"])
def test_faults_by_hand_have_their_places_in_the_code(name):
    named = yaml.safe_load((ROOT / "tests" / "mutants" / f"{name}.yaml").read_text(encoding="utf-8"))
    sources = {file: (PACKAGE / file).read_text(encoding="utf-8") for file in named}
    assert not [
        (file, fault[0]) for file, faults in named.items() for fault in faults if sources[file].count(fault[0]) != 1
    ]
