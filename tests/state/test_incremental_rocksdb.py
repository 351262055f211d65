"""RocksDB state saved by files: each checkpoint gives back what was frozen, whatever parallelism
and backend it is restored with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.common.typeinfo import Types
from flinkpy.core.clock import ManualClock
from flinkpy.core.errors import CheckpointDamagedError, EngineError, ProgramError
from flinkpy.core.ids import JobId
from flinkpy.core.keys import canonical_key, key_group, key_group_range
from flinkpy.graph.checkpoints import KeyedPieces, OperatorSubtaskState
from flinkpy.runtime.checkpointing.saved_pieces import with_pieces
from flinkpy.state.checkpoints.checkpoint_storage import FileCheckpointStorage
from flinkpy.state.checkpoints.state_reader import StateReader
from flinkpy.state.descriptors import MapStateDescriptor, ValueStateDescriptor
from flinkpy.state.rocksdb.database import RocksDBConfig
from flinkpy.state.rocksdb.frozen_database import FORM, FrozenDatabase
from flinkpy.state.rocksdb.rocksdb_backend import RocksDBKeyedStateBackend
from flinkpy.state.snapshots.keyed_pieces import FrozenGroups, read_keyed
from flinkpy.state.snapshots.saved_state import FrozenInPieces, SavedState
from flinkpy.state.table_backend import TableBackend
from flinkpy.testing.simulation.simulated_file_store import SimulatedFileStore
from tests.state.helpers import (
    _IN_MEMORY,
    MAX_PARALLELISM,
    backend,
    close_all,
    contents,
    descriptors,
    seconds,
    states,
)

pytest.importorskip("rocksdict")


@pytest.fixture(autouse=True, scope="module")
def closed_in_the_end() -> Iterator[None]:
    yield
    close_all()


def incremental(groups: range = range(MAX_PARALLELISM)) -> RocksDBKeyedStateBackend:
    return RocksDBKeyedStateBackend(
        MAX_PARALLELISM, groups, ManualClock(), RocksDBConfig(_IN_MEMORY, incremental=True)
    )


@dataclass
class Saved:
    """What one subtask saved for a checkpoint."""

    rest: bytes | None
    pieces: KeyedPieces
    checkpoint_id: int


class Checkpoints:
    """Writes backends' pieces into files of a folder, and makes backends of them again."""

    def __init__(self) -> None:
        store = SimulatedFileStore()
        self.storage = FileCheckpointStorage(
            "/checkpoints", JobId("job"), threshold=0, stores=lambda _: store
        )
        self.number = 0

    def save(self, *backends: TableBackend, bases: Sequence[Saved] = ()) -> list[Saved]:
        self.number += 1
        found = []
        for subtask, each in enumerate(backends):
            frozen = each.freeze(in_pieces=True)
            assert isinstance(frozen, FrozenInPieces)
            with self.storage.state_writer(self.number, f"0a-{subtask}", 0) as writer:
                found.append(
                    Saved(
                        *frozen.write_pieces(bases[subtask].pieces if bases else None, writer),
                        self.number,
                    )
                )
        return found

    def reader(self, checkpoint_id: int) -> StateReader:
        return self.storage.reader(f"{self.storage.job_dir}/chk-{checkpoint_id}")

    def share(self, saved: Sequence[Saved], groups: range, kind: str = "rocksdb") -> SavedState:
        rest = saved[0].rest
        values = {
            "state.backend.type": kind,
            "state.backend.rocksdb.localdir": _IN_MEMORY,
            "execution.checkpointing.incremental": True,
        }
        return with_pieces(
            SavedState(rest),
            [each.pieces for each in saved],
            self.reader(saved[0].checkpoint_id),
            MAX_PARALLELISM,
            groups,
            values,
        )

    def restore(
        self,
        saved: Sequence[Saved],
        into: TableBackend,
        groups: range = range(MAX_PARALLELISM),
        kind: str = "rocksdb",
    ) -> TableBackend:
        share = self.share(saved, groups, kind)
        if share.pieces is not None:
            into.restore_pieces(share.pieces)
        if share.keyed is not None:
            into.restore(share.keyed)
        return into


@pytest.fixture
def checkpoints() -> Checkpoints:
    return Checkpoints()


KEYS = st.sampled_from([1, 2, True, 1.5, "a", ("a", 1), None, float("nan"), -0.0])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["value", "list", "map", "reducing", "aggregating", "clear"]),
        KEYS,
        st.integers(0, 9),
    ),
    max_size=20,
)


def play(into: TableBackend, made: dict[str, Any], steps: Sequence[tuple[str, Any, int]]) -> None:
    for kind, key, value in steps:
        into.current.key = canonical_key(key)
        if kind == "value":
            made[kind].update(value)
        elif kind == "map":
            made[kind].put(str(value), value)
        elif kind == "clear":
            made["value" if value % 2 else "list"].clear()
        else:
            made[kind].add(value)


