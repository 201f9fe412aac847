"""What was begun with other settings is not gone on with, and a folder has its name once it is whole."""

import os
import signal
from pathlib import Path

import pytest

from bakeoff.errors import Interrupted, UserError
from bakeoff.same_settings import LONGEST, require_same
from bakeoff.signals import stop_signals
from bakeoff.unfinished import unfinished, unfinished_folder

BEGUN = {"seed": 0, "recipe": {"model": {"dropout": 0.1}}, "files": "a1b2", "over": "x" * 2 * LONGEST}


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("seed", 1, "seed 0, not 1"),
        ("seed", None, "seed 0, not null"),
        ("later", [1], "later null, not [1]"),
        ("recipe", {"model": {"dropout": 0.2}}, "recipe.model.dropout 0.1, not 0.2"),
        ("files", "c3d4", "another files"),
    ],
)
def test_the_first_difference_is_named(key, value, said):
    with pytest.raises(UserError) as raised:
        require_same(Path("out"), BEGUN, {**BEGUN, key: value}, "give the same again", unnamed=["files"])
    assert str(raised.value) == f"out: begun with {said}; give the same again"


def test_the_same_is_gone_on_with_and_long_values_are_cut():
    require_same(Path("out"), BEGUN, dict(BEGUN), "")
    with pytest.raises(UserError, match=r"over \"x+\.\.\., not 1;") as raised:
        require_same(Path("out"), BEGUN, {**BEGUN, "over": 1}, "")
    assert len(str(raised.value)) < 2 * LONGEST
    with pytest.raises(UserError, match=r"over \.\.\.x{10}y\", not \.\.\.x{10}z\";"):
        require_same(Path("out"), {"over": "x" * 200 + "y"}, {"over": "x" * 200 + "z"}, "")


@pytest.mark.parametrize("keeps", [False, True])
def test_an_unfinished_folder_stays_only_to_be_gone_on_with(keeps, tmp_path):
    out = tmp_path / "out"

    def broken(**options):
        with unfinished(out, keeps=lambda error: keeps, **options) as folder:
            (folder / "part").touch()
            raise MemoryError

    with pytest.raises(MemoryError):
        broken()
    assert unfinished_folder(out).exists() is keeps
    with unfinished(out, resume=keeps) as folder:
        assert (folder / "part").exists() is keeps
        assert not out.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    (out / "mine").touch()
    with pytest.raises(UserError, match="out: holds something already; choose"), unfinished(out):
        raise AssertionError


def test_a_signal_while_the_folder_gets_its_name_is_told_once_it_has_it(tmp_path):
    def signalled(folder):
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted, match="one is whole"), unfinished(tmp_path / "one", last=signalled):
        pass
    with stop_signals() as noted:  # whose caller has more to save
        with unfinished(tmp_path / "two", last=signalled):
            pass
        assert noted == [signal.SIGTERM]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]
