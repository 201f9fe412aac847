"""Checksums beside files, and the digests that are remembered of large ones."""

import hashlib
import os
import shutil
import subprocess

import pytest

from bakeoff import checksums, digests
from bakeoff.checksums import NAME, Damaged, forget, listed, read, record, verify, write


@pytest.fixture
def folder(tmp_path):
    """A folder with two files that are listed."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("a.bin", "b.txt"):
        (folder / name).write_bytes(name.encode() * 1000)
    record(folder, ["a.bin", "b.txt"])
    return folder


@pytest.fixture
def reads(tmp_path, monkeypatch):
    """The files that were hashed from the disk; all are large, none is fresh, and there is a cache of their own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(digests, "REMEMBERED_FROM", 1)
    monkeypatch.setattr(digests, "SETTLED", -1e9)
    monkeypatch.setattr(digests, "_here", {})
    found, exact = [], hashlib.file_digest

    def noted(file, name):
        found.append(os.path.basename(file.name))
        return exact(file, name)

    monkeypatch.setattr(hashlib, "file_digest", noted)
    return found


def another_process(monkeypatch):
    monkeypatch.setattr(digests, "_here", {})


def test_every_flipped_bit_is_noticed(folder):
    verify(folder / "a.bin")
    content = (folder / "a.bin").read_bytes()
    for place in range(0, len(content), 97):
        (folder / "a.bin").write_bytes(bytes([*content[:place], content[place] ^ 16, *content[place + 1 :]]))
        with pytest.raises(Damaged, match=r"a\.bin: damaged: it is not what was written"):
            verify(folder / "a.bin")
        with pytest.raises(Damaged, match=r"a\.bin: damaged"):
            read(folder / "a.bin")
    verify(folder / "b.txt")
    (folder / "a.bin").unlink()
    with pytest.raises(Damaged, match=r"a\.bin: missing"):
        verify(folder / "a.bin")


def test_every_change_of_the_list_itself_is_noticed(folder):
    text = (folder / NAME).read_bytes()
    for place in range(len(text)):
        (folder / NAME).write_bytes(bytes([*text[:place], text[place] ^ 1, *text[place + 1 :]]))
        with pytest.raises(Damaged, match=r"bakeoff\.sha256: damaged"):
            listed(folder)
    lines = text.splitlines(keepends=True)
    for changed in (b"", text[:-1], b"".join(lines[1:]), b"".join([lines[1], lines[0], lines[2]]), b"{}", text * 2):
        (folder / NAME).write_bytes(changed)
        with pytest.raises(Damaged, match=r"bakeoff\.sha256: damaged"):
            read(folder / "a.bin")


def test_the_list_is_one_that_sha256sum_reads(folder):
    if shutil.which("sha256sum") is None:
        pytest.skip("no sha256sum")
    done = subprocess.run(["sha256sum", "--check", "--strict", NAME], cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "a.bin: OK\nb.txt: OK\n"), done.stderr


@pytest.mark.parametrize("name", ["ไทย-x.json", "比較 🎉", "naïve.txt", "a\u2028b", "a\u0085b"])
def test_names_in_any_script_are_listed(name, folder):
    write(folder / name, "text")
    assert (read(folder / name), sorted(listed(folder))) == (b"text", sorted(["a.bin", "b.txt", name]))
    if shutil.which("sha256sum") is not None:
        subprocess.run(["sha256sum", "--check", "--strict", NAME], cwd=folder, capture_output=True, check=True)
    (folder / name).write_bytes(b"other")
    with pytest.raises(Damaged, match="damaged"):
        verify(folder / name)


def test_a_folder_without_a_list_makes_no_claims(folder):
    (folder / NAME).unlink()
    (folder / "a.bin").write_bytes(b"other")
    verify(folder / "a.bin")
    assert read(folder / "a.bin") == b"other"
    assert listed(folder / "absent") == {}


