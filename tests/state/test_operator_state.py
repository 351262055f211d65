"""Operator state: what lists and broadcast state give, and that a rescaled operator has the state
of one that was not."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common.time import Duration
from flinkpy.common.typeinfo import Types
from flinkpy.core.clock import ManualClock
from flinkpy.core.errors import EngineError, ProgramError
from flinkpy.core.keys import key_group_range
from flinkpy.state.broadcast_state import HeapReadOnlyBroadcastState
from flinkpy.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from flinkpy.state.heap.heap_backend import HeapKeyedStateBackend
from flinkpy.state.operator_backend import OperatorStateBackend
from flinkpy.state.snapshots.operator_snapshots import OperatorSnapshot, redistribute_operator_state
from flinkpy.state.snapshots.saved_state import SavedState, redistribute_all
from flinkpy.state.ttl.config import StateTtlConfig
from tests.state_bytes import keyed_bytes

PARTS = ListStateDescriptor("parts", Types.INT())
MORE = ListStateDescriptor("more", Types.INT())
ALL = ListStateDescriptor("all", Types.INT())
RULES = MapStateDescriptor("rules", Types.STRING(), Types.INT())
SUBTASKS = st.lists(
    st.tuples(st.lists(st.integers(0, 9), max_size=7), st.lists(st.integers(0, 9), max_size=3)),
    min_size=1,
    max_size=6,
)


class Connection:
    def __deepcopy__(self, memo: Any) -> Connection:
        return self

    def __reduce__(self) -> Any:
        raise TypeError("connections do not travel")


def filled(parts: list[int], everything: list[int], rules: dict[str, int]) -> OperatorStateBackend:
    backend = OperatorStateBackend()
    backend.get_list_state(PARTS).add_all(parts)
    backend.get_list_state(MORE).update(parts[:2])
    backend.get_union_list_state(ALL).add_all(everything)
    backend.get_broadcast_state(RULES).put_all(rules)
    return backend


def restored(snapshot: bytes | None) -> OperatorStateBackend:
    backend = OperatorStateBackend()
    backend.restore(snapshot)
    return backend


def saved(backend: OperatorStateBackend) -> bytes:
    snapshot = backend.snapshot(1, 0)
    assert snapshot is not None
    return snapshot


@given(
    SUBTASKS,
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=4),
    st.lists(st.integers(1, 7), min_size=1, max_size=3),
)
def test_what_was_rescaled_any_number_of_times_is_what_was_there(
    subtasks: list[tuple[list[int], list[int]]], rules: dict[str, int], parallelisms: list[int]
) -> None:
    snapshots = [saved(filled(parts, everything, rules)) for parts, everything in subtasks]
    unions = [each for _, everything in subtasks for each in everything]
    for parallelism in parallelisms:
        snapshots = redistribute_operator_state(snapshots, parallelism)
        backends = [restored(snapshot) for snapshot in snapshots]
        assert len(backends) == parallelism
        shares = [backend.get_list_state(PARTS).get() for backend in backends]
        assert Counter(each for share in shares for each in share) == Counter(
            each for parts, _ in subtasks for each in parts
        )
        more = Counter(each for backend in backends for each in backend.get_list_state(MORE).get())
        assert more == Counter(each for parts, _ in subtasks for each in parts[:2])
        assert all(
            backend.get_broadcast_state(RULES).items() == list(rules.items())
            for backend in backends
        )
        assert all(backend.get_union_list_state(ALL).get() == unions for backend in backends)
        # A union list grows with every restore unless the function takes only its own part, as this
        # one does.
        for subtask, backend in enumerate(backends):
            backend.get_union_list_state(ALL).update(unions[subtask::parallelism])
        snapshots = [saved(backend) for backend in backends]
        unions = [each for subtask in range(parallelism) for each in unions[subtask::parallelism]]


@given(st.lists(st.lists(st.integers(0, 9), max_size=9), min_size=1, max_size=6), st.integers(1, 7))
def test_shares_of_a_list_are_equal_and_keep_the_order(
    lists: list[list[int]], parallelism: int
) -> None:
    before = [saved(filled(parts, [], {})) for parts in lists]
    shares = [
        restored(each).get_list_state(PARTS).get()
        for each in redistribute_operator_state(before, parallelism)
    ]
    if parallelism == len(lists):
        assert shares == lists  # nothing moves
    else:
        assert [each for share in shares for each in share] == [
            each for parts in lists for each in parts
        ]
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_the_larger_shares_of_the_next_state_begin_where_those_of_the_last_ended() -> None:
    backend = OperatorStateBackend()
    for name in "abc":
        backend.get_list_state(ListStateDescriptor(name, Types.INT())).update([1])
    shares = [
        restored(each).statistics.sizes for each in redistribute_operator_state([saved(backend)], 3)
    ]
    assert [sum(sizes.values()) for sizes in shares] == [1, 1, 1]


def test_what_is_kept_belongs_to_nobody_else() -> None:
    backend = OperatorStateBackend()
    listed, rules = backend.get_list_state(PARTS), backend.get_broadcast_state(RULES)
    value = [1]
    listed.add(value)
    rules.put("a", value)
    value.append(2)
    listed.get()[0].append(3)
    next(iter(rules.values())).append(4)
    assert (listed.get(), rules.get("a")) == ([[1]], [1])
    assert HeapReadOnlyBroadcastState("rules", {}).get("a") is None


def test_an_empty_list_is_a_list_and_none_is_no_element() -> None:
    listed = OperatorStateBackend().get_list_state(PARTS)
    assert listed.get() == []
    with pytest.raises(ProgramError, match="None cannot be added"):
        listed.add(None)
    listed.update(None)
    listed.clear()
    assert list(listed) == []


def test_broadcast_state_is_a_mapping() -> None:
    backend = OperatorStateBackend()
    rules = backend.get_broadcast_state(RULES)
    assert rules.is_empty()
    rules["a"] = 1
    rules.put_all({"b": 2, "c": 3})
    del rules["c"]
    rules.remove("never there")
    again = backend.get_broadcast_state(RULES)
    assert (again["a"], "b" in again, again.contains("c"), list(again), list(again.values())) == (
        1,
        True,
        False,
        ["a", "b"],
        [1, 2],
    )
    again.clear()
    assert rules.is_empty()


def test_an_entry_under_not_a_number_is_found_again_after_a_restore() -> None:
    descriptor = MapStateDescriptor("limits", Types.FLOAT(), Types.INT())
    backend = OperatorStateBackend()
    backend.get_broadcast_state(descriptor).put(math.nan, 1)
    limits = restored(saved(backend)).get_broadcast_state(descriptor)
    limits.put(-math.nan, limits.get(math.nan) + 1)
    assert limits.values() == [2]


@pytest.mark.parametrize(
    "write",
    [
        lambda state: state.put("a", 1),
        lambda state: state.put_all({}),
        lambda state: state.remove("a"),
        lambda state: state.clear(),
        lambda state: state.__setitem__("a", 1),
        lambda state: state.__delitem__("a"),
    ],
)
def test_the_read_only_view_refuses_to_be_written(write: Any) -> None:
    with pytest.raises(
        ProgramError, match="'rules' is read-only here: it is written in process_broadcast_element"
    ):
        write(HeapReadOnlyBroadcastState("rules", {"a": 1}))


def test_one_name_is_one_state_before_and_after_a_restore() -> None:
    backend = filled([1], [2], {})
    with pytest.raises(
        ProgramError, match=r"'parts' is a list state of .*, and cannot be a union list state"
    ):
        backend.get_union_list_state(PARTS)
    with pytest.raises(
        ProgramError,
        match=r"'parts' was saved as a list state of .*, and cannot be a broadcast state",
    ):
        restored(saved(backend)).get_broadcast_state(
            MapStateDescriptor("parts", Types.STRING(), Types.INT())
        )
    with pytest.raises(ProgramError, match="'parts' was saved as"):
        restored(saved(backend)).get_list_state(ListStateDescriptor("parts", Types.STRING()))
    wrong: Any = ValueStateDescriptor("value")
    with pytest.raises(ProgramError, match=r"get_list_state\(\) takes a ListStateDescriptor"):
        backend.get_list_state(wrong)
    expiring = ListStateDescriptor("expiring", Types.INT())
    expiring.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_seconds(1)).build())
    with pytest.raises(ProgramError, match="list state does not expire"):
        backend.get_list_state(expiring)


def test_lists_of_the_engine_stand_beside_those_of_the_program_and_cannot_meet_them() -> None:
    backend = OperatorStateBackend()
    backend.engine_list("_parts").update([7])
    backend.get_list_state(PARTS).update([1, 2])
    again = restored(saved(backend))
    assert (again.engine_list("_parts").get(), again.get_list_state(PARTS).get()) == ([7], [1, 2])
    with pytest.raises(EngineError, match="is called _something, not 'parts'"):
        backend.engine_list("parts")
    with pytest.raises(ProgramError, match="names that begin with '_' are the engine's"):
        ListStateDescriptor("_parts")


def test_state_nobody_asks_for_any_more_is_saved_again() -> None:
    once = saved(filled([1, 2], [3], {"a": 4}))
    assert saved(restored(once)) == once


def test_an_operator_without_operator_state_saves_nothing_and_one_with_a_function_saves_that_it_was_there() -> (
    None
):
    backend = OperatorStateBackend()
    assert backend.snapshot(1, 0) is None
    seen: list[tuple[int, int]] = []
    backend.before_snapshot(lambda *checkpoint: seen.append(checkpoint))
    assert backend.snapshot(7, 99) is not None
    assert seen == [(7, 99)]


def test_classes_that_exist_only_in_the_program_can_be_kept() -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec("class Local:\n    number = 3", namespace)
    backend = OperatorStateBackend()
    backend.get_list_state(ListStateDescriptor("objects")).add(namespace["Local"]())
    assert (
        restored(saved(backend)).get_list_state(ListStateDescriptor("objects")).get()[0].number == 3
    )
    backend.get_list_state(ListStateDescriptor("objects")).update([Connection()])
    with pytest.raises(ProgramError, match="objects"):
        backend.snapshot(1, 0)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[:9] + b"\xc1" + data[10:],
        lambda data: b"XXX" + data[3:],
        lambda data: data[:3] + b"\x09" + data[4:],
        lambda data: b"",
    ],
)
def test_damaged_state_is_refused(damage: Any) -> None:
    with pytest.raises(ProgramError):
        OperatorSnapshot.from_bytes(damage(saved(filled([1], [], {}))))


def test_subtasks_that_disagree_are_refused() -> None:
    other = OperatorStateBackend()
    other.get_union_list_state(PARTS)
    with pytest.raises(
        ProgramError, match=r"'parts' is a list state of .* in one subtask and a union list state"
    ):
        redistribute_operator_state([saved(filled([], [], {})), saved(other)], 2)
    with pytest.raises(ProgramError, match="no operator state"):
        redistribute_operator_state([], 1)
    with pytest.raises(ProgramError, match="to 0 subtasks"):
        redistribute_operator_state([saved(other)], 0)


# -- both kinds of state in one snapshot -----------------------------------------------------------


def keyed(keys: dict[str, int], subtask: int, parallelism: int) -> HeapKeyedStateBackend:
    backend = HeapKeyedStateBackend(16, key_group_range(subtask, 16, parallelism), ManualClock(0))
    values = backend.state(ValueStateDescriptor("value", Types.INT()))
    for backend.current.key, number in keys.items():
        values.update(number)  # type: ignore[attr-defined]
    return backend


@pytest.mark.parametrize("parallelism", [1, 2, 3])
def test_both_kinds_are_redistributed_together(parallelism: int) -> None:
    both = SavedState(
        keyed_bytes(keyed({"a": 1, "b": 2, "c": 3, "d": 4}, 0, 1)),
        saved(filled([1, 2, 3], [9], {"r": 5})),
    )
    after = redistribute_all([both], 16, parallelism)
    found = {}
    for subtask, parts in enumerate(after):
        assert parts.keyed is not None
        backend = HeapKeyedStateBackend(
            16, key_group_range(subtask, 16, parallelism), ManualClock(0)
        )
        backend.restore(parts.keyed)
        values = backend.state(ValueStateDescriptor("value", Types.INT()))
        for key in backend.keys("value"):
            backend.current.key = key
            found[key] = values.value()  # type: ignore[attr-defined]
    assert found == {"a": 1, "b": 2, "c": 3, "d": 4}
    backends = [restored(parts.operator) for parts in after]
    assert sorted(each for backend in backends for each in backend.get_list_state(PARTS).get()) == [
        1,
        2,
        3,
    ]
    assert all(backend.get_broadcast_state(RULES).get("r") == 5 for backend in backends)


def test_subtasks_without_state_count_when_lists_are_shared_out() -> None:
    first, second, third = redistribute_all(
        [SavedState(), SavedState(None, saved(filled([1, 2], [], {}))), SavedState()], 16, 3
    )
    assert [
        restored(each.operator).get_list_state(PARTS).get() for each in (first, second, third)
    ] == [[], [1, 2], []]
    assert redistribute_all([SavedState(), SavedState()], 16, 3) == [SavedState()] * 3
