"""What went wrong over columns: keys, aggregates, joins, and expressions, each as a program or the
heart of one."""

from __future__ import annotations

import datetime
import random
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.common import Row, Time, Types, WatermarkStrategy
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import (
    KeyedProcessFunction,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.state import MapStateDescriptor
from flinkpy.datastream.window import TumblingEventTimeWindows, TumblingProcessingTimeWindows
from flinkpy.table.expressions import col, lit


def environment() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    return env


@pytest.mark.finding("hunts 1")
def test_keys_of_five_and_more_columns_are_told_apart() -> None:
    names, keys = list("abcdef"), 7_001
    order = random.Random(1)
    columns = [[float(key) for key in order.sample(range(keys), keys)] for _ in names]
    table = pa.table({**dict(zip(names, columns)), "v": [1] * keys})
    env = environment()
    result = (
        env.from_arrow(pa.concat_tables([table, table]))
        .key_by(*names)
        .aggregate(lit(1).count.alias("n"))
        .to_arrow()
    )
    last = {tuple(row[name] for name in names): row["n"] for row in result.to_pylist()}
    assert set(last.values()) == {2}
    assert len(last) == keys


@pytest.mark.finding("hunts 5")
def test_times_of_nanoseconds_are_keys_like_others() -> None:
    at = pa.array([1, 2, 1, 1_000, 2], pa.int64()).cast(pa.time64("ns"))
    table = pa.table({"at": at, "v": [1, 2, 3, 4, 5]})
    running = environment().from_arrow(table).key_by("at").sum("v").select("v").take(5)
    assert [row.v for row in running] == [1, 2, 4, 4, 7]
    assert environment().from_arrow(table).key_by("at").aggregate(col("v").sum).to_arrow().column(
        "v_sum"
    ).to_pylist() == [4, 7, 4]


@pytest.mark.finding("hunts 11")
@pytest.mark.parametrize(
    "column",
    [
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
        pa.array([[1, 2]], pa.list_(pa.int64(), 2)),
        pa.array([[1, 2]]),
        pa.array([{"a": [1]}]),
    ],
    ids=lambda column: str(column.type),
)
def test_what_cannot_be_a_key_is_refused_where_the_program_is_built(column: Any) -> None:
    with pytest.raises(
        ProgramError, match=r"the column 'k' is .*, which cannot be a key: make the key of"
    ):
        environment().from_arrow(pa.table({"k": column, "v": [1]})).key_by("k")


@pytest.mark.finding("hunts 11")
@pytest.mark.parametrize(
    "column",
    [
        pa.ExtensionArray.from_storage(
            pa.uuid(), pa.array([b"a" * 16, b"b" * 16, b"a" * 16], pa.binary(16))
        ),
        pa.array(["1.5", "2.5", "1.5"]).cast(pa.decimal128(3, 1)).cast(pa.decimal32(3, 1)),
        pa.RunEndEncodedArray.from_arrays([1, 2, 3], ["a", "b", "a"]),
    ],
    ids=lambda column: str(column.type),
)
def test_less_usual_columns_are_keys(column: Any) -> None:
    table = pa.table({"k": column, "v": [1, 2, 4]})
    sums = (
        environment()
        .from_arrow(table)
        .filter(col("v") < 9)
        .key_by("k")
        .aggregate(col("v").sum.alias("v"))
    )
    assert sums.to_arrow().column("v").to_pylist() == [5, 2]
    assert environment().from_arrow(table).filter(col("v") > 1).to_arrow().column(
        "v"
    ).to_pylist() == [2, 4]


# -- updates ---------------------------------------------------------------------------------------


def running_maxima(env: StreamExecutionEnvironment) -> Any:
    """Of shops a and b: 15 and 12, in time 12, 10, 15."""
    bids = pa.table({"a": ["x", "y", "x"], "b": [1, 1, 1], "v": [10, 12, 15]})
    return env.from_arrow(bids).key_by("a", "b").aggregate(col("v").max.alias("m"))


@pytest.mark.finding("first-use 9")
@pytest.mark.parametrize(
    "more",
    [
        lambda stream: stream.key_by("b").aggregate(col("m").avg.alias("mean")),
        lambda stream: (
            stream.select("b", (col("m") + 1).alias("m")).filter(col("m") > 0).key_by("b").sum("m")
        ),
        lambda stream: stream.map(lambda row: (row.b, row.m)).key_by(lambda pair: pair[0]).sum(1),
        lambda stream: (
            stream.map(lambda row: (row.b, row.m))
            .union(stream.get_execution_environment().from_collection([(1, 2)]))
            .key_by(lambda pair: pair[0])
            .max_by(1)
        ),
        lambda stream: (
            stream.key_by("b")
            .window(TumblingProcessingTimeWindows.of(Time.seconds(1)))
            .aggregate(col("m").sum.alias("s"))
        ),
        lambda stream: (
            stream.key_by(lambda row: row.b).count_window(2).reduce(lambda one, other: other)
        ),
    ],
    ids=["aggregate", "sum", "rows", "union", "window", "count window"],
)
def test_aggregates_of_running_aggregates_are_refused_in_a_stream(more: Any) -> None:
    env = environment()
    stream = running_maxima(env)
    with pytest.raises(
        ProgramError,
        match=(
            r"test_columns.py:\d+: .* cannot take what 'Aggregate' \(.*test_columns.py:\d+\) "
            r"gives.*BATCH"
        ),
    ):
        more(stream)
    assert stream.to_arrow().num_rows == 2  # nothing of what was refused is left behind


@pytest.mark.finding("first-use 9")
def test_where_the_mode_is_decided_at_the_end_updates_are_found_at_the_end() -> None:
    env = environment()
    env.set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    sums = running_maxima(env).key_by("b").sum("m")
    assert sums.to_arrow().column("m").to_pylist() == [27]  # the source ends: BATCH
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    with pytest.raises(ProgramError, match=r"'Sum' .* cannot take what 'Aggregate'"):
        sums.to_arrow()


@pytest.mark.finding("first-use 9")
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_in_batch_an_aggregate_of_aggregates_is_right(rows: int) -> None:
    env = environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    mean = running_maxima(env).key_by("b").aggregate(col("m").avg.alias("mean"))
    assert mean.to_arrow().to_pylist() == [{"b": 1, "mean": 13.5}]


class Latest(KeyedProcessFunction):
    """The sum of the latest maxima of all shops: takes back what a shop had before."""

    def open(self, runtime_context: Any) -> None:
        self.of_shop = runtime_context.get_map_state(
            MapStateDescriptor("of shop", Types.STRING(), Types.LONG())
        )

    def process_element(self, value: Any, ctx: Any) -> Any:
        self.of_shop.put(value.a, value.m)
        yield value.b, sum(self.of_shop.values())


@pytest.mark.finding("first-use 9")
def test_a_function_that_keeps_the_latest_row_of_each_key_may_take_updates_and_be_aggregated() -> (
    None
):
    latest = running_maxima(environment()).key_by("b").process(Latest())
    assert latest.key_by(lambda pair: pair[0]).max(1).take(10)[-1] == (1, 27)


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.finding("first-use 5")
@pytest.mark.parametrize("parallelism", [1, 2])
def test_not_a_number_and_none_are_one_key_each_and_none_is_left_out_of_aggregates(
    parallelism: int,
) -> None:
    nan = float("nan")
    table = pa.table(
        {"k": [nan, None, 0.0, -nan, None, -0.0], "v": [1.0, nan, None, nan, 2.0, None]}
    )
    env = environment()
    env.set_parallelism(parallelism)
    calls = [col("v").min.alias("low"), col("v").max.alias("high"), col("v").count.alias("n")]
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)

    # which zero is the first record of its key is chance, with two readers
    def shown(found: list[Any]) -> list[str]:
        return sorted(repr(tuple(row.values())).replace("-0.0", "0.0") for row in found)

    rows = env.from_arrow(table).key_by("k").aggregate(*calls).to_arrow().to_pylist()
    assert shown(rows) == ["(0.0, None, None, 0)", "(None, 2.0, nan, 2)", "(nan, 1.0, nan, 2)"]
    highest = env.from_arrow(table).key_by("k").max("v").to_arrow().to_pylist()
    assert shown(highest) == ["(0.0, None)", "(None, nan)", "(nan, nan)"]


