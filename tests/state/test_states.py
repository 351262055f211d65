"""Every kind of state against dicts, and against users who change what they gave or got."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common.typeinfo import Types
from flinkpy.core.errors import ProgramError
from flinkpy.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    ValueStateDescriptor,
)
from tests.state.helpers import Mean, backend, seconds, states

pytestmark = pytest.mark.usefixtures("each_backend")

KEYS = st.sampled_from(["a", "b", 1, ("t", 2), None])
NUMBERS = st.integers(-9, 9)
FIELDS = st.sampled_from(["x", "y", "z"])
STEPS = st.lists(
    st.one_of(
        st.tuples(KEYS, st.just("value"), st.just("update"), st.one_of(NUMBERS, st.none())),
        st.tuples(KEYS, st.just("list"), st.sampled_from(["add"]), NUMBERS),
        st.tuples(
            KEYS,
            st.just("list"),
            st.sampled_from(["update", "add_all"]),
            st.lists(NUMBERS, max_size=3),
        ),
        st.tuples(KEYS, st.just("map"), st.just("put"), st.tuples(FIELDS, NUMBERS)),
        st.tuples(KEYS, st.just("map"), st.just("put_all"), st.dictionaries(FIELDS, NUMBERS)),
        st.tuples(KEYS, st.just("map"), st.just("remove"), FIELDS),
        st.tuples(KEYS, st.sampled_from(["reducing", "aggregating"]), st.just("add"), NUMBERS),
        st.tuples(
            KEYS,
            st.sampled_from(["value", "list", "map", "reducing", "aggregating"]),
            st.just("clear"),
            st.none(),
        ),
    ),
    max_size=60,
)


def apply_to_model(
    model: dict[tuple[Any, str], Any], key: Any, kind: str, call: str, argument: Any
) -> None:
    """The same step on plain lists and dicts; reducing and aggregating keep all their values."""
    at = key, kind
    if call == "clear" or (call == "update" and not argument and argument != 0):
        model.pop(at, None)
    elif call == "update":
        model[at] = argument
    elif kind == "map":
        mapping = model.setdefault(at, {})
        if call == "remove":
            mapping.pop(argument, None)
        else:
            mapping.update(argument if call == "put_all" else [argument])
    else:
        model.setdefault(at, []).extend(argument if call == "add_all" else [argument])


@pytest.mark.parametrize("expiring", [False, True])
@given(steps=STEPS)
def test_states_are_dicts_per_key(expiring: bool, steps: list[tuple[Any, str, str, Any]]) -> None:
    heap = backend()
    made = states(heap, seconds(60).build() if expiring else None)
    model: dict[tuple[Any, str], Any] = {}
    for key, kind, call, argument in steps:
        heap.current.key = key
        arguments = () if call == "clear" else argument if call == "put" else (argument,)
        getattr(made[kind], call)(*arguments)
        apply_to_model(model, key, kind, call, argument)
        for other in ("a", "b", 1, ("t", 2), None):
            heap.current.key = other
            assert made["value"].value() == model.get((other, "value"))
            assert list(made["list"]) == model.get((other, "list"), [])
            mapping = model.get((other, "map"), {})
            assert dict(made["map"].items()) == mapping
            assert (sorted(made["map"].keys()), sorted(made["map"].values())) == (
                sorted(mapping),
                sorted(mapping.values()),
            )
            assert made["map"].is_empty() == (not mapping)
            assert [("x" in made["map"], made["map"]["x"])] == [("x" in mapping, mapping.get("x"))]
            added = model.get((other, "reducing"))
            assert made["reducing"].get() == (sum(added) if added else None)
            added = model.get((other, "aggregating"))
            assert made["aggregating"].get() == (sum(added) / len(added) if added else None)
    for kind in made:
        assert len(list(heap.keys(kind))) == sum(
            1 for (_, each), value in model.items() if each == kind and (value or value == 0)
        )


def test_a_map_reads_like_a_mapping() -> None:
    heap = backend()
    state = states(heap)["map"]
    state["x"] = 1
    state["y"] = 2
    del state["x"]
    assert (list(state), "y" in state, state["y"], state["x"]) == (["y"], True, 2, None)
    state.put("n", None)
    assert state.contains("n")
    for field in state.keys():  # noqa: SIM118  # PyFlink's spelling; the state changes meanwhile
        state.remove(field)
    assert state.is_empty()
    assert list(heap.keys("map")) == []


@pytest.mark.parametrize("expiring", [False, True])
def test_what_the_user_changes_later_is_not_in_the_state(expiring: bool) -> None:
    heap = backend()
    config = seconds(60).build()
    given: list[Any] = [
        ValueStateDescriptor("v"),
        ListStateDescriptor("l"),
        MapStateDescriptor("m"),
        ReducingStateDescriptor("r", lambda a, b: [*a, *b]),
    ]
    for descriptor in given if expiring else ():
        descriptor.enable_time_to_live(config)
    made: list[Any] = [heap.state(descriptor) for descriptor in given]
    value, listed, mapped, reducing = made
    mine: Any = [1, [2]]
    value.update(mine)
    listed.add(mine)
    mapped.put("k", mine)
    reducing.add(mine)
    mine[1].append("changed")
    for got in (
        value.value(),
        listed.get()[0],
        mapped.get("k"),
        mapped.values()[0],
        mapped.items()[0][1],
        reducing.get(),
    ):
        assert got == [1, [2]]
        got[1].append("changed too")
    listed.get().append("changed as well")
    assert (value.value(), listed.get(), mapped.get("k"), reducing.get()) == (
        [1, [2]],
        [[1, [2]]],
        [1, [2]],
        [1, [2]],
    )
    reducing.add(mine)
    mine[1].append("again")
    assert reducing.get() == [1, [2], 1, [2, "changed"]]


class Gather(Mean):
    """Keeps the values themselves and gives its accumulator away."""

    def create_accumulator(self) -> Any:
        return []

    def add(self, value: Any, accumulator: Any) -> Any:
        accumulator.append(value)
        return accumulator

    def get_result(self, accumulator: Any) -> Any:
        return accumulator


@pytest.mark.parametrize("expiring", [False, True])
def test_an_accumulator_that_holds_its_values_and_is_its_own_result_stays_private(
    expiring: bool,
) -> None:
    heap = backend()
    descriptor = AggregatingStateDescriptor("all", Gather())
    if expiring:
        descriptor.enable_time_to_live(seconds(60).build())
    state: Any = heap.state(descriptor)
    mine = [1]
    state.add(mine)
    mine.append(2)
    state.get()[0].append(3)
    state.get().append(4)
    assert state.get() == [[1]]


def test_what_cannot_change_is_stored_as_it_is_on_the_heap() -> None:
    heap = backend(kind="hashmap")
    state: Any = heap.state(ValueStateDescriptor("v"))
    for value in ("text" * 100, ("a", 1, 2.5), 10**30):
        state.update(value)
        assert state.value() is value


@pytest.mark.parametrize("kind", ["list", "reducing", "aggregating"])
def test_none_is_refused_as_an_element(kind: str) -> None:
    with pytest.raises(ProgramError, match="None cannot be added"):
        states(backend())[kind].add(None)


def test_one_name_is_one_state() -> None:
    heap = backend()
    first = heap.state(ValueStateDescriptor("n", Types.INT()))
    assert heap.state(ValueStateDescriptor("n", Types.INT())) is first
    with pytest.raises(
        ProgramError,
        match=(
            r"'n' is a value state of Types.INT\(\), and cannot be a value state of "
            r"Types.STRING\(\) too"
        ),
    ):
        heap.state(ValueStateDescriptor("n", Types.STRING()))
    with pytest.raises(ProgramError, match="cannot be a list state"):
        heap.state(ListStateDescriptor("n", Types.INT()))
    expiring = ValueStateDescriptor("n", Types.INT())
    expiring.enable_time_to_live(seconds(1).build())
    with pytest.raises(ProgramError, match="expiring too"):
        heap.state(expiring)


INT: Any = int  # mistakes that a type checker would find
NUMBER: Any = 3
NAME: Any = "INT"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ValueStateDescriptor("", Types.INT()), "needs a name"),
        (lambda: ValueStateDescriptor("_mine", Types.INT()), "engine's"),
        (lambda: ValueStateDescriptor("n", INT), "use one of Types"),
        (lambda: ListStateDescriptor("n", NAME), "use one of Types"),
        (lambda: MapStateDescriptor("n", Types.INT(), INT), "use one of Types"),
        (
            lambda: ReducingStateDescriptor("n", NUMBER, Types.INT()),
            "a ReduceFunction or a function of two values",
        ),
        (
            lambda: AggregatingStateDescriptor("n", cast(Any, Mean), Types.INT()),
            "an AggregateFunction object",
        ),
        (
            lambda: AggregatingStateDescriptor("n", cast(Any, len), Types.INT()),
            "an AggregateFunction object",
        ),
        (
            lambda: ValueStateDescriptor("n").enable_time_to_live(cast(Any, seconds(1))),
            "end the builder with build",
        ),
        (lambda: seconds(0).build(), "longer than nothing"),
        (lambda: seconds(1).set_ttl(NUMBER).build(), "is a Duration"),
        (lambda: seconds(1).cleanup_incrementally(0, False), "1 or more entries"),
    ],
)
def test_mistaken_descriptors_are_refused_with_what_to_change(make: Any, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        make()


def test_a_backend_says_what_it_holds() -> None:
    heap = backend(groups=range(64, 128))
    made = states(heap)
    for number in range(3):
        heap.current.key = number
        made["value"].update(number)
    assert heap.statistics.keys["value"] == 3
    assert heap.statistics.groups == range(64, 128)
    assert repr(heap) == (
        f"<{type(heap).__name__} of key groups 64-127: value: 3, list: 0, map: 0, reducing: "
        "0, aggregating: 0>"
    )
    heap.close()
    assert heap.statistics.keys == {}


def test_a_value_that_cannot_be_saved_is_told_with_the_type_that_is_at_fault() -> None:
    made = backend()
    made.current.key = "a"
    state: Any = made.state(ValueStateDescriptor("held", Types.PICKLED_BYTE_ARRAY()))

    def keep_and_save() -> None:
        state.update([threading.Lock()])  # is refused by the heap, which copies it
        made.freeze().write()

    with pytest.raises(
        (TypeError, ProgramError), match=r"cannot be (kept in state|saved): .*_thread\.lock"
    ):
        keep_and_save()
