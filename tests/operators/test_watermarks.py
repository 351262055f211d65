"""Event times and watermarks: batches against one record at a time, disorder, idleness,
punctuation, rows against columns."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common.watermark_strategy import (
    BoundedOutOfOrdernessWatermarks,
    TimestampAssigner,
    WatermarkGenerator,
    WatermarkOutput,
    WatermarkStrategy,
)
from flinkpy.core.clock import ManualClock
from flinkpy.core.elements import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    ColumnBatch,
    Element,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.core.options.engine import AUTO_WATERMARK_INTERVAL
from flinkpy.operators.event_time.watermarks import IdlenessTimer, TimestampsAndWatermarksOperator
from flinkpy.operators.rows.stateless import MapOperator
from flinkpy.runtime.valve import WatermarkValve
from flinkpy.table.expressions import col
from tests.operators.harness import ChainHarness, linear

IDLE, ACTIVE = WatermarkStatus(idle=True), WatermarkStatus(idle=False)
INTERVAL = 0.2  # the default


class Stamping(ChainHarness):
    """One operator, and what came out of it."""

    def __init__(self, strategy: WatermarkStrategy) -> None:
        self.operator = TimestampsAndWatermarksOperator(strategy)
        super().__init__(linear(self.operator))

    def columns(self, values: Sequence[int], stamps: Sequence[int] | None = None) -> None:
        data = pa.RecordBatch.from_pydict({"t": pa.array(values, pa.int64())})
        self.chain.batch_inputs()[0](
            ColumnBatch(data, None if stamps is None else np.array(stamps, dtype=np.int64))
        )

    def tick(self, seconds: float = INTERVAL) -> None:
        self.timers.advance(seconds)

    @property
    def elements(self) -> list[Element]:
        return self.writers[0].elements

    @property
    def flat(self) -> list[Any]:
        """Records as (value, timestamp), control elements as they are."""
        flat: list[Any] = []
        for element in self.elements:
            if isinstance(element, RowBatch):
                none: list[Any] = [None] * len(element)
                flat += zip(element.values, element.timestamps or none)
            elif isinstance(element, ColumnBatch):
                stamps: list[Any] = (
                    [None] * len(element)
                    if element.timestamps is None
                    else element.timestamps.tolist()
                )
                flat += zip(element.data.column(0).to_pylist(), stamps)
            else:
                flat.append(element)
        return flat

    @property
    def marks(self) -> list[Any]:
        return [
            element for element in self.elements if not isinstance(element, (RowBatch, ColumnBatch))
        ]


def by_value(strategy: WatermarkStrategy) -> WatermarkStrategy:
    return strategy.with_timestamp_assigner(lambda value: value)


def bounded(milliseconds: int) -> WatermarkStrategy:
    return by_value(
        WatermarkStrategy.for_bounded_out_of_orderness(timedelta(milliseconds=milliseconds))
    )


# -- timestamps ------------------------------------------------------------------------------------


class Later(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        return record_timestamp + int(value)


class Event:
    def __init__(self, at: Any) -> None:
        self.at = at


NEW_YEAR = 1_704_067_200_000


@pytest.mark.parametrize(
    ("assigner", "values", "before", "expected"),
    [
        (lambda value: value * 10, [1, 2], None, [10, 20]),
        (lambda value, stamp: stamp, [1, 2], None, [MIN_TIMESTAMP, MIN_TIMESTAMP]),
        (lambda value, stamp: value + stamp, [1, 2], [100, 200], [101, 202]),
        (lambda value, unit=1000: value * unit, [1, 2], [7, 7], [1000, 2000]),
        (Later(), [1, 2], [100, 200], [101, 202]),
        ("t", [{"t": 5}, {"t": 6}], None, [5, 6]),
        ("at", [Event(datetime.datetime(2024, 1, 1)), Event(7)], None, [NEW_YEAR, 7]),
        (
            "at",
            [Event(datetime.datetime(2024, 1, 1, 1, tzinfo=datetime.timezone(timedelta(hours=1))))],
            None,
            [NEW_YEAR],
        ),
        (lambda value: np.int64(value), [3], None, [3]),
        (None, [1, 2], [8, 9], [8, 9]),
        (None, [1, 2], None, None),
    ],
    ids=range(11),
)
def test_an_assigner_stamps_every_record(
    assigner: Any, values: list[Any], before: list[int] | None, expected: list[int] | None
) -> None:
    strategy = WatermarkStrategy.no_watermarks()
    stamping = Stamping(
        strategy if assigner is None else strategy.with_timestamp_assigner(assigner)
    )
    stamping.push(values, before)
    [batch] = stamping.elements
    assert isinstance(batch, RowBatch)
    assert (batch.values, batch.timestamps) == (values, expected)
    assert batch.timestamps is None or {type(stamp) for stamp in batch.timestamps} == {int}


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, -2], pa.int32()), [1, -2]),
        (pa.array([1_500, -1], pa.timestamp("us")), [1, -1]),
        (pa.array([1, -1], pa.timestamp("s", "Europe/Berlin")), [1000, -1000]),
        (pa.array([5, 6], pa.timestamp("ms")), [5, 6]),
        (pa.array([2_000_000, -1], pa.timestamp("ns")), [2, -1]),
        (pa.array([1, 2], pa.date32()), [86_400_000, 172_800_000]),
        (pa.array([86_400_000, 0], pa.date64()), [86_400_000, 0]),
    ],
    ids=lambda each: str(getattr(each, "type", "")),
)
def test_a_column_of_any_kind_of_moment_stamps_its_batch(column: Any, expected: list[int]) -> None:
    stamping = Stamping(WatermarkStrategy.no_watermarks().with_timestamp_assigner("t"))
    stamping.chain.batch_inputs()[0](ColumnBatch(pa.RecordBatch.from_pydict({"t": column})))
    [batch] = stamping.elements
    assert isinstance(batch, ColumnBatch)
    assert batch.timestamps is not None
    assert batch.timestamps.tolist() == expected
    assert batch.timestamps.dtype == np.int64


def test_columns_stay_columns_under_expressions_and_functions() -> None:
    for assigner in (col("t") * 10, lambda row: row.t * 10):
        stamping = Stamping(
            WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner)
        )
        stamping.columns([1, 2])
        stamping.tick()
        assert stamping.flat == [(1, 10), (2, 20), Watermark(19)]
        assert isinstance(stamping.elements[0], ColumnBatch)


def test_the_failing_record_is_named() -> None:
    for assigner in (lambda value: 10 // value, lambda value, stamp: 10 // value):
        stamping = Stamping(WatermarkStrategy.no_watermarks().with_timestamp_assigner(assigner))
        with pytest.raises(UserCodeError, match="ZeroDivisionError") as caught:
            stamping.push([1, 0, 2])
        assert caught.value.record == "0"
        assert caught.value.frames[-1].file == __file__


def test_what_is_no_moment_is_refused_with_its_record() -> None:
    stamping = Stamping(
        WatermarkStrategy.no_watermarks().with_timestamp_assigner(lambda value: value / 2)
    )
    with pytest.raises(UserCodeError, match=r"whole number of milliseconds.*gave 1\.5") as caught:
        stamping.push([3])
    assert caught.value.record == "3"


def test_a_null_in_the_column_is_refused() -> None:
    stamping = Stamping(WatermarkStrategy.no_watermarks().with_timestamp_assigner("t"))
    with pytest.raises(
        UserCodeError, match=r"1 of 2 records have no timestamp: col\('t'\) is null"
    ):
        stamping.chain.batch_inputs()[0](ColumnBatch(pa.RecordBatch.from_pydict({"t": [1, None]})))


def test_columns_that_cannot_be_moments_are_refused_while_the_program_is_built() -> None:
    operator = TimestampsAndWatermarksOperator(
        WatermarkStrategy.no_watermarks().with_timestamp_assigner("name")
    )
    with pytest.raises(ProgramError, match="is of type string"):
        operator.check(pa.schema({"name": pa.string()}), True)
    with pytest.raises(ProgramError, match="did you mean 'names'"):
        operator.check(pa.schema({"names": pa.int64()}), True)
    with pytest.raises(ProgramError, match="works on columns"):
        TimestampsAndWatermarksOperator(
            WatermarkStrategy.no_watermarks().with_timestamp_assigner(col("t"))
        ).check(None, False)


# -- watermarks ------------------------------------------------------------------------------------


def test_the_watermark_follows_the_greatest_timestamp_less_the_bound_less_one() -> None:
    stamping = Stamping(bounded(10))
    stamping.push([100, 70])
    assert stamping.marks == []  # nobody asked yet
    stamping.tick()
    stamping.push([99])
    stamping.tick()
    stamping.push([101])
    stamping.tick()
    assert stamping.flat == [
        (100, 100),
        (70, 70),
        Watermark(89),
        (99, 99),
        (101, 101),
        Watermark(90),
    ]


def test_without_records_there_is_no_watermark() -> None:
    stamping = Stamping(bounded(10))
    stamping.tick()
    assert stamping.elements == []


def test_records_without_timestamps_make_no_watermark() -> None:
    stamping = Stamping(WatermarkStrategy.for_monotonous_timestamps())
    stamping.push([1, 2])
    stamping.tick()
    assert stamping.flat == [(1, None), (2, None)]


def test_watermarks_from_upstream_end_here_but_for_the_last() -> None:
    stamping = Stamping(bounded(0))
    for element in (Watermark(1000), IDLE, ACTIVE):
        stamping.chain.control(element)
    stamping.push([5])
    stamping.chain.control(Watermark(MAX_TIMESTAMP))
    stamping.chain.finish()
    stamping.push([6])
    stamping.tick()
    assert stamping.marks == [Watermark(MAX_TIMESTAMP)]


def test_no_watermarks_means_none_until_the_stream_ends() -> None:
    stamping = Stamping(by_value(WatermarkStrategy.no_watermarks()))
    stamping.push([5])
    stamping.tick(10)
    assert (stamping.marks, stamping.timers.pending) == ([], [])
    stamping.chain.control(Watermark(MAX_TIMESTAMP))
    assert stamping.marks == [Watermark(MAX_TIMESTAMP)]


def test_a_stream_that_stops_without_an_end_still_says_how_far_it_came() -> None:
    stamping = Stamping(bounded(1))
    stamping.push([5])
    stamping.chain.finish()
    assert stamping.marks == [Watermark(3)]


def test_behind_the_end_of_event_time_nothing_follows() -> None:
    stamping = Stamping(bounded(0).with_idleness(timedelta(milliseconds=100)))
    stamping.push([5])
    stamping.chain.control(Watermark(MAX_TIMESTAMP))
    for _ in range(4):
        stamping.tick()
    stamping.chain.finish()
    assert stamping.marks == [Watermark(MAX_TIMESTAMP)]


def test_an_interval_of_zero_means_no_periodic_watermarks() -> None:
    operator = TimestampsAndWatermarksOperator(bounded(0))
    harness = ChainHarness(linear(operator), open_it=False)
    operator.context.configuration[AUTO_WATERMARK_INTERVAL.key] = timedelta()
    harness.chain.open()
    harness.push([5])
    harness.timers.advance(60)
    assert (harness.timers.pending, harness.writers[0].controls) == ([], [])


def test_closing_takes_the_timer_back() -> None:
    stamping = Stamping(bounded(1))
    assert len(stamping.timers.pending) == 1
    assert stamping.chain.close() == []
    assert stamping.timers.pending == []


class OnEven(WatermarkGenerator):
    """Punctuated: every even record says so."""

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        if event % 2 == 0:
            output.emit_watermark(event_timestamp)


def test_a_punctuated_watermark_stands_behind_its_record_and_what_follows_may_be_late() -> None:
    stamping = Stamping(by_value(WatermarkStrategy.for_generator(OnEven)))
    stamping.push([3, 4, 1, 5, 2, 8])
    assert stamping.flat == [
        (3, 3),
        (4, 4),
        Watermark(4),
        (1, 1),
        (5, 5),
        (2, 2),
        (8, 8),
        Watermark(8),
    ]
    assert [len(element) for element in stamping.elements if isinstance(element, RowBatch)] == [
        2,
        4,
    ]


def test_a_batch_without_punctuation_passes_uncut() -> None:
    stamping = Stamping(WatermarkStrategy.for_generator(OnEven()))
    stamping.push([1, 3, 5], [1, 3, 5])
    assert [element for element in stamping.elements if isinstance(element, RowBatch)] == [
        RowBatch([1, 3, 5], [1, 3, 5])
    ]


class EveryOther(WatermarkGenerator):
    """Periodic, with its own idea of idleness."""

    def __init__(self) -> None:
        self.greatest, self.asked = MIN_TIMESTAMP, 0

    def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
        output.mark_active()
        self.greatest = max(self.greatest, event_timestamp)

    def on_periodic_emit(self, output: WatermarkOutput) -> None:
        self.asked += 1
        if self.asked % 2:
            output.emit_watermark(Watermark(self.greatest))
        else:
            output.mark_idle()


def test_a_custom_periodic_generator_is_asked_at_every_interval() -> None:
    stamping = Stamping(by_value(WatermarkStrategy.for_generator(EveryOther)))
    stamping.push([3])
    stamping.tick()
    stamping.tick()
    stamping.push([7])
    stamping.tick()
    assert stamping.flat == [(3, 3), Watermark(3), IDLE, (7, 7), ACTIVE, Watermark(7)]


def test_errors_of_a_generator_name_the_operator_and_the_record() -> None:
    class Broken(WatermarkGenerator):
        def on_event(self, event: Any, event_timestamp: int, output: WatermarkOutput) -> None:
            if event < 0:
                raise ValueError("negative")

        def on_periodic_emit(self, output: WatermarkOutput) -> None:
            raise ValueError("asked")

    stamping = Stamping(WatermarkStrategy.for_generator(Broken))
    with pytest.raises(UserCodeError, match="negative") as caught:
        stamping.push([1, -2])
    assert caught.value.record == "-2"
    with pytest.raises(UserCodeError, match="asked"):
        stamping.tick()


def test_what_is_no_generator_is_refused() -> None:
    with pytest.raises(ProgramError, match="is no WatermarkGenerator"):
        WatermarkStrategy.for_generator(int)  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="takes a WatermarkGenerator"):
        WatermarkStrategy.for_generator(5)  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="made 5"):
        Stamping(WatermarkStrategy.for_generator(lambda: 5))  # type: ignore[arg-type,return-value]


# -- idleness --------------------------------------------------------------------------------------


def test_a_silent_stream_becomes_idle_and_active_again_with_its_next_watermark() -> None:
    stamping = Stamping(bounded(0).with_idleness(timedelta(seconds=1)))
    stamping.push([5])
    stamping.tick()  # the watermark
    stamping.tick()  # the silence is noticed
    for _ in range(5):
        stamping.tick()
    assert stamping.marks == [Watermark(4)]  # silent for a second, and not for longer
    stamping.tick()
    stamping.tick()
    assert stamping.marks == [Watermark(4), IDLE]
    stamping.push([9])
    stamping.tick()
    assert stamping.flat[-3:] == [(9, 9), ACTIVE, Watermark(8)]


def test_a_stream_that_never_had_a_record_becomes_idle_too() -> None:
    stamping = Stamping(
        by_value(WatermarkStrategy.no_watermarks()).with_idleness(timedelta(seconds=1))
    )
    for _ in range(7):
        stamping.tick()
    assert stamping.marks == [IDLE]


def test_an_idle_stream_stays_idle_while_its_records_bring_event_time_no_further() -> None:
    stamping = Stamping(bounded(0).with_idleness(timedelta(milliseconds=300)))
    stamping.push([5])
    for _ in range(5):
        stamping.tick()
    stamping.push([3])
    stamping.tick()
    assert stamping.marks == [Watermark(4), IDLE]


@given(st.lists(st.one_of(st.none(), st.integers(1, 400)), max_size=30), st.integers(1, 1000))
def test_the_idleness_timer_is_its_definition(steps: list[int | None], timeout: int) -> None:
    """None is a record; a number is a question so many milliseconds later."""
    clock = ManualClock()
    timer = IdlenessTimer(clock, timeout / 1000)
    first_silent: float | None = None
    active = False
    for step in steps:
        if step is None:
            timer.activity()
            active = True
            continue
        clock.advance(step / 1000)
        if active:
            active, first_silent, expected = False, None, False
        elif first_silent is None:
            first_silent, expected = clock.monotonic(), False
        else:
            expected = clock.monotonic() - first_silent > timeout / 1000
        assert timer.is_idle() == expected


# -- batches against one record at a time ----------------------------------------------------------

STEPS = st.lists(
    st.one_of(st.just("tick"), st.lists(st.integers(-50, 200), min_size=1, max_size=8)), max_size=12
)
STRATEGIES: dict[str, Callable[[], WatermarkStrategy]] = {
    "monotonous": lambda: bounded(0),
    "bounded": lambda: bounded(7),
    "bounded, idle soon": lambda: bounded(7).with_idleness(timedelta(milliseconds=300)),
    "punctuated": lambda: by_value(WatermarkStrategy.for_generator(OnEven)),
    "own periodic": lambda: by_value(WatermarkStrategy.for_generator(EveryOther)),
    "none": lambda: by_value(WatermarkStrategy.no_watermarks()),
}


def outcome(name: str, steps: list[Any], form: str) -> list[Any]:
    strategy = STRATEGIES[name]()
    stamping = Stamping(strategy.with_timestamp_assigner("t") if form == "columns" else strategy)
    for step in steps:
        if step == "tick":
            stamping.tick()
        elif form == "columns":
            stamping.columns(step)
        else:
            for part in [step] if form == "batches" else [[value] for value in step]:
                stamping.push(part)
    stamping.chain.finish()
    return stamping.flat


@given(st.sampled_from(sorted(set(STRATEGIES) - {"punctuated", "own periodic"})), STEPS)
def test_batches_columns_and_single_records_give_the_same(name: str, steps: list[Any]) -> None:
    single = outcome(name, steps, "records")
    assert outcome(name, steps, "batches") == single
    assert outcome(name, steps, "columns") == single


@given(st.sampled_from(["punctuated", "own periodic"]), STEPS)
def test_custom_generators_see_every_record_of_a_batch(name: str, steps: list[Any]) -> None:
    assert outcome(name, steps, "batches") == outcome(name, steps, "records")


@given(
    st.lists(st.lists(st.integers(0, 1000), min_size=1, max_size=6), max_size=12),
    st.integers(0, 50),
)
def test_after_each_batch_the_watermark_is_the_greatest_so_far_less_bound_less_one(
    batches: list[list[int]], bound: int
) -> None:
    stamping, seen = Stamping(bounded(bound)), []
    for batch in batches:
        stamping.push(batch)
        stamping.tick()
        seen += batch
        assert stamping.operator.watermark == max(seen) - bound - 1


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.lists(st.integers(0, 500), min_size=1, max_size=5)),
        max_size=20,
    ),
    st.integers(0, 40),
)
def test_over_partitions_the_watermark_is_the_least_of_theirs(
    arrivals: list[tuple[int, list[int]]], bound: int
) -> None:
    """Three subtasks of a source, one valve behind them."""
    subtasks = [Stamping(bounded(bound)) for _ in range(3)]
    valve = WatermarkValve(3)
    passed = [0] * 3
    seen = [[MIN_TIMESTAMP + bound + 1] for _ in range(3)]
    for number, batch in arrivals:
        subtasks[number].push(batch)
        subtasks[number].tick()
        seen[number] += batch
        for mark in subtasks[number].marks[passed[number] :]:
            valve.watermark_from(number, mark)
        passed[number] = len(subtasks[number].marks)
        assert valve.watermark == min(max(stamps) - bound - 1 for stamps in seen)


def test_stamps_travel_through_a_chain_with_other_operators() -> None:
    operator = TimestampsAndWatermarksOperator(bounded(0))
    harness = ChainHarness(
        linear(
            MapOperator(lambda x: x + 1),
            operator,
            MapOperator(lambda x: -x),
            MapOperator(lambda x: x * 2),
        )
    )
    harness.push([1, 2])
    harness.timers.advance(INTERVAL)
    assert harness.writers[0].stamped == [(-4, 2), (-6, 3)]
    assert harness.writers[0].controls == [Watermark(2)]
    harness.chain.close()


def test_the_bounded_generator_is_usable_on_its_own() -> None:
    class Last(WatermarkOutput):
        watermark = 0

        def emit_watermark(self, watermark: Watermark | int) -> None:
            assert isinstance(watermark, int)
            self.watermark = watermark

        def mark_idle(self) -> None: ...

        def mark_active(self) -> None: ...

    generator, output = BoundedOutOfOrdernessWatermarks(timedelta(seconds=1)), Last()
    generator.on_event("x", 5000, output)
    generator.on_event("y", 3000, output)
    generator.on_periodic_emit(output)
    assert output.watermark == 3999


def test_the_operator_says_where_it_stands() -> None:
    operator = TimestampsAndWatermarksOperator(bounded(0))
    assert repr(operator) == "<TimestampsAndWatermarksOperator, not open>"
    stamping = Stamping(bounded(0))
    stamping.push([5])
    stamping.tick()
    assert repr(stamping.operator) == "<TimestampsAndWatermarksOperator at <WatermarkEmitter at 4>>"
