"""Keyed state in one thread: process functions that read and write state, against plain loops that
do the same with a dict.

    python -m benchmarks keyed_state [--quick]

Each function has its twin: the same generator with a dict of its own, called in a plain loop over
the same batches. The twin of the state with a time to live stores no time: the cost of the time to
live is part of the ratio."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from benchmarks.harness import Comparison, compare, quick
from benchmarks.operators_chain import BATCH, seconds_of_task
from flinkpy.common.time import Duration
from flinkpy.common.typeinfo import Types
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.functions import KeyedProcessFunction, RuntimeContext
from flinkpy.operators.process.process_operators import KeyedProcessOperator
from flinkpy.state.descriptors import (
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from flinkpy.state.heap.heap_backend import HeapKeyedStateBackend
from flinkpy.state.ttl.config import StateTtlConfig

KEYS = 10_000

Pair = tuple[int, int]
Plain = Callable[[Pair], Iterator[Pair]]


def first(pair: Pair) -> int:
    return pair[0]


def add(one: int, other: int) -> int:
    return one + other


# -- the functions, and their twins ----------------------------------------------------------------


class Count(KeyedProcessFunction):
    """One ValueState read and written per record."""

    def __init__(self, expires: bool = False) -> None:
        self.expires = expires

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("count", Types.LONG())
        if self.expires:
            descriptor.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_hours(1)).build())
        self.count = runtime_context.get_state(descriptor)

    def process_element(self, value: Pair, ctx: Any) -> Iterator[Pair]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value[0], count


def plain_count() -> Plain:
    counts: dict[int, int] = {}

    def process(value: Pair) -> Iterator[Pair]:
        count = counts.get(value[0], 0) + 1
        counts[value[0]] = count
        yield value[0], count

    return process


class Sum(KeyedProcessFunction):
    """One ReducingState added to and read."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.sum = runtime_context.get_reducing_state(
            ReducingStateDescriptor("sum", add, Types.LONG())
        )

    def process_element(self, value: Pair, ctx: Any) -> Iterator[Pair]:
        self.sum.add(value[1])
        yield value[0], self.sum.get() or 0


def plain_sum() -> Plain:
    sums: dict[int, int] = {}

    def process(value: Pair) -> Iterator[Pair]:
        key = value[0]
        sums[key] = add(sums[key], value[1]) if key in sums else value[1]
        yield key, sums[key]

    return process


class CountByField(KeyedProcessFunction):
    """One entry of a MapState read and written."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.counts = runtime_context.get_map_state(
            MapStateDescriptor("counts", Types.INT(), Types.LONG())
        )

    def process_element(self, value: Pair, ctx: Any) -> Iterator[Pair]:
        field = value[1] & 7
        count = (self.counts.get(field) or 0) + 1
        self.counts.put(field, count)
        yield value[0], count


def plain_count_by_field() -> Plain:
    counts: dict[int, dict[int, int]] = {}

    def process(value: Pair) -> Iterator[Pair]:
        field = value[1] & 7
        of_key = counts.get(value[0])
        if of_key is None:
            of_key = counts[value[0]] = {}
        count = of_key.get(field, 0) + 1
        of_key[field] = count
        yield value[0], count

    return process


class Collect(KeyedProcessFunction):
    """One element added to a ListState, which is cleared now and then."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.all = runtime_context.get_list_state(ListStateDescriptor("all", Types.LONG()))

    def process_element(self, value: Pair, ctx: Any) -> Iterator[Pair]:
        self.all.add(value[1])
        if value[1] % 16 == 0:
            self.all.clear()
        yield value


def plain_collect() -> Plain:
    lists: dict[int, list[int]] = {}

    def process(value: Pair) -> Iterator[Pair]:
        of_key = lists.get(value[0])
        if of_key is None:
            of_key = lists[value[0]] = []
        of_key.append(value[1])
        if value[1] % 16 == 0:
            del lists[value[0]]
        yield value

    return process


class CountInDict(KeyedProcessFunction):
    """Uses no state of the engine: shows what the loop around the function costs by itself."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.process = plain_count()

    def process_element(self, value: Pair, ctx: Any) -> Iterator[Pair]:
        return self.process(value)


class Case(NamedTuple):
    name: str
    make: Callable[[], KeyedProcessFunction]
    plain: Callable[[], Plain]
    target: float | None


CASES = (
    Case("ValueState, read and write", Count, plain_count, 0.6),
    Case("the same with a time to live", lambda: Count(expires=True), plain_count, 0.35),
    Case("ReducingState, add and get", Sum, plain_sum, 0.5),
    Case("MapState, get and put", CountByField, plain_count_by_field, 0.5),
    Case("ListState, add", Collect, plain_collect, 0.6),
    Case("a dict of the function's own", CountInDict, plain_count, None),
)


def run_plain(batches: Sequence[list[Pair]], process: Plain) -> int:
    written = 0
    for batch in batches:
        out: list[Pair] = []
        for value in batch:
            out.extend(process(value))
        written += len(out)
    return written


def rate_of(records: int, run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return records / (time.perf_counter() - start)


def snapshots(keys: int) -> None:
    """Prints the cost of saving and restoring, per key."""
    backend = HeapKeyedStateBackend(128, range(128), SYSTEM_CLOCK)
    values = backend.engine_values("_counts")
    values.update((f"key {number}", number) for number in range(keys))
    saved: list[bytes] = []
    written = rate_of(keys, lambda: saved.append(backend.freeze().write()))
    again = HeapKeyedStateBackend(128, range(128), SYSTEM_CLOCK)
    read = rate_of(keys, lambda: again.restore(saved[0]))
    print(
        f"snapshot of {keys:,} text keys: {written:,.0f} keys/s, {len(saved[0]) / keys:.1f} "
        f"bytes a key; restore {read:,.0f} keys/s"
    )


def main() -> list[Comparison]:
    records = 20_000 if quick() else 400_000
    pairs = [(number * 7919 % KEYS, number) for number in range(records)]
    batches = [pairs[start : start + BATCH] for start in range(0, records, BATCH)]
    key = KeySpec(selector=first)
    results = []
    for case in CASES:

        def ours(case: Case = case) -> float:
            return records / seconds_of_task(batches, [KeyedProcessOperator(case.make(), key)])

        def plain(case: Case = case) -> float:
            return rate_of(records, lambda: run_plain(batches, case.plain()))

        results.append(
            compare(case.name, ours, plain, target=case.target, rounds=1 if quick() else 9)
        )
    snapshots(records)
    return results


if __name__ == "__main__":
    main()
