"""Tables and collections in the program's memory."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from flinkpy.common import Time, WatermarkStrategy
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.functions import MapFunction
from flinkpy.datastream.streams.recorded import ColumnStream
from flinkpy.datastream.window import TumblingEventTimeWindows
from flinkpy.table.expressions import col, lit


def environment(parallelism: int = 1) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(
        {"client.progress": False, "execution.target": "embedded"}
    )
    env.set_parallelism(parallelism)
    return env


def address(batch: Any) -> int:
    return int(batch.column(0).buffers()[1].address)


@pytest.mark.finding("first-use 15")
def test_a_table_is_read_where_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    from flinkpy.connectors.memory.arrow_tables import ArrowSource

    batches: list[Any] = []
    slices = ArrowSource.batch_of

    def seen(self: Any, piece: Any, start: int, end: int) -> Any:
        batches.append(slices(self, piece, start, end))
        return batches[-1]

    monkeypatch.setattr(ArrowSource, "batch_of", seen)
    table = pa.table({"n": np.arange(100_000)})
    assert environment().from_arrow(table).to_arrow().equals(table)
    assert {address(batch.data) for batch in batches} == {address(table.to_batches()[0])}


@pytest.mark.finding("first-use 15")
def test_the_very_values_of_a_collection_that_cannot_change_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from flinkpy.connectors.memory.ranges import CollectionSource

    batches: list[Any] = []
    slices = CollectionSource.batch_of

    def seen(self: Any, piece: Any, start: int, end: int) -> Any:
        batches.append(slices(self, piece, start, end))
        return batches[-1]

    monkeypatch.setattr(CollectionSource, "batch_of", seen)
    pairs = [("".join(["text ", str(n)]), n) for n in range(10)]
    with environment().from_collection(pairs).execute_and_collect() as results:
        assert list(results) == pairs
    assert [
        value is pair
        for value, pair in zip(
            (value for batch in batches for value in batch.values), pairs, strict=True
        )
    ] == [True] * 10


@pytest.mark.wide
@pytest.mark.finding("first-use 15")
@pytest.mark.parametrize("parallelism", [1, 3])
def test_a_collection_is_what_it_was_when_it_was_handed_over_and_so_it_is_for_every_run(
    parallelism: int,
) -> None:
    records: list[Any] = [{"n": n, "seen": [0]} for n in range(50_000)]
    stream = environment(parallelism).from_collection(records).set_parallelism(parallelism)
    records[0]["n"] = -1
    records[1]["seen"].append(1)
    records.clear()

    class Change(MapFunction):
        def map(self, value: Any) -> Any:
            value["seen"].append(value["n"])
            return value

    changed = stream.map(Change()).set_parallelism(parallelism)
    for _ in range(2):
        with changed.execute_and_collect() as results:
            assert sorted(results, key=lambda each: each["n"]) == [
                {"n": n, "seen": [0, n]} for n in range(50_000)
            ]


@pytest.mark.finding("first-use 15")
def test_a_list_that_grows_after_it_was_handed_over_does_not_grow_the_stream() -> None:
    numbers = [1, 2, 3]
    stream = environment().from_collection(numbers)
    numbers.append(4)
    with stream.execute_and_collect() as results:
        assert list(results) == [1, 2, 3]


@pytest.mark.finding("first-use 15")
def test_a_frame_is_what_it_was_when_it_was_handed_over() -> None:
    frame = pd.DataFrame({"n": np.arange(10), "x": np.arange(10.0)})
    stream = environment().from_pandas(frame)
    frame.iloc[0, 0] = 99
    frame.to_numpy()  # reads
    frame.loc[1, "x"] = 99.0
    assert stream.to_arrow().to_pylist() == [{"n": n, "x": float(n)} for n in range(10)]


@pytest.mark.finding("first-use 15")
def test_what_a_slice_of_a_table_sends_back_is_the_slice() -> None:
    """One megabyte is collected as one, however large the table is that it is a part of."""
    from flinkpy.connectors.collect.collect_sink import _CollectWriter
    from flinkpy.core.elements import ColumnBatch
    from tests.connectors.harness import operator_context

    sent: list[bytes] = []

    class Outbox:
        def send(self, *parts: bytes) -> None:
            sent.extend(parts)

    batch = pa.RecordBatch.from_pydict(
        {"n": np.arange(1_000_000), "s": pa.array(["text"] * 1_000_000)}
    )
    _CollectWriter(Outbox(), operator_context().task, "program").write_batch(  # type: ignore[arg-type]
        ColumnBatch(batch.slice(500_000, 10))
    )
    assert sum(map(len, sent)) < 5_000


# -- frames of others ------------------------------------------------------------------------------


class Frame:
    """What a frame of Polars is to us."""

    def __init__(self, table: pa.Table) -> None:
        self._table, self.schema = table, table.schema

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Any:
        return iter(self._table.columns)


TABLE = pa.table({"n": [1, 2, 3], "s": ["a", None, "c"]})


@pytest.mark.finding("first-use 20")
@pytest.mark.parametrize(
    "data",
    [Frame(TABLE), pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches())],
    ids=["frame", "reader"],
)
def test_whatever_gives_an_arrow_stream_is_a_table(data: Any) -> None:
    stream = environment().from_arrow(data)
    assert stream.to_arrow().equals(TABLE)
    # a reader can be read once only, and a stream more often
    assert stream.to_arrow().equals(TABLE)


@pytest.mark.finding("first-use 20")
def test_texts_as_views_of_such_a_frame_are_texts() -> None:
    views = pa.table({"s": pa.array(["a", "b"], pa.string_view())})
    assert environment().from_arrow(Frame(views)).to_arrow().to_pydict() == {"s": ["a", "b"]}


@pytest.mark.finding("first-use 20")
def test_such_a_frame_is_pointed_to_what_takes_it() -> None:
    frame = Frame(TABLE)
    with pytest.raises(
        ProgramError,
        match=r"from_collection\(\) takes records, this is a Frame: call from_arrow\(\)",
    ):
        environment().from_collection(frame)
    with pytest.raises(
        ProgramError, match=r"takes a pandas frame, this is a Frame; from_arrow\(\) takes it"
    ):
        environment().from_pandas(frame)
    for columns in (
        TABLE,
        TABLE.to_batches()[0],
        pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches()),
    ):
        with pytest.raises(ProgramError, match=r"call from_arrow\(\)"):
            environment().from_collection(columns)
    with pytest.raises(ProgramError, match=r"call from_pandas\(\)"):
        environment().from_collection(TABLE.to_pandas())


@pytest.mark.finding("first-use 20")
def test_a_single_column_is_a_collection_as_ever() -> None:
    for values in (pd.Series([1, 2, 3]), np.array([1, 2, 3])):
        with environment().from_collection(values).execute_and_collect() as results:
            assert list(results) == [1, 2, 3]


@pytest.mark.finding("first-use 20")
def test_a_pandas_frame_is_taken_by_from_arrow_as_by_from_pandas() -> None:
    frame = pd.DataFrame({"n": [1, 2]}, index=["a", "b"])
    assert environment().from_arrow(frame).to_arrow().to_pydict() == {"n": [1, 2]}


@pytest.mark.finding("first-use 20")
def test_a_frame_that_gives_no_stream_says_why() -> None:
    class Broken:
        columns = ()

        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            raise ValueError("no columns of objects")

    with pytest.raises(
        ProgramError, match="the Broken cannot be read as an Arrow stream: no columns of objects"
    ):
        environment().from_arrow(Broken())


# -- instants --------------------------------------------------------------------------------------


def zoned(zone: str | None) -> pa.Table:
    moments = [
        datetime(2024, 1, 1, hour, minute, tzinfo=timezone.utc)
        for hour in (0, 1)
        for minute in (0, 30)
    ]
    return pa.table(
        {
            "at": pa.array(moments, pa.timestamp("us", "UTC")).cast(pa.timestamp("us", zone)),
            "n": [1, 2, 3, 4],
        }
    )


def hourly(stream: Any) -> Any:
    return (
        stream.key_by("k")
        .window(TumblingEventTimeWindows.of(Time.hours(1)))
        .aggregate(col("n").sum)
    )


def stamped(zone: str | None) -> Any:
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(col("at"))
    return (
        environment()
        .from_arrow(zoned(zone))
        .assign_timestamps_and_watermarks(strategy)
        .select(col("at"), col("n"), lit("a").alias("k"))
    )


@pytest.mark.finding("hunts 14b")
@pytest.mark.parametrize("zone", ["America/New_York", "UTC", None])
def test_window_bounds_have_the_zone_of_the_event_time(zone: str | None) -> None:
    counted = hourly(stamped(zone)).to_arrow()
    assert (
        counted.schema.field("window_start").type
        == counted.schema.field("window_end").type
        == pa.timestamp("ms", zone)
    )
    begins = counted["window_start"].cast(pa.timestamp("us", zone))
    joined = zoned(zone).join(
        counted.set_column(counted.schema.get_field_index("window_start"), "at", begins),
        "at",
        join_type="inner",
    )
    assert sorted(joined["n_sum"].to_pylist()) == [3, 7]


@pytest.mark.finding("hunts 14b")
def test_where_zones_meet_window_bounds_are_in_utc_and_naive_where_one_has_none() -> None:
    def bounds(left: Any, right: Any) -> Any:
        same = (col("n"), col("k"))
        return (
            hourly(left.select(*same).union(right.select(*same)))
            .to_arrow()
            .schema.field("window_start")
            .type
        )

    env = environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(col("at"))

    def of(zone: str | None) -> Any:
        return (
            env.from_arrow(zoned(zone))
            .assign_timestamps_and_watermarks(strategy)
            .select(col("n"), lit("a").alias("k"))
        )

    assert bounds(of("Europe/Oslo"), of("Europe/Oslo")) == pa.timestamp("ms", "Europe/Oslo")
    assert bounds(of("Europe/Oslo"), of("America/New_York")) == pa.timestamp("ms", "UTC")
    assert bounds(of("Europe/Oslo"), of(None)) == pa.timestamp("ms")


@pytest.mark.finding("hunts 14b")
def test_windows_of_windows_keep_the_zone() -> None:
    hours = hourly(stamped("Europe/Oslo")).select(col("n_sum").alias("n"), col("k"))
    days = (
        hours.key_by("k")
        .window(TumblingEventTimeWindows.of(Time.days(1)))
        .aggregate(col("n").sum)
        .to_arrow()
    )
    assert (days.schema.field("window_end").type, days["n_sum"].to_pylist()) == (
        pa.timestamp("ms", "Europe/Oslo"),
        [10],
    )


def of_nulls(*, required: bool) -> Any:
    """A schema of fields that may not be null, at every depth, or may."""
    may = not required
    point = pa.struct([pa.field("x", pa.int64(), may), pa.field("y", pa.int64(), may)])
    points = pa.list_(pa.field("item", point, may))
    named = pa.map_(pa.string(), pa.field("value", point, may))
    return pa.schema(
        [
            pa.field("n", pa.int64(), may),
            pa.field("s", point, may),
            pa.field("l", points, may),
            pa.field("m", named, may),
        ]
    )


FULL = {"n": 1, "s": {"x": 1, "y": 2}, "l": [{"x": 3, "y": 4}], "m": [("a", {"x": 5, "y": 6})]}
NULLS = [
    {"n": None, "s": None, "l": None, "m": None},
    {"n": 2, "s": {"x": None, "y": 1}, "l": [None], "m": [("b", None)]},
]


@pytest.mark.finding("hunts 18")
@pytest.mark.parametrize("swapped", [False, True])
def test_streams_of_which_one_is_never_null_have_a_union_that_may_be(swapped: bool) -> None:
    env = environment()
    strict = env.from_arrow(pa.Table.from_pylist([FULL] * 3, of_nulls(required=True)))
    loose = env.from_arrow(pa.Table.from_pylist(NULLS, of_nulls(required=False)))
    both = loose.union(strict) if swapped else strict.union(loose)
    assert isinstance(both.recorded, ColumnStream)
    assert both.recorded.schema.equals(of_nulls(required=False))
    assert sorted(both.to_arrow().to_pylist(), key=str) == sorted([FULL] * 3 + NULLS, key=str)
    assert {
        batch.schema for batch in both.map_batches(lambda batch: batch).to_arrow().to_batches()
    } == {of_nulls(required=False)}


@pytest.mark.finding("hunts 18")
def test_windows_and_rows_behind_such_a_union_see_all_of_it() -> None:
    env = environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(col("at"))
    at = [datetime(2024, 1, 1, 0, minute, tzinfo=timezone.utc) for minute in (1, 2, 3)]

    def stream(numbers: list[int | None], required: bool) -> Any:
        schema = pa.schema(
            [
                pa.field("n", pa.int64(), not required),
                pa.field("k", pa.string(), not required),
                ("at", pa.timestamp("us", "UTC")),
            ]
        )
        return env.from_arrow(
            pa.table({"n": numbers, "k": ["a", "b", "a"], "at": at}, schema)
        ).assign_timestamps_and_watermarks(strategy)

    both = stream([1, 2, 3], True).union(stream([4, None, 6], False))
    counted = (
        both.key_by("k").window(TumblingEventTimeWindows.of(Time.hours(1))).aggregate(col("n").sum)
    )
    assert sorted(counted.to_arrow().select(["k", "n_sum"]).to_pylist(), key=str) == [
        {"k": "a", "n_sum": 14},
        {"k": "b", "n_sum": 2},
    ]
    assert sorted(both.map(lambda row: row.n or 0).take(10)) == [0, 1, 2, 3, 4, 6]


@pytest.mark.finding("hunts 18")
def test_a_batch_gets_the_schema_of_a_union_without_a_copy_of_its_values() -> None:
    from flinkpy.core.elements import ColumnBatch
    from flinkpy.operators.columnar.column_operators import NullableColumnsOperator

    def addresses(batch: Any) -> set[int]:
        return {
            buffer.address
            for column in batch.columns
            for buffer in column.buffers()
            if buffer is not None and buffer.size
        }

    batch = pa.Table.from_pylist([FULL] * 1000, of_nulls(required=True)).to_batches()[0]
    cast = (
        NullableColumnsOperator(of_nulls(required=False))
        .process_columns(ColumnBatch(batch, None))
        .data
    )
    assert cast.schema.equals(of_nulls(required=False))
    assert addresses(cast) <= addresses(batch)
