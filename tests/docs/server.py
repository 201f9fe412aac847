"""Answers `bakeoff ...` of a shell from one process that has imported torch already, so that each call costs no start.

`python -m tests.docs.server FOLDER` writes FOLDER/bin/bakeoff, a command that sends its arguments, its folder and its
standard input and output through a socket; each call is run in a process forked for it, which ends with the exit status
that the command returns. Arguments are made smaller first, as `tests/docs/smaller.py` says. FOLDER/seconds.txt has the
processor time of each.
"""

import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from pathlib import Path

from tests.docs.assumed import clear
from tests.docs.smaller import STOPPED, instead, shrink_files, smaller

_COMMAND = """#!{python} -ISE
import array, json, os, socket, sys
there = socket.socket(socket.AF_UNIX)
there.connect({address!r})
asked = json.dumps([os.getcwd(), sys.argv[1:], dict(os.environ)]).encode()
there.sendmsg([len(asked).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
there.sendall(asked)
status = there.recv(1)
sys.exit(status[0] if status else 70)
"""


def serve(folder: Path) -> None:
    """Serve until the process is ended."""
    import bakeoff.comparison.execution
    import bakeoff.tasks.finetune
    import bakeoff.training.pretrain  # noqa: F401

    address = str(folder / "socket")
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen(16)
        command = folder / "bin" / "bakeoff"
        command.parent.mkdir()
        command.with_suffix(".new").write_text(_COMMAND.format(python=sys.executable, address=address))
        command.with_suffix(".new").chmod(0o755)
        command.with_suffix(".new").rename(command)
        while True:
            caller, _ = door.accept()
            if os.fork() == 0:
                door.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                _answer(caller, folder / "seconds.txt")
            caller.close()


def _answer(caller: socket.socket, spent: Path) -> None:
    size, descriptors, _, _ = socket.recv_fds(caller, 4, 3)
    asked = b""
    while len(asked) < int.from_bytes(size, "big"):
        asked += caller.recv(65536)
    worker = os.fork()
    if worker == 0:
        caller.close()
        _run(*json.loads(asked), descriptors)
    _, status, used = os.wait4(worker, 0)
    with open(spent, "a", encoding="utf-8") as record:
        record.write(f"{used.ru_utime + used.ru_stime:.1f}\n")
    caller.sendall(bytes([os.waitstatus_to_exitcode(status) % 256]))
    os._exit(0)


def _run(folder: str, arguments: list[str], environment: dict[str, str], descriptors: list[int]) -> None:
    for own, given in enumerate(descriptors):
        os.dup2(given, own)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    status = 70
    try:
        if arguments[0] == "--python":
            names: dict[str, object] = {}
            for place, text in json.loads(Path(arguments[1]).read_text(encoding="utf-8")):
                exec(compile(text, place, "exec"), names)
            status = 0
        else:
            clear(arguments)
            from bakeoff.cli import main

            if arguments[0] == "--stopped":
                arguments = arguments[1:]
                _stop_soon(Path(arguments[arguments.index("--out") + 1]) / "metrics.jsonl")
                main(instead(arguments, "--budget", STOPPED))
            try:
                main(smaller(arguments))
            finally:
                if "--files-only" in arguments:
                    shrink_files(Path(arguments[arguments.index("--out") + 1]))
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _stop_soon(measured: Path) -> None:
    """Have a training stopped as by Ctrl-C once it has measured its held-out loss for the first time."""

    def stop() -> None:
        while not measured.exists():
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=stop, daemon=True).start()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
