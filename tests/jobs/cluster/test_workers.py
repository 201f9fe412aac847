"""Jobs on a cluster, as far as they need no Ray."""

import platform
import threading
import time

import pytest
from tests.jobs.cluster.fake_ray import HERE
from tests.jobs.cluster.inline import ONE, STOPPED, Inline, Waiting
from tests.jobs.work import Blunder, Counting, Double, Refuse, made, run

from bakeoff.durable import held
from bakeoff.errors import UserError
from bakeoff.full_disk import DiskFull
from bakeoff.jobs.cluster import machines, task
from bakeoff.jobs.job import Outcome, job_of


def test_all_jobs_are_done_as_in_this_process_whatever_machines_there_are(cluster, connect, tmp_path):
    here = Counting(Double, range(1, 12))
    run(here, None)
    for count in (1, 3):
        ray = cluster(first=ONE, **{f"m{index}": ONE for index in range(count - 1)})
        there = Counting(Double, range(1, 12))
        with connect() as pool:
            assert pool.slots == count + 1
            run(there, pool)
        assert there.outcomes == here.outcomes
        without_device = lambda queue: {key: notes[1:] for key, notes in queue.notes.items()}  # noqa: E731
        assert without_device(there) == without_device(here)
        assert not ray.connected
        assert not list(tmp_path.iterdir())  # the marks are gone
        asked = [options for options, _ in ray.given if options.get("name", "").startswith("number")]
        assert {(each["num_cpus"], each["num_gpus"], each["scheduling_strategy"]) for each in asked} == {
            (1, 0, "SPREAD")
        }


@pytest.mark.parametrize(
    ("kind", "error", "said"), [(Refuse, UserError, "^the number 1 is odd$"), (Blunder, RuntimeError, "a mistake")]
)
def test_an_error_of_a_job_is_the_commands(kind, error, said, cluster, connect):
    cluster(first=ONE)
    with pytest.raises(error, match=said), connect() as pool:
        run(Counting(kind, [1]), pool)


def wait_for(condition):
    until = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.005)


def in_thread(function):
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def test_a_job_of_a_lost_machine_goes_on_on_another(cluster, connect, tmp_path):
    ray, lines = cluster(first={}, one=ONE, other=ONE), []
    with connect() as pool:
        pool.begin("a", made(Waiting, 3, tmp_path / "a"))
        wait_for(lambda: len(ray.running) == 1)
        in_thread(lambda: (ray.lose(ray.running[0][0].node), time.sleep(0.1), (tmp_path / "a.go").touch()))
        key, outcome = pool.wait(lambda key, note: lines.append(note.get("line")))
    assert (key, outcome.tokens) == ("a", 3)
    assert [line for line in lines if line] == [f"number 3: its machine was lost; it goes on on {platform.node()}"]


def test_a_process_that_is_killed_again_and_again_is_given_up(cluster, connect, monkeypatch):
    cluster(first=ONE)
    attempts = []
    monkeypatch.setattr(Inline, "do", lambda self, message, noted: attempts.append(1))
    with (
        pytest.raises(
            UserError, match=r"^number 1: lost 4 times without a step between \(its process was killed on .*memory"
        ),
        connect() as pool,
    ):
        run(Counting(Double, [1]), pool)
    assert len(attempts) == 4


def test_progress_between_losses_buys_more_attempts(cluster, connect, monkeypatch):
    cluster(first=ONE)
    attempts = []

    def do(self, message, noted):
        attempts.append(1)
        noted({"done": len(attempts), "total": 99, "figures": ""})
        return {"outcome": {}} if len(attempts) == 10 else None

    monkeypatch.setattr(Inline, "do", do)
    with connect() as pool:
        run(Counting(Double, [1]), pool)
    assert len(attempts) == 10


def test_progress_that_was_made_once_does_not_count_again(cluster, connect, monkeypatch):
    cluster(first=ONE)
    attempts = []

    def do(self, message, noted):
        attempts.append(1)
        noted({"done": 5, "total": 99, "figures": ""})

    monkeypatch.setattr(Inline, "do", do)
    with pytest.raises(UserError, match=r"lost 4 times without a step between"), connect() as pool:
        run(Counting(Double, [1]), pool)
    assert len(attempts) == 8


def test_somebody_elses_signal_to_a_job_is_a_loss_and_not_the_end(cluster, connect, monkeypatch):
    """Such as the notice that a machine is taken away."""
    cluster(first=ONE)
    said = [{"interrupted": 15, "message": "stopped"}, {"outcome": {"tokens": 7}}]
    monkeypatch.setattr(Inline, "do", lambda self, message, noted: said.pop(0))
    queue = Counting(Double, [1])
    with connect() as pool:
        run(queue, pool)
    assert queue.outcomes[1].tokens == 7


