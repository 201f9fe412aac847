import os
import subprocess
import sys

import pytest

from bakeoff.durable import fresh, held
from bakeoff.errors import UserError
from bakeoff.unfinished import unfinished, unfinished_folder

pytestmark = pytest.mark.skipif(os.name != "posix", reason="locks of POSIX systems")

HOLD = """
import sys, pathlib
from bakeoff.durable import held
with held(pathlib.Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other_process(tmp_path):
    """Another process that holds the folder until it is killed."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_folder_that_another_process_holds_is_refused(tmp_path, other_process):
    with pytest.raises(UserError, match="another process is writing here"), held(tmp_path):
        pass
    other_process.kill()
    other_process.wait()
    with held(tmp_path):
        pass


def test_a_fresh_folder_replaces_what_was_left_but_not_what_is_in_use(tmp_path, other_process):
    (tmp_path / "left").touch()
    with pytest.raises(UserError, match="mine: another process"), fresh(tmp_path, tmp_path.with_name("mine")):
        pass
    assert (tmp_path / "left").exists()
    other_process.kill()
    other_process.wait()
    with fresh(tmp_path, tmp_path.with_name("mine")):
        assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_gone_on_with_gets_its_name_whatever_a_kill_has_left(tmp_path):
    """A kill while the files get their permissions leaves the probe of one, which the next attempt makes anew."""
    left = unfinished_folder(tmp_path / "out") / "checkpoints"
    left.mkdir(parents=True)
    names = [f"{number}.safetensors" for number in range(10)]
    for name in [*names[:5], *(f".{name}.partial" for name in names), *names[5:]]:  # in any order of a file system
        (left / name).touch()
    with unfinished(tmp_path / "out", resume=True):
        pass
    assert sorted(path.name for path in (tmp_path / "out" / "checkpoints").iterdir()) == names
