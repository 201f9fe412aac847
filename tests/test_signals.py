"""Signals that ask to stop, however many come; and Ctrl-C where a library catches it."""

import errno
import os
import signal
import subprocess
import sys
import time

import pytest

from bakeoff import signals
from bakeoff.display.terminal import LastingStream
from bakeoff.signals import kept_interrupts, stop_signals

EACH = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1]


@pytest.fixture(autouse=True)
def heard():
    """A hangup is heard, also where the tests were started by `nohup`, which ignores it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def test_signals_are_noted_however_many_come_and_handlers_are_restored():
    before = [signal.getsignal(each) for each in EACH]
    with stop_signals() as outer:
        with stop_signals() as inner:
            for number in (*EACH, *reversed(EACH)):
                os.kill(os.getpid(), number)
        assert inner == [*EACH, *reversed(EACH)]
        os.kill(os.getpid(), signal.SIGTERM)
    assert outer == [*inner, signal.SIGTERM]
    assert [signal.getsignal(each) for each in EACH] == before
    with stop_signals() as anew:
        os.kill(os.getpid(), signal.SIGINT)
    assert anew == [signal.SIGINT]


def test_only_another_ctrl_c_that_comes_late_interrupts(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(signals.time, "monotonic", lambda: now[0])
    with stop_signals() as received:
        for now[0], number in ((0, signal.SIGINT), (2.9, signal.SIGINT), (9, signal.SIGTERM), (10, signal.SIGHUP)):
            os.kill(os.getpid(), number)
        now[0] = 11
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert len(received) == 5


def test_a_closed_terminal_is_written_to_no_more():
    class Closed:
        def write(self, text):
            raise OSError(errno.EIO, "Input/output error")

        flush = property(lambda self: lambda: self.write(""))

    stream = LastingStream(Closed())
    assert stream.write("three") == 5
    stream.flush()


def ended(code, send):
    """Start a program, wait for its first line, call `send` with a function that signals it; its status and errors."""
    command = [sys.executable, "-c", code]
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen(command, **options) as process:
        process.stdout.readline()
        send(lambda number: os.kill(process.pid, number))
        _, said = process.communicate(timeout=60)
    return process.returncode, said


def twice(send):
    send(signal.SIGTERM)
    time.sleep(0.02)
    send(signal.SIGTERM)


def hang_up(send):
    send(signal.SIGHUP)
    send(signal.SIGINT)


def time_over(send):
    """A queue of jobs warns, and then ends what is still there."""
    send(signal.SIGUSR1)
    time.sleep(0.02)
    send(signal.SIGTERM)


@pytest.mark.slow
@pytest.mark.parametrize(("send", "statuses"), [(twice, {143}), (hang_up, {129, 130}), (time_over, {138})])
@pytest.mark.parametrize("work", ["time.sleep(60)", "import torch", "lost()", "swallowed()", "fails()"])
def test_signals_that_come_twice_end_a_verb_in_one_line(send, statuses, work):
    code = f"""
import sys, time, weakref
from unittest import mock
import bakeoff.cli
def lost():
    class Thing: pass
    thing = Thing()
    keep = weakref.ref(thing, lambda ref: time.sleep(1))  # no exception gets out of a callback
    del thing
    time.sleep(60)
def swallowed():
    try: time.sleep(60)
    finally: time.sleep(0.2)
def fails():
    try: time.sleep(60)
    except BaseException: raise SystemError("returned a result with an exception set")
def verb(*arguments, **named):
    print("begun", flush=True)
    time.sleep(0.0)
    {work}
    time.sleep(60)
with mock.patch("bakeoff.cli._command", lambda: mock.Mock(main=verb)):
    bakeoff.cli.main(["verb"])
"""
    status, said = ended(code, send)
    assert said == "bakeoff: interrupted\n"
    assert status in statuses


def test_ctrl_c_that_a_library_swallows_is_raised_at_the_end():
    before = signal.getsignal(signal.SIGINT)
    steps = []

    def library():
        try:
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("not interrupted")
        except BaseException:
            steps.append("swallowed")

    with pytest.raises(KeyboardInterrupt), kept_interrupts():
        library()
    assert steps == ["swallowed"]
    assert signal.getsignal(signal.SIGINT) == before


def test_without_ctrl_c_nothing_is_raised():
    with kept_interrupts():
        pass
    with pytest.raises(OSError, match="of its own"), kept_interrupts():
        raise OSError("of its own")
