"""Machines are asked what they are before anything starts."""

import os
import platform
import sys

import pytest
from tests.jobs.cluster.fake_ray import HERE
from tests.jobs.cluster.inline import ONE

from bakeoff.errors import UserError
from bakeoff.jobs.cluster import machines, roll_call


def copied(shared, folder):
    """A folder of the same content on another disk."""
    folder.mkdir(exist_ok=True)
    (folder / shared.mark).write_text(shared.mark)
    return folder


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (lambda shared, elsewhere: {"folder": elsewhere / "none"}, "does not see .*none, the folder of the command;"),
        (lambda shared, elsewhere: {"out": elsewhere}, "does not see in .*elsewhere what was written there;"),
        (lambda shared, elsewhere: {"out": copied(shared, elsewhere)}, "writes to a folder .* of its own;"),
        (lambda shared, elsewhere: {"sizes": dict.fromkeys(shared.sizes, 1)}, "does not see .*text as it is"),
    ],
)
def test_all_machines_have_to_share_the_disk_before_anything_starts(
    seen, said, cluster, connect, tmp_path, monkeypatch
):
    ray, real = cluster(first=ONE, second=ONE), machines.machine_here
    text = tmp_path / "corpus" / "text"
    text.parent.mkdir()
    text.write_text("a text")

    def on_second(shared, gpus, node=None):
        changed = seen(shared, tmp_path / "elsewhere") if HERE.node == "second" else {}
        return real(shared.model_copy(update=changed), gpus, node)

    monkeypatch.setattr(roll_call, "machine_here", on_second)
    monkeypatch.setattr(machines.os, "chdir", lambda folder: os.stat(folder))  # all machines here are threads
    with pytest.raises(UserError, match=f"^--ray auto: the machine .* {said}"), connect(read=[text.parent]):
        pass
    assert not list(tmp_path.glob(".bakeoff-shared*"))
    assert not [options for options, _ in ray.given if "name" in options]


def test_mixed_devices_are_refused_for_minutes_and_remarked_on_otherwise(cluster, connect, monkeypatch):
    cluster(first=ONE, second=ONE)
    monkeypatch.setattr(machines, "device_name", lambda gpus: "old" if HERE.node == "second" else "new")
    lines = []
    with connect(lines.append):
        pass
    assert lines[0].startswith("ATTENTION: machines with different devices")
    assert lines[0].endswith(f": new on {platform.node()}; old on {platform.node()}")
    assert lines[-1] == "2 machines of the cluster do the jobs: new and old"
    with (
        pytest.raises(UserError, match=r"has another device \(old\) than the others \(new\)"),
        connect(one_device=True),
    ):
        pass


def test_without_room_there_is_one_line(cluster, connect):
    cluster(first={"CPU": 0})
    with pytest.raises(UserError, match=r"^--ray auto: no machine of the cluster has a CPU for Ray$"), connect():
        pass
    cluster(first=ONE, second={"CPU": 1, "GPU": 8})
    with (
        pytest.raises(UserError, match=r"^--ray auto: the cluster has GPUs and this machine has none"),
        connect(device="auto"),
    ):
        pass


def test_a_missing_library_is_named(connect, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"^--ray needs Ray, which is not installed; run pip install 'ray>="):
        connect()
