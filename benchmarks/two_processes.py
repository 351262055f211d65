"""wc on two TaskExecutor processes on Ray: against one process, and against a bare two-process
pipeline with pickle over a socket; and columns between two processes against a bare Arrow IPC
stream."""

from __future__ import annotations

import multiprocessing
import pickle
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from benchmarks.columns import column_batches
from benchmarks.data import lines
from benchmarks.harness import Comparison, compare, in_turn, medians, quick
from benchmarks.on_ray import ray_cluster
from benchmarks.probe import CountingSink, ReplaySource, steady_state
from benchmarks.rows import add, in_batches, split, word
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.datastream import DataStream, StreamExecutionEnvironment

# pairs of runs vary much on a virtual machine: with 9 pairs the median was known to within 0.1 only
ROUNDS = 25
# A session keeps the slots it began with, so this is a session of its own.
BOTH_SLOTS_IN_ONE = {"cluster.id": "one-process", "taskmanager.numberOfTaskSlots": 2}


def on_ray(
    make: Callable[[int, int], list[Batch]],
    times: int,
    parallelism: int,
    program: Callable[[DataStream], DataStream],
    columnar: bool = False,
    options: dict[str, Any] | None = None,
) -> Callable[[], float]:
    def run(folder: str) -> None:
        env = StreamExecutionEnvironment.get_execution_environment(options or {})
        env.set_parallelism(parallelism)
        program(
            env.from_source(ReplaySource(make, times, folder, columnar), None, "replay")
        ).sink_to(CountingSink(folder))
        env.execute("benchmark")

    return lambda: steady_state(run).rate


def word_count(stream: DataStream) -> DataStream:
    return stream.flat_map(split).key_by(word).reduce(add)


def to_other_process(stream: DataStream) -> DataStream:
    """Puts the sink into a slot, and so a process, of its own."""
    return stream.global_().map_batches(lambda batch: batch).slot_sharing_group("other")


def _sender(port: int, count: int, times: int, columns: bool) -> None:
    batches: list[Any] = column_batches(count) if columns else in_batches(lines(count))
    with socket.create_connection(("127.0.0.1", port)) as sock:
        if columns:
            import pyarrow as pa

            with (
                sock.makefile("wb", buffering=1 << 20) as file,
                pa.ipc.new_stream(file, batches[0].data.schema) as stream,
            ):
                for _ in range(times):
                    for batch in batches:
                        stream.write_batch(batch.data)
            return
        for _ in range(times):
            for batch in batches:
                payload = pickle.dumps(
                    [pair for line in batch.values for pair in split(line)], protocol=5
                )
                sock.sendall(struct.pack("<I", len(payload)) + payload)


def bare_pipeline(count: int, times: int, columns: bool) -> float:
    """Sender and receiver on a core each, with a socket between them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        process = multiprocessing.get_context("fork").Process(
            target=_sender, args=(server.getsockname()[1], count, times, columns)
        )
        process.start()
        connection, _ = server.accept()
        with connection, connection.makefile("rb", buffering=1 << 20) as file:
            rate = _receive_columns(file) if columns else _receive_rows(file, count * times)
        process.join()
    return rate


def _receive_rows(file: Any, records: int) -> float:
    loop = count_pairs()
    started = None
    while head := file.read(4):
        started = started or time.perf_counter()
        loop(pickle.loads(file.read(struct.unpack("<I", head)[0])))
    return records / (time.perf_counter() - (started or 0))


def count_pairs() -> Callable[[list[Any]], None]:
    """The second half of the word count, whose input is ready-made pairs."""
    counts: dict[str, tuple[str, int]] = {}

    def loop(pairs: list[Any]) -> None:
        out = []
        for pair in pairs:
            key = word(pair)
            current = counts.get(key)
            if current is not None:
                pair = add(current, pair)
            counts[key] = pair
            out.append(pair)

    return loop


def bare_loops(processes: int, count: int, times: int) -> float:
    """Runs ``processes`` plain loops at once, in independent processes: what two processes can
    reach on this machine."""
    fork = multiprocessing.get_context("fork")
    begin = fork.Barrier(processes)
    rates: multiprocessing.SimpleQueue[float] = fork.SimpleQueue()

    def count_words() -> None:
        batches: list[Any] = [
            batch.values for batch in in_batches(lines(count)) if isinstance(batch, RowBatch)
        ]
        loop = count_pairs()
        begin.wait()
        started = time.perf_counter()
        for _ in range(times):
            for batch in batches:
                loop([pair for line in batch for pair in split(line)])
        rates.put(count * times / (time.perf_counter() - started))

    running = [fork.Process(target=count_words) for _ in range(processes)]
    for process in running:
        process.start()
    total = sum(rates.get() for _ in running)
    for process in running:
        process.join()
    return total


def scaling(
    two: Callable[[], float], one: Callable[[], float], loops: Callable[[int], float], rounds: int
) -> list[Comparison]:
    """Compares one job in two processes and in one, and at the same time two bare loops and one: a
    virtual machine may not give two whole cores."""
    figures = in_turn((two, one, lambda: loops(2), lambda: loops(1)), rounds)
    jobs, bare = [each[:2] for each in figures], [each[2:] for each in figures]
    given = [(a / b, c / d) for a, b, c, d in figures]
    return [
        medians(
            "wc at parallelism 2, 2 processes vs 1",
            jobs,
            "lines/s",
            1.6,
            "bare = the same job in one process",
        ),
        medians(
            "wc, 2 bare loops at once vs 1",
            bare,
            "lines/s",
            None,
            "what this machine gave two processes meanwhile",
        ),
        medians("the one against the other", given, "times", 0.8, "1.6 of two whole cores"),
    ]


def _receive_columns(file: Any) -> float:
    import pyarrow as pa

    started, rows = None, 0
    for batch in pa.ipc.open_stream(file):
        started = started or time.perf_counter()
        rows += batch.num_rows
    return rows / (time.perf_counter() - (started or 0))


def main() -> list[Comparison]:
    count, times = (2_000, 2) if quick() else (50_000, 20)
    rows, column_times = (50_000, 4) if quick() else (500_000, 100)

    def make_lines(subtask: int, parallelism: int) -> list[Batch]:
        return in_batches(lines(count // parallelism, seed=subtask))

    def make_columns(subtask: int, parallelism: int) -> list[Batch]:
        return column_batches(rows)

    with ray_cluster():
        two = on_ray(make_lines, times, 2, word_count)
        return [
            compare(
                "wc, 2 processes vs 1",
                two,
                on_ray(make_lines, times, 1, word_count),
                unit="lines/s",
                target=1.6,
                note="bare = parallelism 1 in one process, nothing partitioned",
            ),
            *scaling(
                on_ray(make_lines, 2 * times, 2, word_count),
                on_ray(make_lines, 2 * times, 2, word_count, options=BOTH_SLOTS_IN_ONE),
                lambda processes: bare_loops(processes, count, times // 2),
                rounds=2 if quick() else ROUNDS,
            ),
            compare(
                "wc, 2 processes vs bare pipeline",
                two,
                lambda: bare_pipeline(count, times, False),
                unit="lines/s",
                target=0.8,
            ),
            compare(
                "columns between processes",
                on_ray(make_columns, column_times, 1, to_other_process, columnar=True),
                lambda: bare_pipeline(rows, column_times, True),
                unit="rows/s",
                target=0.8,
            ),
        ]


if __name__ == "__main__":
    main()