def held(by: TableBackend, made: dict[str, Any]) -> list[str]:
    """What the states hold, as text: with NaN, and with keys of the type that they came with."""
    return sorted(
        repr(
            (
                key,
                {
                    name: sorted(value.items()) if isinstance(value, dict) else value
                    for name, value in each.items()
                },
            )
        )
        for key, each in contents(by, made).items()
    )


@example(rounds=[[("list", 1, 0), ("list", True, 0)]], after=[], restores="hashmap")
@settings(max_examples=40, deadline=None)
@given(
    rounds=st.lists(STEPS, min_size=1, max_size=4),
    after=STEPS,
    restores=st.sampled_from(["rocksdb", "hashmap"]),
)
def test_each_of_several_checkpoints_gives_back_what_was_frozen(
    rounds: list[Any], after: Any, restores: str
) -> None:
    checkpoints = Checkpoints()
    subject, plain = incremental(), backend(kind="hashmap")
    made, wanted = states(subject), states(plain)
    saved: list[Saved] = []
    for steps in rounds:
        play(subject, made, steps)
        play(plain, wanted, steps)
        saved = checkpoints.save(subject, bases=saved)
    expected = held(plain, wanted)
    play(subject, made, after)
    again = checkpoints.restore(
        saved, incremental() if restores == "rocksdb" else backend(kind="hashmap"), kind=restores
    )
    found = states(again)
    assert held(again, found) == expected
    play(again, found, after)  # and it goes on as the other would have
    play(plain, wanted, after)
    assert held(again, found) == held(plain, wanted)
    subject.close()
    again.close()


@pytest.mark.wide(but=("128", "rocksdb-2-1"))
@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 3), (3, 2), (4, 4), (1, 5)])
@pytest.mark.parametrize("kind", ["rocksdb", "hashmap"])
def test_state_moves_by_key_groups_with_another_parallelism(
    before: int, after: int, kind: str, checkpoints: Checkpoints
) -> None:
    keys, wanted = [*range(300), *map(str, range(50)), None, 0.5], dict[Any, Any]()
    backends = [
        incremental(key_group_range(subtask, MAX_PARALLELISM, before)) for subtask in range(before)
    ]
    for subtask, subject in enumerate(backends):
        # so that states have other numbers in each
        order = ["list", "map", "value"] if subtask % 2 else ["value", "list", "map"]
        made = {name: subject.state(descriptors()[name]) for name in order}
        for key in keys:
            if key_group(key, MAX_PARALLELISM) in key_group_range(subtask, MAX_PARALLELISM, before):
                play(
                    subject,
                    made,
                    [("value", key, 7), ("list", key, 1), ("list", key, 2), ("map", key, 3)],
                )
                wanted[key] = {"value": 7, "list": [1, 2], "map": {"3": 3}}
    saved = checkpoints.save(*backends)
    found: dict[Any, Any] = {}
    for subtask in range(after):
        groups = key_group_range(subtask, MAX_PARALLELISM, after)
        owners = [
            saved[each]
            for each in range(before)
            if meet(key_group_range(each, MAX_PARALLELISM, before), groups)
        ]
        new: TableBackend = (
            incremental(groups) if kind == "rocksdb" else backend(groups=groups, kind="hashmap")
        )
        checkpoints.restore(owners, new, groups, kind)
        made = {name: new.state(descriptors()[name]) for name in ("value", "list", "map")}
        for key in new.keys("list"):
            assert key_group(key, MAX_PARALLELISM) in groups
            # behind the others, whichever database its numbers came from
            play(new, made, [("list", key, 5)])
        found |= contents(new, made)
        new.freeze()  # no key is a stray
    assert found == {key: {**each, "list": [1, 2, 5]} for key, each in wanted.items()}
    for subject in backends:
        subject.close()


def meet(one: range, other: range) -> bool:
    return one.start < other.stop and other.start < one.stop


def fill(subject: TableBackend, keys: Iterator[int] | range, value: int) -> None:
    state: Any = subject.state(ValueStateDescriptor("value", Types.LONG()))
    for key in keys:
        subject.current.key = key
        state.update(value)


