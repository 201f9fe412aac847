"""Limits of the disk and of open files, as the system has them."""

import resource
import shutil

import pytest

from bakeoff.machine.limits import LEAST_FILES, Limits


def test_limits_are_the_systems_also_of_a_folder_that_is_not_there_yet(tmp_path):
    found = Limits.of(tmp_path / "none" / "below")
    assert found.path == str(tmp_path)
    assert found.disk == shutil.disk_usage(tmp_path).total
    assert 0 <= found.free_disk <= found.disk


@pytest.mark.parametrize("soft", [64, LEAST_FILES])
def test_few_open_files_are_remarked_on(soft, tmp_path):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, before[1]))
    try:
        found = Limits.of(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert found.open_files == soft
    assert f"{soft:,} open files" in found.text()
    few = [line for line in found.problems if "open files" in line]
    assert few == (["a process may have 64 open files; `ulimit -n 1024` allows more"] if soft == 64 else [])
