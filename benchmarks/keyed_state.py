"""Keyed state in one thread: process functions that read and write state, against bare loops that do the same with a dict.

    python -m benchmarks keyed_state [--quick]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmarks.harness import Comparison, compare, quick
from benchmarks.operators_chain import BATCH, seconds_of_task
from flinkpy.common.time import Duration
from flinkpy.common.typeinfo import Types
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.functions import KeyedProcessFunction, RuntimeContext
from flinkpy.operators.process import KeyedProcessOperator
from flinkpy.state.descriptors import ListStateDescriptor, MapStateDescriptor, ReducingStateDescriptor, StateDescriptor, ValueStateDescriptor
from flinkpy.state.heap import HeapKeyedStateBackend
from flinkpy.state.ttl_config import StateTtlConfig

KEYS = 10_000


def first(pair: tuple[int, int]) -> int:
    return pair[0]


class Count(KeyedProcessFunction):
    """One ValueState read and written per record."""

    def __init__(self, expires: bool = False) -> None:
        self.expires = expires

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("count", Types.LONG())
        if self.expires:
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_hours(1)).build())
        self.count = runtime_context.get_state(descriptor)

    def process_element(self, value: tuple[int, int], ctx: Any) -> Iterator[tuple[int, int]]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value[0], count


class Other(KeyedProcessFunction):
    """Another kind of state, written and read."""

    def __init__(self, descriptor: StateDescriptor, use: Callable[[Any, int], int]) -> None:
        self.descriptor, self.use = descriptor, use

    def open(self, runtime_context: RuntimeContext) -> None:
        store: Any = runtime_context
        kinds = {"list state": store.get_list_state, "map state": store.get_map_state, "reducing state": store.get_reducing_state}
        self.state = kinds[self.descriptor.kind.value](self.descriptor)

    def process_element(self, value: tuple[int, int], ctx: Any) -> Iterator[tuple[int, int]]:
        yield value[0], self.use(self.state, value[1])


def add_reduced(state: Any, number: int) -> int:
    state.add(number)
    return int(state.get())


def put_mapped(state: Any, number: int) -> int:
    count = (state.get(number & 7) or 0) + 1
    state.put(number & 7, count)
    return int(count)


def add_listed(state: Any, number: int) -> int:
    state.add(number)
    if number % 16 == 0:
        state.clear()
    return number


def bare_count(batches: Sequence[list[Any]]) -> int:
    counts: dict[int, int] = {}

    def process(value: tuple[int, int]) -> Iterator[tuple[int, int]]:
        count = counts.get(value[0], 0) + 1
        counts[value[0]] = count
        yield value[0], count

    written = 0
    for batch in batches:
        out: list[Any] = []
        for value in batch:
            out.extend(process(value))
        written += len(out)
    return written


def rate_of(records: int, run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return records / (time.perf_counter() - start)


def snapshots(keys: int) -> None:
    """What saving and restoring costs, per key."""
    backend = HeapKeyedStateBackend(128, range(128), SYSTEM_CLOCK)
    values = backend.engine_values("_counts")
    values.update((f"key {number}", number) for number in range(keys))
    saved: list[bytes] = []
    written = rate_of(keys, lambda: saved.append(backend.snapshot()))
    again = HeapKeyedStateBackend(128, range(128), SYSTEM_CLOCK)
    read = rate_of(keys, lambda: again.restore(saved[0]))
    print(f"snapshot of {keys:,} text keys: {written:,.0f} keys/s, {len(saved[0]) / keys:.1f} bytes a key; restore {read:,.0f} keys/s")


def main() -> list[Comparison]:
    records = 20_000 if quick() else 400_000
    pairs = [(number * 7919 % KEYS, number) for number in range(records)]
    batches = [pairs[start : start + BATCH] for start in range(0, records, BATCH)]
    key = KeySpec(selector=first)
    functions: dict[str, Callable[[], KeyedProcessFunction]] = {
        "ValueState, read and write": Count,
        "the same with a time to live": lambda: Count(expires=True),
        "ReducingState, add and get": lambda: Other(ReducingStateDescriptor("sum", lambda a, b: a + b, Types.LONG()), add_reduced),
        "MapState, get and put": lambda: Other(MapStateDescriptor("by", Types.INT(), Types.LONG()), put_mapped),
        "ListState, add": lambda: Other(ListStateDescriptor("all", Types.LONG()), add_listed),
    }
    results = []
    for name, make in functions.items():
        def ours(make: Callable[[], KeyedProcessFunction] = make) -> float:
            return records / seconds_of_task(batches, [KeyedProcessOperator(make(), key)])

        results.append(compare(name, ours, lambda: rate_of(records, lambda: bare_count(batches)), rounds=1 if quick() else 5))
    snapshots(records)
    return results


if __name__ == "__main__":
    main()
