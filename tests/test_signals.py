"""Ctrl-C where a library catches it."""

import os
import signal

import pytest

from bakeoff.signals import kept_interrupts


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
