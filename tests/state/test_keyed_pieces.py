"""State in memory saved by key groups: a checkpoint writes those that have changed, and gives back
all that was frozen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common.typeinfo import Types
from flinkpy.core.clock import ManualClock
from flinkpy.core.errors import ResourceUnavailableError
from flinkpy.core.files.large_bytes import Data
from flinkpy.core.ids import JobId
from flinkpy.core.keys import canonical_key, key_group, key_group_range
from flinkpy.graph.checkpoints import OperatorSubtaskState
from flinkpy.state.checkpoints.checkpoint_storage import (
    FileCheckpointStorage,
    MemoryCheckpointStorage,
)
from flinkpy.state.checkpoints.state_reader import StateReader
from flinkpy.state.descriptors import ListStateDescriptor, ValueStateDescriptor
from flinkpy.state.heap.heap_backend import HeapKeyedStateBackend
from flinkpy.state.snapshots.keyed_pieces import FORM, read_keyed
from flinkpy.state.snapshots.keyed_snapshots import KeyedSnapshot
from flinkpy.state.snapshots.saved_state import FrozenInPieces, SavedState, share_of
from flinkpy.testing.simulation.simulated_file_store import SimulatedFileStore
from tests.state.helpers import MAX_PARALLELISM
from tests.values import COMPARABLE_KEYS, shown

ALL = range(MAX_PARALLELISM)
PICKLED = Types.PICKLED_BYTE_ARRAY()


def incremental(
    groups: range = ALL, max_parallelism: int = MAX_PARALLELISM
) -> HeapKeyedStateBackend:
    return HeapKeyedStateBackend(max_parallelism, groups, ManualClock(), incremental=True)


class Checkpoints:
    """Writes what subtasks save for checkpoints, and reads it back."""

    def __init__(self, threshold: int = 0) -> None:
        self.store = SimulatedFileStore()
        self.storage = FileCheckpointStorage(
            "/checkpoints", JobId("job"), threshold, stores=lambda _: self.store
        )
        self.number = 0

    def save(
        self, *backends: HeapKeyedStateBackend, bases: Sequence[OperatorSubtaskState] = ()
    ) -> list[OperatorSubtaskState]:
        self.number += 1
        found = []
        for subtask, each in enumerate(backends):
            frozen = each.freeze(in_pieces=True)
            assert isinstance(frozen, FrozenInPieces)
            with self.storage.state_writer(self.number, f"0a-{subtask}", 0) as writer:
                rest, pieces = frozen.write_pieces(bases[subtask].pieces if bases else None, writer)
                assert rest is not None
                found.append(OperatorSubtaskState(writer.write(rest), None, pieces))
        return found

    def reader(self) -> StateReader:
        return self.storage.reader(f"{self.storage.job_dir}/chk-{self.number}")

    def share(
        self, saved: Sequence[OperatorSubtaskState], parallelism: int = 1, subtask: int = 0
    ) -> Data:
        read = [SavedState(read_keyed(each, self.reader(), MAX_PARALLELISM, ALL)) for each in saved]
        keyed = share_of(read, MAX_PARALLELISM, parallelism, subtask).keyed
        assert keyed is not None
        return keyed


def files(saved: OperatorSubtaskState) -> set[str]:
    return {str(each.shared_file) for each in saved.handles() if each.shared_file is not None}


def written(saved: OperatorSubtaskState, before: OperatorSubtaskState | None = None) -> int:
    """Bytes of pieces that the checkpoint before does not have."""
    assert saved.pieces is not None
    known = (
        set(before.pieces.pieces.values())
        if before is not None and before.pieces is not None
        else set()
    )
    return sum(handle.length for handle in saved.pieces.pieces.values() if handle not in known)


def put(into: HeapKeyedStateBackend, keys: Sequence[Any], value: Any) -> None:
    state: Any = into.state(ValueStateDescriptor("value", PICKLED))
    for key in keys:
        into.current.key = canonical_key(key)
        state.update(value)


def in_groups(groups: Sequence[int], count: int) -> list[int]:
    return [key for key in range(20_000) if key_group(key, MAX_PARALLELISM) in groups][:count]


# -- any state -------------------------------------------------------------------------------------

KEYS = COMPARABLE_KEYS
VALUES = (
    st.integers(0, 3)
    | st.lists(st.integers(0, 3), max_size=2)
    | st.sampled_from([float("nan"), -0.0, "a", {"b": [1]}])
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["value", "list", "clear", "engine", "change", "batch"]), KEYS, VALUES
    ),
    max_size=8,
)


class Subject:
    """A backend with states that are replaced, appended to, and changed in place."""

    def __init__(self, backend: HeapKeyedStateBackend) -> None:
        self.backend = backend
        self.value: Any = backend.state(ValueStateDescriptor("value", PICKLED))
        self.list: Any = backend.state(ListStateDescriptor("list", PICKLED))
        self.engine = backend.engine_values("_engine")

    def play(self, steps: Sequence[tuple[str, Any, Any]]) -> None:
        for what, key, value in steps:
            self.backend.current.key = key = canonical_key(key)
            if what == "value":
                self.value.update(value)
            elif what == "list":
                self.list.add(value)
            elif what == "clear":
                self.value.clear()
            elif what == "engine":
                self.engine[key] = [value]
            elif what == "batch":
                self.backend.after_records(1)
            elif key in self.engine:
                self.engine[key].append(value)


@settings(max_examples=60, deadline=None)
@given(
    rounds=st.lists(STEPS, min_size=1, max_size=5),
    skipped=st.sets(st.integers(0, 4)),
    threshold=st.sampled_from([0, 200, 1 << 20]),
    at_once=st.sampled_from([0, 1 << 15]),
)
def test_what_is_restored_of_increments_is_what_is_restored_of_all(
    rounds: list[Any], skipped: set[int], threshold: int, at_once: int
) -> None:
    checkpoints = Checkpoints(threshold)
    subject = Subject(
        HeapKeyedStateBackend(MAX_PARALLELISM, ALL, ManualClock(), at_once, incremental=True)
    )
    base: list[OperatorSubtaskState] = []
    for number, steps in enumerate(rounds):
        subject.play(steps)
        saved = checkpoints.save(subject.backend, bases=base)
        whole = subject.backend.freeze().write()
        assert entries(checkpoints.share(saved)) == entries(whole)
        if number not in skipped:  # that one was aborted, and the next one builds on the one before
            base = saved


def entries(keyed: Data) -> Any:
    opened = KeyedSnapshot.from_bytes(keyed)
    return opened.states, [
        (number, {name: shown(pairs) for name, pairs in sorted(group.items())})
        for number, group in opened.entries().groups
    ]


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 3), (3, 2), (1, 5)])
@pytest.mark.parametrize("max_parallelism", [MAX_PARALLELISM, 1000])
def test_state_moves_by_key_groups_with_another_parallelism(
    before: int, after: int, max_parallelism: int
) -> None:
    checkpoints, keys = Checkpoints(), range(500)
    ranges = [key_group_range(subtask, max_parallelism, before) for subtask in range(before)]
    backends = [incremental(groups, max_parallelism) for groups in ranges]
    first: list[OperatorSubtaskState] = []
    for value in range(2):
        for backend, groups in zip(backends, ranges):
            put(
                backend,
                [key for key in keys[:: 1 + value] if key_group(key, max_parallelism) in groups],
                value,
            )
        first = saved = checkpoints.save(*backends, bases=first)
    assert all(len(each.pieces.pieces) <= 128 for each in saved if each.pieces is not None)
    found: dict[int, int] = {}
    for subtask in range(after):
        groups = key_group_range(subtask, max_parallelism, after)
        read = [
            SavedState(read_keyed(each, checkpoints.reader(), max_parallelism, groups))
            for each in saved
        ]
        again = incremental(groups, max_parallelism)
        keyed = share_of(read, max_parallelism, after, subtask).keyed
        assert keyed is not None
        again.restore(keyed)
        state: Any = again.state(ValueStateDescriptor("value", PICKLED))
        for key in list(again.keys("value")):
            again.current.key = key
            found[key] = state.value()
    assert found == {key: int(key % 2 == 0) for key in keys}


# -- what is written -------------------------------------------------------------------------------


def test_only_key_groups_that_have_changed_are_written() -> None:
    checkpoints, subject = Checkpoints(), incremental()
    put(subject, range(20_000), "a value")
    (first,) = checkpoints.save(subject)
    (same,) = checkpoints.save(subject, bases=[first])
    assert same == first
    put(subject, in_groups([3, 77], 50), "another")
    (second,) = checkpoints.save(subject, bases=[first])
    assert second.pieces is not None
    assert first.pieces is not None
    assert {
        name.partition("-")[0] for name in second.pieces.pieces.keys() - first.pieces.pieces.keys()
    } == {"3", "77"}
    assert written(second, first) < 0.02 * written(first)
    assert len(files(second)) == 2


def test_a_group_is_written_again_if_a_value_was_changed_in_place_or_all_its_keys_are_gone() -> (
    None
):
    checkpoints, subject = Checkpoints(), incremental()
    engine = subject.engine_values("_engine")
    (one,), (two,) = in_groups([5], 1), in_groups([6], 1)
    engine[one], engine[two] = [1], [2]
    first = checkpoints.save(subject)
    engine[one].append(2)
    del engine[two]
    (second,) = saved = checkpoints.save(subject, bases=first)
    assert second.pieces is not None
    assert [name.partition("-")[0] for name in second.pieces.pieces] == ["5"]
    assert entries(checkpoints.share(saved)) == entries(subject.freeze().write())


def test_states_without_entries_are_saved_too_and_a_new_one_is_no_reason_to_fail() -> None:
    checkpoints, subject = Checkpoints(), incremental()
    subject.state(ValueStateDescriptor("value", PICKLED))
    first = checkpoints.save(subject)
    assert list(KeyedSnapshot.from_bytes(checkpoints.share(first)).states) == ["value"]
    subject.state(ListStateDescriptor("list", PICKLED))
    put(subject, [1], 1)
    second = checkpoints.save(subject, bases=first)
    assert list(KeyedSnapshot.from_bytes(checkpoints.share(second)).states) == ["value", "list"]


def test_a_checkpoint_refers_to_few_earlier_files_whatever_changes() -> None:
    checkpoints, subject = Checkpoints(), incremental()
    put(subject, range(5000), 0)
    (last,) = checkpoints.save(subject)
    total, most = written(last), 0
    for number in range(60):
        put(subject, in_groups([number * 7 % 128, number * 11 % 128], 20), number)
        (now,) = checkpoints.save(subject, bases=[last])
        assert len(files(now)) <= 5
        most, last = max(most, written(now, last)), now
    assert most < total / 4
    assert entries(checkpoints.share([last])) == entries(subject.freeze().write())


def test_a_backend_that_was_restored_goes_on_with_what_it_was_restored_from() -> None:
    checkpoints, subject = Checkpoints(), incremental()
    put(subject, range(3000), ["a value"])
    first = checkpoints.save(subject)
    again = incremental()
    again.restore(checkpoints.share(first))
    put(again, in_groups([9], 5), ["another"])
    (second,) = checkpoints.save(again, bases=first)
    assert written(second, first[0]) < 0.03 * written(first[0])


def test_pieces_of_another_form_are_not_built_on() -> None:
    checkpoints, subject = Checkpoints(), incremental()
    put(subject, range(10), 1)
    frozen = subject.freeze(in_pieces=True)
    assert isinstance(frozen, FrozenInPieces)
    (saved,) = checkpoints.save(subject)
    assert saved.pieces is not None
    other = type(saved.pieces)("rocksdb", saved.pieces.pieces)
    with checkpoints.storage.state_writer(2, "0a-0", 0) as writer:
        _, pieces = frozen.write_pieces(other, writer)
    assert pieces.form == FORM
    assert not files(saved) & files(OperatorSubtaskState(pieces=pieces))


def test_savepoints_and_jobs_without_the_option_save_the_whole() -> None:
    plain = HeapKeyedStateBackend(MAX_PARALLELISM, ALL, ManualClock())
    subject = incremental()
    for each in (plain, subject):
        put(each, range(3), 1)
    assert not isinstance(plain.freeze(in_pieces=True), FrozenInPieces)
    assert not isinstance(subject.freeze(), FrozenInPieces)
    frozen = [subject.freeze(in_pieces=True) for _ in range(3)]
    assert (
        frozen[0].write()
        == b"".join(frozen[1].chunks())
        == frozen[2].entries().to_bytes()
        == plain.freeze().write()
    )


def test_in_the_jobmanagers_memory_all_pieces_together_have_to_fit() -> None:
    subject = incremental()
    put(subject, range(2000), "a value")
    frozen: Any = subject.freeze(in_pieces=True)
    writer = MemoryCheckpointStorage(10_000).state_writer(1, "0a-0", 0)
    with pytest.raises(ResourceUnavailableError, match="more than 10000 bytes is too large"):
        frozen.write_pieces(None, writer)
