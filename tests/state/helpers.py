"""Backends of the kind at hand over a clock that stands still, and short ways to make states."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import Any

from flinkpy.common.time import Duration
from flinkpy.common.typeinfo import Types
from flinkpy.core.clock import ManualClock
from flinkpy.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from flinkpy.state.heap.heap_backend import HeapKeyedStateBackend
from flinkpy.state.rocksdb.database import RocksDBConfig
from flinkpy.state.rocksdb.rocksdb_backend import RocksDBKeyedStateBackend
from flinkpy.state.table_backend import TableBackend
from flinkpy.state.ttl.config import StateTtlConfig

MAX_PARALLELISM = 128
KINDS = ("hashmap", "rocksdb")
# opening a database waits for the disk, twenty times as long
_IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
_AT_ONCE = 24  # backends open at the same time; a test that makes more has done with the first ones

at_hand = ["hashmap"]  # which kind the tests run with: see conftest.py
_open: deque[TableBackend] = deque()


class Mean:
    """An AggregateFunction: the mean, its accumulator a list that is changed in place."""

    def create_accumulator(self) -> list[int]:
        return [0, 0]

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        accumulator[0] += value
        accumulator[1] += 1
        return accumulator

    def get_result(self, accumulator: list[int]) -> float:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return [acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]]


def backend(
    clock: ManualClock | None = None,
    groups: range = range(MAX_PARALLELISM),
    *,
    max_parallelism: int = MAX_PARALLELISM,
    kind: str | None = None,
) -> TableBackend:
    """A backend; nobody needs to close it."""
    clock = clock or ManualClock()
    made: TableBackend
    if (kind or at_hand[-1]) == "rocksdb":
        made = RocksDBKeyedStateBackend(max_parallelism, groups, clock, RocksDBConfig(_IN_MEMORY))
    else:
        made = HeapKeyedStateBackend(max_parallelism, groups, clock)
    _open.append(made)
    while len(_open) > _AT_ONCE:
        _open.popleft().close()
    return made


def close_all() -> None:
    while _open:
        _open.popleft().close()


def descriptors() -> dict[str, StateDescriptor]:
    """One of each kind."""
    return {
        "value": ValueStateDescriptor("value", Types.INT()),
        "list": ListStateDescriptor("list", Types.INT()),
        "map": MapStateDescriptor("map", Types.STRING(), Types.INT()),
        "reducing": ReducingStateDescriptor("reducing", lambda a, b: a + b, Types.INT()),
        "aggregating": AggregatingStateDescriptor("aggregating", Mean(), Types.DOUBLE()),
    }


def states(of: TableBackend, ttl: StateTtlConfig | None = None) -> dict[str, Any]:
    """One state of each kind."""
    made = {}
    for name, descriptor in descriptors().items():
        if ttl is not None:
            descriptor.enable_time_to_live(ttl)
        made[name] = of.state(descriptor)
    return made


def seconds(count: float) -> StateTtlConfig.Builder:
    """A builder for that time to live."""
    return StateTtlConfig.new_builder(Duration(seconds=count))


def contents(of: TableBackend, made: dict[str, Any]) -> dict[Any, dict[str, Any]]:
    """What all states hold, read through the states."""
    found: dict[Any, dict[str, Any]] = {}
    readers: dict[str, Callable[[Any], Any]] = {
        "value": lambda s: s.value(),
        "list": lambda s: s.get(),
        "map": lambda s: dict(s.items()),
        "reducing": lambda s: s.get(),
        "aggregating": lambda s: s.get(),
    }
    for name, state in made.items():
        for key in of.keys(name):
            of.current.key = key
            found.setdefault(key, {})[name] = readers[name](state)
    return found
