"""with_columns, drop, rename, distinct, limit, union by name, aggregates of all records, and
reading and writing by guessed names."""

from __future__ import annotations

import datetime
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.columns.aggregate_plan import plan_aggregates
from flinkpy.common import Row, Time, Types, WatermarkStrategy
from flinkpy.core.elements import ColumnBatch, RowBatch
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import (
    DataStream,
    OutputTag,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.env.submission import stream_graph
from flinkpy.datastream.state import StateTtlConfig
from flinkpy.datastream.window import TumblingEventTimeWindows
from flinkpy.graph.transformations import OneInputTransformation
from flinkpy.operators.batch.batch_forms import batch_form
from flinkpy.operators.columnar.column_operators import SelectColumnsOperator
from flinkpy.operators.keyed_columns.aggregate_of_all import (
    AggregatesOfAllOperator,
    LocalAggregatesOperator,
)
from flinkpy.operators.keyed_columns.distinct_rows import (
    DistinctRowsOperator,
    ExpiringDistinctRowsOperator,
)
from flinkpy.operators.keyed_columns.group_aggregate import KeyedAggregatesOperator
from flinkpy.operators.results.limit import LimitOperator
from flinkpy.table.expressions import col, concat, lit
from flinkpy.windowing.slices.operator import SliceOperator
from tests.operators.harness import ManualTimers
from tests.table.harness import run
from tests.values import shown
from tests.windowing.slice_harness import Alone

SALES = {
    "shop": ["north", "south", "north", "north"],
    "amount": [3, 5, None, 4],
    "day": [1, 1, 1, 2],
}


def environment(
    mode: RuntimeExecutionMode = RuntimeExecutionMode.STREAMING, parallelism: int = 1
) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(mode)
    env.set_parallelism(parallelism)
    return env


def sales() -> DataStream:
    return environment().from_arrow(pa.table(SALES))


def unknown(stream: DataStream) -> DataStream:
    """The same columns, which nobody knows while the program is built."""
    return stream.map_batches(lambda batch: batch)


@pytest.mark.parametrize(
    "source", [lambda: sales(), lambda: unknown(sales())], ids=["known", "unknown"]
)
def test_columns_are_added_replaced_dropped_and_renamed(source: Callable[[], DataStream]) -> None:
    stream = source()
    assert stream.with_column("twice", col("amount") * 2).to_arrow().to_pydict() == {
        **SALES,
        "twice": [6, 10, None, 8],
    }
    assert stream.with_columns(
        (col("amount") + 1).alias("amount"), old=col("amount")
    ).to_arrow().to_pydict() == {**SALES, "amount": [4, 6, None, 5], "old": SALES["amount"]}
    assert stream.with_columns(day=7, none=None).to_arrow().to_pydict() == {
        **SALES,
        "day": [7] * 4,
        "none": [None] * 4,
    }
    assert stream.drop("day", col("shop")).to_arrow().to_pydict() == {"amount": SALES["amount"]}
    assert stream.rename({"shop": "amount", "amount": "shop"}, day="at").to_arrow().to_pydict() == {
        "amount": SALES["shop"],
        "shop": SALES["amount"],
        "at": SALES["day"],
    }


def test_rows_of_a_declared_type_have_these_methods_too() -> None:
    rows = environment().from_collection(
        [("a", 1), ("b", 2)], Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.LONG()])
    )
    assert rows.with_column("m", col("n") * 2).drop("n").rename(m="n").to_arrow().to_pylist() == [
        {"k": "a", "n": 2},
        {"k": "b", "n": 4},
    ]
    assert rows.aggregate(col("n").sum.alias("n")).to_arrow().to_pylist()[-1] == {"n": 3}


KEYS = st.sampled_from([0.0, -0.0, math.nan, 1.5, None])


