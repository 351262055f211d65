"""Streams become tables with a schema, and tables become streams with their event time."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from flinkpy.common.typeinfo import Types
from flinkpy.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.datastream.functions import ProcessFunction
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table import DataTypes, Schema, StreamTableEnvironment, Table
from flinkpy.table.expressions import col

UTC = datetime.timezone.utc
TYPE = Types.ROW_NAMED(["k", "n", "at"], [Types.STRING(), Types.INT(), Types.LONG()])
ROWS = [("a", 1, 1_000), ("b", 2, 4_000), ("a", 3, 12_000)]


class At(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[2])


class Times(ProcessFunction):
    def process_element(self, value: Any, ctx: ProcessFunction.Context) -> Any:
        yield value[0], ctx.timestamp()


def environments() -> tuple[StreamExecutionEnvironment, StreamTableEnvironment]:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    return env, StreamTableEnvironment.create(env)


def timed(env: StreamExecutionEnvironment) -> DataStream:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(At())
    return env.from_collection(ROWS, TYPE).assign_timestamps_and_watermarks(strategy)


def with_rowtime() -> Schema:
    return (
        Schema.new_builder()
        .column_by_metadata("ts", "TIMESTAMP_LTZ(3)", "rowtime")
        .watermark("ts", "SOURCE_WATERMARK()")
        .build()
    )


def listed(table: Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in table.to_arrow().to_pylist()]


def moment(seconds: int) -> datetime.datetime:
    return datetime.datetime(1970, 1, 1, tzinfo=UTC) + datetime.timedelta(seconds=seconds)


def test_a_schema_names_casts_and_computes_columns() -> None:
    env, tables = environments()
    schema = (
        Schema.new_builder()
        .column("n", DataTypes.BIGINT())
        .column("k", "STRING")
        .column_by_expression("twice", "n * 2")
        .column_by_expression("loud", col("k").upper_case)
        .build()
    )
    table = tables.from_data_stream(env.from_collection(ROWS, TYPE), schema)
    assert [str(field) for field in table.get_schema()] == [
        "`n` BIGINT",
        "`k` STRING",
        "`twice` BIGINT",
        "`loud` STRING",
    ]
    assert listed(table) == [(1, "a", 2, "A"), (2, "b", 4, "B"), (3, "a", 6, "A")]


def test_event_times_and_watermarks_of_a_stream_come_along() -> None:
    env, tables = environments()
    tables.create_temporary_view("s", timed(env), with_rowtime())
    assert listed(tables.sql_query("SELECT k, ts FROM s"))[1] == ("b", moment(4))
    windows = tables.sql_query(
        "SELECT window_end AS e, SUM(n) AS n FROM TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), "
        "INTERVAL '10' SECOND)) GROUP BY window_start, window_end"
    )
    assert [row[1] for row in listed(windows)] == [3, 3]


def test_a_watermark_may_be_an_expression_over_a_column() -> None:
    env, tables = environments()
    schema = (
        Schema.new_builder()
        .column_by_expression("ts", "TO_TIMESTAMP_LTZ(`at`, 3)")
        .watermark("ts", "ts - INTERVAL '1' SECOND")
        .build()
    )
    table = tables.from_data_stream(env.from_collection(ROWS, TYPE), schema)
    stream = tables.to_data_stream(table.select(col("k"), col("ts")))
    with stream.process(Times()).execute_and_collect() as found:
        assert list(found) == [("a", 1_000), ("b", 4_000), ("a", 12_000)]


def test_expressions_choose_and_name_columns() -> None:
    env, tables = environments()
    stream = env.from_collection(ROWS, TYPE)
    table = tables.from_data_stream(stream, col("n").alias("number"), col("k"))
    assert table.get_schema().names == ("number", "k")
    assert listed(table)[0] == (1, "a")


def test_a_stream_of_a_table_has_its_time_and_windows_over_it() -> None:
    env, tables = environments()
    table = tables.from_data_stream(timed(env), with_rowtime())
    stream = tables.to_data_stream(table.where(col("n") < 3))
    with stream.process(Times()).execute_and_collect() as found:
        assert list(found) == [("a", 1_000), ("b", 4_000)]


MISTAKES: dict[str, tuple[Any, str]] = {
    "an unknown column": (
        Schema.new_builder().column("m", "INT").build(),
        "the stream has no column 'm'",
    ),
    "a type that does not fit": (
        Schema.new_builder().column("n", "ARRAY<INT>").build(),
        "the column 'n' is INT.*cannot become ARRAY<INT>",
    ),
    "no schema": ("n", "takes a Schema, or expressions"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_does_not_fit_is_refused_with_the_line(name: str) -> None:
    env, tables = environments()
    schema, said = MISTAKES[name]
    with pytest.raises(ProgramError, match=f"test_streams_and_tables.py:.*{said}"):
        tables.from_data_stream(env.from_collection(ROWS, TYPE), schema)


def test_event_time_that_is_not_there_is_named() -> None:
    env, tables = environments()
    table = tables.from_data_stream(env.from_collection(ROWS, TYPE), with_rowtime())
    with pytest.raises((ProgramError, JobExecutionError), match="no event times"):
        table.to_arrow()
    tables.execute_sql(
        "CREATE TABLE g (ts TIMESTAMP(3), WATERMARK FOR ts AS SOURCE_WATERMARK()) "
        "WITH ('connector' = 'datagen')"
    )
    with pytest.raises(ValidationError, match="has none: write an expression"):
        tables.from_path("g")


def test_a_stream_has_one_event_time() -> None:
    env, tables = environments()
    tables.create_temporary_view("s", timed(env), with_rowtime())
    with pytest.raises(ProgramError, match="a and b are time attributes"):
        tables.to_data_stream(tables.sql_query("SELECT ts AS a, ts AS b FROM s"))
