"""Values that are no event time, wherever they come from, are an error that shows the record;
nothing is lost or wrapped around."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common import (
    Row,
    Time,
    Watermark,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from flinkpy.connectors.sources import PythonSource
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import (
    DataStream,
    KeyedProcessFunction,
    SourceFunction,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.window import TimeWindow, TumblingEventTimeWindows
from flinkpy.operators.event_time.valid_times import are_times, milliseconds
from flinkpy.table.expressions import col
from flinkpy.testing import At
from tests.datastream.functions_of_users import Assigns

SECOND = TumblingEventTimeWindows.of(Time.seconds(1))
MARKED = 7  # the record at fault has it
NO_TIMES = [
    None,
    float("nan"),
    float("inf"),
    1.5,
    1_700_000_000.25,
    "2024-01-01",
    "17",
    b"17",
    True,
    decimal.Decimal(3),
    datetime.timedelta(1),
    datetime.time(1),
    np.float64(3),
    np.bool_(True),
    np.datetime64("NaT", "ms"),
    pd.NaT,
    [1],
    2**62,
    2**63 - 1,
    2**63,
    2**70,
    -(2**63),
    -(2**70),
]
TIMES = [0, -5, 10**16, np.int64(5), datetime.datetime(2024, 1, 1), datetime.date(2024, 1, 1)]
Make = Callable[[StreamExecutionEnvironment, Any], DataStream]


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment({"execution.target": "embedded"})


def counted(stream: DataStream) -> list[Any]:
    """How many records each window has."""
    return run(
        stream.key_by(lambda record: 0)
        .window(SECOND)
        .apply(lambda key, window, records: [len(list(records))])
    )


def run(stream: DataStream) -> list[Any]:
    with stream.execute_and_collect() as records:
        return list(records)


def stamped(stream: DataStream, assigner: Any) -> DataStream:
    return stream.assign_timestamps_and_watermarks(
        WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner)
    )


def by_function(env: StreamExecutionEnvironment, moment: Any) -> DataStream:
    return stamped(env.from_collection([Row(n=1, t=0), Row(n=MARKED, t=moment)]), lambda row: row.t)


def by_field(env: StreamExecutionEnvironment, moment: Any) -> DataStream:
    return stamped(env.from_collection([Row(n=1, t=0), Row(n=MARKED, t=moment)]), "t")


def of_source_function(env: StreamExecutionEnvironment, moment: Any) -> DataStream:
    class Runs(SourceFunction):
        def run(self, ctx: Any) -> None:
            ctx.collect_with_timestamp(Row(n=MARKED, t=0), moment)

        def cancel(self) -> None:
            pass

    return env.add_source(Runs())


def of_python_source(env: StreamExecutionEnvironment, moment: Any) -> DataStream:
    class Reads(PythonSource):
        has_timestamps = True

        def splits(self, parallelism: int) -> Iterable[Any]:
            return ["all"]

        def read(self, split: Any, position: Any) -> Iterable[Any]:
            yield MARKED, moment

    return env.from_source(Reads())


MAKERS: list[Make] = [by_function, by_field, of_source_function, of_python_source]


@pytest.mark.finding("bugs 11")
@pytest.mark.parametrize("moment", [None, 1.5, True, 2**70, pd.NaT], ids=repr)
@pytest.mark.parametrize("make", MAKERS)
def test_what_is_no_time_fails_the_job(
    make: Make, moment: Any, env: StreamExecutionEnvironment
) -> None:
    with pytest.raises(
        JobExecutionError, match=r"in milliseconds|a whole number of milliseconds"
    ) as failure:
        counted(make(env, moment))
    assert f"on record {MARKED if make is of_python_source else f'Row(n={MARKED}'}" in str(
        failure.value
    )


@pytest.mark.finding("bugs 11")
@pytest.mark.parametrize(
    "given",
    [None, 1.5, True, "7", 2**62, 2**63, Watermark(2**63 - 2), Watermark(1.5)],  # type: ignore[arg-type]
    ids=repr,
)
def test_what_is_no_watermark_is_refused(given: Any, env: StreamExecutionEnvironment) -> None:
    class Emits(WatermarkGenerator):
        def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
            output.emit_watermark(given)

    with pytest.raises(JobExecutionError, match=r"a watermark is .*(?s:.*)on record 'the record'"):
        run(
            env.from_collection(["the record"]).assign_timestamps_and_watermarks(
                WatermarkStrategy.for_generator(Emits)
            )
        )


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_a_time_counts(make: Make, env: StreamExecutionEnvironment) -> None:
    assert sum(counted(make(env, datetime.datetime(2024, 1, 1)))) in (1, 2)


@pytest.mark.finding("bugs 11")
@pytest.mark.parametrize("moment", NO_TIMES, ids=repr)
def test_what_is_no_time_is_refused(moment: Any) -> None:
    assert not are_times([0, moment])
    with pytest.raises(
        (TypeError, ValueError),
        match=r"the assigner gave .*|a timestamp is a whole number of milliseconds",
    ):
        milliseconds(moment)


@pytest.mark.parametrize("moment", TIMES, ids=repr)
def test_what_is_a_time_is_taken(moment: Any) -> None:
    assert type(milliseconds(moment)) is int


@given(
    st.lists(
        st.one_of(
            st.integers(),
            st.integers(-(2**63), 2**63),
            st.sampled_from([2**62, 2**62 - 1, -(2**62), -(2**62) - 1]),
        )
    )
)
def test_a_batch_is_taken_whole_exactly_if_each_number_is_a_time(numbers: list[int]) -> None:
    assert are_times(numbers) == all(-(2**62) <= number < 2**62 for number in numbers)
    assert not are_times([*numbers, True])
    for number in numbers:
        if are_times([number]):
            assert milliseconds(number) == number
        else:
            with pytest.raises(ValueError, match="in milliseconds"):
                milliseconds(number)


# -- columns ---------------------------------------------------------------------------------------

NO_COLUMNS = {
    "null": pa.array([0, None]),
    "2**62": pa.array([0, 2**62]),
    "-2**62": pa.array([0, -(2**62)]),
    "seconds": pa.array([0, 2**61], pa.timestamp("s")),
    "milliseconds": pa.array([0, 2**61 + 1], pa.timestamp("ms")),
    "days": pa.array([0, 2**31 - 1], pa.int32()).view(pa.date32()),
    "date64": pa.array([0, 2**60], pa.int64()).view(pa.date64()),
}


@pytest.mark.finding("bugs 11")
@pytest.mark.parametrize("name", NO_COLUMNS)
def test_a_column_with_what_is_no_time_fails_the_job_and_names_the_column(
    name: str, env: StreamExecutionEnvironment
) -> None:
    table = pa.table({"n": [1, MARKED], "t": NO_COLUMNS[name]})
    with pytest.raises(
        JobExecutionError, match=r"col\('t'\) gives .* in milliseconds|col\('t'\) is null"
    ):
        run(stamped(env.from_arrow(table), "t"))


@pytest.mark.finding("bugs 11")
def test_the_record_of_a_column_is_shown(env: StreamExecutionEnvironment) -> None:
    table = pa.table({"n": [1, MARKED], "t": pa.array([0, 2**61])})
    with pytest.raises(JobExecutionError, match=rf"on record Row\(n={MARKED}, t={2**61}\)"):
        run(stamped(env.from_arrow(table), "t"))


@pytest.mark.parametrize(
    "kind",
    [
        pa.float64(),
        pa.string(),
        pa.bool_(),
        pa.decimal128(10, 2),
        pa.duration("s"),
        pa.time64("us"),
    ],
    ids=str,
)
def test_a_column_of_another_type_is_refused_while_the_program_is_built(
    kind: Any, env: StreamExecutionEnvironment
) -> None:
    with pytest.raises(ProgramError, match=r"test_values_of_time\.py:\d+: col\('t'\) is of type"):
        stamped(env.from_arrow(pa.table({"t": pa.array([None], kind)})), col("t"))


@pytest.mark.finding("bugs 11")
@pytest.mark.parametrize(
    "times",
    [
        [1.5],
        np.array([1.5]),
        np.array(["2024-01-01"], "M8[s]"),
        [True],
        np.array([2**63], np.uint64),
        [None],
    ],
    ids=str,
)
def test_a_source_of_columns_gives_whole_numbers_as_times(
    times: Any, env: StreamExecutionEnvironment
) -> None:
    class Reads(PythonSource):
        columnar = has_timestamps = True

        def splits(self, parallelism: int) -> Iterable[Any]:
            return ["all"]

        def read(self, split: Any, position: Any) -> Iterable[Any]:
            yield pa.table({"n": [MARKED]}), times

    with pytest.raises(JobExecutionError, match=r"in milliseconds|whole numbers? of milliseconds"):
        run(env.from_source(Reads()))


# -- windows and timers ----------------------------------------------------------------------------


@pytest.mark.finding("bugs 11")
@pytest.mark.parametrize("end", [float("nan"), float("inf"), 2**70, None])
def test_a_window_that_would_never_fire_fails_the_job(
    end: Any, env: StreamExecutionEnvironment
) -> None:
    class Own(Assigns):
        def assign_windows(self, element: Any, timestamp: int, context: Any) -> Any:
            return [TimeWindow(0, end)]

    numbers = stamped(env.from_collection([MARKED]), lambda number: number)
    windowed = (
        numbers.key_by(lambda number: 0)
        .window(Own(lambda record: record))
        .apply(lambda key, window, records: list(records))
    )
    with pytest.raises(JobExecutionError, match=f"on record {MARKED}"):
        run(windowed)


@pytest.mark.finding("bugs 11")
def test_a_record_that_an_assigner_leaves_without_a_time_fails_in_windows(
    env: StreamExecutionEnvironment,
) -> None:
    with pytest.raises(JobExecutionError, match="records without timestamps"):
        counted(stamped(env.from_collection([MARKED]), lambda number, before: before))


class Wakes(KeyedProcessFunction):
    def __init__(self, moment: Any) -> None:
        self.moment = moment

    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(self.moment)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield "woken"


@pytest.mark.finding("bugs 11")
@pytest.mark.parametrize("moment", [2**63, True, float("nan")])
def test_a_timer_that_would_never_fire_fails_the_job(
    moment: Any, env: StreamExecutionEnvironment
) -> None:
    with pytest.raises(JobExecutionError, match="a timer"):
        run(env.from_collection([MARKED]).key_by(lambda number: 0).process(Wakes(moment)))


def test_a_timer_for_the_end_of_time_fires_there(env: StreamExecutionEnvironment) -> None:
    with (
        env.from_collection([MARKED])
        .key_by(lambda number: 0)
        .process(Wakes(2**63 - 1))
        .execute_and_collect() as records
    ):
        assert list(records) == ["woken"]


@pytest.mark.finding("bugs 11")
@pytest.mark.parametrize("moment", [None, 1.5, "7", True, 2**62], ids=repr)
def test_a_scripted_source_takes_times_only(moment: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"At\(\) gave"):
        At(moment, "a")
