"""State in the canonical form: what is restored from it is what was saved, and others read its
files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common.typeinfo import Types
from flinkpy.core.clock import ManualClock
from flinkpy.core.errors import CheckpointDamagedError, ProgramError
from flinkpy.core.files.large_bytes import Data
from flinkpy.core.ids import JobId, OperatorId
from flinkpy.core.keys import canonical_key, key_group, key_group_range
from flinkpy.graph.checkpoints import CompletedCheckpoint, OperatorCheckpoint
from flinkpy.state.canonical.canonical_reader import read_canonical
from flinkpy.state.canonical.canonical_writer import Place, write_canonical
from flinkpy.state.checkpoints.checkpoint_storage import FileCheckpointStorage
from flinkpy.state.checkpoints.state_writer import InlineStateWriter
from flinkpy.state.descriptors import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor
from flinkpy.state.inspection.checkpoint_contents import contents_of
from flinkpy.state.operator_backend import OperatorStateBackend
from flinkpy.state.snapshots.keyed_snapshots import KeyedSnapshot, load_group
from flinkpy.state.snapshots.saved_state import FrozenState, SavedState, share_of
from tests.checkpoints.made import keyed_states, operator_states
from tests.state.helpers import MAX_PARALLELISM, backend, contents, seconds, states
from tests.state.test_exact_columns import told
from tests.state_bytes import keyed_bytes
from tests.values import COMPARABLE_KEYS, key_of

pytestmark = pytest.mark.usefixtures("each_backend")

JOB, COUNTS = JobId("1a" * 16), OperatorId("0c" * 16)
ALL = range(MAX_PARALLELISM)


def written(folder: Path, frozen: list[FrozenState], checkpoint_id: int = 1) -> CompletedCheckpoint:
    """A savepoint of one operator, with the state of these subtasks."""
    storage = FileCheckpointStorage(str(folder), JOB)
    saved = {}
    for subtask, state in enumerate(frozen):
        with storage.state_writer(checkpoint_id, f"counts-{subtask}", 0) as writer:
            saved[subtask] = write_canonical(
                writer, state, Place(COUNTS, "counts per key", f"{subtask}-0")
            )
    operators = {COUNTS: OperatorCheckpoint("counts per key", len(frozen), MAX_PARALLELISM, saved)}
    return storage.store(CompletedCheckpoint(checkpoint_id, 0, operators))


def saved_states(
    folder: Path, checkpoint: CompletedCheckpoint, groups: range = ALL
) -> list[SavedState]:
    """What its operator's subtasks saved, read from its files and manifest."""
    storage = FileCheckpointStorage(str(folder), JOB)
    found = storage.load(str(checkpoint.location))
    assert found == checkpoint
    reader = storage.reader(checkpoint.location)
    return [
        read_canonical(state.tables, reader.read, MAX_PARALLELISM, groups)
        for state in found.operators[COUNTS].subtasks.values()
    ]


@pytest.mark.parametrize("expiring", [False, True])
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 2)])
def test_states_of_all_kinds_are_restored_with_another_parallelism(
    expiring: bool, before: int, after: int, tmp_path: Path
) -> None:
    clock, config = ManualClock(5), seconds(60).build() if expiring else None
    frozen, expected = [], dict[Any, Any]()
    for subtask in range(before):
        groups = key_group_range(subtask, MAX_PARALLELISM, before)
        held = backend(clock, groups)
        made = states(held, config)
        for number in range(200):
            key = f"key {number}" if number % 3 else (number, None)
            if key_group(key, MAX_PARALLELISM) in groups:
                held.current.key = key
                made["value"].update([number] if number % 2 else number)
                made["list"].add_all([number, float(number)])
                made["map"].put("n" if number % 2 else None, number)
                made["reducing"].add(number)
                made["aggregating"].add(number)
        expected |= contents(held, made)
        frozen.append(FrozenState(held.freeze()))
    checkpoint = written(tmp_path, frozen)
    found: dict[Any, Any] = {}
    for subtask in range(after):
        groups = key_group_range(subtask, MAX_PARALLELISM, after)
        share = share_of(
            saved_states(tmp_path, checkpoint, groups), MAX_PARALLELISM, after, subtask
        )
        held = backend(clock, groups)
        assert share.keyed is not None
        held.restore(share.keyed)
        found |= contents(held, states(held, config))
    assert told(sorted(found.items(), key=repr)) == told(sorted(expected.items(), key=repr))
    assert len(found) == 200


