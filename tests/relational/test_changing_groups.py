"""GROUP BY whose results change: against plain Python, over changelogs in batches of any size, with
savepoints and another parallelism in the middle, and with groups that expire."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common.changelog_mode import ChangelogMode
from flinkpy.common.logical_types.logical_type import BigIntType, VarCharType
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.errors import SavepointRestoreError
from flinkpy.core.keys import channel_of_key_group
from flinkpy.core.options.state import ROCKSDB_OBJECTS, STATE_BACKEND
from flinkpy.operators.columnar.rows_on_disk import RowsOnDisk
from flinkpy.operators.columnar.tables_by_group import group_numbers
from flinkpy.relational.aggregates.aggregate_code import AggregateCode, with_code
from flinkpy.relational.functions.user_defined import AggregateFunction
from flinkpy.relational.groups.changing_groups import GroupAggregateOperator, GroupSpec
from flinkpy.sql.rex.rex_nodes import AggregateCall, SortKey
from tests.operators.harness import do_all
from tests.operators.joining import BARRIER, MAX_PARALLELISM, Gathered, Subtasks
from tests.relational.changing_groups_in_python import (
    AFTER,
    BEFORE,
    COMES,
    DELETE,
    INSERT,
    GroupsInPython,
    Row,
    canonical,
    order_of,
    present,
)

NO_ROOM: dict[str, Any] = {STATE_BACKEND.key: "rocksdb", ROCKSDB_OBJECTS.key: "0 b"}
ROWS = pa.schema(
    [
        ("a", pa.int64()),
        ("b", pa.string()),
        ("n", pa.int32()),
        ("f", pa.float64()),
        ("c", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("p", pa.bool_()),
    ]
)
ROW = st.tuples(
    st.none() | st.sampled_from([0, 1, 2**40]),
    st.none() | st.sampled_from(["x", "y"]),
    st.none() | st.integers(-4, 4),
    st.none() | st.sampled_from([0.0, -0.0, 1.5, -2.25, math.nan, math.inf]),
    st.none() | st.sampled_from([Decimal("1.10"), Decimal("-7.25"), Decimal("99999999.99")]),
    st.none() | st.sampled_from(["", "u", "vv"]),
    st.none() | st.booleans(),
)


def call(function: str, *arguments: int, **more: Any) -> AggregateCall:
    return AggregateCall(function, arguments, BigIntType(), **more)


def distinct(values: Sequence[Any]) -> list[Any]:
    found: dict[Any, Any] = {}
    for value in values:
        found.setdefault(canonical(value), value)
    return list(found.values())


def _average(values: Sequence[Any]) -> Any:
    return math.trunc(sum(values) / len(values)) if values else None


def _kept(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row[6]]


def _variance(values: Sequence[int]) -> Any:
    if not values:
        return None
    mean = sum(values) / len(values)
    return round(sum((each - mean) ** 2 for each in values) / len(values), 9)


CALLS: dict[str, tuple[AggregateCall, pa.DataType, Callable[[Sequence[Row]], Any]]] = {
    "COUNT(*)": (call("COUNT"), pa.int64(), len),
    "COUNT": (call("COUNT", 2), pa.int64(), lambda rows: len(present(rows, 2))),
    "COUNT(n, s)": (
        call("COUNT", 2, 5),
        pa.int64(),
        lambda rows: sum(row[2] is not None and row[5] is not None for row in rows),
    ),
    "SUM": (
        call("SUM", 2),
        pa.int32(),
        lambda rows: sum(present(rows, 2)) if present(rows, 2) else None,
    ),
    "$SUM0": (call("$SUM0", 2), pa.int32(), lambda rows: sum(present(rows, 2))),
    "AVG": (call("AVG", 2), pa.int32(), lambda rows: _average(present(rows, 2))),
    "SUM of decimals": (
        call("SUM", 4),
        pa.decimal128(38, 2),
        lambda rows: sum(present(rows, 4)) if present(rows, 4) else None,
    ),
    "VAR_POP": (call("VAR_POP", 2), pa.float64(), lambda rows: _variance(present(rows, 2))),
    "MIN": (call("MIN", 2), pa.int32(), lambda rows: min(present(rows, 2), default=None)),
    "MAX of floats": (
        call("MAX", 3),
        pa.float64(),
        lambda rows: max(present(rows, 3), key=order_of, default=None),
    ),
    "MIN of floats": (
        call("MIN", 3),
        pa.float64(),
        lambda rows: min(present(rows, 3), key=order_of, default=None),
    ),
    "MAX of text": (call("MAX", 5), pa.string(), lambda rows: max(present(rows, 5), default=None)),
    "MIN of decimals": (
        call("MIN", 4),
        pa.decimal128(10, 2),
        lambda rows: min(present(rows, 4), default=None),
    ),
    "FIRST_VALUE": (
        call("FIRST_VALUE", 2),
        pa.int32(),
        lambda rows: next(iter(present(rows, 2)), None),
    ),
    "LAST_VALUE": (
        call("LAST_VALUE", 5),
        pa.string(),
        lambda rows: next(reversed(present(rows, 5)), None),
    ),
    "LISTAGG": (
        call("LISTAGG", 5),
        pa.string(),
        lambda rows: ",".join(present(rows, 5)) if present(rows, 5) else None,
    ),
    "ARRAY_AGG": (
        call("ARRAY_AGG", 2),
        pa.list_(pa.int32()),
        lambda rows: [row[2] for row in rows],
    ),
    "ARRAY_AGG in order": (
        call("ARRAY_AGG", 5, order_by=(SortKey(2),)),
        pa.list_(pa.string()),
        lambda rows: [
            row[5] for row in sorted(rows, key=lambda row: (row[2] is not None, row[2] or 0))
        ],
    ),
    "COLLECT": (
        call("COLLECT", 5),
        pa.map_(pa.string(), pa.int32()),
        lambda rows: [(v, present(rows, 5).count(v)) for v in distinct(present(rows, 5))],
    ),
    "COUNT FILTER": (call("COUNT", filter=6), pa.int64(), lambda rows: len(_kept(rows))),
    "COUNT DISTINCT": (
        call("COUNT", 2, distinct=True),
        pa.int64(),
        lambda rows: len(set(present(rows, 2))),
    ),
    "SUM DISTINCT FILTER": (
        call("SUM", 2, distinct=True, filter=6),
        pa.int32(),
        lambda rows: sum(set(present(_kept(rows), 2))) if present(_kept(rows), 2) else None,
    ),
    "COUNT DISTINCT of floats": (
        call("COUNT", 3, distinct=True),
        pa.int64(),
        lambda rows: len(distinct(present(rows, 3))),
    ),
    "APPROX_COUNT_DISTINCT": (
        call("APPROX_COUNT_DISTINCT", 5),
        pa.int64(),
        lambda rows: len(set(present(rows, 5))),
    ),
}
KEYS = {"none": (), "one": (0,), "text": (1,), "two": (0, 1)}


class GatheredChanges(Gathered):
    """The rows that came out, with their kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[tuple[int, Row]] = []

    def emit(self, batch: Batch) -> None:
        assert isinstance(batch, ColumnBatch)
        kinds = [INSERT] * len(batch) if batch.kinds is None else batch.kinds.tolist()
        rows = zip(*(column.to_pylist() for column in batch.data.columns))
        self.changes += zip(kinds, map(_rounded, rows))

    def taken(self) -> list[tuple[int, Row]]:
        found, self.changes = self.changes, []
        return found


