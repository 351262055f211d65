"""Physical plans, built by hand, as programs of one subtask and of three."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.common.logical_types.logical_type import (
    BigIntType,
    BooleanType,
    DecimalType,
    LogicalType,
    RowType,
    TimeAttribute,
    TimestampType,
    VarCharType,
)
from flinkpy.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment
from flinkpy.sql.catalog.catalog_port import CatalogTable, ObjectPath
from flinkpy.sql.functions.built_in_functions import built_in_functions
from flinkpy.sql.physical.physical_nodes import (
    Calc,
    CollectNode,
    Exchange,
    HashAggregate,
    HashJoin,
    Limit,
    LookupJoin,
    Phase,
    PhysicalNode,
    Rank,
    SinkNode,
    Sort,
    TableScan,
    UnionAll,
    ValuesNode,
    WatermarkAssigner,
    WindowAggregate,
)
from flinkpy.sql.rex.relational_terms import JoinKind, WindowKind, WindowSpec
from flinkpy.sql.rex.rex_nodes import AggregateCall, RexCall, RexInput, RexLiteral, SortKey
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.translation.plan_translator import PlanTranslator

BIGINT, TEXT = BigIntType(), VarCharType(length=2**31 - 1)
ORDERS = pa.table({"id": pa.array(range(100)), "word": ["a", "b", None, "c"] * 25})
SCHEMA = RowType.of(("id", BIGINT), ("word", TEXT))


@dataclass
class HeldTables:
    """The tables of a test, by name; what was written is kept."""

    tables: dict[str, pa.Table]
    written: Any = None

    def scan(self, env: StreamExecutionEnvironment, node: TableScan) -> DataStream:
        return env.from_arrow(self.tables[node.path.name].select(list(node.schema.names)), 7)

    def lookup(self, node: LookupJoin) -> Any:
        raise AssertionError("no table is looked up")

    def sink(self, stream: DataStream, node: SinkNode) -> None:
        self.written = stream


def scan(name: str = "orders", schema: RowType = SCHEMA) -> TableScan:
    return TableScan(schema, ObjectPath("c", "d", name), CatalogTable(()))


def run(
    plan: PhysicalNode,
    parallelism: int,
    mode: RuntimeExecutionMode = RuntimeExecutionMode.BATCH,
    orders: pa.Table = ORDERS,
) -> list[tuple[Any, ...]]:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    env.set_runtime_mode(mode)
    tables = HeldTables({"orders": orders})
    stream = PlanTranslator(env, tables, built_in_functions()).translated(plan)
    assert stream is not None
    found = stream.to_arrow()
    return list(zip(*(column.to_pylist() for column in found.columns)))


def column(index: int, type: LogicalType) -> RexInput:
    return RexInput(type, index)


def less(one: Any, other: Any) -> RexCall:
    return RexCall(BooleanType(), "<", (one, other))


COUNTS = RowType.of(("word", TEXT), ("n", BIGINT))
COUNT = AggregateCall("COUNT", (), BIGINT)


@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_query_over_a_table_gives_its_rows(parallelism: int) -> None:
    """SELECT id + 1, word FROM orders WHERE id < 5, and rows that stand in the statement."""
    plus = RexCall(BIGINT, "+", (column(0, BIGINT), RexLiteral(BIGINT, 1)))
    condition = less(column(0, BIGINT), RexLiteral(BIGINT, 5))
    calc = Calc(SCHEMA, scan(), (plus, column(1, TEXT)), condition)
    union = UnionAll(SCHEMA, (calc, ValuesNode(SCHEMA, ((None, "z"),))))
    found = run(CollectNode(SCHEMA, union), parallelism)
    assert sorted(found, key=repr) == sorted(
        [(1, "a"), (2, "b"), (3, None), (4, "c"), (5, "a"), (None, "z")], key=repr
    )


@pytest.mark.parametrize("parallelism", [1, 3])
def test_groups_are_counted_joined_and_sorted(parallelism: int) -> None:
    local = HashAggregate(COUNTS, scan(), (1,), (COUNT,), Phase.LOCAL)
    counted = HashAggregate(COUNTS, Exchange(COUNTS, local, (0,)), (0,), (COUNT,), Phase.GLOBAL)
    both = RowType.of(("word", TEXT), ("n", BIGINT), ("id", BIGINT), ("word", TEXT))
    joined = HashJoin(
        both,
        Exchange(COUNTS, counted, (0,)),
        Exchange(SCHEMA, scan(), (1,)),
        JoinKind.LEFT,
        (0,),
        (1,),
        condition=less(column(2, BIGINT), RexLiteral(BIGINT, 6)),
    )
    keys = (SortKey(0, descending=True, nulls_first=False), SortKey(2))
    ordered = Sort(both, Exchange(both, joined, ()), keys)
    assert run(CollectNode(both, ordered), parallelism) == [
        ("c", 25, 3, "c"),
        ("b", 25, 1, "b"),
        ("b", 25, 5, "b"),
        ("a", 25, 0, "a"),
        ("a", 25, 4, "a"),
        (None, 25, None, None),
    ]


@pytest.mark.parametrize("parallelism", [1, 3])
def test_the_first_rows_of_partitions_and_some_rows_of_all(parallelism: int) -> None:
    exchange = Exchange(SCHEMA, scan(), (1,))
    ranked = Rank(SCHEMA, exchange, "ROW_NUMBER", (1,), (SortKey(0, descending=True),), 1, 1)
    assert sorted(run(CollectNode(SCHEMA, ranked), parallelism)) == [
        (96, "a"),
        (97, "b"),
        (98, None),
        (99, "c"),
    ]
    some = Limit(SCHEMA, Exchange(SCHEMA, scan(), ()), 2, 5)
    assert len(run(CollectNode(SCHEMA, some), parallelism)) == 5


@pytest.mark.parametrize("parallelism", [1, 3])
def test_an_aggregate_without_keys_has_a_row_whether_rows_come_or_not(parallelism: int) -> None:
    nothing = Calc(
        SCHEMA, scan(), (column(0, BIGINT), column(1, TEXT)), less(*[column(0, BIGINT)] * 2)
    )
    schema = RowType.of(("n", BIGINT), ("total", DecimalType(precision=38)))
    calls = (COUNT, AggregateCall("SUM", (0,), BIGINT))
    sums = RowType.of(("n", BIGINT), ("total", BIGINT))
    for below, wanted in ((nothing, (0, None)), (scan(), (100, 4950))):
        local = HashAggregate(sums, below, (), calls, Phase.LOCAL)
        whole = HashAggregate(sums, Exchange(sums, local, ()), (), calls, Phase.GLOBAL)
        assert run(CollectNode(schema, whole), parallelism) == [wanted]


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.BATCH, RuntimeExecutionMode.STREAMING])
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize(
    ("window", "wanted"),
    [
        (WindowSpec(WindowKind.TUMBLE, 2, 50), {"0 - 50": 50, "50 - 100": 50}),
        (WindowSpec(WindowKind.CUMULATE, 2, 100, 50), {"0 - 50": 50, "0 - 100": 100}),
    ],
)
def test_windows_close_with_the_watermark_or_the_end(
    window: WindowSpec, wanted: dict[str, int], parallelism: int, mode: RuntimeExecutionMode
) -> None:
    """Time never goes back in a subtask, so no row is late."""
    times = pa.array(range(100), pa.int64()).cast(pa.timestamp("ms"))
    orders = ORDERS.append_column("ts", times)
    moment = TimestampType(precision=3, time_attribute=TimeAttribute.ROWTIME)
    schema = RowType.of(*((each.name, each.type) for each in SCHEMA), ("ts", moment))
    marked = WatermarkAssigner(schema, scan(schema=schema), 2, RexInput(moment, 2))
    result = RowType.of(
        ("word", TEXT), ("n", BIGINT), ("window_start", moment), ("window_end", moment)
    )
    bounds = ("window_start", "window_end")
    exchange = Exchange(schema, marked, (1,))
    counted = WindowAggregate(result, exchange, window, (1,), (COUNT,), bounds)
    found: dict[str, int] = {}
    for _, count, start, end in run(CollectNode(result, counted), parallelism, mode, orders):
        name = " - ".join(
            f"{each.microsecond // 1000 + each.second * 1000}" for each in (start, end)
        )
        found[name] = found.get(name, 0) + count
    assert found == wanted


def test_rows_go_into_a_table_and_several_readers_share_a_node() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    tables = HeldTables({"orders": ORDERS})
    table = scan()
    union = UnionAll(SCHEMA, (table, table))
    sink = SinkNode(SCHEMA, union, ObjectPath("c", "d", "copy"), CatalogTable(()))
    assert PlanTranslator(env, tables, built_in_functions()).translated(sink) is None
    assert tables.written.to_arrow().num_rows == 200


def test_what_cannot_run_is_refused_by_name() -> None:
    class Unheard(PhysicalNode):
        pass

    env = StreamExecutionEnvironment.get_execution_environment()
    translator = PlanTranslator(env, HeldTables({}), built_in_functions())
    with pytest.raises(ValidationError, match="Unheard cannot run yet"):
        translator.translated(CollectNode(SCHEMA, Unheard(SCHEMA)))


def test_what_needs_all_rows_is_refused_where_they_may_never_end() -> None:
    ordered = Sort(SCHEMA, Exchange(SCHEMA, scan(), ()), (SortKey(0),))
    with pytest.raises(
        ValidationError, match=r"Sort\(orderBy=\[id ASC\]\) cannot run in STREAMING"
    ):
        run(CollectNode(SCHEMA, ordered), 1, RuntimeExecutionMode.STREAMING)
