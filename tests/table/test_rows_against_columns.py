"""The built-in aggregates give the same over rows and over columns: running and in windows, in
batches of any size, at any parallelism."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.aggregates.of_records import OF_RECORDS
from flinkpy.common import Duration, Time, TimestampAssigner, WatermarkStrategy
from flinkpy.connectors.memory.arrow_tables import ArrowSource
from flinkpy.datastream import AggregateFunction
from flinkpy.datastream.window import TumblingEventTimeWindows
from flinkpy.table.expressions import col
from flinkpy.testing import embedded_environment
from tests.values import shown

# sums of a few stay within 64 bits
WHOLE = (
    st.none() | st.integers(-3, 3) | st.sampled_from([2**53 + 1, 2**53, -(2**53) - 1, 2**58 + 1])
)
FLOATS = (
    st.none()
    | st.sampled_from(
        [math.nan, -math.nan, 0.0, -0.0, math.inf, -math.inf, 1.0, 2.0**53, -2.5, 0.1]
    )
    | st.floats()
)


def records(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """(key, value, time, number): every record is another."""
    return st.lists(
        st.tuples(st.sampled_from("ab"), values, st.integers(0, 30)), min_size=1, max_size=9
    ).map(lambda drawn: [(*record, number) for number, record in enumerate(drawn)])


RECORDS = st.tuples(st.just(pa.int64()), records(WHOLE)) | st.tuples(
    st.just(pa.float64()), records(FLOATS)
)
MIXED: Any = (
    pa.float64(),
    [
        ("a", value, 1, number)
        for number, value in enumerate([None, 0.0, -0.0, math.nan, 1.0, -math.inf])
    ],
)
NO_VALUES: Any = (pa.float64(), [("a", None, 1, 0), ("a", math.nan, 1, 1), ("b", None, 2, 2)])


class OfRecord(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return int(value[2])


# no window ends before its records are there
LAST = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(100))
WINDOWS = TumblingEventTimeWindows.of(Time.milliseconds(10))


def by_key(results: Any) -> dict[Any, list[Any]]:
    """What came of each key in its order; windows of a key come in the order of their times."""
    found: dict[Any, list[Any]] = {}
    for result in results:
        found.setdefault(result[0], []).append(shown(tuple(result)))
    return found


def of_rows(kind: Any, drawn: list[Any], parallelism: int, windowed: bool) -> Any:
    env = embedded_environment(parallelism=parallelism)
    stream = (
        env.from_collection(drawn)
        .assign_timestamps_and_watermarks(LAST.with_timestamp_assigner(OfRecord()))
        .set_parallelism(1)
    )
    keyed: Any = stream.key_by(lambda record: record[0])
    return by_key(kind(keyed.window(WINDOWS) if windowed else keyed).execute_and_collect())


def of_columns(
    kind: Any, column: Any, drawn: list[Any], parallelism: int, windowed: bool, size: int
) -> Any:
    names, types = ("k", "v", "at", "number"), (pa.string(), column, pa.int64(), pa.int64())
    table = pa.table([pa.array(values, each) for values, each in zip(zip(*drawn), types)], names)
    env = embedded_environment(parallelism=parallelism)
    stream = env.from_source(
        ArrowSource(table, size), LAST.with_timestamp_assigner("at"), "Arrow"
    ).set_parallelism(1)
    keyed: Any = stream.key_by("k")
    return by_key(
        tuple(row)
        for row in kind(keyed.window(WINDOWS) if windowed else keyed).execute_and_collect()
    )


def called(name: str, position: int | str) -> Callable[[Any], Any]:
    return lambda stream: getattr(stream, name)(position)


@pytest.mark.parametrize("kind", OF_RECORDS)
@pytest.mark.parametrize("windowed", [False, True], ids=["running", "windows"])
@given(RECORDS, st.sampled_from([1, 3, 9]), st.sampled_from([1, 2]))
@example(MIXED, 1, 1)
@example(MIXED, 9, 2)
@example(NO_VALUES, 3, 1)
@settings(max_examples=15)
def test_an_aggregate_of_a_column_is_that_of_the_field(
    kind: str, windowed: bool, drawn: Any, size: int, parallelism: int
) -> None:
    column, taken = drawn
    rows = of_rows(called(kind, 1), taken, parallelism, windowed)
    columns = of_columns(called(kind, "v"), column, taken, parallelism, windowed, size)
    assert columns == rows


class MeanAndCount(AggregateFunction):
    """As ``docs/values.md`` says it."""

    def create_accumulator(self) -> Any:
        return None, []

    def add(self, value: Any, accumulator: Any) -> Any:
        return value[0], [*accumulator[1], *([] if value[1] is None else [value[1]])]

    def get_result(self, accumulator: Any) -> Any:
        key, values = accumulator
        return (
            key,
            functools.reduce(operator.add, values) / len(values) if values else None,
            len(values),
        )

    def merge(self, one: Any, other: Any) -> Any:
        return one[0], one[1] + other[1]


@given(RECORDS, st.sampled_from([1, 3, 9]), st.sampled_from([1, 2]))
@example(MIXED, 3, 2)
@example(NO_VALUES, 3, 1)
@settings(max_examples=20)
def test_means_and_counts_of_windows_over_columns_are_those_of_a_plain_function_over_rows(
    drawn: Any, size: int, parallelism: int
) -> None:
    column, taken = drawn
    calls = col("v").avg.alias("mean"), col("v").count.alias("n")
    columns = of_columns(
        lambda windows: windows.aggregate(*calls).select(col("k"), col("mean"), col("n")),
        column,
        taken,
        parallelism,
        True,
        size,
    )
    assert columns == of_rows(
        lambda windows: windows.aggregate(MeanAndCount()), taken, parallelism, True
    )