def _rounded(row: Row) -> Row:
    found: Row = canonical(
        tuple(round(each, 9) if isinstance(each, float) and each == each else each for each in row)
    )
    return found


class SubtasksOfGroups(Subtasks):
    """Rows with their kinds go to the subtask of their key."""

    output: GatheredChanges

    def __init__(
        self,
        make: Callable[[], Any],
        keys: Sequence[int],
        schema: pa.Schema,
        configuration: dict[str, Any] | None = None,
    ) -> None:
        self._keys = [schema.names[at] for at in keys]
        self._schema = schema
        super().__init__(make, configuration=configuration)

    def new_output(self) -> GatheredChanges:
        return GatheredChanges()

    def push_changes(self, changes: Sequence[tuple[int, Row]]) -> list[tuple[int, Row]]:
        self.push_batch(self.batch_of(changes))
        return self.output.taken()

    def batch_of(self, changes: Sequence[tuple[int, Row]]) -> ColumnBatch:
        """The changes as columns."""
        columns = list(zip(*(row for _, row in changes)))
        data = pa.RecordBatch.from_arrays(
            [
                pa.array(column, field.type, from_pandas=False)
                for column, field in zip(columns, self._schema)
            ],
            schema=self._schema,
        )
        kinds = np.array([kind for kind, _ in changes], np.int8)
        return ColumnBatch(data, kinds=kinds if kinds.any() else None)

    def push_batch(self, batch: ColumnBatch) -> None:
        """The rows of a batch go to the subtasks of their keys."""
        data, kinds = batch.data, batch.kinds
        channels = np.zeros(len(batch), np.int64)
        if self._keys:
            groups = group_numbers(data, self._keys, MAX_PARALLELISM)
            channels = np.array(
                [channel_of_key_group(g, MAX_PARALLELISM, len(self.operators)) for g in groups]
            )
        for channel in np.unique(channels).tolist():
            mine = channels == channel
            rows = data.filter(pa.array(mine))
            part = ColumnBatch(rows, kinds=None if kinds is None else kinds[mine])
            do_all(self.operators[channel].process_batch(part))


