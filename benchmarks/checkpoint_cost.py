"""What checkpoints cost: keyed jobs with one each second against the same jobs without, and how long the task stands still at a barrier."""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.data import lines, once
from benchmarks.harness import Comparison, compare, quick
from benchmarks.keyed import f_columns, f_reduce, f_sum
from benchmarks.probe import CountingSink, ReplaySource, steady_state
from benchmarks.rows import add, in_batches, split, word
from benchmarks.windows import column_batches, q5_rows, row_batches
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.elements import Batch
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.state.heap.heap_backend import HeapKeyedStateBackend

Make = Callable[[int, int], list[Batch]]


def word_count(stream: DataStream) -> DataStream:
    return stream.flat_map(split).key_by(word).reduce(add)


def job(make: Make, times: int, program: Callable[[DataStream], DataStream], columnar: bool, interval_ms: int | None) -> Callable[[], float]:
    """A run of the program, with checkpoints or without; returns records per second."""

    def run(folder: str) -> None:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        if interval_ms is not None:
            env.enable_checkpointing(interval_ms)
            env.get_checkpoint_config().set_checkpoint_storage_dir(f"{folder}/checkpoints")
        program(env.from_source(ReplaySource(make, times, folder, columnar), None, "replay")).sink_to(CountingSink(folder))
        env.execute("benchmark")

    return lambda: steady_state(run).rate


def pause_s(keys: int) -> float:
    """How long the loop freezes a state of so many integer keys."""
    backend = HeapKeyedStateBackend(128, range(128), SYSTEM_CLOCK)
    backend.engine_values("_counts").update((number, number) for number in range(keys))
    pauses = []
    for _ in range(5):
        started = time.perf_counter()
        frozen = backend.freeze()
        pauses.append(time.perf_counter() - started)
        del frozen
    return sorted(pauses)[2]


def main() -> list[Comparison]:
    count, times = (50_000, 2) if quick() else (500_000, 24)
    found = []
    jobs: list[tuple[str, Callable[[int], list[Batch]], Callable[[DataStream], DataStream], int, bool]] = [
        ("f reduce, rows", row_batches, f_reduce, times, False), ("f sum, rows", row_batches, f_sum, times, False),
        ("f sum, columns", column_batches, f_columns, 10 * times, True), ("q5, rows", row_batches, q5_rows, times, False),
        ("wc, rows", lambda size: in_batches(lines(size // 10)), word_count, times, False),
    ]
    for name, batches, program, repeats, columnar in jobs:
        def make(subtask: int, parallelism: int, batches: Callable[[int], list[Batch]] = batches, name: str = name) -> list[Batch]:
            return once(f"checkpoint cost {name} {count}", lambda: batches(count))

        found.append(compare(f"{name}: one a second v none", job(make, repeats, program, columnar, 1000), job(make, repeats, program, columnar, None),
                             target=0.95))
    for keys in (10_000,) if quick() else (1_000_000, 10_000_000):
        print(f"a barrier over {keys:,} integer keys on the heap: {pause_s(keys) * 1000:.1f} ms")
    return found


if __name__ == "__main__":
    main()
