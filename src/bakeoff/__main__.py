"""The command `bakeoff`, also started by `python -m bakeoff`."""

import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line and exit; its parts are imported here, so that signals have one answer from the start."""
    first: int | None = None
    try:
        from bakeoff.signals import answer_signals, signal_received, stop_answering

        answer_signals()
        try:
            from bakeoff.cli import main as run
        except BaseException:
            first = signal_received()
            stop_answering()
            raise
    except BaseException as error:
        if first is None and not isinstance(error, KeyboardInterrupt):
            raise
        sys.stderr.write("bakeoff: interrupted\n")
        sys.exit(128 + (first or signal.SIGINT))
    run()


if __name__ == "__main__":
    main()
