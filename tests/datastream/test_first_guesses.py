"""What new users write first: it works, or the error says what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.common import Time, Types, WatermarkStrategy
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from flinkpy.datastream.window import TumblingEventTimeWindows
from flinkpy.table.expressions import col, concat, lit


@pytest.mark.parametrize("mode", list(RuntimeExecutionMode)[:2])
@pytest.mark.parametrize("parallelism", [1, 2])
def test_results_may_be_made_of_keys_alone(mode: RuntimeExecutionMode, parallelism: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(mode)
    env.set_parallelism(parallelism)
    by_key = (
        env.from_arrow(pa.table({"k": ["a", "b", "a"], "t": [0, 0, 0]}))
        .assign_timestamps_and_watermarks(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("t")
        )
        .key_by("k")
    )
    named = concat(col("k"), "!").alias("name")
    expected = {("a", "a!"), ("b", "b!")}
    assert {tuple(row) for row in by_key.aggregate(named).execute_and_collect()} == expected
    assert {
        tuple(row) for row in by_key.aggregate(named, lit(1).count.alias("n")).execute_and_collect()
    } >= {("a", "a!", 2), ("b", "b!", 1)}
    in_windows = by_key.window(TumblingEventTimeWindows.of(Time.seconds(1))).aggregate(named)
    assert sorted(tuple(row)[:2] for row in in_windows.execute_and_collect()) == sorted(expected)


class OnlyAStream:
    """Offers its rows as an Arrow stream, and nothing else."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.table({"n": [1, 2]}).__arrow_c_stream__(requested_schema)


def test_whatever_offers_an_arrow_stream_is_read() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    table = pa.table({"n": [1, 2]})
    for data in (OnlyAStream(), table.to_reader(), env.from_arrow(table).filter(col("n") > 0)):
        assert env.from_arrow(data).to_arrow() == table
    with pytest.raises(ProgramError, match="cannot be read as an Arrow stream"):
        env.from_arrow(pa.chunked_array([[1]]))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("where", r"filter\(...\) keeps.*where\(...\) belongs behind join"),
        ("sort", "sort what you collect"),
        ("group_by", "write key_by"),
        ("head", r"take\(n\)"),
        ("nonsense", "'DataStream' object has no attribute 'nonsense'"),
    ],
)
def test_a_method_of_other_systems_says_what_to_write(name: str, message: str) -> None:
    with pytest.raises(AttributeError, match=message):
        getattr(StreamExecutionEnvironment.get_execution_environment().from_collection([1]), name)


@pytest.mark.parametrize("call", ["to_arrow", "to_pandas", "to_polars"])
def test_values_of_no_declared_type_make_no_table_and_the_error_says_what_gives_them(
    call: str,
) -> None:
    stream = StreamExecutionEnvironment.get_execution_environment().from_collection([(1, "a")])
    with pytest.raises(
        ProgramError,
        match=rf"{call}\(\) works on columns.*execute_and_collect\(\) gives the values as they are",
    ):
        getattr(stream, call)()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda env: env.generate(5),
            r"takes a function of the index, this is 5; from_sequence\(0, 4\)",
        ),
        (lambda env: env.generate(range(3)), "takes a function of the index"),
        (lambda env: env.generate(lambda: 1), "with 1 argument"),
        (lambda env: env.generate(str, "5"), "takes a number of records as count, this is '5'"),
        (
            lambda env: env.generate(str, 5, "fast"),
            "takes a number of records a second as rate, this is 'fast'",
        ),
        (lambda env: env.generate(str, -5), "count -5 is negative"),
        (lambda env: env.from_collection([1]).distinct(ttl=5), "takes a StateTtlConfig, such as"),
    ],
)
def test_a_wrong_argument_is_refused_with_what_to_write(
    make: Callable[[Any], Any], message: str
) -> None:
    with pytest.raises(ProgramError, match=message):
        make(StreamExecutionEnvironment.get_execution_environment())


@pytest.mark.parametrize("mode", list(RuntimeExecutionMode)[:2])
@pytest.mark.parametrize("is_columnar", [True, False])
def test_the_first_of_distinct_records_is_the_first_to_arrive(
    mode: RuntimeExecutionMode, is_columnar: bool
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(mode)
    env.set_parallelism(1)
    records = [("a", 3), ("b", 2), ("a", 1), ("b", 9)]
    columns = pa.table({"k": [key for key, _ in records], "t": [time for _, time in records]})
    type_info = Types.ROW_NAMED(["k", "t"], [Types.STRING(), Types.LONG()])
    stream = env.from_arrow(columns) if is_columnar else env.from_collection(records, type_info)
    at = "t" if is_columnar else (lambda record: record.t)
    timed = stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(at)
    )
    assert sorted(tuple(row) for row in timed.distinct("k").execute_and_collect()) == [
        ("a", 3),
        ("b", 2),
    ]
