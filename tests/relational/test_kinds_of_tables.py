"""Operators of tables that look at one row at a time keep its kind; the others refuse a row that is
no insert, as it would count as one more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flinkpy.columns.sql.calc_program import CalcProgram, ProgramBuilder
from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.common.logical_types.logical_type import ArrayType, BigIntType, RowType, TimestampType
from flinkpy.connectors.memory.joined_tables import HeldTable
from flinkpy.core.elements import ColumnBatch
from flinkpy.core.errors import ProgramError
from flinkpy.operators.columnar.column_operators import ColumnOperator
from flinkpy.relational.functions.table_function_rows import TableCode, TableFunctionOperator
from flinkpy.relational.groups.changing_groups import GroupAggregateOperator
from flinkpy.relational.groups.distinct_buckets import DistinctBucketsOperator
from flinkpy.relational.groups.groups_in_phases import GlobalGroupsOperator, LocalGroupsOperator
from flinkpy.relational.hash_groups.hash_aggregate import HashAggregateOperator
from flinkpy.relational.in_time.first_rows import FirstRowsOperator
from flinkpy.relational.in_time.over_in_time import OverInTimeOperator
from flinkpy.relational.in_time.temporal_sort import TemporalSortOperator
from flinkpy.relational.lookups.lookup_join import LookupJoinOperator
from flinkpy.relational.lookups.rows_beside import LookupSpec
from flinkpy.relational.messages.change_texts import ChangesOfTexts, TextsOfChanges
from flinkpy.relational.ordering.changing_over import ChangingOverOperator
from flinkpy.relational.ordering.over_aggregate import OverAggregateOperator
from flinkpy.relational.ordering.rank_rows import RankOperator, RankSpec
from flinkpy.relational.ordering.sort_rows import SortOperator
from flinkpy.relational.ranks.changing_rank import ChangingRankOperator
from flinkpy.relational.ranks.deduplicated_rows import LastRowsOperator
from flinkpy.relational.ranks.keeps_last_rows import KeepsLastRows
from flinkpy.relational.ranks.normalized_rows import NormalizedRowsOperator
from flinkpy.relational.relational_operator import BlockingOperator, RelationalOperator
from flinkpy.relational.row_by_row.calc_operator import (
    CalcAtWatermarkOperator,
    CalcOperator,
    ExpandOperator,
)
from flinkpy.relational.row_by_row.checked_kinds import CheckedKinds
from flinkpy.relational.row_by_row.drop_update_before import DropUpdateBeforeOperator
from flinkpy.relational.row_by_row.gathered_rows import GatherRowsOperator
from flinkpy.relational.row_by_row.limit_rows import LimitRowsOperator
from flinkpy.relational.row_by_row.not_null_rows import NotNullEnforcer
from flinkpy.relational.row_by_row.unnest_rows import UnnestOperator
from flinkpy.relational.sinks.materialiser import MaterialiserOperator
from flinkpy.relational.sinks.net_changes import NetChangesOperator
from flinkpy.relational.windows.event_times import EventTimesOperator, RowtimeColumnOperator
from flinkpy.relational.windows.watermark_rows import WatermarkRowsOperator
from flinkpy.relational.windows.window_rows import WindowRowsOperator
from flinkpy.sql.logical.logical_rex import WHOLE_PARTITION
from flinkpy.sql.physical.physical_nodes import Phase
from flinkpy.sql.rex.relational_terms import OverGroup, WindowKind, WindowSpec
from flinkpy.sql.rex.rex_nodes import SortKey
from tests.operators.harness import ChainHarness, linear
from tests.operators.test_every_operator import operators_of

SCHEMA = pa.schema([("n", pa.int64()), ("ts", pa.timestamp("ms")), ("list", pa.list_(pa.int64()))])
BIGINT, MOMENT = BigIntType(), TimestampType(precision=3)
FOUND = pa.schema([pa.field("key", pa.int64())])
TIMES = [pa.field(name, pa.timestamp("ms")) for name in ("start", "end", "time")]


def column(at: int, kind: Any) -> CalcProgram:
    builder = ProgramBuilder()
    return builder.program([builder.input(at, kind)])


KEEPING: dict[str, Callable[[], ColumnOperator]] = {
    "Calc": lambda: CalcOperator(column(0, BIGINT), pa.schema([SCHEMA.field(0)])),
    "Calc at a watermark": lambda: CalcAtWatermarkOperator(
        column(0, BIGINT), pa.schema([SCHEMA.field(0)]), pa.timestamp("ms")
    ),
    "Expand": lambda: ExpandOperator([column(0, BIGINT)], pa.schema([SCHEMA.field(0)])),
    "UNNEST": lambda: UnnestOperator(
        column(2, ArrayType(element=BIGINT)), SCHEMA.append(pa.field("e", pa.int64()))
    ),
    "a table function": lambda: TableFunctionOperator(
        column(0, BIGINT),
        TableCode(abs, (BIGINT,), RowType.of(("a", BIGINT))),
        SCHEMA.append(pa.field("a", pa.int64())),
    ),
    "a lookup join": lambda: LookupJoinOperator(
        LookupSpec(column(0, BIGINT), SCHEMA, FOUND),
        HeldTable(pa.table({"key": pa.array([1, 2])})),
        ("key",),
        pa.schema([*SCHEMA, *FOUND]),
    ),
    "not null": lambda: NotNullEnforcer((0,), SCHEMA, drops=False),
    "event times of a column": lambda: EventTimesOperator(1, SCHEMA),
    "a column of event times": lambda: RowtimeColumnOperator(
        SCHEMA.append(pa.field("rowtime", pa.timestamp("ms", "UTC")))
    ),
    "windows": lambda: WindowRowsOperator(
        WindowSpec(WindowKind.TUMBLE, 1, 10), pa.schema([*SCHEMA, *TIMES])
    ),
    "buckets": lambda: DistinctBucketsOperator(
        [(0,)], [], 8, SCHEMA.append(pa.field("bucket", pa.int64()))
    ),
    "watermarks": lambda: WatermarkRowsOperator(1, column(1, MOMENT), SCHEMA),
}
REFUSING: dict[str, Callable[[], ColumnOperator]] = {
    "aggregate": lambda: HashAggregateOperator(
        (0,), (), Phase.WHOLE, SCHEMA, pa.schema([SCHEMA.field(0)])
    ),
    "sort": lambda: SortOperator((), SCHEMA),
    "rank": lambda: RankOperator(RankSpec("ROW_NUMBER", (), (), 1, 1), SCHEMA, SCHEMA),
    "over": lambda: OverAggregateOperator((), SCHEMA, SCHEMA),
    "limit": lambda: LimitRowsOperator(0, 5, SCHEMA),
    "over in time": lambda: OverInTimeOperator(
        OverGroup((), (SortKey(1),), WHOLE_PARTITION, ()), SCHEMA, SCHEMA, is_rowtime=True
    ),
    "first rows": lambda: FirstRowsOperator(SCHEMA, 1, (0,), SCHEMA),
    "sort in time": lambda: TemporalSortOperator((SortKey(1),), SCHEMA),
}


# what reads and writes kinds as text (tests/table/factories/test_changing_tables.py), and what is
# given those that it takes (tests/table/streams/test_changing_streams.py)
ELSEWHERE = {ChangesOfTexts, TextsOfChanges, CheckedKinds}
# What they give has kinds of its own, which tests/relational/test_changing_groups.py,
# test_changing_rank.py, test_last_rows.py and test_upsert_sinks.py know; but DropUpdateBefore,
# tested there too.
# So do those of groups in phases, rows that gather, and OVER by a column that is no time
# (test_groups_in_phases.py, test_gathered_rows.py, test_changing_over.py).
OF_CHANGES = {
    ChangingOverOperator,
    GatherRowsOperator,
    GlobalGroupsOperator,
    LocalGroupsOperator,
    ChangingRankOperator,
    DropUpdateBeforeOperator,
    GroupAggregateOperator,
    KeepsLastRows,
    LastRowsOperator,
    MaterialiserOperator,
    NetChangesOperator,
    NormalizedRowsOperator,
}


def changes() -> ColumnBatch:
    times = pa.array([1, 2], pa.int64()).cast(pa.timestamp("ms"))
    data = pa.record_batch([pa.array([1, 2]), times, pa.array([[1], [2]])], schema=SCHEMA)
    return ColumnBatch(data, np.array([1, 2]), np.array([0, 3], np.int8))


@pytest.mark.parametrize("name", KEEPING)
def test_what_looks_at_one_row_keeps_its_kind(name: str) -> None:
    harness = ChainHarness(linear(KEEPING[name]()))
    harness.chain.batch_inputs()[0](changes())
    [given] = [each for each in harness.writers[0].elements if isinstance(each, ColumnBatch)]
    assert given.kinds is not None
    assert given.kinds.tolist() == [0, 3]


@pytest.mark.parametrize("name", REFUSING)
def test_what_keeps_rows_refuses_all_but_inserts(name: str) -> None:
    harness = ChainHarness(linear(REFUSING[name]()))
    with pytest.raises(ProgramError, match="takes rows of the kinds"):
        harness.chain.batch_inputs()[0](changes())


def test_every_operator_of_tables_is_known_here() -> None:
    keeping = {type(make()) for make in KEEPING.values()}
    known = keeping | {type(make()) for make in REFUSING.values()}
    kinds = set(operators_of(RelationalOperator)) - {BlockingOperator, RelationalOperator}
    assert kinds - ELSEWHERE - OF_CHANGES == known
    assert {kind for kind in known if kind.takes_changes == ALL_CHANGES} == keeping