def test_files_of_the_checkpoint_that_it_builds_on_are_not_written_again(
    checkpoints: Checkpoints,
) -> None:
    subject = incremental()
    fill(subject, range(20_000), 1)
    first = checkpoints.save(subject)
    fill(subject, range(0, 20_000, 100), 2)
    second, anew = checkpoints.save(subject, bases=first), checkpoints.save(subject)
    files = [
        {name for name in saved.pieces.pieces if name.endswith(".sst")}
        for (saved,) in (first, second, anew)
    ]
    assert files[0] < files[1] == files[2]
    assert all(second[0].pieces.pieces[name] is first[0].pieces.pieces[name] for name in files[0])
    assert not {each.shared_file for each in anew[0].pieces.pieces.values()} & {
        each.shared_file for each in first[0].pieces.pieces.values()
    } - {None}
    new = sum(second[0].pieces.pieces[name].length for name in files[1] - files[0])
    assert new < 0.03 * sum(first[0].pieces.pieces[name].length for name in files[0])


def test_a_backend_that_was_restored_builds_on_what_it_was_restored_from(
    checkpoints: Checkpoints,
) -> None:
    subject = incremental()
    fill(subject, range(5_000), 1)
    first = checkpoints.save(subject)
    subject.close()
    share = checkpoints.share(first, range(MAX_PARALLELISM))
    assert share.pieces is not None
    assert share.pieces.is_as_saved
    again = incremental()
    again.restore_pieces(share.pieces)
    fill(again, range(50), 2)
    (second,) = checkpoints.save(again, bases=first)
    kept = [name for name in first[0].pieces.pieces if name.endswith(".sst")]
    assert kept
    assert all(second.pieces.pieces[name] is first[0].pieces.pieces[name] for name in kept)
    assert not checkpoints.share(first, range(64)).pieces.is_as_saved  # type: ignore[union-attr]


def test_a_database_goes_on_without_the_option_and_saves_as_a_whole_then(
    checkpoints: Checkpoints,
) -> None:
    subject, saved = incremental(), list[Saved]()
    for value in range(20):  # so that RocksDB merges files by size
        fill(subject, range(value, 3_000, 3), value)
        saved = checkpoints.save(subject, bases=saved)
    subject.close()
    plain = backend(kind="rocksdb")  # merges files by level
    checkpoints.restore(saved, plain)
    fill(plain, range(1_000), 77)
    state: Any = plain.state(ValueStateDescriptor("value", Types.LONG()))
    again = backend(kind="hashmap")
    again.restore(plain.freeze(in_pieces=True).write())
    held_again: Any = again.state(ValueStateDescriptor("value", Types.LONG()))
    for key in range(3_000):
        plain.current.key = again.current.key = key
        wanted = (
            77
            if key < 1_000
            else max(value for value in range(20) if key >= value and (key - value) % 3 == 0)
        )
        assert (state.value(), held_again.value()) == (wanted, wanted)


def test_the_files_are_written_after_the_backend_was_closed_and_nothing_stays_on_the_disk(
    checkpoints: Checkpoints, tmp_path: Path
) -> None:
    local = tmp_path / "local"
    subject = RocksDBKeyedStateBackend(
        MAX_PARALLELISM,
        range(MAX_PARALLELISM),
        ManualClock(),
        RocksDBConfig(str(local), incremental=True),
    )
    fill(subject, range(100), 1)
    written, whole, dropped = (subject.freeze(in_pieces=True) for _ in range(3))
    subject.close()
    assert isinstance(written, FrozenInPieces)
    with checkpoints.storage.state_writer(1, "0a-0", 0) as writer:
        written.write_pieces(None, writer)
    again = backend(kind="hashmap")
    again.restore(whole.write())
    assert sorted(again.keys("value")) == list(range(100))
    del dropped  # of a checkpoint that was aborted
    assert list(local.iterdir()) == []


def test_expiring_values_go_on_as_old_as_they_were(checkpoints: Checkpoints) -> None:
    clock = ManualClock()
    subject = RocksDBKeyedStateBackend(
        MAX_PARALLELISM, range(MAX_PARALLELISM), clock, RocksDBConfig(_IN_MEMORY, incremental=True)
    )
    made = states(subject, seconds(10).build())
    play(subject, made, [("value", 1, 7), ("list", 1, 1)])
    saved = checkpoints.save(subject)
    again = RocksDBKeyedStateBackend(
        MAX_PARALLELISM, range(MAX_PARALLELISM), clock, RocksDBConfig(_IN_MEMORY, incremental=True)
    )
    checkpoints.restore(saved, again)
    found = states(again, seconds(10).build())
    again.current.key = 1
    clock.advance(9)
    assert found["value"].value() == 7
    clock.advance(2)
    assert (found["value"].value(), found["list"].get()) == (None, [])


