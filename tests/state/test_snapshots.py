"""Snapshots by key group: saved at one parallelism, restored at another, it is the same state."""

from __future__ import annotations

from typing import Any

import cloudpickle
import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common.typeinfo import Types
from flinkpy.core.clock import ManualClock
from flinkpy.core.errors import EngineError, ProgramError
from flinkpy.core.keys import channel_of_key_group, key_group, key_group_range
from flinkpy.state.descriptors import ListStateDescriptor, ValueStateDescriptor
from flinkpy.state.snapshots.keyed_snapshots import KeyedSnapshot, redistribute
from tests.state.helpers import MAX_PARALLELISM, backend, contents, seconds, states
from tests.state_bytes import keyed_bytes

pytestmark = pytest.mark.usefixtures("each_backend")

KEYS = st.one_of(
    st.text(max_size=3), st.integers(-50, 50), st.tuples(st.integers(0, 9), st.text(max_size=1))
)
VALUES = st.one_of(st.integers(0, 100), st.lists(st.integers(0, 9), min_size=1, max_size=2))


@pytest.mark.parametrize("expiring", [False, True])
@settings(max_examples=20)
@given(
    filled=st.dictionaries(KEYS, st.integers(0, 100), max_size=30),
    before=st.integers(1, 7),
    after=st.integers(1, 7),
)
def test_state_saved_at_one_parallelism_is_the_same_restored_at_another(
    expiring: bool, filled: dict[Any, int], before: int, after: int
) -> None:
    clock = ManualClock(5)
    config = seconds(60).build() if expiring else None
    expected: dict[Any, Any] = {}
    snapshots = []
    for subtask in range(before):
        heap = backend(clock, key_group_range(subtask, MAX_PARALLELISM, before))
        made = states(heap, config)
        for key, number in filled.items():
            if (
                channel_of_key_group(key_group(key, MAX_PARALLELISM), MAX_PARALLELISM, before)
                == subtask
            ):
                heap.current.key = key
                made["value"].update([number])
                made["list"].update([number, number + 1])
                made["map"].put("n", number)
                made["reducing"].add(number)
                made["aggregating"].add(number)
        expected |= contents(heap, made)
        snapshots.append(keyed_bytes(heap))
    found: dict[Any, Any] = {}
    for subtask in range(after):
        groups = key_group_range(subtask, MAX_PARALLELISM, after)
        heap = backend(clock, groups)
        heap.restore(redistribute(snapshots, groups))
        here = contents(heap, states(heap, config))
        assert all(key_group(key, MAX_PARALLELISM) in groups for key in here)
        assert not here.keys() & found.keys()
        found |= here
    assert found == expected
    assert set(found) == set(filled)


def saved(**values: Any) -> bytes:
    heap = backend()
    state: Any = heap.state(ValueStateDescriptor("v"))
    for key, value in values.items():
        heap.current.key = key
        state.update(value)
    return keyed_bytes(heap)


def test_a_restore_takes_only_the_groups_of_its_subtask() -> None:
    data = saved(**{f"k{number}": number for number in range(100)})
    heap = backend(groups=range(64))
    heap.restore(data)
    assert sorted(heap.keys("v")) == sorted(
        f"k{number}" for number in range(100) if key_group(f"k{number}", MAX_PARALLELISM) < 64
    )


def test_restored_state_that_nobody_asks_for_is_saved_again() -> None:
    heap = backend()
    heap.restore(saved(a=[1], b=(2, 3)))
    again = backend()
    again.restore(keyed_bytes(heap))
    state: Any = again.state(ValueStateDescriptor("v"))
    again.current.key = "a"
    state.value().append("not in the state")
    assert state.value() == [1]


def test_a_descriptor_that_does_not_fit_what_was_saved_is_refused_with_both() -> None:
    heap = backend()
    heap.restore(saved(a=1))
    with pytest.raises(
        ProgramError, match="'v' was saved as a value state of None, and cannot be a list state of"
    ):
        heap.state(ListStateDescriptor("v", Types.INT()))
    expiring = ValueStateDescriptor("v")
    expiring.enable_time_to_live(seconds(1).build())
    with pytest.raises(ProgramError, match="expiring"):
        heap.state(expiring)


def test_the_max_parallelism_cannot_change() -> None:
    other = backend(groups=range(64), max_parallelism=64)
    with pytest.raises(ProgramError, match=r"call set_max_parallelism\(128\)"):
        other.restore(saved(a=1))
    with pytest.raises(ProgramError, match="do not belong together"):
        redistribute([saved(a=1), keyed_bytes(other)], range(128))


def test_what_is_no_snapshot_or_not_whole_is_refused() -> None:
    data = saved(a=1)
    for damaged, message in (
        (b"", "no keyed state"),
        (b"something else", "no keyed state"),
        (data[:3] + b"\x09" + data[4:], "version 9"),
        (data[:-1], "cut short"),
        (data + b"x", "cut short"),
        (data[:4] + b"\xff" * 8 + data[12:], "header|cut short"),
    ):
        with pytest.raises(ProgramError, match=message):
            KeyedSnapshot.from_bytes(damaged)
    with pytest.raises(ProgramError, match="in two of the snapshots"):
        redistribute([data, data], range(128))
    with pytest.raises(ProgramError, match="no keyed state to share out"):
        redistribute([], range(128))


def test_a_snapshot_with_the_lengths_of_groups_in_its_header_is_read() -> None:
    """As version 1 was."""
    of = KeyedSnapshot.from_bytes(saved(a=1, b=2))
    order = sorted(of.groups)
    header = msgpack.packb(
        {
            "max_parallelism": of.max_parallelism,
            "states": {name: [m.kind, m.type, m.expires] for name, m in of.states.items()},
            "groups": [[group, len(of.groups[group])] for group in order],
        }
    )
    prefix = b"FKS\x01" + len(header).to_bytes(4, "big")
    data = b"".join([prefix, header, *(of.groups[group] for group in order)])
    assert KeyedSnapshot.from_bytes(data) == of
    with pytest.raises(ProgramError, match="cut short"):
        KeyedSnapshot.from_bytes(data[:-1])


def test_a_key_that_was_never_partitioned_here_is_an_error_of_the_engine() -> None:
    heap = backend(groups=range(1))
    state: Any = heap.state(ValueStateDescriptor("v"))
    heap.current.key = next(key for key in "stray" if key_group(key, 128))
    state.update(1)
    with pytest.raises(EngineError, match="key of group"):
        keyed_bytes(heap)


def test_values_of_classes_that_exist_only_in_the_program_are_saved_too() -> None:
    class Local:
        def __init__(self, number: int) -> None:
            self.number = number

    heap = backend()
    heap.restore(saved(a=Local(1), b=Local(2)))
    state: Any = heap.state(ValueStateDescriptor("v"))
    heap.current.key = "b"
    assert state.value().number == 2
    assert cloudpickle.loads(cloudpickle.dumps(Local(3))).number == 3


def test_what_cannot_be_saved_names_the_state() -> None:
    def keep_and_save() -> bytes:
        heap = backend()
        # refused here, or when it is saved
        heap.engine_values("_generators")["k"] = (number for number in range(3))
        return keyed_bytes(heap)

    with pytest.raises(ProgramError, match=r"the state of '_generators' cannot be (sent|saved)"):
        keep_and_save()