def schema_of_results(keys: Sequence[int], names: Sequence[str]) -> pa.Schema:
    results = [pa.field(name, CALLS[name][1]) for name in names]
    return pa.schema([*(ROWS.field(at) for at in keys), *results])


def subtasks_of(
    keys: Sequence[int],
    names: Sequence[str],
    configuration: dict[str, Any] | None = None,
    **more: Any,
) -> SubtasksOfGroups:
    spec = GroupSpec(tuple(keys), tuple(CALLS[name][0] for name in names), **more)
    schema = schema_of_results(keys, names)
    return SubtasksOfGroups(
        lambda: GroupAggregateOperator(spec, ROWS, schema), keys, ROWS, configuration
    )


def twin_of(keys: Sequence[int], names: Sequence[str], ttl_ms: int = 0) -> GroupsInPython:
    calls = [CALLS[name][2] for name in names]
    return GroupsInPython(lambda row: tuple(row[at] for at in keys), calls, ttl_ms)


@st.composite
def changelogs(draw: st.DrawFn, takes_back: bool) -> list[tuple[int, Row]]:
    """Rows that come, and rows that are taken back after they came."""
    found: list[tuple[int, Row]] = []
    there: list[Row] = []
    for row in draw(st.lists(ROW, min_size=1, max_size=16)):
        if takes_back and there and draw(st.integers(0, 2)) == 0:
            gone = there.pop(draw(st.integers(0, len(there) - 1)))
            found.append((draw(st.sampled_from([BEFORE, DELETE])), gone))
        there.append(row)
        found.append((draw(st.sampled_from(COMES)) if takes_back else INSERT, row))
    while takes_back and there and draw(st.booleans()):
        found.append((DELETE, there.pop(draw(st.integers(0, len(there) - 1)))))
    return found