@given(
    st.lists(st.tuples(KEYS, st.none() | st.sampled_from(["a", "b"])), max_size=12),
    st.sampled_from([1, 3, 12]),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_the_first_record_of_each_value_stays(records: list[Any], size: int, restart: bool) -> None:
    """Over columns, wherever batches are cut, and restored as if nothing had failed."""
    data = pa.RecordBatch.from_pydict(
        {
            "x": pa.array([x for x, _ in records], pa.float64()),
            "s": pa.array([s for _, s in records], pa.string()),
            "n": pa.array(range(len(records)), pa.int64()),
        }
    )
    subtask, found = Alone(DistinctRowsOperator(("x", "s"))), []
    for number, at in enumerate(range(0, len(records), size)):
        if restart and number == 1:
            found += subtask.results
            subtask = Alone(DistinctRowsOperator(("x", "s")), subtask.snapshot())
        part = data.slice(at, size)
        subtask.push(ColumnBatch(part, np.arange(part.num_rows)))
    found += subtask.results
    first: dict[Any, int] = {}
    for at, (x, s) in enumerate(records):
        first.setdefault(("nan" if x is not None and x != x else x, s), at)
    assert [record[2] for record, _ in found] == sorted(first.values())


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_distinct_records_of_rows_and_columns(mode: RuntimeExecutionMode, parallelism: int) -> None:
    env = environment(mode, parallelism)
    numbers = [1, 2.0, 1.0, 2, 3, True, None, None, math.nan, math.nan]
    assert sorted(
        map(str, env.from_collection(numbers).distinct().execute_and_collect())
    ) == sorted(["1", "2.0", "3", "None", "nan"])
    pairs = env.from_collection(
        [("a", 1), ("b", 1), ("a", 2)], Types.TUPLE([Types.STRING(), Types.INT()])
    )
    assert len(list(pairs.distinct().execute_and_collect())) == 3
    table = env.from_arrow(pa.table(SALES))
    assert table.distinct("shop").to_arrow().num_rows == 2
    assert table.select("shop", "day").distinct().to_arrow().num_rows == 3
    assert table.key_by("day").distinct("shop").to_arrow().num_rows == 2


def test_a_value_is_forgotten_when_its_time_has_come() -> None:
    env = environment()
    ttl = StateTtlConfig.new_builder(Time.days(1)).build()
    assert list(env.from_collection([1, 1, 2]).distinct(ttl=ttl).execute_and_collect()) == [1, 2]
    assert sales().distinct("shop", ttl=ttl).to_arrow().to_pydict() == {
        "shop": ["north", "south"],
        "amount": [3, 5],
        "day": [1, 1],
    }


@given(
    st.lists(
        st.tuples(KEYS, st.none() | st.sampled_from(["a", "b"]), st.integers(0, 3)), max_size=12
    ),
    st.sampled_from([1, 3, 12]),
    st.none() | st.integers(0, 3),
    st.booleans(),
)
@pytest.mark.parametrize("backend", ["hashmap", "rocksdb"])
@settings(max_examples=60, deadline=None)
def test_a_value_is_forgotten_over_columns_as_over_rows(
    backend: str, records: list[Any], size: int, restart: int | None, on_read: bool
) -> None:
    """Each record comes some hours after the one before; a batch comes at one time."""
    builder = StateTtlConfig.new_builder(Time.hours(4))
    ttl = (builder.update_ttl_on_read_and_write() if on_read else builder).build()
    data = pa.RecordBatch.from_pydict(
        {
            "x": pa.array([x for x, _, _ in records], pa.float64()),
            "s": pa.array([s for _, s, _ in records], pa.string()),
            "n": pa.array(range(len(records)), pa.int64()),
        }
    )
    timers = ManualTimers()
    subtask = Alone(ExpiringDistinctRowsOperator(("x", "s"), ttl), timers=timers, backend=backend)
    found = []
    until: dict[Any, int] = {}
    expected, hour = [], 0
    for number, at in enumerate(range(0, len(records), size)):
        if number == restart:
            found += subtask.results
            subtask = Alone(
                ExpiringDistinctRowsOperator(("x", "s"), ttl),
                subtask.snapshot(),
                timers=timers,
                backend=backend,
            )
        timers.advance(3600 * records[at][2])
        hour += records[at][2]
        for index, (x, s, _) in enumerate(records[at : at + size], at):
            key = "nan" if x is not None and x != x else x, s
            is_new = until.get(key, -1) <= hour
            if is_new:
                expected.append(index)
            if is_new or on_read:
                until[key] = hour + 4
        part = data.slice(at, size)
        subtask.push(ColumnBatch(part, np.arange(part.num_rows)))
    found += subtask.results
    assert [record[2] for record, _ in found] == expected


@given(st.lists(st.integers(0, 5), max_size=6), st.integers(0, 8), st.booleans(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_exactly_so_many_records_pass(
    sizes: list[int], limit: int, restart: bool, is_columnar: bool
) -> None:
    subtask, found, begin = Alone(LimitOperator(limit)), [], 0
    for number, size in enumerate(sizes):
        if restart and number == 1:
            found += subtask.results
            subtask = Alone(LimitOperator(limit), subtask.snapshot())
        numbers = list(range(begin, begin + size))
        data = pa.RecordBatch.from_pydict({"n": pa.array(numbers, pa.int64())})
        subtask.push(
            ColumnBatch(data, np.array(numbers, np.int64))
            if is_columnar
            else RowBatch([(n,) for n in numbers], numbers)
        )
        begin += size
    found += subtask.results
    assert found == [((number,), number) for number in range(min(limit, begin))]


def test_a_limit_holds_over_all_subtasks() -> None:
    env = environment(RuntimeExecutionMode.BATCH, 2)
    assert len(list(env.from_sequence(1, 1000).limit(7).execute_and_collect())) == 7
    assert env.from_arrow(pa.table({"n": list(range(1000))})).limit(7).to_arrow().num_rows == 7


def test_streams_are_united_by_the_names_of_their_columns() -> None:
    stream = sales()
    other = stream.select("day", "amount", "shop")
    united = stream.union(other, by_name=True).to_arrow()
    assert united.schema.names == ["shop", "amount", "day"]
    assert united.num_rows == 8
    filled = (
        stream.drop("day")
        .union(stream.select(lit(True).alias("new"), "shop"), by_name=True, fill_missing=True)
        .to_arrow()
    )
    assert filled.schema.names == ["shop", "amount", "new"]
    assert filled.to_pylist().count({"shop": "south", "amount": None, "new": True}) == 1


def test_aggregates_of_all_records() -> None:
    wanted = {"sum": 12, "mean": 4.0, "shops": 2, "range": 2, "first": 3}
    calls = [
        col("amount").sum.alias("sum"),
        (col("amount").sum / col("amount").count).alias("mean"),
        col("shop").count_distinct.alias("shops"),
        (col("amount").max - col("amount").min).alias("range"),
        col("amount").first_value.alias("first"),
    ]
    for mode in (RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH):
        found = (
            environment(mode)
            .from_arrow(pa.table(SALES), batch_rows=2)
            .aggregate(*calls)
            .to_arrow()
            .to_pylist()
        )
        assert found == [wanted]


SOME = st.lists(
    st.tuples(
        st.none() | st.integers(-(2**62), 2**62),
        st.none() | st.sampled_from([0.0, -0.0, 0.1, math.nan]),
        st.none() | st.text("aé", max_size=2),
        st.none() | st.decimals("-9", "9", places=2),
    ),
    max_size=12,
)
PARTS: dict[str, tuple[Any, ...]] = {
    "exact": (
        lit(1).count.alias("n"),
        col("i").avg.alias("mean"),
        (col("i") // 4).sum.alias("sum"),
        col("x").min.alias("low"),
        col("s").max.alias("high"),
        col("s").first_value.alias("first"),
        col("x").last_value.alias("last"),
        col("d").sum.alias("money"),
        col("d").avg.alias("of_money"),
        col("x").count_distinct.alias("different"),
        col("i").median.alias("middle"),
        (col("i").max / col("i").count).alias("ratio"),
    ),
    "rounded": (
        col("x").sum.alias("sum"),
        col("i").var_pop.alias("variance"),
        col("s").count.alias("n"),
    ),
}


@pytest.mark.parametrize("kind", PARTS)
@given(SOME, st.sampled_from([1, 3, 12]), st.integers(0, 4), st.booleans(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_aggregates_of_all_records_in_two_phases_are_those_in_one(
    kind: str, records: list[Any], size: int, restart: int, is_batch: bool, is_known: bool
) -> None:
    """Also if a state of the one goes to the other."""
    schema = pa.schema(
        [
            ("i", pa.int64()),
            ("x", pa.float64()),
            ("s", pa.string()),
            ("d", pa.decimal128(20, 2)),
            ("unused", pa.int64()),
        ]
    )
    rows = [(*record, number) for number, record in enumerate(records)]
    data = pa.RecordBatch.from_arrays(
        [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(schema)],
        schema=schema,
    )
    batches = [
        ColumnBatch(part := data.slice(at, size), np.arange(at, at + part.num_rows))
        for at in range(0, len(records), size)
    ]
    plan = plan_aggregates(PARTS[kind], (), "test")

    def results(in_two: Callable[[int], bool]) -> Any:
        def operator(number: int) -> tuple[Any, Any]:
            whole = AggregatesOfAllOperator(plan.calls, plan.results, schema if is_known else None)
            phases = whole.in_two_phases()
            assert phases is not None
            return (phases.local, phases.merging) if in_two(number) else (None, whole)

        made, found = [operator(0)], []
        receiver = Alone(batch_form(made[0][1]) if is_batch else made[0][1])
        for number, batch in enumerate(batches):
            if number == restart and number and not is_batch:
                found += receiver.out.batches
                made.append(operator(1))
                receiver = Alone(made[-1][1], receiver.snapshot())
            local = made[-1][0]
            for each in [batch] if local is None else run_alone(local, [batch]):
                receiver.push(each)
        if is_batch:
            receiver.operator.finish()
            while receiver.operator.has_rest:
                receiver.operator.emit_rest()
        return shown(
            [
                tuple(row.values())
                for batch in found + receiver.out.batches
                if isinstance(batch, ColumnBatch)
                for row in batch.data.to_pylist()
            ]
        )

    assert results(lambda number: True) == results(lambda number: False)
    assert (
        results(lambda number: number == 0)
        == results(lambda number: number == 1)
        == results(lambda number: False)
    )


def run_alone(operator: Any, batches: list[Any]) -> list[Any]:
    return run(pickle.loads(pickle.dumps(operator)), batches)


@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
def test_several_senders_aggregate_before_they_send(mode: RuntimeExecutionMode) -> None:
    env = environment(mode, 2)
    stream = env.from_arrow(pa.table({"n": range(10_000), "x": [0.5] * 10_000}), batch_rows=1000)
    exact = stream.aggregate(
        col("n").sum.alias("sum"),
        (col("n").max - col("n").min).alias("range"),
        col("n").count_distinct.alias("different"),
    )
    assert exact.to_arrow().to_pylist()[-1] == {
        "sum": sum(range(10_000)),
        "range": 9999,
        "different": 10_000,
    }
    rounded = stream.aggregate(col("x").avg.alias("mean"))
    assert rounded.to_arrow().to_pylist()[-1] == {"mean": 0.5}
    for made, local in ((exact, LocalAggregatesOperator), (rounded, SelectColumnsOperator)):
        made.print()
        nodes = stream_graph(env.program, None).nodes.values()
        assert local in [type(node.operator) for node in nodes if node.is_local_phase]


def operator_of(stream: DataStream) -> Any:
    made = stream.recorded.transformation
    assert isinstance(made, OneInputTransformation)
    return made.operator


def test_settings_and_side_outputs_of_computed_aggregates_are_those_of_the_aggregating_operator() -> (
    None
):
    stream, spread = sales(), (col("amount").max - col("amount").min).alias("range")
    for made in (stream.aggregate(spread), stream.key_by("shop").aggregate(spread)):
        assert isinstance(operator_of(made.uid("spread")), KeyedAggregatesOperator)
    late = OutputTag("late")
    timed = stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("amount")
    )
    windows = (
        timed.key_by("shop")
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .side_output_late_data(late)
    )
    assert isinstance(operator_of(windows.aggregate(spread)), SliceOperator)
    with pytest.raises(ProgramError, match="two columns would be called 'window_end'"):
        timed.key_by("shop").window(TumblingEventTimeWindows.of(Time.seconds(1))).aggregate(
            spread.alias("window_end")
        )


def test_aggregates_of_no_records_are_one_row_in_batch_as_in_sql() -> None:
    none = (
        environment(RuntimeExecutionMode.BATCH, 2)
        .from_arrow(pa.table(SALES))
        .filter(col("amount") > 100)
    )
    found = none.aggregate(
        lit(1).count.alias("n"),
        col("amount").sum.alias("sum"),
        col("shop").max.alias("max"),
        col("amount").median.alias("median"),
        col("amount").var_pop.alias("var"),
        col("shop").last_value.alias("last"),
        col("shop").count_distinct.alias("shops"),
    )
    assert found.to_arrow().to_pylist() == [
        {"n": 0, "sum": None, "max": None, "median": None, "var": None, "last": None, "shops": 0}
    ]


def test_arithmetic_on_aggregates_of_keys() -> None:
    by_shop = environment(RuntimeExecutionMode.BATCH).from_arrow(pa.table(SALES)).key_by("shop")
    found = (
        by_shop.aggregate(
            (col("amount").max - col("amount").min).alias("range"),
            col("amount").count.alias("n"),
            (col("amount").sum * 100 // col("amount").count).alias("cents"),
        )
        .to_arrow()
        .to_pylist()
    )
    assert found == [
        {"shop": "north", "range": 1, "n": 2, "cents": 350},
        {"shop": "south", "range": 0, "n": 1, "cents": 500},
    ]


def test_polars_frames_come_and_go() -> None:
    frame = pl.DataFrame({"a": [1, 2, 3], "b": ["x", None, "z"]})
    stream = environment().from_polars(frame)
    assert stream.filter(col("a") > 1).to_polars().equals(frame.filter(pl.col("a") > 1))
    assert pa.table(stream).num_rows == 3


@pytest.mark.parametrize(
    "column",
    [
        pl.Series(["x", None, "y", "x"], dtype=pl.Categorical),
        pl.Series(["x", None, "y", "x"], dtype=pl.Enum(["y", "x"])),
        pl.Series([["x"], None, [], ["x", None]]),
        pl.Series([{"a": "x"}, None, {"a": None}, {"a": "x"}]),
    ],
    ids=["categories", "enum", "lists", "structs"],
)
def test_text_of_polars_in_other_types_is_text_like_any_other(
    tmp_path: Path, column: pl.Series
) -> None:
    values = column.to_list()
    stream = environment().from_polars(pl.DataFrame({"v": column, "i": [0, 1, 2, 3]}))
    assert stream.filter(col("i") >= 2).to_arrow().column("v").to_pylist() == values[2:]
    assert [
        None if row.v is None else row.v.as_dict() if isinstance(row.v, Row) else row.v
        for row in stream.take(4)
    ] == values
    stream.write_parquet(tmp_path)
    stream.get_execution_environment().execute()
    assert environment().from_parquet(str(tmp_path)).to_arrow().column("v").to_pylist() == values
    if not column.dtype.is_nested():
        upper = (
            stream.filter(col("v") == "x").select(col("v").upper_case.alias("v"), "i").to_arrow()
        )
        assert upper.to_pylist() == [{"v": "X", "i": 0}, {"v": "X", "i": 3}]


def test_files_are_written_and_read_by_guessed_names(tmp_path: Path) -> None:
    env = environment()
    stream = env.from_arrow(pa.table(SALES))
    stream.write_parquet(tmp_path / "parquet", compression="snappy")
    stream.write_csv(tmp_path / "csv", null_value="NA", delimiter=";")
    stream.write_json(tmp_path / "json")
    stream.write_avro(tmp_path / "avro")
    stream.write_parquet(tmp_path / "shops", partition_by=["shop"])
    stream.write_json(tmp_path / "small", compression="gzip")
    env.execute()
    for read in (
        env.read_parquet(str(tmp_path / "parquet")),
        env.read_csv(str(tmp_path / "csv"), delimiter=";", null_values=["NA"]),
        env.read_json(str(tmp_path / "json")),
        env.read_json(str(tmp_path / "small")),
        env.read_avro(str(tmp_path / "avro")),
    ):
        assert read.to_arrow().to_pydict() == SALES
    assert {path.name for path in (tmp_path / "shops").iterdir()} == {
        f"shop={shop}" for shop in pa.table(SALES)["shop"].to_pylist()
    }
    assert env.read_text(str(tmp_path / "json")).take(1) == [
        '{"shop": "north", "amount": 3, "day": 1}'
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda s: s.with_columns(), "takes expressions with names"),
        (lambda s: s.with_columns(col("amount") + 1), "has no name"),
        (lambda s: s.with_column("x", col("amuont")), "did you mean 'amount'"),
        (lambda s: s.with_column("x", col("amount").sum), "belong into aggregate"),
        (lambda s: s.drop("dya"), "did you mean 'day'"),
        (lambda s: s.drop("day", "shop", "amount"), "leave no column"),
        (lambda s: s.drop(), "names of columns"),
        (lambda s: s.drop(3), "this is 3"),
        (lambda s: s.rename({"day": "shop"}), "two columns would be called 'shop'"),
        (lambda s: s.rename(), "old and new"),
        (lambda s: s.rename({"dya": "d"}), "did you mean 'day'"),
        (lambda s: s.limit(-1), "from 0 on"),
        (lambda s: s.distinct("dya"), "did you mean 'day'"),
        (lambda s: unknown(s).distinct(), "needs to know them"),
        (lambda s: s.aggregate(), "takes aggregates"),
        (lambda s: s.aggregate(col("amount").alias("x")), "takes aggregates"),
        (lambda s: s.key_by("shop").aggregate(lit(1).alias("x")), "takes aggregates"),
        (lambda s: s.key_by("shop").aggregate(concat(col("shop"), "x")), "has no name"),
        (lambda s: s.aggregate((col("amount").sum + col("day")).alias("x")), "is no key"),
        (lambda s: s.aggregate(col("amount").sum + 1), "has no name"),
        (lambda s: s.union(s.drop("day"), by_name=True), "shop, amount, day and shop, amount"),
        (lambda s: s.union(s, fill_missing=True), "by_name=True"),
        (lambda s: s.union(unknown(s), by_name=True), "needs to know the columns"),
        (lambda s: s.union(s.with_column("day", lit("x")), by_name=True), "same types"),
        (lambda s: s.get_execution_environment().from_polars(pl.LazyFrame()), r"collect\(\)"),
        (
            lambda s: s.get_execution_environment().from_collection(pl.DataFrame({"a": [1]})),
            r"call from_polars\(\)",
        ),
        (
            lambda s: s.get_execution_environment().from_arrow(
                pa.table([[1], [2]], names=["a", "a"])
            ),
            "two columns are called 'a'",
        ),
        (lambda s: s.union(s.select("amount")), "by_name=True"),
        (lambda s: s.get_execution_environment().from_polars([1]), "polars.DataFrame"),
    ],
)
def test_what_cannot_be_meant_is_refused_while_the_program_is_built(
    make: Callable[[Any], Any], message: str
) -> None:
    with pytest.raises(ProgramError, match=message):
        make(sales())


@pytest.mark.parametrize(
    "count",
    [
        lambda updates: updates.limit(3),
        lambda updates: updates.distinct("n"),
        lambda updates: updates.aggregate(col("n").sum),
    ],
)
def test_updates_are_not_counted_as_records(count: Callable[[DataStream], DataStream]) -> None:
    updates = sales().key_by("shop").aggregate(col("amount").sum.alias("n"))
    with pytest.raises(ProgramError, match="a new row for a key"):
        count(updates).to_arrow()


@pytest.mark.parametrize("parallelism", [1, 2])
@pytest.mark.parametrize("limit", [0, 3])
@pytest.mark.parametrize("is_columnar", [True, False])
def test_a_source_without_end_ends_when_a_limit_behind_it_has_enough(
    limit: int, is_columnar: bool, parallelism: int
) -> None:
    """Each of its subtasks, when it has sent as many."""
    env = environment(parallelism=parallelism)
    if is_columnar:
        endless = env.generate(lambda index: {"n": index}, columns=True).with_column(
            "m", col("n") * 2
        )
    else:
        endless = env.generate(lambda index: index).map(lambda n: n + 1)
    assert len(list(endless.limit(limit).execute_and_collect())) == limit


def test_a_source_goes_on_for_others_when_a_limit_has_enough(tmp_path: Path) -> None:
    env = environment()
    numbers = env.from_sequence(1, 20_000)
    numbers.map(lambda n: (n,), Types.ROW_NAMED(["n"], [Types.LONG()])).write_csv(tmp_path / "all")
    numbers.limit(3).map(lambda n: (n,), Types.ROW_NAMED(["n"], [Types.LONG()])).write_csv(
        tmp_path / "few"
    )
    env.execute()
    found = {
        name: env.read_csv(str(tmp_path / name)).to_arrow().num_rows for name in ("all", "few")
    }
    assert found == {"all": 20_000, "few": 3}


def test_a_limited_job_with_checkpoints_ends() -> None:
    env = environment()
    env.enable_checkpointing(10)
    assert (
        len(list(env.generate(lambda index: index, rate=2000).limit(100).execute_and_collect()))
        == 100
    )


@pytest.mark.parametrize("output", ["columns", "rows"])
def test_map_batches_refuses_none_with_the_line_of_the_function(output: str) -> None:
    stream = environment().from_arrow(pa.table({"n": [1, 2]}))
    forgets = stream.map_batches(lambda batch: None, output=output)  # THE LINE
    with pytest.raises(JobExecutionError, match=r"the function returned None: return a") as failure:
        forgets.take(1)
    assert "THE LINE" in str(failure.value)


def test_map_batches_may_return_a_frame_of_polars() -> None:
    stream = environment().from_arrow(pa.table({"a": [1, 2, 3]}))
    shown = stream.map_batches(
        lambda batch: pl.DataFrame(batch).filter(pl.col("a") > 1).with_columns(b=pl.lit("x"))
    )
    assert shown.filter(col("b") == "x").to_arrow().to_pylist() == [
        {"a": 2, "b": "x"},
        {"a": 3, "b": "x"},
    ]


@pytest.mark.parametrize(
    ("expression", "advice"),
    [
        (lambda: 1 < col("a") < 3, "between"),
        (lambda: col("a") in [1], "in_"),
        (lambda: max(col("a"), col("b")), "greatest"),
    ],
)
def test_python_that_asks_an_expression_for_its_truth_is_told_the_method(
    expression: Callable[[], Any], advice: str
) -> None:
    with pytest.raises(ProgramError, match=advice):
        expression()


def test_a_date_that_is_compared_with_a_timestamp_is_told_the_cast() -> None:
    stream = environment().from_arrow(pa.table({"at": [datetime.datetime(2024, 5, 1, 12)]}))
    with pytest.raises(
        ProgramError,
        match=r"cast the date to DataTypes\.TIMESTAMP\(\), or take the timestamp's \.to_date",
    ):
        stream.filter(col("at") > datetime.date(2024, 5, 1))
    assert stream.filter(col("at").to_date == datetime.date(2024, 5, 1)).to_arrow().num_rows == 1
