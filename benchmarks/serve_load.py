"""Load test of `bakeoff serve` with 200 clients: errors, latency, and throughput against one client at a time.

    python benchmarks/serve_load.py RUN --clients 200 --requests 5

The run must fill masks. Clients are threads of this process, each with its own persistent connection; the server is
another process on the same cores. Every answer is compared with the answer that its text gets alone.
"""

import argparse
import json
import random
import re
import statistics
import subprocess
import sys
import threading
import time
from http.client import HTTPConnection

WORDS = ["the", "of", "and", "city", "river", "in", "year", "was", "first", "king", "war", "music", "film", "station"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--requests", type=int, default=5, help="of each client")
    parser.add_argument("--alone", type=int, default=200, help="requests that are sent one at a time")
    given = parser.parse_args()
    command = [sys.executable, "-m", "bakeoff", "serve", given.run, "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        port = int(re.search(r":(\d+)", server.stderr.readline().partition("at http")[2])[1])
        measure(port, given)
    finally:
        server.terminate()
        server.wait(30)
    print(f"the server ended with status {server.returncode}")


def measure(port: int, given: argparse.Namespace) -> None:
    texts = made(64)
    connection = HTTPConnection("127.0.0.1", port, timeout=120)
    for text in texts[:20]:
        ask(connection, text)  # warm
    right = {text: ask(connection, text)[1] for text in texts}
    begun = time.perf_counter()
    single = [timed(connection, texts[i % len(texts)])[0] for i in range(given.alone)]
    rate = given.alone / (time.perf_counter() - begun)
    tell("one at a time", single, rate)

    latencies, problems = [], []
    start = threading.Barrier(given.clients + 1)

    def client(number: int) -> None:
        own = random.Random(number)
        line = HTTPConnection("127.0.0.1", port, timeout=120)
        start.wait()
        for _ in range(given.requests):
            text = own.choice(texts)
            try:
                seconds, (status, answers) = timed(line, text)
            except OSError as error:
                problems.append(repr(error))
                line = HTTPConnection("127.0.0.1", port, timeout=120)
                continue
            latencies.append(seconds)
            if status != 200 or not alike(answers, right[text]):
                problems.append(f"{status} {str(answers)[:200]}")

    threads = [threading.Thread(target=client, args=(number,)) for number in range(given.clients)]
    for thread in threads:
        thread.start()
    start.wait()
    begun = time.perf_counter()
    for thread in threads:
        thread.join()
    together = len(latencies) / (time.perf_counter() - begun)
    tell(f"{given.clients} clients", latencies, together)
    print(f"throughput of {given.clients} clients against one at a time: {together / rate:.1f}x")
    print(f"errors and other answers than alone: {len(problems)} of {given.clients * given.requests}", *problems[:3])


def made(count: int) -> list[str]:
    """`count` texts of 5 to 40 words with one mask each."""
    own = random.Random(0)
    texts = []
    for _ in range(count):
        words = own.choices(WORDS, k=own.randint(5, 40))
        words[own.randrange(len(words))] = "[MASK]"
        texts.append(" ".join(words))
    return texts


def ask(connection: HTTPConnection, text: str) -> tuple[int, object]:
    body = json.dumps({"texts": [text]})
    connection.request("POST", "/fill", body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    return response.status, json.loads(response.read()).get("answers")


def timed(connection: HTTPConnection, text: str) -> tuple[float, tuple[int, object]]:
    begun = time.perf_counter()
    answer = ask(connection, text)
    return time.perf_counter() - begun, answer


def alike(one: object, other: object) -> bool:
    """Whether two answers have the same tokens and probabilities, up to the rounding of float32 and ties."""
    pairs = [(a, b) for x, y in zip(one[0], other[0], strict=True) for a, b in zip(x, y, strict=True)]
    return all(abs(a["probability"] - b["probability"]) <= 1e-5 * b["probability"] for a, b in pairs) and all(
        a["id"] == b["id"] or abs(a["probability"] - b["probability"]) < 1e-6 for a, b in pairs
    )


def tell(name: str, seconds: list[float], rate: float) -> None:
    middle, high = statistics.median(seconds) * 1e3, statistics.quantiles(seconds, n=20)[-1] * 1e3
    print(f"{name}: {len(seconds)} requests, {rate:.0f} a second; latency median {middle:.0f} ms, 95 % {high:.0f} ms")


if __name__ == "__main__":
    main()