class Local:
    """Cannot be imported by name in another process."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Local) and other.number == self.number

    def __hash__(self) -> int:
        return self.number


def test_classes_that_exist_only_in_the_program_travel_with_the_files(
    checkpoints: Checkpoints,
) -> None:
    hidden: Any = type("Hidden", (), {"__module__": "__main__"})
    subject = incremental()
    state: Any = subject.state(ValueStateDescriptor("value", Types.PICKLED_BYTE_ARRAY()))
    subject.current.key, value = 1, hidden()
    value.number = 5
    state.update(value)
    frozen: Any = subject.freeze(in_pieces=True)
    # the class itself, pickled
    assert [data[:1] for data in frozen._contents.definitions.values()] == [b"\x80"]
    saved = checkpoints.save(subject)
    again = checkpoints.restore(saved, incremental())
    restored: Any = again.state(ValueStateDescriptor("value", Types.PICKLED_BYTE_ARRAY()))
    again.current.key = 1
    assert restored.value().number == 5
    (later,) = checkpoints.save(again)
    # the old pickles still need it
    assert later.pieces.pieces["contents"].length >= saved[0].pieces.pieces["contents"].length


@dataclass(frozen=True)
class Holder:
    held: Any


@pytest.mark.wide
@pytest.mark.parametrize(
    "key",
    [Local(1), ("a", Local(1)), frozenset([Local(1), 2]), Holder((1, Local(1)))],
    ids=["alone", "tuple", "set", "class"],
)
def test_a_database_with_keys_whose_bytes_differ_between_processes_is_saved_by_key_groups(
    key: Any, checkpoints: Checkpoints
) -> None:
    subject, other = incremental(), incremental()
    state: Any = subject.state(MapStateDescriptor("map", Types.PICKLED_BYTE_ARRAY(), Types.INT()))
    subject.current.key = 1
    state.put(key, 7)
    play(
        other,
        states(other),
        [
            ("value", ("plain", 1.5, frozenset([2.5])), 7),
            ("map", Holder(2), 1),
            ("list", Holder(2), 1),
        ],
    )
    frozen = subject.freeze(in_pieces=True)
    assert isinstance(frozen, FrozenGroups)
    with checkpoints.storage.state_writer(1, "0a-0", 0) as writer:
        rest, pieces = frozen.write_pieces(None, writer)
        saved = OperatorSubtaskState(writer.write(rest), pieces=pieces)
    keyed = read_keyed(saved, checkpoints.reader(1), MAX_PARALLELISM, range(MAX_PARALLELISM))
    assert keyed is not None
    again = incremental()
    again.restore(keyed)
    found: Any = again.state(MapStateDescriptor("map", Types.PICKLED_BYTE_ARRAY(), Types.INT()))
    again.current.key = 1
    assert found.get(key) == 7
    assert isinstance(again.freeze(in_pieces=True), FrozenGroups)
    # whatever other databases of the process hold
    assert isinstance(other.freeze(in_pieces=True), FrozenDatabase)


def test_without_the_option_and_for_savepoints_state_is_saved_as_a_whole() -> None:
    plain, subject = backend(kind="rocksdb"), incremental()
    for each in (plain, subject):
        fill(each, range(3), 1)
    assert not isinstance(plain.freeze(in_pieces=True), FrozenInPieces)
    assert not isinstance(subject.freeze(), FrozenInPieces)
    assert subject.freeze().write() == plain.freeze().write()


def test_pieces_that_cannot_be_restored_are_refused(checkpoints: Checkpoints) -> None:
    subject = incremental()
    fill(subject, range(3), 1)
    saved = checkpoints.save(subject)
    share = checkpoints.share(saved, range(MAX_PARALLELISM))
    with pytest.raises(EngineError, match="HeapKeyedStateBackend has no pieces"):
        backend(kind="hashmap").restore_pieces(share.pieces)  # type: ignore[arg-type]
    with pytest.raises(CheckpointDamagedError, match="pieces of the form 'clay'"):
        with_pieces(
            SavedState(),
            [KeyedPieces("clay", {})],
            checkpoints.reader(1),
            MAX_PARALLELISM,
            range(MAX_PARALLELISM),
            {},
        )
    with pytest.raises(CheckpointDamagedError, match="table of contents"):
        with_pieces(
            SavedState(),
            [KeyedPieces(FORM, {})],
            checkpoints.reader(1),
            MAX_PARALLELISM,
            range(MAX_PARALLELISM),
            {},
        )
    with pytest.raises(ProgramError, match="saved with max parallelism 128, the program has 64"):
        with_pieces(SavedState(), [saved[0].pieces], checkpoints.reader(1), 64, range(64), {})


def test_a_file_of_another_content_under_a_known_name_is_noticed(checkpoints: Checkpoints) -> None:
    one, other = incremental(), incremental()
    fill(one, range(3), 1)
    fill(other, range(3000), 1)
    saved = checkpoints.save(one)
    with pytest.raises(EngineError, match="has others"):
        checkpoints.save(other, bases=saved)
