"""Commands in errors and advice: names of others in them are words to a shell, whatever they hold."""

import re
import subprocess

import pytest

from bakeoff.corpus.store import Corpus
from bakeoff.errors import UserError
from bakeoff.interop.hugging_face.folder import PICKLES, Folder
from bakeoff.runs.run import Run

NAMES = ["evil'$(touch x)'", 'a"; touch x; "', "`touch x`", "two words", "-n", "a\\'b", "ü;touch x"]


def words(command, folder):
    """The words that a shell makes of a command, whose program is replaced by one that shows them."""
    program = command.split()[0]
    script = f'{program}() {{ printf "%s\\0" "$@"; }}\n{command}'
    done = subprocess.run(["sh", "-c", script], cwd=folder, capture_output=True, check=True, text=True)
    assert not list(folder.glob("x"))
    return done.stdout.split("\0")[:-1]


@pytest.mark.parametrize("name", NAMES)
def test_a_command_for_weights_that_are_not_read(tmp_path, name):
    folder = tmp_path / name
    folder.mkdir()
    for file in ("config.json", PICKLES[0]):
        (folder / file).write_text("{}")
    with pytest.raises(UserError) as error:
        Folder(folder).tensors()
    command = re.search(r"python -c .*", str(error.value))[0]
    option, code = words(command, tmp_path)
    assert (option, code.count(repr(str(folder)))) == ("-c", 1)
    compile(code, "advice", "exec")


@pytest.mark.parametrize("name", NAMES)
def test_a_command_for_a_corpus_or_a_run_that_is_not_there(tmp_path, name):
    with pytest.raises(UserError) as error:
        Corpus.open(tmp_path / name)
    command = re.search(r"with `(bakeoff prepare .*)`", str(error.value))[1]
    assert words(command, tmp_path) == ["prepare", "TEXT", "--out", str(tmp_path / name)]
    (tmp_path / name).mkdir()
    (tmp_path / name / "recipe.yaml").write_text("")
    first = re.search(r"`(bakeoff pretrain .*) --resume`, or", Run(tmp_path / name).how_to_go_on)[1]
    assert words(first, tmp_path) == ["pretrain", "--out", str(tmp_path / name)]
