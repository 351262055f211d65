"""State of all kinds, on both backends, over values as real data has them: against plain dicts that
keep copies."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.common.typeinfo import Types
from flinkpy.core.clock import ManualClock
from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import canonical_key
from flinkpy.state.broadcast_state import HeapBroadcastState
from flinkpy.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from flinkpy.state.rocksdb import slot_cache as rocksdb_slots
from tests.state.helpers import KINDS, backend, close_all, seconds
from tests.state_bytes import keyed_bytes
from tests.values import ATOMS, COMPARABLE_KEYS, TWINS, Decimal, key_of, may_meet, shown

pytest.importorskip("rocksdict")

STREAM_KEYS = st.sampled_from(
    [1, 1.0, True, float("nan"), -float("nan"), None, "a", ("a", float("nan")), (1, None)]
)
MAP_KEYS = TWINS.filter(lambda key: may_meet([key, Decimal(0)])) | COMPARABLE_KEYS
NESTED = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.text(max_size=1), inner, max_size=2)
        | st.tuples(inner, inner)
    ),
    max_leaves=4,
)
VALUES = NESTED.filter(lambda value: value is not None)
REBORN = (None, "backend", "reborn", None)
STEPS = st.lists(
    st.one_of(
        st.tuples(STREAM_KEYS, st.just("value"), st.just("update"), NESTED),
        st.tuples(STREAM_KEYS, st.just("list"), st.just("add"), VALUES),
        st.tuples(
            STREAM_KEYS,
            st.just("list"),
            st.sampled_from(["update", "add_all"]),
            st.lists(VALUES, max_size=2),
        ),
        st.tuples(STREAM_KEYS, st.just("map"), st.just("put"), st.tuples(MAP_KEYS, NESTED)),
        st.tuples(
            STREAM_KEYS,
            st.just("map"),
            st.just("put_all"),
            st.lists(st.tuples(MAP_KEYS, NESTED), max_size=2),
        ),
        st.tuples(
            STREAM_KEYS, st.just("map"), st.sampled_from(["get", "contains", "remove"]), MAP_KEYS
        ),
        st.tuples(
            STREAM_KEYS, st.sampled_from(["reducing", "aggregating"]), st.just("add"), VALUES
        ),
        st.tuples(
            STREAM_KEYS,
            st.sampled_from(["value", "list", "map", "reducing", "aggregating"]),
            st.sampled_from(["read", "read", "clear"]),
            st.none(),
        ),
        st.just(REBORN),
    ),
    max_size=25,
)


@pytest.fixture(autouse=True, scope="module")
def closed_in_the_end() -> Iterator[None]:
    yield
    close_all()


class Gathered:
    """An AggregateFunction whose result is its accumulator."""

    def create_accumulator(self) -> list[Any]:
        return []

    def add(self, value: Any, accumulator: list[Any]) -> list[Any]:
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator: list[Any]) -> list[Any]:
        return accumulator

    def merge(self, acc_a: list[Any], acc_b: list[Any]) -> list[Any]:
        return acc_a + acc_b


def both(one: Any, other: Any) -> list[Any]:
    """A ReduceFunction that changes its first argument where it can."""
    if type(one) is list and one[:1] == ["both"]:
        one.append(other)
        return one
    return ["both", one, other]


def states_of(of: Any, expires: bool) -> dict[str, Any]:
    made: list[StateDescriptor] = [
        ValueStateDescriptor("value"),
        ListStateDescriptor("list", Types.PICKLED_BYTE_ARRAY()),
        MapStateDescriptor("map", Types.PICKLED_BYTE_ARRAY(), Types.PICKLED_BYTE_ARRAY()),
        ReducingStateDescriptor("reducing", both, Types.PICKLED_BYTE_ARRAY()),
        AggregatingStateDescriptor("aggregating", Gathered(), Types.PICKLED_BYTE_ARRAY()),
    ]
    for descriptor in made if expires else ():
        descriptor.enable_time_to_live(seconds(100).build())
    return {descriptor.name: of.state(descriptor) for descriptor in made}


class Model:
    """What every state holds, by the key's meaning; a map by the meaning of its keys, which shows
    the first form of each."""

    def __init__(self) -> None:
        self.held: dict[Any, Any] = {}

    def call(self, key: Any, kind: str, call: str, argument: Any) -> Any:
        at, argument = (key_of(key), kind), copy.deepcopy(argument)
        found = self.held.get(at)
        if call == "read":
            return self.read(at, kind)
        if call == "clear" or (kind == "value" and argument is None):
            self.held.pop(at, None)
        elif kind == "value":
            self.held[at] = argument
        elif kind == "list":
            self.held[at] = ([] if call == "update" else found or []) + (
                [argument] if call == "add" else argument
            )
        elif kind == "reducing":
            self.held[at] = argument if at not in self.held else both(found, argument)
        elif kind == "aggregating":
            self.held[at] = [*(found or []), argument]
        else:
            return self.call_map(at, call, argument)
        return None

    def call_map(self, at: Any, call: str, argument: Any) -> Any:
        held = self.held.setdefault(at, {})
        if call in ("get", "contains", "remove"):
            found = (
                held.pop(key_of(argument), None) if call == "remove" else held.get(key_of(argument))
            )
            return (
                found is not None
                if call == "contains"
                else found[1]
                if call == "get" and found is not None
                else None
            )
        for key, value in [argument] if call == "put" else argument:
            held[key_of(key)] = held.get(key_of(key), (canonical_key(key),))[0], value
        return None

    def read(self, at: Any, kind: str) -> Any:
        found = self.held.get(at)
        return (
            sorted(map(repr, map(shown, (found or {}).values())))
            if kind == "map"
            else (found or [])
            if kind == "list"
            else found
        )


def called(state: Any, kind: str, call: str, argument: Any) -> Any:
    if call == "read":
        if kind == "map":
            return sorted(map(repr, map(shown, state.items())))
        return state.value() if kind == "value" else state.get()
    return getattr(state, call)(
        *(() if call == "clear" else argument if call == "put" else (argument,))
    )


def change(value: Any) -> None:
    """Everything in it that can be changed."""
    if isinstance(value, (list, tuple)):
        for each in value:
            change(each)
    if isinstance(value, list):
        value.append("changed")
    if isinstance(value, dict):
        for each in value.values():
            change(each)
        value["changed"] = True


@pytest.mark.parametrize("expires", [False, True])
@pytest.mark.parametrize("cached", [1, 1000])
@settings(max_examples=40)
@given(steps=STEPS)
@example(
    steps=[
        (math.nan, "map", "put", (2.0, None)),
        REBORN,
        REBORN,
        (math.nan, "map", "put", (0, None)),
        REBORN,
        (-math.nan, "map", "read", None),
    ]
)
@example(
    steps=[
        (math.nan, "list", "add", 1),
        (math.nan, "list", "add", 2),
        REBORN,
        REBORN,
        (math.nan, "list", "read", None),
    ]
)
@example(steps=[(None, "map", "put", (math.nan, [])), REBORN, (None, "map", "get", math.nan)])
def test_state_means_the_same_on_both_backends_whatever_the_values_and_whoever_changes_them(
    cached: int, expires: bool, steps: list[Any]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rocksdb_slots, "CACHED_SLOTS", cached)
        clock, model = ManualClock(), Model()
        backends = {kind: backend(clock, kind=kind) for kind in KINDS}
        made = {kind: states_of(each, expires) for kind, each in backends.items()}
        for key, kind, call, argument in steps:
            if kind == "backend":  # each goes on from what the other one saved
                saved = [keyed_bytes(each) for each in backends.values()]
                backends = {kind: backend(clock, kind=kind) for kind in KINDS}
                for each, other in zip(backends.values(), reversed(saved)):
                    each.restore(other)
                made = {kind: states_of(each, expires) for kind, each in backends.items()}
                continue
            expected = shown(model.call(key, kind, call, argument))
            for name, each in backends.items():
                each.current.key = canonical_key(key)
                given_in = copy.deepcopy(argument)
                given_out = called(made[name][kind], kind, call, given_in)
                assert shown(given_out) == expected, (name, kind, call)
                change(given_in)
                change(given_out)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("expires", [False, True])
@pytest.mark.finding("pyflink put_all")
def test_put_all_takes_a_dict_or_pairs(kind: str, expires: bool) -> None:
    of = backend(kind=kind)
    state = states_of(of, expires)["map"]
    of.current.key = "k"
    state.put_all({"a": 1})
    state.put_all([("b", 2), ("a", 3)])
    state.put_all((key, 4) for key in "c")
    assert sorted(state.items()) == [("a", 3), ("b", 2), ("c", 4)]
    for wrong in (5, [1, 2], [("a", 1, 2)], None):
        with pytest.raises(ProgramError, match=r"put_all\(\) takes a dict or pairs"):
            state.put_all(wrong)


@pytest.mark.finding("pyflink put_all")
def test_put_all_of_broadcast_state_takes_a_dict_or_pairs() -> None:
    state = HeapBroadcastState({})
    state.put_all([("a", 1), (float("nan"), 2)])
    state.put_all({"b": 3, float("nan"): 4})
    assert (state.get("a"), state.get("b"), state.get(float("nan")), len(state.keys())) == (
        1,
        3,
        4,
        3,
    )
