"""What the watch of a worker's memory costs, by processor time: q1 and f with a limit that they
never reach, so that the worker measures itself four times a second, against the same without one.
Then the watch alone: the processor time of one look."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from unittest import mock

from benchmarks.data import bids
from benchmarks.harness import Comparison, in_turn, medians, quick
from benchmarks.keyed import f_sum
from benchmarks.metrics_cost import replayed
from benchmarks.rows import in_batches, to_euro
from benchmarks.windows import row_batches
from flinkpy.cluster.embedded import stop_embedded
from flinkpy.core.elements import Batch
from flinkpy.datastream import DataStream
from flinkpy.runtime.memory import memory_watch
from flinkpy.runtime.memory.memory_watch import MemoryWatch
from flinkpy.runtime.memory.slots_memory import ProcessLimit, WorkerSlots

_LIMITED = partial(WorkerSlots, limit=ProcessLimit(1 << 40))
ROUNDS = 7
TARGET = 0.995


def main() -> list[Comparison]:
    count, times, rounds = (5_000, 2, 1) if quick() else (200_000, 60, ROUNDS)
    rows, sums = in_batches(bids(count)), row_batches(count)
    found = [
        _compared("q1 map, rows", rows, times, lambda stream: stream.map(to_euro), rounds),
        _compared("f sum, rows", sums, times // 2, f_sum, rounds),
    ]
    look_s = _look_s(rows)
    share = look_s / memory_watch.EACH_S
    print(f"one look: {look_s * 1e6:.1f} us of processor time, {share:.4%} of a thread")
    return found


def _compared(
    name: str,
    batches: list[Batch],
    times: int,
    job: Callable[[DataStream], DataStream],
    rounds: int,
) -> Comparison:
    def plain() -> float:
        return replayed(name, batches, times, job, {})

    def watched() -> float:
        stop_embedded()
        with mock.patch("flinkpy.cluster.embedded.WorkerSlots", _LIMITED):
            return replayed(name, batches, times, job, {})

    return medians(
        f"{name}, memory watched", in_turn((watched, plain), rounds), "records/s", TARGET
    )


def _look_s(batches: list[Batch]) -> float:
    """Of each look while a job runs, by the time of its thread."""
    spent: list[float] = []
    look = MemoryWatch.look

    def timed(watch: MemoryWatch) -> None:
        began = time.thread_time()
        look(watch)
        spent.append(time.thread_time() - began)

    stop_embedded()
    with (
        mock.patch("flinkpy.cluster.embedded.WorkerSlots", _LIMITED),
        mock.patch.object(MemoryWatch, "look", timed),
        mock.patch.object(memory_watch, "EACH_S", 0.001),
    ):
        replayed("looks", batches, 4, lambda stream: stream.map(to_euro), {})
    stop_embedded()
    return sum(spent) / max(1, len(spent))
