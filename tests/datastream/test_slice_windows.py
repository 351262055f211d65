"""Built-in aggregates over windows through the public API: rows and columns agree, and each job
gets the operator that is made for it."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.common import Duration, Time, WatermarkStrategy
from flinkpy.common.side_outputs import OutputTag
from flinkpy.common.typeinfo import Types
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.datastream.functions import AggregateFunction, ProcessWindowFunction
from flinkpy.datastream.window import (
    CountTrigger,
    EventTimeSessionWindows,
    EventTimeTrigger,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
    Window,
    WindowAssigner,
)
from flinkpy.table.expressions import col
from flinkpy.windowing.general.window_operator import WindowOperator
from flinkpy.windowing.slices.column_slices import ColumnSlices
from flinkpy.windowing.slices.row_slices import RowSlices

BIDS = [
    (auction, price, at)
    for at, (auction, price) in enumerate(zip([3, 1, 2, 1, 3, 1, 2] * 40, range(500, 10, -1)))
]
SLIDING = SlidingEventTimeWindows.of(Time.milliseconds(100), Time.milliseconds(20))
TUMBLING = TumblingEventTimeWindows.of(Time.milliseconds(50))
DISORDER = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
EPOCH = datetime.datetime(1970, 1, 1)


def environment() -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    return env


def as_rows() -> DataStream:
    return (
        environment()
        .from_collection(BIDS)
        .assign_timestamps_and_watermarks(DISORDER.with_timestamp_assigner(lambda bid: bid[2]))
    )


def as_columns() -> DataStream:
    table = pa.table(dict(zip(("auction", "price", "at"), map(list, zip(*BIDS)))))
    return (
        environment()
        .from_arrow(table)
        .assign_timestamps_and_watermarks(DISORDER.with_timestamp_assigner(col("at")))
    )


def results(stream: DataStream) -> list[Any]:
    with stream.execute_and_collect() as collected:
        return sorted(tuple(each) if not isinstance(each, int) else (each,) for each in collected)


def operator_of(stream: DataStream) -> Any:
    transformation: Any = stream.recorded.transformation
    return transformation.operator


@pytest.mark.parametrize("windows", [SLIDING, TUMBLING])
@pytest.mark.parametrize("kind", ["sum", "min", "max"])
def test_a_field_over_windows_is_the_same_for_rows_and_columns(windows: Any, kind: str) -> None:
    rows = getattr(as_rows().key_by(itemgetter(0)).window(windows), kind)(1)
    columns = getattr(as_columns().key_by("auction").window(windows), kind)("price")
    assert isinstance(operator_of(rows).store, RowSlices)
    assert isinstance(operator_of(columns).store, ColumnSlices)
    assert valued(rows) == valued(columns)


def valued(stream: DataStream) -> list[Any]:
    """Keys and values. Which record came first is up to the subtasks in front."""
    return [each[:2] for each in results(stream)]


def test_all_records_share_their_windows_without_a_key() -> None:
    rows = as_rows().window_all(TUMBLING).max(1)
    columns = as_columns().window_all(TUMBLING).max("price")
    expected = [max(BIDS[at : at + 50], key=itemgetter(1)) for at in range(0, len(BIDS), 50)]
    assert (
        sorted(price for _, price in valued(rows))
        == sorted(price for _, price in valued(columns))
        == sorted(bid[1] for bid in expected)
    )
    with pytest.raises(ProgramError, match="parallelism"):
        columns.set_parallelism(2)


def test_aggregates_of_columns_say_of_which_key_and_window_they_are() -> None:
    windowed = as_columns().key_by("auction").window(TUMBLING)
    stream = windowed.aggregate(
        col("price").sum.alias("turnover"),
        col("price").avg,
        (col("price") * 2).max.alias("twice"),
        col("price").count,
        col("at").min.alias("first"),
    )
    expected = []
    for begin in range(0, len(BIDS), 50):
        for auction in (1, 2, 3):
            prices = [
                price for key, price, at in BIDS if key == auction and begin <= at < begin + 50
            ]
            first = next(at for key, _, at in BIDS if key == auction and at >= begin)
            moments = [EPOCH + datetime.timedelta(milliseconds=ms) for ms in (begin, begin + 50)]
            expected.append(
                (
                    auction,
                    sum(prices),
                    sum(prices) / len(prices),
                    2 * max(prices),
                    len(prices),
                    first,
                    *moments,
                )
            )
    assert results(stream) == sorted(expected)


def test_counts_are_numbers_for_rows_and_columns_with_their_window_for_columns() -> None:
    counts = results(as_rows().key_by(itemgetter(0)).window(SLIDING).count())
    columns = results(as_columns().key_by("auction").window(SLIDING).count())
    assert counts == sorted((count,) for _, count, _, _ in columns)
    assert {end - begin for _, _, begin, end in columns} == {datetime.timedelta(milliseconds=100)}


class Largest(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        (bid,) = elements
        yield key, context.window().start, bid[1]


def test_a_reduction_with_a_window_function_shares_slices_too() -> None:
    stream = (
        as_rows()
        .key_by(itemgetter(0))
        .window(SLIDING)
        .reduce(lambda a, b: a if a[1] >= b[1] else b, Largest())
    )
    assert isinstance(operator_of(stream).store, RowSlices)
    expected = []
    for begin in range(-80, len(BIDS), 20):
        for auction in (1, 2, 3):
            prices = [
                price for key, price, at in BIDS if key == auction and begin <= at < begin + 100
            ]
            expected += [(auction, begin, max(prices))] if prices else []
    assert results(stream) == sorted(expected)


def test_late_records_go_to_their_side_output_as_rows() -> None:
    late = OutputTag("late")
    columns = pa.table({"auction": [1, 1, 1], "at": [10, 500, 20]})
    env = environment()
    env.set_parallelism(1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(col("at"))
    stream = env.from_arrow(columns).assign_timestamps_and_watermarks(strategy)
    counted = stream.key_by("auction").window(TUMBLING).side_output_late_data(late).count()
    told: DataStream = counted.get_side_output(late).map(lambda row: row.at, Types.LONG())
    # watermarks come now and then
    assert results(told.union(counted.map(lambda row: row["count"]))) in (
        [(1,), (1,), (20,)],
        [(1,), (2,)],
    )


class Mean(AggregateFunction):
    def create_accumulator(self) -> Any:
        return 0, 0

    def add(self, value: Any, accumulator: Any) -> Any:
        return accumulator[0] + value[1], accumulator[1] + 1

    def get_result(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1]

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]


@pytest.mark.parametrize(
    "general",
    [
        lambda windowed: windowed.trigger(CountTrigger(3)).sum(1),
        lambda windowed: windowed.aggregate(Mean()),
    ],
    ids=["another trigger", "an aggregate function"],
)
def test_what_slices_cannot_do_is_left_to_the_general_operator(
    general: Callable[[Any], DataStream],
) -> None:
    assert isinstance(
        operator_of(general(as_rows().key_by(itemgetter(0)).window(TUMBLING))), WindowOperator
    )
    assert isinstance(
        operator_of(general(as_columns().key_by("auction").window(TUMBLING))), WindowOperator
    )


def test_the_default_trigger_named_is_the_default_trigger() -> None:
    assert isinstance(
        operator_of(
            as_rows()
            .key_by(itemgetter(0))
            .window(TUMBLING)
            .trigger(EventTimeTrigger.create())
            .sum(1)
        ).store,
        RowSlices,
    )


def test_columns_keyed_by_a_function_are_aggregated_as_rows() -> None:
    by_function = as_columns().key_by(lambda row: row.auction).window(TUMBLING)
    assert valued(by_function.sum("price")) == valued(
        as_rows().key_by(itemgetter(0)).window(TUMBLING).sum(1)
    )


def test_what_columns_cannot_do_is_refused_where_it_is_written() -> None:
    sessions: WindowAssigner[Any, Window] = EventTimeSessionWindows.with_gap(Time.seconds(1))  # type: ignore[assignment]
    with pytest.raises(ProgramError, match=r"test_slice_windows.py.*tumbling and sliding"):
        as_columns().key_by("auction").window(sessions).aggregate(col("price").sum)
    with pytest.raises(ProgramError, match=r"test_slice_windows.py.*no declared row type"):
        as_rows().key_by(itemgetter(0)).window(TUMBLING).aggregate(col("price").sum)
    with pytest.raises(ProgramError, match=r"test_slice_windows.py.*columns"):
        as_columns().key_by(lambda row: row.auction).window(TUMBLING).aggregate(col("price").sum)
    with pytest.raises(ProgramError, match=r"test_slice_windows.py.*aggregates such as"):
        as_columns().key_by("auction").window(TUMBLING).aggregate(col("price"))
    with pytest.raises(ProgramError, match=r"test_slice_windows.py.*prize"):
        as_columns().key_by("auction").window(TUMBLING).aggregate(col("prize").sum)
    with pytest.raises(ProgramError, match=r"test_slice_windows.py.*window_end"):
        as_columns().key_by("auction").window(TUMBLING).aggregate(
            col("price").sum.alias("window_end")
        )