VALUES = (
    st.integers()
    | st.floats()
    | st.none()
    | st.text(max_size=2)
    | st.lists(st.integers(0, 3), max_size=2)
)
DESCRIPTORS = (
    ValueStateDescriptor("one", Types.LONG()),
    ListStateDescriptor("many", Types.DOUBLE()),
    MapStateDescriptor("by name"),
)


@settings(max_examples=25, deadline=None)
@given(
    filled=st.dictionaries(
        COMPARABLE_KEYS.map(canonical_key), st.lists(VALUES, min_size=1, max_size=3), max_size=8
    )
)
def test_whatever_the_keys_and_values_are_they_come_back_exactly(
    filled: dict[Any, list[Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    held = backend()
    one, many, by_name = (held.state(descriptor) for descriptor in DESCRIPTORS)
    for key, values in filled.items():
        held.current.key = key
        one.update(values[0])  # type: ignore[attr-defined]
        many.update([value for value in values if value is not None])  # type: ignore[attr-defined]
        by_name.put(values[0] if type(values[0]) is str else 1, values)  # type: ignore[attr-defined]
    held.engine_values("_engine")["k"] = {"window": filled}
    held.register_region("_region", lambda: {key: list(filled) for key in filled})
    native = keyed_bytes(held)
    folder = tmp_path_factory.mktemp("canonical")
    (saved,) = saved_states(folder, written(folder, [FrozenState(held.freeze())]))
    assert saved.keyed is not None
    assert groups_of(saved.keyed) == groups_of(native)


def groups_of(snapshot: Data) -> Any:
    opened = KeyedSnapshot.from_bytes(snapshot)
    pairs = [
        (number, name, told(key), told(value))
        for number, data in opened.groups.items()
        for name, each in load_group(data).items()
        for key, value in each
    ]
    return opened.states, opened.max_parallelism, sorted(pairs, key=repr)


def test_operator_states_come_back_in_the_same_pieces(tmp_path: Path) -> None:
    frozen = operator_states(3)
    frozen[1] = FrozenState(operator=OperatorStateBackend().snapshot(1, 1) or frozen[1].operator)
    checkpoint = written(tmp_path, frozen)
    found = saved_states(tmp_path, checkpoint)
    assert [each.operator for each in found] == [each.operator for each in frozen]
    restored = OperatorStateBackend()
    restored.restore(share_of(found, MAX_PARALLELISM, 2, 1).operator)
    assert list(
        restored.get_union_list_state(ListStateDescriptor("owners", Types.STRING())).get()
    ) == ["subtask 0", "subtask 1", "subtask 2"]
    rules = dict(
        restored.get_broadcast_state(
            MapStateDescriptor("rules", Types.STRING(), Types.DOUBLE())
        ).items()
    )
    assert told(rules) == told({"limit": 1.5, "floor": -0.0})


def test_others_read_its_files(tmp_path: Path) -> None:
    checkpoint = written(tmp_path, keyed_states([f"key {number}" for number in range(40)], 2))
    folder = Path(str(checkpoint.location))
    values = pd.concat(pd.read_parquet(path) for path in folder.glob("*.value.*.parquet"))
    assert dict(zip(values["key"], values["value"])) == {
        f"key {number}": number for number in range(40)
    }
    assert values["key_group"].tolist() == [
        key_group(key, MAX_PARALLELISM) for key in values["key"]
    ]
    assert values["value_pickled"].isna().all()
    lists = pa.concat_tables([pq.read_table(path) for path in folder.glob("*.list.*.parquet")])
    assert lists.schema.field("value").type == pa.list_(pa.int32())
    assert sorted(lists["value"].to_pylist()) == [[number, number + 1] for number in range(40)]
    maps = pa.concat_tables([pq.read_table(path) for path in folder.glob("*.map.*.parquet")])
    assert sorted(maps["value"].to_pylist()) == [[("n", number)] for number in range(40)]
    # declared DOUBLE, and kept as lists
    means = pa.concat_tables(
        [pq.read_table(path) for path in folder.glob("*.aggregating.*.parquet")]
    )
    assert means["value"].null_count == 40
    assert means["value_pickled"].null_count == 0


def test_inspect_lists_canonical_state_from_the_manifest_and_checks_its_files(
    tmp_path: Path,
) -> None:
    checkpoint = written(tmp_path, [*keyed_states(["a", "b", "c"], 2)])
    found = contents_of(str(checkpoint.location), show=1)
    assert [
        (state.name, state.kind, state.type, state.entries, len(state.first))
        for state in found.operators[0].states
    ][:2] == [
        ("value", "value state", "Types.INT()", 3, 1),
        ("list", "list state", "Types.LIST(Types.INT())", 3, 1),
    ]
    file = next(Path(str(checkpoint.location)).glob("*.map.*.parquet"))
    file.write_bytes(file.read_bytes()[:-3])
    assert str(file) in contents_of(str(checkpoint.location)).damaged[0]


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    checkpoint = written(tmp_path, keyed_states(["a", "b", "c"], 1))
    file = next(Path(str(checkpoint.location)).glob("*.map.*.parquet"))
    good = file.read_bytes()
    for bad in (good[:-1], good.replace(b"PAR1", b"PAR2"), b""):
        file.write_bytes(bad)
        with pytest.raises(CheckpointDamagedError, match=str(file)):
            saved_states(tmp_path, checkpoint)


def test_files_appear_when_all_is_written_and_go_when_it_is_given_up(tmp_path: Path) -> None:
    storage = FileCheckpointStorage(str(tmp_path), JOB)
    writer = storage.state_writer(1, "counts-0", 0)
    (frozen,) = keyed_states(["a", "b"], 1)
    write_canonical(writer, frozen, Place(COUNTS, "counts", "0-0"))
    folder = tmp_path / JOB / "chk-1"
    assert list(folder.glob("*.parquet")) == []
    writer.close()
    assert len(list(folder.glob("*.parquet"))) == 5
    writer.abort()
    assert list(folder.iterdir()) == []
    with pytest.raises(Exception, match="has no files"):
        write_canonical(
            InlineStateWriter(1000), keyed_states(["a"], 1)[0], Place(COUNTS, "counts", "0-0")
        )


def test_state_that_cannot_be_saved_is_named_and_leaves_no_files(tmp_path: Path) -> None:
    held = backend(kind="hashmap")
    held.engine_values("_generators").update({"a": [1], "b": (number for number in range(3))})
    storage = FileCheckpointStorage(str(tmp_path), JOB)
    with (
        pytest.raises(ProgramError, match="the state of '_generators'"),
        storage.state_writer(1, "counts-0", 0) as writer,
    ):
        write_canonical(writer, FrozenState(held.freeze()), Place(COUNTS, "counts", "0-0"))
    assert list((tmp_path / JOB).glob("chk-1/*")) == []


def test_states_whose_names_differ_have_files_of_their_own(tmp_path: Path) -> None:
    held = backend()
    for number, name in enumerate(("a b", "a_b", "a/b", "ab" * 60, "ä")):
        state: Any = held.state(ValueStateDescriptor(name, Types.LONG()))
        held.current.key = "k"
        state.update(number)
    checkpoint = written(tmp_path, [FrozenState(held.freeze())])
    assert len(list(Path(str(checkpoint.location)).glob("*.parquet"))) == 5
    (saved,) = saved_states(tmp_path, checkpoint)
    assert saved.keyed is not None
    assert groups_of(saved.keyed) == groups_of(keyed_bytes(held))


def test_keys_that_are_equal_are_one_key_after_a_restore(tmp_path: Path) -> None:
    held = backend()
    state: Any = held.state(ValueStateDescriptor("v"))
    for key in (1, 2.5, "a", float("nan"), ("x", float("nan"))):
        held.current.key = canonical_key(key)
        state.update(repr(key))
    (saved,) = saved_states(tmp_path, written(tmp_path, [FrozenState(held.freeze())]))
    again = backend()
    assert saved.keyed is not None
    again.restore(saved.keyed)
    assert sorted(map(repr, map(key_of, again.keys("v")))) == sorted(
        map(repr, map(key_of, held.keys("v")))
    )
    again.current.key = canonical_key(("x", float("nan")))
    assert again.state(ValueStateDescriptor("v")).value() == "('x', nan)"  # type: ignore[attr-defined]


def test_much_state_is_written_a_part_at_a_time(tmp_path: Path) -> None:
    held = backend()
    state: Any = held.state(ListStateDescriptor("clicks", Types.LONG()))
    for key in range(3000):
        held.current.key = key
        state.update(list(range(20)))
    checkpoint = written(tmp_path, [FrozenState(held.freeze())])
    (file,) = Path(str(checkpoint.location)).glob("*.parquet")
    parts = pq.ParquetFile(file).metadata
    assert parts.num_row_groups > 2
    largest = [parts.row_group(at).column(0).statistics.max for at in range(parts.num_row_groups)]
    assert largest == sorted(largest)  # by key group
