"""Event times of columns that are no plain int64, and lengths of batches that are none."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from flinkpy.common import Time, WatermarkStrategy
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.window import TumblingEventTimeWindows
from flinkpy.table.expressions import col
from tests.datastream.functions_of_users import embedded


def starts(times: Any) -> list[Any]:
    """The starts of the windows of a second that records of these times are in."""
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(col("t"))
    stream = embedded().from_arrow(pa.table({"k": ["a"] * len(times), "t": times}))
    windows = (
        stream.assign_timestamps_and_watermarks(strategy)
        .key_by("k")
        .window(TumblingEventTimeWindows.of(Time.seconds(1)))
        .aggregate(col("k").count.alias("n"))
    )
    with windows.execute_and_collect() as rows:
        return sorted(row["window_start"].timestamp() for row in rows)


@pytest.mark.parametrize(
    "times",
    [
        pa.array([1000, 2000]).dictionary_encode(),
        pa.array([1000, 2000], pa.timestamp("ms")).dictionary_encode(),
        pa.array([1000, 2000], pa.uint64()),
    ],
    ids=["dictionary of numbers", "dictionary of timestamps", "uint64"],
)
def test_they_are_taken_as_plain_ones_are(times: Any) -> None:
    assert starts(times) == starts(pa.array([1000, 2000]))


@pytest.mark.parametrize(
    ("times", "told"),
    [
        (pa.array([2**64 - 1], pa.uint64()), rf"(?s)col\('t'\) gives .*{2**64 - 1}"),
        (pa.array([253402300801], pa.timestamp("s")), r"253402300801000.*years 1 to 9999"),
    ],
    ids=["beyond int64", "the year 10000"],
)
def test_those_beyond_event_time_are_refused_with_field_and_value(times: Any, told: str) -> None:
    with pytest.raises(JobExecutionError, match=told):
        starts(times)


def reads(env: StreamExecutionEnvironment, rows: Any) -> list[Any]:
    return [
        lambda: env.from_arrow(pa.table({"n": [1]}), batch_rows=rows),
        lambda: env.from_pandas(pd.DataFrame({"n": [1]}), batch_rows=rows),
        lambda: env.from_csv(__file__, batch_rows=rows),
    ]


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "8"])
def test_batch_rows_is_a_whole_number_from_one_on(rows: Any) -> None:
    for read in reads(embedded(), rows):
        with pytest.raises(ProgramError, match=r"test_odd_event_times\.py:\d+: batch_rows= takes"):
            read()
