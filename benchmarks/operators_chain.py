"""The operator chain alone, source to sink in one thread, against bare loops that call the same
functions in the same run.

    python -m benchmarks.operators_chain [records]

Each figure is the median of rounds in which engine and bare loop alternate, so that a busy machine
slows both down."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from flinkpy.core.elements import RowBatch
from flinkpy.core.ids import ExecutionAttemptId, JobId, JobVertexId, OperatorId
from flinkpy.graph.chain_config import ChainConfig, ChainedEdge, ChainedOperator
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import InputStatus, OneInputOperator, SourceOperator, StreamOperator
from flinkpy.operators.context import TaskInfo
from flinkpy.operators.rows.keyed import KeyedAggregateOperator, KeyedReduceOperator
from flinkpy.operators.rows.stateless import FilterOperator, FlatMapOperator, MapOperator
from flinkpy.runtime.loop.slot_loop import SlotLoop
from flinkpy.runtime.stream_task import StreamTask, StreamTaskConfig, TaskServices

ROUNDS = 9
BATCH = 2048
INFO = TaskInfo(
    "benchmark", "chain", ExecutionAttemptId(JobId("j"), JobVertexId("v"), 0, 0), 1, 128
)


class ListSource(SourceOperator):
    """Emits prepared batches."""

    def __init__(self, batches: Sequence[list[Any]]) -> None:
        self.batches = batches

    def open(self) -> None:
        self._rest = iter(self.batches)

    def emit_next(self) -> InputStatus:
        values = next(self._rest, None)
        if values is None:
            return InputStatus.END_OF_INPUT
        self.output.emit(RowBatch(values))
        return InputStatus.MORE_AVAILABLE


class CountingSink(OneInputOperator):
    """Counts records."""

    def __init__(self) -> None:
        self.records = 0

    def process_batch(self, batch: Any) -> None:
        self.records += len(batch)


def seconds_of_task(batches: Sequence[list[Any]], operators: Sequence[StreamOperator]) -> float:
    """Runs source, operators and sink as one task, from the first step of its mailbox loop to the
    last."""
    chained = [ListSource(batches), *operators, CountingSink()]
    last = len(chained) - 1
    config = ChainConfig(
        tuple(
            ChainedOperator(
                OperatorId(str(i)),
                f"op {i}",
                None,
                operator,
                (ChainedEdge(i + 1),) if i < last else (),
            )
            for i, operator in enumerate(chained)
        )
    )
    loop = SlotLoop()
    task = StreamTask(
        StreamTaskConfig(INFO, config),
        [],
        [],
        TaskServices(loop, lambda: None, lambda message: None),
    )
    task.restore()
    step = task.run_step
    start = time.perf_counter()
    while step():
        pass
    elapsed = time.perf_counter() - start
    assert task.done
    loop.stop()
    return elapsed


def seconds_of(loop: Callable[[Sequence[list[Any]]], int], batches: Sequence[list[Any]]) -> float:
    start = time.perf_counter()
    loop(batches)
    return time.perf_counter() - start


def compare(
    name: str,
    batches: Sequence[list[Any]],
    operators: Callable[[], list[StreamOperator]],
    bare: Callable[[Any], int],
    target: float,
) -> None:
    """Prints records per second and the ratio to the bare loop."""
    records = sum(map(len, batches))
    engine, plain = [], []
    for _ in range(ROUNDS):
        engine.append(seconds_of_task(batches, operators()))
        plain.append(seconds_of(bare, batches))
    ratio = statistics.median(b / e for e, b in zip(engine, plain))
    best, best_bare = records / min(engine) / 1e6, records / min(plain) / 1e6
    print(
        f"{name:34} {best:8.2f} M/s   bare {best_bare:8.2f} M/s   ratio {ratio:5.2f}   "
        f"(target {target})"
    )


# -- the jobs --------------------------------------------------------------------------------------


def q1(bid: tuple[Any, ...]) -> tuple[Any, ...]:
    return (bid[0], bid[1], int(bid[2] * 0.908), bid[3], bid[4], bid[5])


def q2(bid: tuple[Any, ...]) -> bool:
    return bool(bid[0] % 123 == 0)


def split(line: str) -> list[tuple[str, int]]:
    return [(word, 1) for word in line.split(" ")]


def first(pair: tuple[str, int]) -> str:
    return pair[0]


def add(a: tuple[str, int], b: tuple[str, int]) -> tuple[str, int]:
    return (a[0], a[1] + b[1])


def bare_q0(batches: Sequence[list[Any]]) -> int:
    return sum(len(batch) for batch in batches)


def bare_q1(batches: Sequence[list[Any]]) -> int:
    return sum(len([q1(bid) for bid in batch]) for batch in batches)


def bare_q2(batches: Sequence[list[Any]]) -> int:
    return sum(len([bid for bid in batch if q2(bid)]) for batch in batches)


def bare_wc(batches: Sequence[list[Any]]) -> int:
    counts: dict[str, tuple[str, int]] = {}
    written = 0
    for batch in batches:
        out = []
        for line in batch:
            for pair in split(line):
                key = first(pair)
                if key in counts:
                    pair = add(counts[key], pair)
                counts[key] = pair
                out.append(pair)
        written += len(out)
    return written


def key_first() -> KeySpec:
    return KeySpec(selector=first)


def batches_of(values: Sequence[Any], size: int = BATCH) -> list[list[Any]]:
    return [list(values[start : start + size]) for start in range(0, len(values), size)]


def cost_of_maps(batches: Sequence[list[Any]], count: int) -> float:
    """Seconds per record and map."""
    records = sum(map(len, batches))
    maps: list[StreamOperator] = [MapOperator(lambda value: value + 1) for _ in range(count)]
    return seconds_of_task(batches, maps) / records / count


def main() -> None:
    records = int(sys.argv[1]) if len(sys.argv) > 1 else 400_000
    bids = batches_of([(i % 1000, i, i * 7 % 10_000, "channel", "url", i) for i in range(records)])
    lines = batches_of(
        [
            " ".join(f"word{(i * 31 + j * 17) % 5000}" for j in range(10))
            for i in range(records // 10)
        ]
    )
    numbers = batches_of(range(records // 4))
    passed = min(seconds_of_task(bids * 10, []) for _ in range(ROUNDS))
    per_batch = passed / (len(bids) * 10)
    rate = records * 10 / passed / 1e6
    print(
        f"q0 pass through                    {rate:8.0f} M/s   {per_batch * 1e6:.2f} µs a "
        f"batch of {BATCH}   (target 18 M/s, 20 µs)"
    )
    compare("q1 map", bids, lambda: [MapOperator(q1)], bare_q1, 0.85)
    compare("q2 filter", bids, lambda: [FilterOperator(q2)], bare_q2, 0.85)
    compare(
        "wc split, key, reduce (lines)",
        lines,
        lambda: [FlatMapOperator(split), KeyedReduceOperator(add, key_first())],
        bare_wc,
        0.75,
    )
    compare(
        "wc with sum(1) (lines)",
        lines,
        lambda: [FlatMapOperator(split), KeyedAggregateOperator("sum", 1, key_first())],
        bare_wc,
        0.75,
    )
    pairs = [(cost_of_maps(numbers, 2), cost_of_maps(numbers, 32)) for _ in range(ROUNDS)]
    ratio = statistics.median(many / two for two, many in pairs)
    print(
        f"32 maps, cost per map and record   {min(m for _, m in pairs) * 1e9:8.1f} ns    of 2 "
        f"maps {min(t for t, _ in pairs) * 1e9:6.1f} ns   "
        f"ratio {ratio:5.2f}   (target 1.15 at most)"
    )


if __name__ == "__main__":
    main()
