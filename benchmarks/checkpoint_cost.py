"""What checkpoints cost: keyed jobs with one each second against the same jobs without, and how
long the task stands still at a barrier."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle
from random import Random

from benchmarks import region_pauses
from benchmarks.data import lines, once
from benchmarks.harness import Comparison, compare, quick
from benchmarks.keyed import f_columns, f_reduce, f_sum
from benchmarks.probe import CountingSink, ReplaySource, steady_state
from benchmarks.rows import add, in_batches, split, word
from benchmarks.windows import column_batches, q5_rows, row_batches
from flinkpy.common.typeinfo import Types
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.elements import Batch
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.state.api import ValueState
from flinkpy.state.backend import KeyedStateBackend
from flinkpy.state.descriptors import ValueStateDescriptor
from flinkpy.state.heap.heap_backend import HeapKeyedStateBackend
from flinkpy.state.heap.running_values import RUNNING_RESULT, RunningValues

BATCH = 4096  # records
Make = Callable[[int, int], list[Batch]]


def word_count(stream: DataStream) -> DataStream:
    return stream.flat_map(split).key_by(word).reduce(add)


def job(
    make: Make,
    times: int,
    program: Callable[[DataStream], DataStream],
    columnar: bool,
    interval_ms: int | None,
) -> Callable[[], float]:
    """A run of the program, with checkpoints or without; returns records per second."""

    def run(folder: str) -> None:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.set_parallelism(1)
        if interval_ms is not None:
            env.enable_checkpointing(interval_ms)
            env.get_checkpoint_config().set_checkpoint_storage_dir(f"{folder}/checkpoints")
        program(
            env.from_source(ReplaySource(make, times, folder, columnar), None, "replay")
        ).sink_to(CountingSink(folder))
        env.execute("benchmark")

    return lambda: steady_state(run).rate


@dataclass(frozen=True)
class Standstill:
    """How long the loop stood still: at barriers, and in batches while state is written (all in
    seconds); and records per second, with a checkpoint always under way and without."""

    barriers: list[float]
    batches: list[float]
    rate: float
    bare_rate: float

    def __str__(self) -> str:
        return (
            f"barrier p99 {percentile(self.barriers, 0.99) * 1000:.2f} ms of "
            f"{len(self.barriers)}; batch of {BATCH} records p99 "
            f"{percentile(self.batches, 0.99) * 1000:.1f} ms; {self.rate:,.0f} "
            f"records/s while written, {self.bare_rate:,.0f} without"
        )


def standstill(
    keys: int,
    make: Callable[[int], tuple[KeyedStateBackend, Callable[[list[int]], None]]],
    checkpoints: int,
) -> Standstill:
    """Updates of random keys while one checkpoint after the other is frozen on this thread and
    written by another one."""
    backend, update = make(keys)
    random = Random(7)
    records = [random.randrange(keys) for _ in range(max(BATCH, min(keys, 1 << 20)))]
    batches = cycle([records[at : at + BATCH] for at in range(0, len(records), BATCH)])

    def timed(batch: list[int]) -> float:
        started = time.perf_counter()
        update(batch)
        return time.perf_counter() - started

    bare, barriers, busy = [timed(next(batches)) for _ in range(200)], [], list[float]()
    with ThreadPoolExecutor(1) as writer:
        for _ in range(checkpoints):
            started = time.perf_counter()
            frozen = backend.freeze()
            barriers.append(time.perf_counter() - started)
            written = writer.submit(frozen.write)
            del frozen
            while not written.done():
                busy.append(timed(next(batches)))
            busy += [timed(next(batches)) for _ in range(50)]
    return Standstill(barriers, busy, BATCH * len(busy) / sum(busy), BATCH * len(bare) / sum(bare))


def in_quick_succession(
    keys: int,
    make: Callable[[int], tuple[KeyedStateBackend, Callable[[list[int]], None]]],
    checkpoints: int,
) -> list[float]:
    """The processor time of barriers, in seconds, each of which comes 5 batches after the state of
    the one before is not needed any more: much that was written meanwhile is still to be moved."""
    backend, update = make(keys)
    random, barriers = Random(7), list[float]()
    records = [random.randrange(keys) for _ in range(1 << 19)]
    batches = cycle([records[at : at + BATCH] for at in range(0, len(records), BATCH)])

    def run(count: int) -> None:
        for _ in range(count):
            update(next(batches))

    # else it walks through the new dict once, in the middle of a barrier or of a batch
    gc.collect()
    for _ in range(checkpoints):
        started = time.thread_time()
        frozen = backend.freeze()
        barriers.append(time.thread_time() - started)
        run(60)
        del frozen
        run(5)
    return barriers


def of_value_state(keys: int) -> tuple[KeyedStateBackend, Callable[[list[int]], None]]:
    """A ValueState, read and written."""
    backend = HeapKeyedStateBackend(128, range(128), SYSTEM_CLOCK)
    state, current = backend.state(ValueStateDescriptor("count", Types.LONG())), backend.current
    assert isinstance(state, ValueState)
    for current.key in range(keys):
        state.update(0)

    def update(batch: list[int]) -> None:
        for current.key in batch:
            state.update((state.value() or 0) + 1)
        backend.after_records(len(batch))

    return backend, update


def of_running_results(keys: int) -> tuple[KeyedStateBackend, Callable[[list[int]], None]]:
    """The results of a running sum."""
    backend = HeapKeyedStateBackend(128, range(128), SYSTEM_CLOCK)
    results = backend.engine_values(RUNNING_RESULT)
    assert isinstance(results, RunningValues)
    for start in range(0, keys, 1 << 16):
        results.update({key: (key, 0) for key in range(start, min(keys, start + (1 << 16)))})
        results.plain()

    def update(batch: list[int]) -> None:
        plain = results.plain()
        if plain is None:
            view = results.view_batch(batch)
            assert view is not None
            for place in view.places:
                view.states[place] += 1
            results.commit(view)
        else:
            for key in batch:
                plain[key] = (key, plain[key][1] + 1)

    return backend, update


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main() -> list[Comparison]:
    count, times = (50_000, 2) if quick() else (500_000, 24)
    found = []
    # q5 is not replayed: all records would be late from the second time on
    jobs: list[
        tuple[str, Callable[[int], list[Batch]], Callable[[DataStream], DataStream], int, bool]
    ] = [
        ("f reduce, rows", row_batches, f_reduce, times, False),
        ("f sum, rows", row_batches, f_sum, times, False),
        ("f sum, columns", column_batches, f_columns, 10 * times, True),
        ("q5, rows", lambda size: row_batches(12 * size), q5_rows, 1, False),
        ("wc, rows", lambda size: in_batches(lines(size // 10)), word_count, times, False),
    ]
    for name, batches, program, repeats, columnar in jobs:

        def make(
            subtask: int,
            parallelism: int,
            batches: Callable[[int], list[Batch]] = batches,
            name: str = name,
        ) -> list[Batch]:
            return once(f"checkpoint cost {name} {count}", lambda: batches(count))

        found.append(
            compare(
                f"{name}: one a second v none",
                job(make, repeats, program, columnar, 1000),
                job(make, repeats, program, columnar, None),
                target=0.95,
            )
        )
    for keys, checkpoints in ((10_000, 3),) if quick() else ((1_000_000, 40), (10_000_000, 10)):
        barriers = in_quick_succession(keys, of_value_state, checkpoints)
        print(
            f"a value state of {keys:,} integer keys, checkpoints in quick succession: the "
            "barrier takes the processor "
            f"{percentile(barriers, 0.99) * 1000:.2f} ms in the p99 of {len(barriers)}"
        )
    for keys, checkpoints in ((10_000, 3),) if quick() else ((1_000_000, 20), (10_000_000, 5)):
        for what, of_kind in (
            ("a value state", of_value_state),
            ("running sums", of_running_results),
        ):
            print(
                f"{what} of {keys:,} integer keys on the heap: "
                f"{standstill(keys, of_kind, checkpoints)}"
            )
    region_pauses.report(10_000 if quick() else 1_000_000, 5)
    return found


if __name__ == "__main__":
    main()
