"""One rule for columns whose rows have kinds: what an operator does not take it refuses, and what
it takes it gives on with its results. Nowhere is a kind left behind without a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from flinkpy.columns.aggregate_plan import aggregate_calls
from flinkpy.columns.expression_functions import col
from flinkpy.columns.values.conversion import rows_of_batch
from flinkpy.common import Duration, Row, RowKind, Types
from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.common.watermark_strategy import WatermarkGenerator, WatermarkStrategy
from flinkpy.connectors.memory.joined_tables import HeldTable
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.operators.columnar.column_operators import (
    ColumnOperator,
    ColumnsToRowsOperator,
    FilterColumnsOperator,
    MapBatchesOperator,
    NullableColumnsOperator,
    RowsToColumnsOperator,
    SelectColumnsOperator,
)
from flinkpy.operators.columnar.reshaping import (
    AlignColumnsOperator,
    DropColumnsOperator,
    RenameColumnsOperator,
    WithColumnsOperator,
)
from flinkpy.operators.columnar.table_join import JoinTableOperator
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.event_time.watermarks import TimestampsAndWatermarksOperator
from flinkpy.operators.keyed_columns.aggregate_of_all import (
    AggregatesOfAllOperator,
    LocalAggregatesOperator,
)
from flinkpy.operators.keyed_columns.distinct_rows import (
    DistinctRowsOperator,
    ExpiringDistinctRowsOperator,
)
from flinkpy.operators.keyed_columns.group_aggregate import KeyedAggregatesOperator
from flinkpy.operators.keyed_columns.running_aggregate import KeyedColumnAggregateOperator
from flinkpy.operators.results.limit import LimitOperator, LocalLimitOperator
from flinkpy.operators.sinks.sink_operator import SinkOperator
from flinkpy.operators.sinks.sink_port import Sink, SinkWriter
from flinkpy.state.ttl.config import StateTtlConfig
from flinkpy.windowing.assigners import TumblingEventTimeWindows
from flinkpy.windowing.joins.columnar_join import ColumnarJoinOperator
from flinkpy.windowing.slices.column_phases import LocalAggregates
from flinkpy.windowing.slices.column_slices import AggregateSlices, FieldSlices
from flinkpy.windowing.slices.local_operator import LocalSliceOperator
from flinkpy.windowing.slices.operator import SliceOperator
from flinkpy.windowing.slicing import Slicing
from tests.changes import SCHEMA, changes, shown
from tests.operators.harness import ChainHarness, linear
from tests.operators.test_every_operator import operators_of
from tests.table.harness import Gathered, context_of, run
from tests.windowing.slice_harness import Alone

ROW: Any = Types.ROW_NAMED(SCHEMA.names, [Types.LONG(), Types.DOUBLE(), Types.STRING()])
CALLS = aggregate_calls([col("n").sum.alias("total")], "test")
TTL = StateTtlConfig.new_builder(Duration.of_seconds(1)).build()
TABLE = pa.table({"s": ["a", "a", "b"], "city": ["Oslo", "Bergen", "Rome"]})
SLICING = Slicing(10, 10, 0)


def a_delete() -> ColumnBatch:
    data = pa.RecordBatch.from_arrays(
        [pa.array(each, field.type) for each, field in zip(([1, 2], [1.0, 2.0], "ab"), SCHEMA)],
        schema=SCHEMA,
    )
    return ColumnBatch(data, np.array([1, 2]), np.array([0, 3], np.int8))


# -- those that give kinds on ----------------------------------------------------------------------


class AfterEachSecond(WatermarkGenerator):
    def on_event(self, event: Any, event_timestamp: int, output: Any) -> None:
        if event_timestamp % 2:
            output.emit_watermark(event_timestamp)

    def on_periodic_emit(self, output: Any) -> None: ...


# For each: the operator, and which rows it gives, by their positions in the batch
KEEPING: dict[str, tuple[Callable[[], Any], Callable[[ColumnBatch], list[int]]]] = {
    "filter": (
        lambda: FilterColumnsOperator(col("s") == "a"),
        lambda batch: [at for at, s in enumerate(batch.data["s"].to_pylist()) if s == "a"],
    ),
    "select": (
        lambda: SelectColumnsOperator([("n", col("n")), ("y", col("x") + 1)]),
        lambda batch: list(range(len(batch))),
    ),
    "with columns": (
        lambda: WithColumnsOperator([("y", col("n") + 1)]),
        lambda batch: list(range(len(batch))),
    ),
    "drop": (lambda: DropColumnsOperator(["x"]), lambda batch: list(range(len(batch)))),
    "rename": (lambda: RenameColumnsOperator({"x": "y"}), lambda batch: list(range(len(batch)))),
    "align": (
        lambda: AlignColumnsOperator(pa.schema([("z", pa.int8()), ("n", pa.int64())])),
        lambda batch: list(range(len(batch))),
    ),
    "nullable": (lambda: NullableColumnsOperator(SCHEMA), lambda batch: list(range(len(batch)))),
    "map_batches": (
        lambda: MapBatchesOperator(lambda data: data.select(["n"])),
        lambda batch: list(range(len(batch))),
    ),
    "times of a column": (
        lambda: TimestampsAndWatermarksOperator(
            WatermarkStrategy.no_watermarks().with_timestamp_assigner("n")
        ),
        lambda batch: list(range(len(batch))),
    ),
    "times of a function": (
        lambda: TimestampsAndWatermarksOperator(
            WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda row, before: row.n)
        ),
        lambda batch: list(range(len(batch))),
    ),
    "watermarks between rows": (
        lambda: TimestampsAndWatermarksOperator(
            WatermarkStrategy.for_generator(lambda: AfterEachSecond()).with_timestamp_assigner("n")
        ),
        lambda batch: list(range(len(batch))),
    ),
    "a join with a table": (
        lambda: JoinTableOperator(HeldTable(TABLE), (["s"], ["s"]), keeps_all=True),
        lambda batch: [
            at
            for at, s in enumerate(batch.data["s"].to_pylist())
            for _ in range(2 if s == "a" else 1)
        ],
    ),
}


@pytest.mark.parametrize("name", KEEPING)
@settings(max_examples=40, deadline=None)
@given(changes(min_size=1))
def test_results_have_the_kinds_of_the_rows_they_are_made_of(name: str, batch: ColumnBatch) -> None:
    make, positions = KEEPING[name]
    kinds = [kind for kind, _, _ in shown([batch])]
    numbers = batch.data["n"].to_pylist()
    subtask = Alone(make())
    subtask.push(batch)
    found = subtask.out.batches
    assert [kind for kind, _, _ in shown(found)] == [kinds[at] for at in positions(batch)]
    assert [number for part in found for number in part.data["n"].to_pylist()] == [  # type: ignore[union-attr]
        numbers[at] for at in positions(batch)
    ]


@settings(max_examples=40, deadline=None)
@given(changes(min_size=1))
def test_rows_have_the_kinds_of_columns_and_columns_those_of_rows(batch: ColumnBatch) -> None:
    (rows,) = run(ColumnsToRowsOperator(), [batch])
    assert isinstance(rows, RowBatch)
    assert [str(row.get_row_kind()) for row in rows.values] == [
        kind for kind, _, _ in shown([batch])
    ]
    again = run(RowsToColumnsOperator(ROW), [rows])
    assert shown(again) == shown([batch])


@settings(max_examples=40, deadline=None)
@given(changes(min_size=1))
def test_a_filter_over_columns_is_that_over_rows(batch: ColumnBatch) -> None:
    over_columns = run(FilterColumnsOperator(_is_positive()), [batch])
    rows = [
        row for row in rows_of_batch(batch.data, batch.kinds) if row.x is not None and row.x > 0
    ]
    got = [row for part in over_columns for row in rows_of_batch(part.data, part.kinds)]  # type: ignore[union-attr]
    assert list(map(repr, got)) == list(map(repr, rows))
    assert [row.get_row_kind() for row in got] == [row.get_row_kind() for row in rows]


def _is_positive() -> Any:
    return col("x") > 0


def test_tuples_and_dicts_are_inserts() -> None:
    a_row = Row.of_kind(RowKind.UPDATE_BEFORE, 3, 1.0, "a")
    rows = RowBatch([(1, 1.0, "a"), a_row, (2, None, None)])
    assert [kind for kind, _, _ in shown(run(RowsToColumnsOperator(ROW), [rows]))] == [
        "+I",
        "-U",
        "+I",
    ]


def test_a_function_of_batches_that_gives_more_or_fewer_rows_is_refused_kinds() -> None:
    for operator in (
        MapBatchesOperator(lambda data: data.slice(1)),
        MapBatchesOperator(lambda data: data.slice(0, 0)),
        MapBatchesOperator(lambda data: data.to_pylist(), output="rows"),
    ):
        with pytest.raises(ProgramError, match=r"got one of kind -D"):
            run(operator, [a_delete()])


# -- those that refuse them ------------------------------------------------------------------------

REFUSING: dict[str, Callable[[], Any]] = {
    "keyed aggregates": lambda: KeyedAggregatesOperator(["s"], CALLS),
    "aggregates of all": lambda: AggregatesOfAllOperator(CALLS),
    "aggregates before the exchange": lambda: LocalAggregatesOperator(CALLS),
    "a running sum": lambda: KeyedColumnAggregateOperator("sum", "n", ["s"]),
    "distinct": lambda: DistinctRowsOperator(["s"]),
    "expiring distinct": lambda: ExpiringDistinctRowsOperator(["s"], TTL),
    "limit": lambda: LocalLimitOperator(5),
    "limit behind the exchange": lambda: LimitOperator(5),
    "windows of aggregates": lambda: SliceOperator(AggregateSlices(["s"], CALLS), SLICING, True),
    "windows of a field": lambda: SliceOperator(FieldSlices(["s"], "sum", "n"), SLICING, False),
    "windows before the exchange": lambda: LocalSliceOperator(
        LocalAggregates(["s"], CALLS), SLICING, 0
    ),
}


@pytest.mark.parametrize("name", REFUSING)
def test_what_would_count_a_delete_as_a_record_refuses_it(name: str) -> None:
    with pytest.raises(ProgramError, match=r"'test' takes rows of the kinds \[I\], and got .* -D"):
        opened(REFUSING[name]()).process_batch(a_delete())


@pytest.mark.parametrize("name", [name for name in REFUSING if "aggregates" in name])
def test_in_batch_it_is_refused_too(name: str) -> None:
    operator = opened(REFUSING[name]())
    if hasattr(operator, "take_batch"):
        with pytest.raises(ProgramError, match="got one of kind -D"):
            operator.take_batch(a_delete())


def opened(operator: Any) -> Any:
    subtask = Alone(operator)
    operator.context.name = "test"
    return subtask.operator


def test_a_join_of_windows_refuses_it_on_both_sides() -> None:
    operator = ColumnarJoinOperator(["s"], ["s"], TumblingEventTimeWindows(10))
    operator.setup(context_of(), Gathered())
    for process in (operator.process_batch1, operator.process_batch2):
        with pytest.raises(ProgramError, match="got one of kind -D"):
            process(a_delete())


def test_every_operator_over_columns_is_known_here() -> None:
    keeping = {type(make()) for make, _ in KEEPING.values()}
    refusing = {type(make()) for make in REFUSING.values()}
    unknown = {kind for kind in operators_of(ColumnOperator) if kind not in keeping | refusing}
    # those of tables stand in tests/relational/test_kinds_of_tables.py
    of_streams = {each for each in unknown if not each.__module__.startswith("flinkpy.relational.")}
    assert of_streams == set()
    assert {str(kind.takes_changes) for kind in keeping} == {str(ALL_CHANGES)}
    assert {str(kind.takes_changes) for kind in refusing} == {"[I]"}


# -- sinks -----------------------------------------------------------------------------------------


class Writer(SinkWriter):
    def __init__(self, sink: Taking) -> None:
        self._sink = sink

    def write_batch(self, batch: Batch) -> None:
        self._sink.batches.append(batch)


class Taking(Sink):
    def __init__(self, takes_kinds: bool) -> None:
        self.batches: list[Batch] = []
        if takes_kinds:
            self.takes_kinds = True

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return Writer(self)


@pytest.mark.parametrize("takes_kinds", [True, False])
def test_a_sink_is_given_kinds_only_if_it_says_that_it_writes_them(takes_kinds: bool) -> None:
    sink = Taking(takes_kinds)
    operator = opened(SinkOperator(sink))
    if takes_kinds:
        operator.process_batch(a_delete())
        assert shown(sink.batches) == shown([a_delete()])
    else:
        operator.process_batch(a_delete().slice(0, 1))  # an insert
        with pytest.raises(ProgramError, match=r"'test' takes rows of the kinds \[I\]"):
            operator.process_batch(a_delete())


# -- whole programs --------------------------------------------------------------------------------

ROWS = [
    Row.of_kind(RowKind.INSERT, 1, 1.0, "a"),
    Row.of_kind(RowKind.UPDATE_BEFORE, 1, None, "a"),
    Row.of_kind(RowKind.UPDATE_AFTER, 2, float("nan"), None),
    Row.of_kind(RowKind.DELETE, 3, -0.0, "b"),
]


def changing(parallelism: int = 1) -> Any:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(parallelism)
    return env.from_collection(ROWS, ROW).select(col("n"), col("x"), col("s"))


def test_collected_rows_of_columns_have_their_kinds_behind_a_shuffle_too() -> None:
    stream = changing(2).key_by("s").map(lambda row: row, output_type=ROW).filter(col("n") > 0)
    with stream.execute_and_collect() as rows:
        found = sorted((row.n, repr(row.x), str(row.get_row_kind())) for row in rows)
    assert found == [(1, "1.0", "+I"), (1, "None", "-U"), (2, "nan", "+U"), (3, "-0.0", "-D")]


def test_printed_and_shown_rows_tell_their_kinds(capfd: pytest.CaptureFixture[str]) -> None:
    changing().print().name("printed")
    changing().show()
    shown_text = capfd.readouterr().out
    assert "| op | n |    x | s    |" in shown_text
    assert "| -D | 3 |" in shown_text


def test_a_running_sum_and_a_table_refuse_changes() -> None:
    with pytest.raises(JobExecutionError, match="got one of kind -U"):
        list(changing().key_by("s").aggregate(col("n").sum).execute_and_collect())
    with pytest.raises(ProgramError, match=r"to_arrow\(\) gives a table, whose rows have no kind"):
        changing().to_arrow()


def test_how_many_rows_of_each_kind_went_in_and_out_is_counted() -> None:
    harness = ChainHarness(linear(FilterColumnsOperator(col("n") > 1)))
    push = harness.chain.batch_inputs()[0]
    data = pa.record_batch({"n": [1, 2, 3, 4]})
    assert harness.chain.metrics.kinds_of_operators() == [{}]
    for _ in range(2):
        push(ColumnBatch(data, None, np.array([1, 2, 3, 0], np.int8)))
        push(ColumnBatch(data))
    assert harness.chain.metrics.kinds_of_operators() == [
        {
            "numUpdateBeforeRecordsIn": 2,
            "numUpdateAfterRecordsIn": 2,
            "numDeleteRecordsIn": 2,
            "numUpdateBeforeRecordsOut": 0,
            "numUpdateAfterRecordsOut": 2,
            "numDeleteRecordsOut": 2,
        }
    ]
    assert harness.chain.metrics.of_operators()[0][1:] == (16, 12)