def pushed_in_batches(changes: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [changes[at : at + size] for at in range(0, len(changes), size)]


@pytest.mark.wide
@settings(max_examples=20)
@given(st.data())
def test_each_batch_gives_the_net_changes_of_its_keys(data: st.DataObject) -> None:
    takes_back = data.draw(st.booleans())
    keys = KEYS[data.draw(st.sampled_from(sorted(KEYS)))]
    names = data.draw(
        st.lists(st.sampled_from(sorted(CALLS)), min_size=not keys, max_size=5, unique=True)
    )
    changes = data.draw(changelogs(takes_back))
    subtasks = subtasks_of(keys, names, takes_back=takes_back)
    twin = twin_of(keys, names)
    for batch in pushed_in_batches(changes, data.draw(st.sampled_from([1, 7, 100]))):
        given_by_key = sorted(subtasks.push_changes(batch), key=repr)
        assert given_by_key == sorted(twin.push(batch), key=repr)
        if keys and data.draw(st.integers(0, 3)) == 0:
            subtasks.restart(data.draw(st.sampled_from([1, 3])))
        elif data.draw(st.integers(0, 3)) == 0:
            subtasks.restart(1)
    subtasks.close()


@pytest.fixture
def _writes_row_by_row() -> Iterator[None]:
    pytest.importorskip("rocksdict")
    with mock.patch.multiple(RowsOnDisk, few=1, at_once=1):
        yield


@pytest.mark.usefixtures("_writes_row_by_row")
@settings(max_examples=40, deadline=None)
@given(st.data())
def test_groups_without_room_in_memory_change_as_groups_in_memory(data: st.DataObject) -> None:
    takes_back, ttl_ms = data.draw(st.booleans()), data.draw(st.sampled_from([0, 1000]))
    keys = data.draw(st.sampled_from([key for key in KEYS.values() if key]))
    names = data.draw(st.lists(st.sampled_from(sorted(CALLS)), max_size=4, unique=True))
    changes = data.draw(changelogs(takes_back))
    more = {"takes_back": takes_back, "ttl_ms": ttl_ms}
    found = [subtasks_of(keys, names, each, **more) for each in (NO_ROOM, {})]
    for batch in pushed_in_batches(changes, data.draw(st.sampled_from([1, 7, 100]))):
        elapsed = data.draw(st.sampled_from([0, 0.4, 1.2]))
        for each in found:
            each.timers.clock.advance(elapsed)
        on_disk, in_memory = (sorted(each.push_changes(batch), key=repr) for each in found)
        assert repr(on_disk) == repr(in_memory)
        if data.draw(st.integers(0, 3)) == 0:
            backend = data.draw(st.sampled_from([NO_ROOM, NO_ROOM, {}]))
            found[0].restart(data.draw(st.sampled_from([1, 3])), backend)
    for each in found:
        each.close()


@pytest.mark.usefixtures("_writes_row_by_row")
def test_a_group_that_ended_on_its_way_to_disk_does_not_come_back() -> None:
    subtasks = subtasks_of((0,), ["COUNT(*)"], NO_ROOM)
    rows = [(key, None, 1, None, None, "u", True) for key in range(10)]
    subtasks.push_changes([(INSERT, row) for row in rows])  # all leave, and none is written yet
    assert subtasks.push_changes([(DELETE, rows[9])]) == [(DELETE, (9, 1))]
    for _ in range(10):
        subtasks.push_changes([(INSERT, rows[0])])
    assert subtasks.push_changes([(INSERT, rows[9])]) == [(INSERT, (9, 1))]
    subtasks.close()


@pytest.mark.usefixtures("_writes_row_by_row")
def test_state_of_expired_groups_is_swept_from_disk() -> None:
    names = ["COUNT(*)", "LISTAGG"]
    subtasks = subtasks_of((0,), names, NO_ROOM, ttl_ms=1000)
    rows = [(INSERT, (key, None, key % 3, None, None, "u", True)) for key in range(300)]
    for batch in pushed_in_batches(rows, 10):
        subtasks.push_changes(batch)
        subtasks.timers.clock.advance(0.1)
    [operator] = subtasks.operators
    written = sum(data.num_rows for data in operator._disk.all_rows())
    assert written < 200
    subtasks.close()


@pytest.mark.wide
@settings(max_examples=10)
@given(st.data())
def test_groups_that_are_not_written_to_begin_anew(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(CALLS)), min_size=1, max_size=4, unique=True))
    takes_back = data.draw(st.booleans())
    subtasks = subtasks_of((0,), names, takes_back=takes_back, ttl_ms=1000)
    twin = twin_of((0,), names, ttl_ms=1000)
    clock = subtasks.timers.clock
    for batch in pushed_in_batches(data.draw(changelogs(takes_back)), 2):
        clock.advance(data.draw(st.sampled_from([0, 0.5, 0.999, 1, 1.7])))
        known = twin.known(batch, clock.time_ms())
        if known:
            given_by_key = sorted(subtasks.push_changes(known), key=repr)
            assert given_by_key == sorted(twin.push(known, clock.time_ms()), key=repr)
        if data.draw(st.integers(0, 4)) == 0:
            subtasks.restart(data.draw(st.sampled_from([1, 3])))
    subtasks.close()


def test_each_row_gives_its_group_its_whole_time_so_a_result_as_it_was_is_sent() -> None:
    subtasks = subtasks_of((0,), ["MIN"], ttl_ms=1000)
    row = (INSERT, (1, None, 1, None, None, "u", True))
    kinds = []
    for elapsed in (0, 0.6, 0.6, 1.0):
        subtasks.timers.clock.advance(elapsed)
        kinds.append([change[0] for change in subtasks.push_changes([row])])
    assert kinds == [[INSERT], [BEFORE, AFTER], [BEFORE, AFTER], [INSERT]]
    subtasks.close()


