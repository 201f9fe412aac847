"""Cores and memory, as files of the system tell of them."""

import os

import pytest

from bakeoff.machine import capacity


@pytest.fixture
def system(tmp_path, monkeypatch):
    """A system without limits, whose files a test may write; 16 cores and 8 GB are free."""

    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="ascii")

    monkeypatch.setattr(capacity, "GROUPS", tmp_path / "cgroup")
    monkeypatch.setattr(capacity, "MOUNTED", tmp_path / "mounted")
    monkeypatch.setattr(capacity, "MEMORY", tmp_path / "meminfo")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(16)), raising=False)
    write("meminfo", "MemTotal: 9000000 kB\nMemAvailable: 8000000 kB\n")
    return write


def test_without_limits_all_of_it_can_be_had(system):
    assert capacity.usable_cores() == 16
    assert capacity.free_memory() == 8_000_000 * 1024


@pytest.mark.parametrize(
    ("limit", "cores"), [("max 100000", 16), ("250000 100000", 2), ("40000 100000", 1), ("9900000 100000", 16)]
)
def test_a_share_of_the_cores_counts_whole_ones(system, limit, cores):
    system("cgroup", "0::/a/b\n")
    system("mounted/a/cpu.max", limit + "\n")  # the group around its own
    assert capacity.usable_cores() == cores


def test_groups_of_the_first_version_limit_as_well(system):
    system("cgroup", "5:cpu,cpuacct:/x\n4:memory:/y\n")
    system("mounted/cpu,cpuacct/x/cpu.cfs_quota_us", "300000\n")
    system("mounted/cpu,cpuacct/x/cpu.cfs_period_us", "100000\n")
    system("mounted/memory/y/memory.limit_in_bytes", "1000\n")
    system("mounted/memory/y/memory.usage_in_bytes", "400\n")
    assert capacity.usable_cores() == 3
    assert capacity.free_memory() == 600


def test_a_limit_of_memory_leaves_what_is_not_used_yet(system):
    system("cgroup", "0::/a\n")
    system("mounted/a/memory.max", "5000\n")
    system("mounted/a/memory.current", "6000\n")
    assert capacity.free_memory() == 0
    system("mounted/a/memory.max", "max\n")
    assert capacity.free_memory() == 8_000_000 * 1024


def test_files_that_the_system_keeps_in_memory_can_be_had_back(system):
    system("cgroup", "0::/a\n4:memory:/y\n")
    system("mounted/a/memory.max", "5000\n")
    system("mounted/a/memory.current", "4900\n")
    system("mounted/a/memory.stat", "anon 900\nfile 4000\ninactive_file 3000\nactive_file 1000\n")
    assert capacity.free_memory() == 3100
    system("mounted/memory/y/memory.limit_in_bytes", "4000\n")
    system("mounted/memory/y/memory.usage_in_bytes", "3900\n")
    system("mounted/memory/y/memory.stat", "inactive_file 1\ntotal_inactive_file 2000\n")
    assert capacity.free_memory() == 2100


def test_a_system_that_tells_nothing_is_no_error(system, tmp_path):
    (tmp_path / "meminfo").unlink()
    assert capacity.free_memory() is None
    assert capacity.usable_cores() == 16
