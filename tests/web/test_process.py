"""The verb as a process: its address, its end, and what it refuses to begin with."""

import json
import re
import signal
import subprocess
import sys
import time
from http.client import HTTPConnection

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

import bakeoff
from bakeoff.errors import UserError
from bakeoff.web.serve import read_token
from tests.untrained_runs import untrained


@pytest.mark.slow
def test_a_request_that_runs_is_answered_before_the_end(corpus, tmp_path):
    untrained("laptop-encoder-tiny", corpus, tmp_path / "run")
    command = [sys.executable, "-m", "bakeoff", "serve", str(tmp_path / "run"), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        line = server.stderr.readline()
        port = int(re.search(r"at http://127\.0\.0\.1:(\d+)", line)[1])
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        body = json.dumps({"texts": ["the word of a text " * 8] * 64})
        connection.request("POST", "/score", body, {"Content-Type": "application/json"})
        time.sleep(0.3)
        server.send_signal(signal.SIGTERM)
        response = connection.getresponse()
        assert response.status == 200
        assert len(json.loads(response.read())["answers"]) == 64
        connection.close()
        assert server.wait(20) == 128 + signal.SIGTERM
        assert server.stderr.read() == "bakeoff: stopped; requests that ran have been answered\n"


STUCK = """
import sys, torch
from bakeoff.cli import run
from bakeoff.using.loaded_run import LoadedRun
from bakeoff.web.limits import Limits

Limits.model_fields["closing_seconds"].default = 0.5
Limits.model_rebuild(force=True)
if sys.argv[2] == "in one operation":
    def score(self, texts):
        while True:
            torch.mm(torch.zeros(900, 900), torch.zeros(900, 900))
    LoadedRun.score = score
sys.exit(run(["serve", sys.argv[1], "--port", "0"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("where", ["between layers", "in one operation"])
def test_a_request_that_takes_too_long_does_not_hold_up_the_end(corpus, tmp_path, where):
    untrained("laptop-encoder-tiny", corpus, tmp_path / "run")
    command = [sys.executable, "-c", STUCK, str(tmp_path / "run"), where]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        port = int(re.search(r"at http://127\.0\.0\.1:(\d+)", server.stderr.readline())[1])
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        body = json.dumps({"texts": ["the word of a text " * 1000] * 50})
        connection.request("POST", "/score", body, {"Content-Type": "application/json"})
        time.sleep(1)
        server.send_signal(signal.SIGTERM)
        if where == "between layers":
            assert connection.getresponse().status == 503
        assert server.wait(20) == 128 + signal.SIGTERM
        assert server.stderr.read() == "bakeoff: stopped; requests that took more than 0.5 seconds have no answer\n"
        connection.close()


def test_others_are_answered_when_it_is_said(tmp_path):
    with pytest.raises(UserError, match="others reach it; give --token-file FILE, or --open"):
        bakeoff.serve([tmp_path], host="0.0.0.0")
    with pytest.raises(UserError, match="no finished comparison"):
        bakeoff.serve([tmp_path], comparison=tmp_path)


@pytest.mark.parametrize(
    "content", ["", "short", "with a space in between", "\xe4" * 20, "one-line-of-a-token\nanother-line-of-it"]
)
def test_tokens_that_are_none(tmp_path, content):
    (tmp_path / "token").write_text(content)
    with pytest.raises(UserError, match="one line of at least 16"):
        read_token(tmp_path / "token")


def test_a_token_of_a_file(tmp_path):
    (tmp_path / "token").write_text("0123456789abcdef\n")
    assert read_token(tmp_path / "token") == "0123456789abcdef"