def test_state_of_expired_groups_is_swept() -> None:
    names = ["COUNT(*)", "MIN", "LISTAGG", "COUNT DISTINCT"]
    subtasks = subtasks_of((0,), names, ttl_ms=1000)
    rows = [(INSERT, (key, None, key % 3, None, None, "u", True)) for key in range(3000)]
    for batch in pushed_in_batches(rows, 100):
        subtasks.push_changes(batch)
        subtasks.timers.clock.advance(0.1)
    assert subtasks.operators[0].entries_held() < 1300
    subtasks.close()


def test_updates_come_alone_where_the_plan_wants_no_row_before() -> None:
    subtasks = subtasks_of((0,), ["COUNT(*)"], changes=ChangelogMode.upsert())
    row = (1, None, None, None, None, None, None)
    assert subtasks.push_changes([(INSERT, row)]) == [(INSERT, (1, 1))]
    assert subtasks.push_changes([(INSERT, row)]) == [(AFTER, (1, 2))]
    assert subtasks.push_changes([(DELETE, row), (DELETE, row)]) == [(DELETE, (1, 2))]
    subtasks.close()


def test_a_row_is_not_taken_back_from_a_group_that_is_not_there() -> None:
    subtasks = subtasks_of((0,), ["COUNT(*)", "SUM", "MAX of text"])
    row = (1, None, 5, None, None, "u", None)
    assert subtasks.push_changes([(DELETE, row)]) == []
    assert subtasks.push_changes([(BEFORE, row), (AFTER, row)]) == [(INSERT, (1, 1, 5, "u"))]
    subtasks.close()


def test_a_sum_that_has_too_many_digits_fits_again_after_a_savepoint() -> None:
    inputs = pa.schema([("k", pa.int64()), ("c", pa.decimal128(38, 0))])
    spec = GroupSpec((0,), (call("SUM", 1),))
    subtasks = SubtasksOfGroups(lambda: GroupAggregateOperator(spec, inputs, inputs), (0,), inputs)
    most = Decimal("9" * 38)
    subtasks.push_changes([(INSERT, (1, most)), (INSERT, (1, most))])
    subtasks.restart(3)
    assert subtasks.push_changes([(DELETE, (1, most))]) == [(BEFORE, (1, None)), (AFTER, (1, most))]
    subtasks.close()


class Longest(AggregateFunction[str, "list[str]"]):
    def create_accumulator(self) -> list[str]:
        return []

    def accumulate(self, accumulator: list[str], *args: Any) -> None:
        accumulator.append(args[0])

    def retract(self, accumulator: list[str], *args: Any) -> None:
        accumulator.remove(args[0])

    def get_value(self, accumulator: list[str]) -> str:
        return max(accumulator, key=lambda text: (len(text), text), default="")


def test_functions_of_users_take_rows_back_also_after_a_savepoint() -> None:
    inputs = pa.schema([("k", pa.int64()), ("s", pa.string())])
    code = AggregateCode(Longest(), "general").of_call([VarCharType()], VarCharType())
    spec = GroupSpec((0,), (with_code(call("longest", 1), code),))
    subtasks = SubtasksOfGroups(lambda: GroupAggregateOperator(spec, inputs, inputs), (0,), inputs)
    rows = [(1, "a"), (1, "bbb"), (2, "cc")]
    assert subtasks.push_changes([(INSERT, row) for row in rows]) == [
        (INSERT, (1, "bbb")),
        (INSERT, (2, "cc")),
    ]
    subtasks.restart(3)
    assert subtasks.push_changes([(DELETE, rows[1])]) == [(BEFORE, (1, "bbb")), (AFTER, (1, "a"))]
    assert subtasks.push_changes([(DELETE, rows[2])]) == [(DELETE, (2, "cc"))]
    subtasks.close()


@pytest.mark.parametrize("names", [["AVG", "MIN"], ["COUNT(*)", "MAX of floats"]])
def test_the_state_of_another_query_is_refused(names: list[str]) -> None:
    subtasks = subtasks_of((0,), ["COUNT(*)", "MIN of floats"], takes_back=False)
    subtasks.push_changes([(INSERT, (1, None, 5, 1.5, None, "u", None))])
    saved = [operator.freeze_state(BARRIER).write() for operator in subtasks.operators]
    subtasks.close()
    other = subtasks_of((0,), names, takes_back=False)
    other.close()
    with pytest.raises(SavepointRestoreError, match="of another query"):
        other.start(1, saved)
