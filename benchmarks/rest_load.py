"""Latency across key_by between two processes on Ray, with 200 REST requests a second and without,
in turn in one run: REST is to leave it alone."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.harness import Comparison, quick
from benchmarks.latency import TickSource
from benchmarks.on_ray import ray_cluster
from flinkpy.datastream import StreamExecutionEnvironment
from tests.ports import free_port

EVENTS_PER_S, REQUESTS_PER_S = 1_000, 200
TARGET = 1.1  # p99 under load to p99 without
BEGIN_S = 5.0  # not counted
PATHS = (
    "/overview",
    "/jobs/overview",
    "/jobs/{job}",
    "/jobs/{job}/checkpoints",
    "/jobs/{job}/exceptions",
    "/jobs/{job}/metrics",
    "/jobs/{job}/config",
)


class StampedLatencySink:
    """Records when every event came, and how long it took, and writes both to a file at the end."""

    def __init__(self, path: str) -> None:
        self._path = path

    def open(self, context: Any) -> None:
        self._taken: list[tuple[int, int]] = []
        Path(self._path).touch()

    def write_batch(self, batch: Any) -> None:
        now = time.perf_counter_ns()
        self._taken += [(now, now - stamp) for _, stamp in batch.values]

    def flush(self) -> None:
        Path(self._path).write_text(json.dumps(self._taken))

    def close(self) -> None: ...


def ask_in_turns(port: int) -> None:
    """For each line of standard input, a job's id and seconds, asks so long; prints how many
    requests were answered, how long they took at the 99th percentile, and when it began and
    ended."""
    connection = http.client.HTTPConnection("localhost", port, timeout=30)
    print("ready", flush=True)
    for line in sys.stdin:
        job, seconds = line.split()
        print(json.dumps(asked(connection, job, float(seconds))), flush=True)


def asked(
    connection: http.client.HTTPConnection, job: str, seconds: float
) -> tuple[int, float, int, int]:
    """Sends one request after another."""
    taken: list[float] = []
    begin = due = time.perf_counter()
    end = due + seconds
    while due < end:
        time.sleep(max(0.0, due - time.perf_counter()))
        due += 1 / REQUESTS_PER_S
        started = time.perf_counter()
        connection.request("GET", PATHS[len(taken) % len(PATHS)].format(job=job))
        response = connection.getresponse()
        response.read()
        assert response.status == 200, response.status
        taken.append(time.perf_counter() - started)
    taken.sort()
    return len(taken), taken[int(len(taken) * 0.99)], int(begin * 1e9), time.perf_counter_ns()


@contextmanager
def asker(port: int) -> Iterator[Callable[[str, float], list[Any]]]:
    """A process that asks. It is there before the job, as it takes a while to start."""
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.rest_load", str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        requests, answers = process.stdin, process.stdout
        assert answers.readline() == "ready\n"

        def ask(job: str, seconds: float) -> list[Any]:
            print(job, seconds, file=requests, flush=True)
            answer: list[Any] = json.loads(answers.readline())
            return answer

        try:
            yield ask
        finally:
            requests.close()


def measured(rounds: int, seconds: float) -> tuple[float, float, int, float]:
    """p99 in milliseconds without requests and with them; the requests that were answered, and
    their own p99 in milliseconds."""
    port, phases, answered, slowest = free_port(), [], 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/latencies.json"
        env = StreamExecutionEnvironment.get_execution_environment(
            {"rest.enabled": True, "rest.port": port, "rest.authentication": "NONE"}
        )
        env.set_parallelism(1)
        length = 2 * (BEGIN_S + rounds * seconds)  # it ends by itself, so that the sink writes
        stream = env.from_source(TickSource(EVENTS_PER_S, length), None, "ticks").key_by(
            lambda event: event[0]
        )
        stream.map(lambda event: event).slot_sharing_group("other").sink_to(
            StampedLatencySink(path)
        ).slot_sharing_group("other")
        with asker(port) as ask:
            client = env.execute_async("rest load")
            job = str(client.get_job_id())
            while not Path(path).exists():  # its tasks have not begun
                time.sleep(0.1)
            time.sleep(BEGIN_S)
            for number in range(2 * rounds):
                is_loaded = bool(number % 2)
                started, ended = time.perf_counter_ns(), None
                if is_loaded:
                    count, p99, started, ended = ask(job, seconds)
                    answered, slowest = answered + count, max(slowest, p99)
                else:
                    time.sleep(seconds)
                phases.append((is_loaded, started, ended or time.perf_counter_ns()))
        client.get_job_execution_result().result()
        events = json.loads(Path(path).read_text())

    def p99_ms(is_loaded: bool) -> float:
        spans = [(start, end) for loaded, start, end in phases if loaded is is_loaded]
        taken = sorted(
            taken for at, taken in events if any(start <= at < end for start, end in spans)
        )
        return float(taken[int(len(taken) * 0.99)] / 1e6)

    return p99_ms(False), p99_ms(True), answered, slowest * 1000


def main() -> list[Comparison]:
    rounds, seconds = (1, 3.0) if quick() else (5, 60.0)
    with ray_cluster():
        quiet, loaded, answered, p99 = measured(rounds, seconds)
    ratio = loaded / quiet
    note = (
        f"target at most {TARGET}: {'reached' if ratio <= TARGET else 'NOT REACHED'}; "
        f"{answered} requests answered, p99 of theirs {p99:.1f} ms"
    )
    result = Comparison(
        f"p99 at {REQUESTS_PER_S} requests/s", "ms", loaded, quiet, ratio, None, note
    )
    print(result, flush=True)
    return [result]


if __name__ == "__main__":
    ask_in_turns(int(sys.argv[1]))
