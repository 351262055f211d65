"""All five kinds of keyed state in functions, against dicts: over random records, rescaled
restarts, and from one backend to the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common import Types
from flinkpy.core.keys import channel_of_key_group, key_group
from flinkpy.datastream import KeyedProcessFunction, RuntimeContext
from flinkpy.datastream.state import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from flinkpy.testing import KeyedOneInputHarness
from tests.windowing.harness import Mean

KEYS = st.sampled_from(["a", "b", 1, ("t", 2), 2.5, None])
NUMBERS = st.integers(-9, 9)
MAX_PARALLELISM = 8

# A record is (key, state, call, argument); a restart is how many subtasks go on, and with which
# backend.
RECORDS = st.one_of(
    st.tuples(KEYS, st.just("value"), st.just("update"), NUMBERS),
    st.tuples(KEYS, st.just("list"), st.just("add"), NUMBERS),
    st.tuples(
        KEYS, st.just("list"), st.sampled_from(["update", "add_all"]), st.lists(NUMBERS, max_size=3)
    ),
    st.tuples(
        KEYS, st.just("map"), st.just("put_all"), st.dictionaries(st.sampled_from("xyz"), NUMBERS)
    ),
    st.tuples(KEYS, st.just("map"), st.just("remove"), st.sampled_from("xyz")),
    st.tuples(KEYS, st.sampled_from(["reducing", "aggregating"]), st.just("add"), NUMBERS),
    st.tuples(
        KEYS,
        st.sampled_from(["value", "list", "map", "reducing", "aggregating"]),
        st.just("clear"),
        st.none(),
    ),
)
STEPS = st.lists(
    st.one_of(
        st.lists(RECORDS, min_size=1, max_size=6), st.tuples(st.integers(1, 3), st.booleans())
    ),
    max_size=12,
)


class Commanded(KeyedProcessFunction):
    """Calls a state and tells what all of them hold for the key then."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.states: dict[str, Any] = {
            "value": runtime_context.get_state(ValueStateDescriptor("value", Types.INT())),
            "list": runtime_context.get_list_state(ListStateDescriptor("list", Types.INT())),
            "map": runtime_context.get_map_state(
                MapStateDescriptor("map", Types.STRING(), Types.INT())
            ),
            "reducing": runtime_context.get_reducing_state(
                ReducingStateDescriptor("reducing", max, Types.INT())
            ),
            "aggregating": runtime_context.get_aggregating_state(
                AggregatingStateDescriptor("aggregating", Mean(), Types.PICKLED_BYTE_ARRAY())
            ),
        }

    def process_element(self, value: Any, ctx: Any) -> Any:
        key, kind, call, argument = value
        if kind == "aggregating" and call == "add":
            argument = key, argument
        getattr(self.states[kind], call)(*(() if call == "clear" else (argument,)))
        states = self.states
        yield (
            ctx.get_current_key(),
            states["value"].value(),
            list(states["list"].get() or ()),
            dict(states["map"].items()),
            states["reducing"].get(),
            states["aggregating"].get(),
        )


class Model:
    """key -> kind -> everything that came since it was cleared."""

    def __init__(self) -> None:
        self.held: dict[Any, dict[str, Any]] = {}

    def __call__(self, record: Any) -> tuple[Any, ...]:
        key, kind, call, argument = record
        held = self.held.setdefault(
            key, {"value": None, "list": [], "map": {}, "reducing": [], "aggregating": []}
        )
        if call == "clear":
            held[kind] = None if kind == "value" else type(held[kind])()
        elif kind == "value" or call == "update":
            held[kind] = argument
        elif kind == "map":
            held["map"] = (
                {**held["map"], **argument}
                if call == "put_all"
                else {k: v for k, v in held["map"].items() if k != argument}
            )
        else:
            held[kind] = held[kind] + (argument if call == "add_all" else [argument])
        several = held["aggregating"]
        return (
            key,
            held["value"],
            held["list"],
            held["map"],
            max(held["reducing"], default=None),
            sum(several) / len(several) if several else None,
        )


def backends(rocksdb: bool) -> dict[str, str]:
    return {"state.backend.type": "rocksdb" if rocksdb else "hashmap"}


def subtask_of(key: Any, parallelism: int) -> int:
    return channel_of_key_group(key_group(key, MAX_PARALLELISM), MAX_PARALLELISM, parallelism)


def first(record: Any) -> Any:
    return record[0]


def run(steps: list[Any], of_rocksdb: Any) -> Iterator[tuple[Any, Any]]:
    """(what came out, what the dicts say) for each batch."""
    model = Model()
    with ExitStack() as closing:
        subtasks = [
            closing.enter_context(
                KeyedOneInputHarness(
                    Commanded(),
                    first,
                    max_parallelism=MAX_PARALLELISM,
                    configuration=backends(of_rocksdb(False)),
                )
            )
        ]
        for step in steps:
            if isinstance(step, tuple):
                saved = [subtask.snapshot() for subtask in subtasks]
                subtasks = [
                    closing.enter_context(
                        subtasks[0].restore(
                            *saved,
                            parallelism=step[0],
                            subtask_index=index,
                            configuration=backends(of_rocksdb(step[1])),
                        )
                    )
                    for index in range(step[0])
                ]
                continue
            for index, subtask in enumerate(subtasks):
                mine = [record for record in step if subtask_of(record[0], len(subtasks)) == index]
                subtask.push_all(mine)
                told = subtask.output
                subtask.clear_output()
                yield told, [model(record) for record in mine]


@settings(max_examples=60)
@given(steps=STEPS)
def test_state_of_functions_is_a_dict_per_key_whatever_the_parallelism(steps: list[Any]) -> None:
    for told, expected in run(steps, lambda drawn: False):
        assert told == expected


@settings(max_examples=12)
@given(steps=STEPS, first_on_disk=st.booleans())
def test_state_goes_from_one_backend_to_the_other(steps: list[Any], first_on_disk: bool) -> None:
    pytest.importorskip("rocksdict")
    for told, expected in run([(1, first_on_disk), *steps], lambda drawn: drawn):
        assert told == expected