def test_a_kill_while_a_file_is_replaced_leaves_one_that_opens(folder, monkeypatch):
    """Whatever has been done until then."""
    steps = []
    exact = checksums.write_atomically

    def killed_at(count):
        def writes(path, text):
            if len(steps) == count:
                raise KeyboardInterrupt
            steps.append(path.name)
            exact(path, text)

        return writes

    for count in range(3):
        steps.clear()
        with monkeypatch.context() as patch:
            patch.setattr(checksums, "write_atomically", killed_at(count))
            with pytest.raises(KeyboardInterrupt):
                write(folder / "b.txt", f"new {count}")
        assert steps == [NAME, "b.txt", NAME][:count]
        verify(folder / "b.txt")
        record(folder, ["b.txt"])
    write(folder / "b.txt", "new")
    verify(folder / "b.txt")
    (folder / "b.txt").write_text("newer")
    with pytest.raises(Damaged):
        verify(folder / "b.txt")
    forget(folder, ["b.txt"])
    verify(folder / "b.txt")
    assert list(listed(folder)) == ["a.bin"]


def test_a_second_start_reads_nothing_again(folder, reads, monkeypatch):
    for _ in range(2):
        another_process(monkeypatch)
        verify(folder / "a.bin")
        verify(folder / "b.txt")
    assert reads == ["a.bin", "b.txt"]
    another_process(monkeypatch)
    checksums.compare(folder / "a.bin", listed(folder)["a.bin"], anew=True)
    assert reads == ["a.bin", "b.txt", "a.bin"]


def test_what_changed_was_moved_or_copied_is_read_again(folder, reads, monkeypatch, tmp_path):
    verify(folder / "a.bin")
    shutil.copytree(folder, tmp_path / "copy")
    another_process(monkeypatch)
    verify(tmp_path / "copy" / "a.bin")
    folder.rename(tmp_path / "moved")
    verify(tmp_path / "moved" / "a.bin")
    assert reads == ["a.bin"] * 3
    file, status = tmp_path / "moved" / "a.bin", (tmp_path / "moved" / "a.bin").stat()
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"?")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))  # the size is the same, too
    with pytest.raises(Damaged):
        verify(file)


def test_damage_that_changed_no_time_is_told_from_then_on_once_it_is_found(folder, reads, monkeypatch):
    """As where a disk forgets a bit: `check` reads anew, and what it finds is remembered."""
    expected = listed(folder)["a.bin"]
    verify(folder / "a.bin")
    key = digests._key(folder / "a.bin")
    (folder / "a.bin").write_bytes(b"?" * key[1])
    monkeypatch.setattr(digests, "_key", lambda path: key)
    verify(folder / "a.bin")
    with pytest.raises(Damaged):
        checksums.compare(folder / "a.bin", expected, anew=True)
    another_process(monkeypatch)
    with pytest.raises(Damaged):
        verify(folder / "a.bin")


@pytest.mark.parametrize("cache", ["file", "absent home", "broken"])
def test_where_nothing_can_be_remembered_files_are_still_compared(cache, folder, reads, monkeypatch, tmp_path):
    if cache == "file":
        (tmp_path / "cache").write_text("in the way")
    elif cache == "absent home":
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(digests.Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    else:
        verify(folder / "a.bin")
        (store,) = (tmp_path / "cache" / "bakeoff" / "digests").glob("*.json")
        for content in (b"[" * 100_000, b"{", b"\xff", b"[1]", b'{"a.bin": 3}', b'{"a.bin": [1, 2, 3, 4, 5]}'):
            store.write_bytes(content)
            another_process(monkeypatch)
            verify(folder / "a.bin")
    another_process(monkeypatch)
    verify(folder / "a.bin")
    verify(folder / "a.bin")
    assert set(reads) == {"a.bin"}
    (folder / "a.bin").write_bytes(b"?")
    with pytest.raises(Damaged):
        verify(folder / "a.bin")


def test_a_file_that_was_just_written_is_not_remembered(folder, reads, monkeypatch):
    monkeypatch.setattr(digests, "SETTLED", 3600)
    verify(folder / "a.bin")
    verify(folder / "a.bin")
    assert reads == ["a.bin", "a.bin"]


def test_a_check_of_the_content_runs_once(folder, reads, monkeypatch):
    calls = []

    def check():
        calls.append(1)

    verify(folder / "a.bin")
    for _ in range(2):
        another_process(monkeypatch)
        digests.checked_once(folder / "a.bin", "bounds", check)
    digests.checked_once(folder / "a.bin", "other", check)
    assert len(calls) == 2
    (folder / "a.bin").write_bytes(b"changed")
    digests.checked_once(folder / "a.bin", "bounds", check)
    assert len(calls) == 3