@pytest.mark.finding("first-use 5")
def test_in_joins_of_columns_none_is_equal_to_nothing() -> None:
    env, nan = environment(), float("nan")
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(col("at"))
    left, right = (
        env.from_arrow(
            pa.table({"k": pa.array(keys), name: values, "at": [0] * len(keys)})
        ).assign_timestamps_and_watermarks(strategy)
        for name, keys, values in (
            ("a", [None, nan, 1.0, -0.0], [1, 2, 3, 4]),
            ("b", [None, -nan, 0.0], [10, 20, 30]),
        )
    )
    joined = (
        left.join(right)
        .where("k")
        .equal_to("k")
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .select("a", "b")
        .to_arrow()
    )
    assert joined.to_pylist() == [{"a": 2, "b": 20}, {"a": 4, "b": 30}]


@pytest.mark.finding("hunts 8")
def test_sums_that_fit_are_not_refused() -> None:
    large = 2**62
    table = pa.table(
        {
            "k": [1, 2, 3, 1],
            "v": [large, large, large, large - 1],
            "at": [1_700_000_000_000_000] * 4,
        }
    )
    env = environment()
    assert env.from_arrow(table).key_by("k").aggregate(col("v").sum.alias("v")).to_arrow().column(
        "v"
    ).to_pylist() == [2 * large - 1, large, large]
    assert env.from_arrow(table).key_by("k").sum("v").select("v").take(4) == [
        Row(v=large),
        Row(v=large),
        Row(v=large),
        Row(v=2 * large - 1),
    ]
    moments = pa.table({"k": [1] * 10_000, "at": [1_700_000_000_000_000] * 10_000})
    assert (
        env.from_arrow(moments)
        .key_by("k")
        .aggregate(col("at").avg.alias("at"))
        .to_arrow()
        .column("at")
        .to_pylist()[-1]
        == 1.7e15
    )
    with pytest.raises(JobExecutionError, match="a sum leaves 64 bits"):
        env.from_arrow(moments).key_by("k").aggregate(col("at").sum.alias("at")).to_arrow()


@pytest.mark.finding("first-use 10")
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_casts_between_timestamps_and_whole_numbers_have_one_unit(unit: str) -> None:
    at = pa.array([datetime.datetime(2024, 1, 2, 3)], pa.timestamp(unit))
    stream = environment().from_arrow(pa.table({"at": at}))
    there = stream.select(
        col("at").cast(Types.LONG()).alias("ms"),
        col("at").cast(Types.LONG()).cast(Types.SQL_TIMESTAMP()).alias("at"),
    )
    assert there.to_arrow().to_pylist() == [
        {"ms": 1_704_164_400_000, "at": datetime.datetime(2024, 1, 2, 3)}
    ]
    with pytest.raises(
        ProgramError,
        match=(
            "a TIMESTAMP becomes a BIGINT, which counts milliseconds since 1970, and no other "
            "number"
        ),
    ):
        stream.select(col("at").cast(Types.INT()).alias("n"))
