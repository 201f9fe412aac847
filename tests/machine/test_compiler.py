"""Libraries of this machine's C compiler: made once, kept where nobody else writes, refused with a reason."""

import os
import shutil
import stat
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from bakeoff.machine import compiler
from bakeoff.machine.compiler import compiled

needs_a_compiler = pytest.mark.skipif(not any(map(shutil.which, compiler.COMPILERS)), reason="no C compiler")
pytestmark = pytest.mark.skipif(sys.platform not in ("linux", "darwin"), reason="kernels are for Linux and macOS")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "bakeoff" / "kernels"


@pytest.fixture
def source(tmp_path):
    (tmp_path / "source").mkdir()
    path = tmp_path / "source" / "answer.c"
    path.write_text('#include "number.h"\n__attribute__((visibility("default"))) int answer(void) { return NUMBER; }\n')
    path.with_name("number.h").write_text("#define NUMBER 42\n")
    return path


@pytest.fixture
def made(monkeypatch):
    """The paths of the libraries that are made."""
    paths, make = [], compiler._made
    monkeypatch.setattr(compiler, "_made", lambda *given: paths.append(given[-1]) or make(*given))
    return paths


@needs_a_compiler
def test_it_is_made_once_and_kept_for_this_user_alone(source, cache, made):
    first, second = compiled([source]), compiled([source])
    assert first.library.answer() == second.library.answer() == 42
    assert first.origin == second.origin != ""
    assert len(made) == 1
    (kept,) = cache.iterdir()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (cache, kept)] == [0o700, 0o700]


@needs_a_compiler
def test_other_sources_headers_and_flags_make_another(source, made, monkeypatch):
    compiled([source])
    source.with_name("number.h").write_text("#define NUMBER 43\n")
    assert compiled([source]).library.answer() == 43
    monkeypatch.setattr(compiler, "FLAGS", (*compiler.FLAGS, "-g0"))
    assert compiled([source]).library.answer() == 43
    assert len(made) == 3


@needs_a_compiler
@pytest.mark.parametrize("who", ["others", "the group"])
@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_others_may_write_is_not_loaded(source, cache, made, who, what):
    compiled([source])
    (kept,) = cache.iterdir()
    path = cache if what == "folder" else kept
    path.chmod(0o777 if who == "others" else 0o770)
    assert compiled([source]).library.answer() == 42
    assert len(made) == 2


@needs_a_compiler
def test_a_link_in_the_cache_is_not_followed(source, cache, made, tmp_path):
    compiled([source])
    cache.rename(tmp_path / "elsewhere")
    cache.symlink_to(tmp_path / "elsewhere")
    assert compiled([source]).library.answer() == 42
    assert len(made) == 2


@needs_a_compiler
def test_a_damaged_library_is_made_anew(source, cache, made, tmp_path, monkeypatch):
    compiled([source])
    (kept,) = cache.iterdir()
    damaged = tmp_path / "elsewhere" / "bakeoff" / "kernels" / kept.name  # this process has the other one loaded
    damaged.parent.mkdir(parents=True, mode=0o700)
    damaged.write_bytes(b"\x7fELF")
    damaged.chmod(0o700)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
    assert compiled([source]).library.answer() == 42
    assert len(made) == 2
    assert damaged.stat().st_size > 4


@needs_a_compiler
def test_without_a_cache_it_is_made_for_this_process(source, cache, made, tmp_path):
    (tmp_path / "cache").write_text("no folder")
    assert compiled([source]).library.answer() == 42
    assert len(made) == 1
    assert not made[0].exists()


@needs_a_compiler
def test_where_the_caches_disk_is_full_it_is_made_for_this_process(source, cache, monkeypatch):
    make = compiler._made

    def made(sources, command, path):
        if cache in path.parents:
            raise compiler._Refused("cc failed: No space left on device")
        return make(sources, command, path)

    monkeypatch.setattr(compiler, "_made", made)
    assert compiled([source]).library.answer() == 42
    assert not list(cache.iterdir())


@needs_a_compiler
def test_a_relative_folder_of_caches_counts_for_none(source, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert compiled([source]).library.answer() == 42
    assert not (tmp_path / "relative").exists()
    assert list((tmp_path / "home" / ".cache" / "bakeoff" / "kernels").iterdir())


@needs_a_compiler
def test_several_may_make_it_at_once(source, cache):
    with ThreadPoolExecutor(4) as pool:
        assert [each.library.answer() for each in pool.map(compiled, [[source]] * 4)] == [42] * 4
    assert len(list(cache.iterdir())) == 1


def test_without_a_compiler_there_is_a_reason(source, cache, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert compiled([source]) == (None, "no C compiler (cc, gcc, clang)")
    monkeypatch.setenv("CC", "my-cc -m32")
    assert compiled([source]) == (None, "no C compiler (my-cc -m32)")
    monkeypatch.setenv("CC", "'my-cc -m32")
    assert compiled([source]) == (None, "CC is no command: No closing quotation")
    assert not cache.exists()


@needs_a_compiler
def test_source_that_does_not_compile_gives_the_first_error(source, cache):
    source.write_text("int answer(void) { return NUMBER; }\n")
    library, origin = compiled([source])
    assert library is None
    assert "answer.c" in origin
    assert "error" in origin
    assert not [path for path in cache.iterdir() if not path.name.startswith(".")]


@needs_a_compiler
def test_cc_names_the_compiler(source, monkeypatch, tmp_path):
    (tmp_path / "my cc").write_text(f'#!/bin/sh\nexec {shutil.which("cc") or shutil.which("gcc")} "$@"\n')
    (tmp_path / "my cc").chmod(0o755)
    monkeypatch.setenv("CC", f"'{tmp_path}/my cc' -DUNUSED")
    assert compiled([source]).library.answer() == 42


def test_systems_without_kernels_say_so(source, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert compiled([source]) == (None, "no kernels for win32")


def test_nobody_has_a_home(source, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    library, origin = compiled([source])
    assert library is not None or origin
