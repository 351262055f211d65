"""What was frozen is written as it was, whatever happens to the state meanwhile."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common.typeinfo import Types
from flinkpy.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from flinkpy.state.table_backend import TableBackend
from tests.state.helpers import backend


class Gather:
    """An accumulator that is changed in place."""

    def create_accumulator(self) -> list[int]:
        return []

    def add(self, value: int, accumulator: list[int]) -> list[int]:
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator: list[int]) -> list[int]:
        return accumulator

    def merge(self, acc_a: list[int], acc_b: list[int]) -> list[int]:
        return acc_a + acc_b


def extended(one: list[int], other: list[int]) -> list[int]:
    one.extend(other)
    return one


KINDS = ["value", "list", "map", "reducing", "aggregating", "engine"]
STEPS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 3), st.integers(0, 9)), max_size=30
)


class States:
    """One state of each kind, and what they hold in plain Python."""

    def __init__(self, made: TableBackend) -> None:
        self.backend = made
        self.value: Any = self.backend.state(
            ValueStateDescriptor("value", Types.PICKLED_BYTE_ARRAY())
        )
        self.list: Any = self.backend.state(ListStateDescriptor("list", Types.LONG()))
        self.map: Any = self.backend.state(MapStateDescriptor("map", Types.LONG(), Types.LONG()))
        self.reducing: Any = self.backend.state(
            ReducingStateDescriptor("reducing", extended, Types.PICKLED_BYTE_ARRAY())
        )
        self.aggregating: Any = self.backend.state(
            AggregatingStateDescriptor("aggregating", Gather(), Types.PICKLED_BYTE_ARRAY())
        )
        self.engine = self.backend.engine_values("_engine")

    def step(self, kind: str, key: int, value: int) -> None:
        self.backend.current.key = key
        if kind == "value":
            self.value.update([*(self.value.value() or []), value])
        elif kind == "list":
            self.list.add(value)
        elif kind == "map":
            self.map.put(value, (self.map.get(value) or 0) + 1)
        elif kind == "reducing":
            self.reducing.add([value])
        elif kind == "aggregating":
            self.aggregating.add(value)
        else:
            held = self.engine.get(key) or []
            held.append(value)
            self.engine[key] = held

    def contents(self) -> dict[str, dict[int, Any]]:
        found: dict[str, dict[int, Any]] = {kind: {} for kind in KINDS}
        for key in range(4):
            self.backend.current.key = key
            found["value"][key] = self.value.value()
            found["list"][key] = list(self.list.get())
            found["map"][key] = sorted(self.map.items())
            found["reducing"][key] = self.reducing.get()
            found["aggregating"][key] = self.aggregating.get()
            found["engine"][key] = list(self.engine.get(key) or [])
        return found


@pytest.mark.usefixtures("each_backend")
@given(before=STEPS, after=STEPS)
def test_what_comes_after_the_barrier_is_not_in_what_is_written(before: Any, after: Any) -> None:
    states = States(backend())
    for step in before:
        states.step(*step)
    wanted = states.contents()
    frozen = states.backend.freeze()
    for step in after:
        states.step(*step)
    again = backend()
    again.restore(frozen.write())
    assert States(again).contents() == wanted
