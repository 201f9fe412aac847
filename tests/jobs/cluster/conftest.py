"""Clusters without Ray: machines that are threads, which are lost and join."""

import pytest
from tests.jobs.cluster.fake_ray import FakeRay
from tests.jobs.cluster.inline import STOPPED, Inline

from bakeoff.jobs.cluster import machines, task, workers
from bakeoff.jobs.cluster.workers import RayWorkers


@pytest.fixture(autouse=True)
def quickly(monkeypatch):
    STOPPED.clear()
    task._KEPT.clear()
    monkeypatch.setattr(task, "WorkerProcess", Inline)
    monkeypatch.setattr(task, "ASK", 0.01)
    monkeypatch.setattr(workers, "POLL", 0.01)
    monkeypatch.setattr(workers, "REFRESH", 0.05)
    monkeypatch.setattr(machines, "LAG", 0.1)


@pytest.fixture
def cluster(monkeypatch):
    """Makes a cluster of named machines, of which the first is the command's, and takes Ray's place."""

    def made_of(**resources):
        ray = FakeRay(**resources)
        monkeypatch.setattr(workers, "imported_ray", lambda: ray)
        monkeypatch.setattr(task, "imported_ray", lambda: ray)
        return ray

    return made_of


@pytest.fixture
def connect(tmp_path):
    def connect(say=lambda line: None, jobs=None, one_device=False, read=(), device="cpu", threads=1):
        return RayWorkers("auto", tmp_path, read, threads, device, jobs=jobs, one_device=one_device, say=say)

    return connect
