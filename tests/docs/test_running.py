"""Every command and every piece of Python on every page runs, with small budgets, in the order of the page."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.docs.assumed import corpora, named, put
from tests.docs.pages import PAGES, ROOT, blocks, calls
from tests.docs.shape import missing
from tests.docs.smaller import SERVED, smaller_python

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


class Shell:
    """A shell whose `bakeoff` is answered by a process that is there already."""

    def __init__(self, folder: Path) -> None:
        self.store = folder / "assumed"
        self.store.mkdir()
        path = f"{folder / 'bin'}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "COLUMNS": "100", "XDG_CACHE_HOME": str(folder / "cache")}
        self.serving: list[subprocess.Popen[str]] = []
        self.address = SERVED
        self.server = subprocess.Popen([sys.executable, "-m", "tests.docs.server", str(folder)], cwd=ROOT)
        while not (folder / "bin" / "bakeoff").exists():
            assert self.server.poll() is None
            time.sleep(0.05)

    def run(self, command: str, folder: Path, allowed: tuple[int, ...] = (0,)) -> str:
        """Run some lines of shell, and return what they print."""
        before = self.seconds()
        ended = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        print(f"{self.seconds() - before:6.1f} s of processor time: {command.strip()}")
        assert ended.returncode in allowed, f"status {ended.returncode} of: {command}\n{ended.stdout[-3000:]}"
        return ended.stdout

    def seconds(self) -> float:
        """Of processor time that all commands together have taken so far."""
        spent = self.store.parent / "seconds.txt"
        return sum(map(float, spent.read_text().split())) if spent.exists() else 0.0

    def serve(self, arguments: list[str], folder: Path) -> None:
        """Have `bakeoff serve` answer until `stop`; what the page asks then is asked of the first that was begun."""
        served = subprocess.Popen(
            [sys.executable, "-m", "bakeoff", *arguments, *([] if "--port" in arguments else ["--port", "0"])],
            cwd=folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert served.stderr is not None
        said = served.stderr.readline()
        address = re.search(r"http://([\d.]+:\d+)", said)
        assert address, f"bakeoff {' '.join(arguments)}: {said}{served.stderr.read()}"
        if not self.serving:
            self.address = address[1]
        self.serving.append(served)

    def stop(self) -> None:
        """End what serves, as Ctrl-C does."""
        serving, self.serving, self.address = self.serving, [], SERVED
        for served in serving:
            served.send_signal(signal.SIGINT)
        ended = [served.wait(60) for served in serving]
        for served in serving:
            assert served.stderr is not None
            served.stderr.close()
        assert set(ended) <= {130}, ended

    def put(self, text: str, folder: Path) -> None:
        """Have what the lines of a block assume in the page's folder."""
        for name in named(text):
            put(name, folder, self.store, self.run)


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    shell = Shell(tmp_path_factory.mktemp("pages"))
    yield shell
    print(f"{shell.seconds():6.1f} s of processor time: all pages")
    shell.server.terminate()
    shell.server.wait()


@pytest.fixture(autouse=True)
def nothing_serves_the_next_page(shell):
    yield
    shell.stop()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_says_runs(page, shell, tmp_path):
    python = []
    for block in blocks(page):
        if block.left_out:
            continue
        if block.kind == "file":
            (tmp_path / block.file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / block.file).write_text(block.text, encoding="utf-8")
            shell.put(block.text, tmp_path)
        if block.kind == "python":
            python.append((block.place, smaller_python(block.text)))
        for typed, shown in block.commands() if block.kind == "shell" else []:
            shell.put(typed, tmp_path)
            asked = calls(typed)
            if any(call[0] == "serve" for call in asked):
                for call in asked:
                    shell.serve(call, tmp_path)
                continue
            typed = typed.replace(SERVED, shell.address)
            refused = shown.startswith("bakeoff: ")
            printed = shell.run(typed, tmp_path, allowed=(2,) if refused else (0,))
            assert "compare" in typed or not missing(shown, printed), f"{block.place}: {typed}\n{printed}"
    if python:
        folder = tmp_path / "python"  # where nothing is that the commands have made
        folder.mkdir()
        (folder / "python.json").write_text(json.dumps(python), encoding="utf-8")
        for block in (block for block in blocks(page) if block.kind == "file"):
            (folder / block.file).write_text(block.text, encoding="utf-8")
        for _, text in python:
            shell.put(" ".join([text, *corpora(text)]), folder)
        shell.run("bakeoff --python python.json", folder)
