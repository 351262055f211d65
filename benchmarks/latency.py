"""Latency across key_by between two processes on Ray at 1,000 and 50,000 events a second: stamped
at the source, read at the sink."""

from __future__ import annotations

import json
import multiprocessing
import selectors
import socket
import struct
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import Comparison, quick
from benchmarks.on_ray import ray_cluster
from benchmarks.probe import ReplayReader, ReplaySource, Share
from flinkpy.connectors.source_api.source import InputStatus, ReaderContext
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.datastream import StreamExecutionEnvironment

TICK_S = 0.001
TARGETS_MS = {(1_000, "p50"): 0.1, (1_000, "p99"): 1.0, (50_000, "p99"): 5.0}
# of the bare socket on the machine where the targets were set
BARE_MS = {"p50": 0.017, "p99": 0.09}
Event = tuple[int, int]


class TickReader(ReplayReader):
    """Emits a number of events every millisecond, each stamped with the machine's monotonic
    clock."""

    def __init__(self, rate: int, seconds: float, context: ReaderContext) -> None:
        super().__init__(lambda subtask, parallelism: [RowBatch([0])], 1, "", context)
        self._per_tick, self._left = int(rate * TICK_S), int(seconds / TICK_S)
        self._next = 0.0

    def add_splits(self, splits: list[Share]) -> None:
        super().add_splits(splits)
        self._next = time.perf_counter()

    def poll(self, limit: int) -> Batch | InputStatus:
        if not self._started:
            return InputStatus.NOTHING_AVAILABLE
        if not self._left:
            return InputStatus.END_OF_INPUT
        now = time.perf_counter()
        if now < self._next:
            self._context.wake_up_after(self._next - now)
            return InputStatus.NOTHING_AVAILABLE
        self._next += TICK_S
        self._left -= 1
        stamp = time.perf_counter_ns()
        return RowBatch([(key, stamp) for key in range(self._per_tick)])


class TickSource(ReplaySource):
    def __init__(self, rate: int, seconds: float) -> None:
        super().__init__(lambda subtask, parallelism: [], 1, "")
        self._rate, self._seconds = rate, seconds

    def create_reader(self, context: ReaderContext) -> TickReader:
        return TickReader(self._rate, self._seconds, context)


class LatencySink:
    """Records the latency of every event, and writes the latencies to a file at the end."""

    def __init__(self, path: str) -> None:
        self._path = path

    def open(self, context: Any) -> None:
        self._taken: list[int] = []

    def write_batch(self, batch: Any) -> None:
        now = time.perf_counter_ns()
        self._taken += [now - stamp for _, stamp in batch.values]

    def flush(self) -> None:
        Path(self._path).write_text(json.dumps(self._taken))

    def close(self) -> None: ...


def percentiles(rate: int, seconds: float) -> tuple[float, float]:
    """p50 and p99 in milliseconds, without the first fifth of the events."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/latencies.json"
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        stream = env.from_source(TickSource(rate, seconds), None, "ticks").key_by(
            lambda event: event[0]
        )
        stream.map(lambda event: event).slot_sharing_group("other").sink_to(
            LatencySink(path)
        ).slot_sharing_group("other")
        env.execute("latency")
        taken = sorted(json.loads(Path(path).read_text())[int(rate * seconds / 5) :])
    return taken[len(taken) // 2] / 1e6, taken[int(len(taken) * 0.99)] / 1e6


def _ticks(port: int, count: int) -> None:
    """The bare sender: sends a timestamp every millisecond, and waits in a selector as a slot loop
    does."""
    with (
        socket.create_connection(("127.0.0.1", port)) as sock,
        selectors.DefaultSelector() as selector,
    ):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        due = time.perf_counter()
        for _ in range(count):
            due += TICK_S
            while (left := due - time.perf_counter()) > 0:
                selector.select(left)
            sock.send(struct.pack("<q", time.perf_counter_ns()))


def bare_percentiles(seconds: float) -> tuple[float, float]:
    """The same ticks between two processes over a bare socket."""
    taken = []
    with socket.create_server(("127.0.0.1", 0)) as server, selectors.DefaultSelector() as selector:
        process = multiprocessing.get_context("fork").Process(
            target=_ticks, args=(server.getsockname()[1], int(seconds / TICK_S))
        )
        process.start()
        connection, _ = server.accept()
        with connection:
            selector.register(connection, selectors.EVENT_READ)
            while selector.select() and (data := connection.recv(8)):
                taken.append(time.perf_counter_ns() - struct.unpack("<q", data)[0])
        process.join()
    taken = sorted(taken[len(taken) // 5 :])
    return taken[len(taken) // 2] / 1e6, taken[int(len(taken) * 0.99)] / 1e6


def verdict(rate: int, name: str, value: float, ratio: float) -> str:
    """Checks the target in milliseconds, and as a ratio to the bare socket, since machines
    differ."""
    target = TARGETS_MS.get((rate, name))
    if target is None:
        return ""
    in_ms, in_ratio = value <= target, ratio <= target / BARE_MS[name]
    return (
        f"target {target} ms: {'reached' if in_ms else 'NOT REACHED'}; "
        f"{target / BARE_MS[name]:.1f} x bare: {'reached' if in_ratio else 'NOT REACHED'}"
    )


def main() -> list[Comparison]:
    results = []
    bare = dict(zip(("p50", "p99"), bare_percentiles(2 if quick() else 10)))
    print(
        (f"{'bare socket at 1000 ticks/s':<34} p50 {bare['p50']:.3f} ms, p99 {bare['p99']:.3f} ms"),
        flush=True,
    )
    with ray_cluster():
        for rate in (1_000, 50_000):
            for name, value in zip(("p50", "p99"), percentiles(rate, 2 if quick() else 20)):
                ratio = value / bare[name]
                note = verdict(rate, name, value, ratio)
                results.append(
                    Comparison(
                        f"latency {name} at {rate} events/s",
                        "ms",
                        value,
                        bare[name],
                        ratio,
                        None,
                        note,
                    )
                )
                print(
                    f"{results[-1].name:<34} {value:8.3f} ms   {ratio:5.1f} x bare   {note}",
                    flush=True,
                )
    return results


if __name__ == "__main__":
    main()