def test_a_full_disk_on_a_machine_is_the_commands(cluster, connect, monkeypatch):
    cluster(first=ONE)
    monkeypatch.setattr(Inline, "do", lambda self, message, noted: {"full": "out: cannot be written: No space left"})
    with pytest.raises(DiskFull) as full, connect() as pool:
        run(Counting(Double, [1]), pool)
    assert full.value.problem == "out: cannot be written: No space left"


def test_a_job_takes_no_more_of_a_machine_than_the_largest_has(cluster, connect, monkeypatch):
    """One machine alone would train it, too, if more slowly."""
    ray = cluster(first={"CPU": 2, "memory": 100}, second={"CPU": 1, "memory": 1000})
    monkeypatch.setattr(Double, "memory", lambda self, device: 5000)
    queue = Counting(Double, [1])
    with connect(threads=8) as pool:
        assert pool.slots == 3
        run(queue, pool)
    (declared,) = [options for options, _ in ray.given if "name" in options]
    assert (declared["num_cpus"], declared["memory"]) == (2, 1000)
    assert queue.outcomes[1].tokens == 2


def test_when_the_command_ends_its_jobs_are_asked_to_stop_and_waited_for(cluster, connect, tmp_path):
    ray = cluster(first=ONE)

    def interrupted():
        with connect() as pool:
            for number in (1, 2):  # of which the second waits for a machine
                pool.begin(number, made(Waiting, number, tmp_path / str(number)))
            wait_for(lambda: pool.mailbox.instance.notes)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert STOPPED.is_set()
    assert not ray.running


def test_machines_that_join_later_get_jobs(cluster, connect, tmp_path):
    ray = cluster(first=ONE)
    with connect() as pool:
        pool.begin(1, made(Waiting, 1, tmp_path / "1"))
        pool.begin(2, made(Waiting, 2, tmp_path / "2"))
        assert pool.slots == 2
        ray.join("second", CPU=1)
        assert pool.wait(lambda key, note: None) is None
        assert pool.slots == 3
        wait_for(lambda: len(ray.running) == 2)
        for number in "12":
            (tmp_path / f"{number}.go").touch()
        assert {pool.wait(lambda key, note: None)[0] for _ in range(2)} == {1, 2}
        assert pool.jobs is None
    with connect(jobs=5) as pool:
        assert pool.slots == 5


def test_a_machine_that_joins_without_the_disk_gets_no_jobs(cluster, connect, tmp_path, monkeypatch):
    ray, lines = cluster(first=ONE), []
    real = machines.Shared.problem

    def problem(self, node=None):
        return "does not see the disk" if HERE.node == "second" else real(self, node)

    monkeypatch.setattr(machines.Shared, "problem", problem)
    with connect(lines.append) as pool:
        ray.join("second", CPU=4)
        run(Counting(Double, range(1, 8)), pool)
        assert list(pool.unfit) == ["second"]
    assert lines[-1] == f"ATTENTION: the machine {platform.node()} gets no jobs: it does not see the disk"


def test_a_machine_of_another_kind_that_joins_gets_no_jobs_where_minutes_were_made_steps(cluster, connect, monkeypatch):
    ray, lines = cluster(first=ONE), []
    monkeypatch.setattr(machines, "device_name", lambda gpus: "old" if HERE.node == "second" else "new")
    with connect(lines.append, one_device=True) as pool:
        ray.join("second", CPU=4)
        run(Counting(Double, range(1, 8)), pool)
        assert list(pool.unfit) == ["second"]
    assert "has another device (old) than the others (new)" in lines[-1]


def test_a_job_waits_until_an_earlier_process_lets_go_of_its_folder(tmp_path):
    out, order = tmp_path / "run", []
    out.mkdir()
    shared = machines.Shared.of(tmp_path, [])
    shared.write_mark()
    told = task.Told(lambda note: None, lambda: False)
    message = made(Double, 2, out).message()
    with held(out):
        thread = in_thread(
            lambda: order.append(task.carry_out(message, told, shared, "n", device="cpu", threads=1, only=None))
        )
        time.sleep(0.1)
        assert not order
    thread.join()
    assert job_of(message, "cpu").number == 2
    assert order == [{"outcome": Outcome(tokens=4).model_dump(mode="json")}]
