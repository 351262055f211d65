"""Window joins and window ranks against their plain-Python forms, over disordered rows with late
ones among them, stopped and started again with another parallelism. And by which clock windows over
instants go."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.columns.sql.calc_program import CalcProgram, ProgramBuilder
from flinkpy.common.logical_types.logical_type import BigIntType, BooleanType
from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.errors import SavepointRestoreError
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.ordering.rank_rows import RankSpec
from flinkpy.relational.windows.held_aggregates import HeldAggregatesOperator
from flinkpy.relational.windows.held_windows import WindowedInput, slicing_for
from flinkpy.relational.windows.joined_windows import JoinedWindowsOperator
from flinkpy.relational.windows.partial_aggregates import PartialAggregatesOperator
from flinkpy.relational.windows.ranked_windows import RankedWindowsOperator
from flinkpy.relational.windows.sessions.held_sessions import HeldSessionsOperator
from flinkpy.relational.windows.sessions.rows_of_sessions import RowsOfSessionsOperator
from flinkpy.relational.windows.sessions.session_aggregates import SessionAggregatesOperator
from flinkpy.relational.windows.sql_slices import SqlAggregateSlices
from flinkpy.relational.windows.wall_clock import AS_IT_IS, WallClock
from flinkpy.relational.windows.window_times import windows_of
from flinkpy.sql.rex.relational_terms import JoinKind, WindowKind, WindowSpec
from flinkpy.sql.rex.rex_nodes import AggregateCall, SortKey
from flinkpy.windowing.slices.operator import SliceOperator
from tests.operators.joining import Record, Subtasks, disordered, without_restarts
from tests.windowing.joins import late_in

TIME = pa.timestamp("ms")
ROWS = pa.schema(
    [("k", pa.int64()), ("v", pa.float64()), ("n", pa.int64()), ("ws", TIME), ("we", TIME)]
)
KINDS = [
    WindowSpec(WindowKind.TUMBLE, 0, 6, offset=1),
    WindowSpec(WindowKind.HOP, 0, 9, 4),
    WindowSpec(WindowKind.CUMULATE, 0, 6, 2),
]
BOUNDS = (3, 4)
# A row: key, value, number, start and end of its window
Row: TypeAlias = "tuple[Any, ...]"


class RowsOfSessions(RowsOfSessionsOperator):
    """Takes both inputs of a test as one."""

    process_batch1 = process_batch2 = RowsOfSessionsOperator.process_batch


class RankedWindows(RankedWindowsOperator):
    """The same for ranks."""

    process_batch1 = process_batch2 = RankedWindowsOperator.process_batch


class ThinnedWindows(RankedWindows):
    most = 1


def values_of(number: int) -> Any:
    return [None, float("nan"), -1.5, 0.0, 2.5][number % 5]


def windowed(window: WindowSpec) -> Callable[[Sequence[Record]], list[Row]]:
    """The rows of records, once for each of their windows."""

    def rows(records: Sequence[Record]) -> list[Row]:
        times = np.array([stamp for _, stamp in records])
        return [
            (key, values_of(number), number, start, end)
            for at, start, end in zip(*(each.tolist() for each in windows_of(window, times)))
            for (key, number), _ in [records[at]]
        ]

    return rows


def batch_of(rows: Sequence[Row]) -> Batch:
    arrays = [
        pa.array(column, pa.int64()).cast(field.type)
        if field.type == TIME
        else pa.array(column, field.type)
        for column, field in zip(zip(*rows), ROWS)
    ]
    return ColumnBatch(pa.RecordBatch.from_arrays(arrays, schema=ROWS))


def shown(row: Sequence[Any]) -> Row:
    return tuple(
        (each - datetime.datetime(1970, 1, 1)) // datetime.timedelta(milliseconds=1)
        if isinstance(each, datetime.datetime)
        else "NaN"
        if each != each
        else each
        for each in row
    )


def some_null(steps: Sequence[Any]) -> list[Any]:
    """The steps, in which every fourth key is null."""
    return [
        (
            step[0],
            [((None if key == 3 else key, number), stamp) for (key, number), stamp in step[1]],
        )
        if isinstance(step, tuple) and step[0] != "restart"
        else step
        for step in steps
    ]


def by_plain_python(
    steps: Sequence[Any],
    rows_of: Callable[[Sequence[Record]], list[Row]],
    results: Callable[[list[Row], list[Row]], Iterator[Row]],
) -> tuple[Counter[Row], int]:
    """What comes of these steps, and how many rows are late."""
    windows: dict[int, tuple[list[Row], list[Row]]] = {}
    found: Counter[Row] = Counter()
    watermark, late = -(2**63), 0
    for step in without_restarts(steps):
        if isinstance(step, int):
            watermark = max(watermark, step)
            for end in sorted(end for end in windows if end - 1 <= watermark):
                found.update(map(shown, results(*windows.pop(end))))
            continue
        for row in rows_of(step[1]):
            if row[-1] - 1 <= watermark:
                late += 1
            else:
                windows.setdefault(row[-1], ([], []))[step[0]].append(row)
    return found, late


def joined(kind: JoinKind, is_less: bool) -> Callable[[list[Row], list[Row]], Iterator[Row]]:
    """The join by key; ``is_less``: of rows whose number on the left is less."""

    def meets(one: Row, other: Row) -> bool:
        return one[0] is not None and one[0] == other[0] and (not is_less or one[2] < other[2])

    def results(left: list[Row], right: list[Row]) -> Iterator[Row]:
        nothing = (None,) * len(ROWS)
        for one in left:
            partners = [other for other in right if meets(one, other)]
            if kind in (JoinKind.SEMI, JoinKind.ANTI):
                if bool(partners) == (kind is JoinKind.SEMI):
                    yield one
                continue
            yield from (one + other for other in partners)
            if not partners and kind in (JoinKind.LEFT, JoinKind.FULL):
                yield one + nothing
        if kind in (JoinKind.RIGHT, JoinKind.FULL):
            yield from (
                nothing + other for other in right if not any(meets(one, other) for one in left)
            )

    return results


def less() -> CalcProgram:
    builder = ProgramBuilder()
    sides = [builder.input(at, BigIntType()) for at in (2, 2 + len(ROWS))]
    return builder.program([], builder.call("<", sides, BooleanType()))


@given(
    st.sampled_from(JoinKind),
    disordered(),
    st.sampled_from(KINDS),
    st.booleans(),
    st.integers(1, 3),
)
@settings(max_examples=10)
def test_rows_of_one_window_are_joined_when_it_closes(
    kind: JoinKind, steps: list[Any], window: WindowSpec, is_less: bool, parallelism: int
) -> None:
    spec = JoinSpec(kind, (0,), (0,), condition=less() if is_less else None)
    is_single = kind in (JoinKind.SEMI, JoinKind.ANTI)
    right = [field.with_name(f"{field.name}_r") for field in ROWS]
    schema = ROWS if is_single else pa.schema([*ROWS, *right])
    side = WindowedInput(
        ROWS, WindowSpec(window.kind, 0, window.size, window.step, bounds=BOUNDS), ("k",)
    )
    rows_of = windowed(window)
    steps = some_null(steps)
    of = Subtasks(
        lambda: JoinedWindowsOperator(spec, side, side, AS_IT_IS, schema),
        parallelism,
        lambda side, records: batch_of(rows_of(records)),
    )
    found = Counter(shown(row) for row, _ in of.run(steps).main)
    expected, late = by_plain_python(steps, rows_of, joined(kind, is_less))
    assert found == expected
    assert ("restart" in str(steps)) or late_in(of) == late
    assert sum(each.entries_held() for each in of.operators) == 0


def ranked(last: int) -> Callable[[list[Row], list[Row]], Iterator[Row]]:
    """The first rows of each key and window, by value and number, NaN above all."""

    def results(left: list[Row], right: list[Row]) -> Iterator[Row]:
        del right
        for key in {row[0] for row in left}:
            rows = [row for row in left if row[0] == key]
            rows.sort(key=lambda row: (row[1] is not None, row[1] != row[1], row[1] or 0, row[2]))
            for place, row in enumerate(rows[:last], 1):
                yield (*row, place)

    return results


@given(disordered(), st.sampled_from(KINDS), st.integers(1, 3), st.integers(1, 3), st.booleans())
@settings(max_examples=25)
def test_the_first_rows_of_a_window_go_out_when_it_closes(
    steps: list[Any], window: WindowSpec, last: int, parallelism: int, is_thinned: bool
) -> None:
    spec = RankSpec("ROW_NUMBER", (0,), (SortKey(1), SortKey(2)), 1, last, gives_rank=True)
    bounded = WindowSpec(window.kind, 0, window.size, window.step, bounds=BOUNDS)
    input = WindowedInput(ROWS, bounded, ("k",))
    schema = pa.schema([*ROWS, ("rank", pa.int64())])
    rows_of = windowed(window)

    steps = [
        step if isinstance(step, int) or step[0] == "restart" else (0, step[1])
        for step in some_null(steps)
    ]

    kind = ThinnedWindows if is_thinned else RankedWindows
    of = Subtasks(
        lambda: kind(spec, input, AS_IT_IS, schema),
        parallelism,
        lambda side, records: batch_of(rows_of(records)),
    )
    found = Counter(shown(row) for row, _ in of.run(steps).main)
    assert found == by_plain_python(steps, rows_of, ranked(last))[0]


def by_sessions_of_plain_python(steps: Sequence[Any], gap: int) -> tuple[Counter[Row], int]:
    """Row by row, as Flink merges the windows of sessions."""
    open_ones: dict[Any, list[tuple[int, int, list[Row]]]] = {}
    found: Counter[Row] = Counter()
    watermark, late = -(2**63), 0
    for step in without_restarts(steps):
        if isinstance(step, int):
            watermark = max(watermark, step)
            for sessions in open_ones.values():
                for each in [each for each in sessions if each[1] - 1 <= watermark]:
                    sessions.remove(each)
                    found.update((*row, each[0], each[1]) for row in each[2])
            continue
        for (key, number), stamp in step[1]:
            start, end = stamp, stamp + gap
            sessions = open_ones.setdefault(key, [])
            near = [each for each in sessions if each[0] <= end and each[1] >= start]
            end = max([end, *(each[1] for each in near)])
            if end - 1 <= watermark:
                late += 1
                continue
            sessions[:] = [each for each in sessions if each not in near]
            rows = [row for each in near for row in each[2]]
            first = min([start, *(each[0] for each in near)])
            sessions.append((first, end, [*rows, (key, number, stamp)]))
    return found, late


@given(disordered(), st.integers(1, 8), st.integers(1, 3))
@settings(max_examples=15)
def test_rows_of_a_session_go_out_when_it_ends(
    steps: list[Any], gap: int, parallelism: int
) -> None:
    rows = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("t", TIME)])
    schema = pa.schema([*rows, ("ws", TIME), ("we", TIME), ("wt", TIME)])
    window = WindowSpec(WindowKind.SESSION, 2, gap, partition=(0,))
    steps = some_null(steps)

    def batch_of_stamped(side: int, records: Sequence[Record]) -> Batch:
        keys, numbers = zip(*(value for value, _ in records))
        times = pa.array([stamp for _, stamp in records], pa.int64()).cast(TIME)
        arrays = [pa.array(keys, pa.int64()), pa.array(numbers), times]
        return ColumnBatch(pa.RecordBatch.from_arrays(arrays, schema=rows))

    of = Subtasks(
        lambda: RowsOfSessions(WindowedInput(rows, window, ("k",)), AS_IT_IS, schema),
        parallelism,
        batch_of_stamped,
    )
    found = [shown(row) for row, _ in of.run(steps).main]
    expected, late = by_sessions_of_plain_python(steps, gap)
    assert Counter(row[:5] for row in found) == expected
    assert all(row[5] == row[4] - 1 for row in found)
    assert ("restart" in str(steps)) or late_in(of) == late


class SessionAggregates(SessionAggregatesOperator):
    """The same for aggregates."""

    process_batch1 = process_batch2 = SessionAggregatesOperator.process_batch


class HeldSessions(HeldSessionsOperator):
    """The same for those that need rows."""

    process_batch1 = process_batch2 = HeldSessionsOperator.process_batch


BIG = BigIntType()
OF_SESSIONS = [
    AggregateCall("COUNT", (), BIG),
    AggregateCall("SUM", (1,), BIG),
    AggregateCall("COUNT", (3,), BIG, distinct=True),
    AggregateCall("MAX", (2,), BIG),
]


@given(disordered(), st.integers(1, 8), st.integers(1, 3), st.booleans(), st.booleans())
@settings(max_examples=15)
def test_aggregates_of_a_session_are_merged_until_it_ends(
    steps: list[Any], gap: int, parallelism: int, is_held: bool, has_key: bool
) -> None:
    """Also without a key, where all rows are of the same sessions."""
    rows = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("t", TIME), ("d", pa.int64())])
    results = [("c", pa.int64()), ("s", pa.int64()), ("d", pa.int64()), ("m", TIME)]
    bounds = [("ws", TIME), ("we", TIME), ("wt", TIME)]
    schema = pa.schema([*([("k", pa.int64())] if has_key else []), *results, *bounds])
    partition = (0,) if has_key else ()
    window = WindowSpec(WindowKind.SESSION, 2, gap, partition=partition)
    steps = some_null(steps)
    if not has_key:
        steps = [
            step
            if isinstance(step, int) or step[0] == "restart"
            else (step[0], [((None, number), stamp) for (_, number), stamp in step[1]])
            for step in steps
        ]

    def batch_of_stamped(side: int, records: Sequence[Record]) -> Batch:
        keys, numbers = zip(*(value for value, _ in records))
        times = pa.array([stamp for _, stamp in records], pa.int64()).cast(TIME)
        few = pa.array([each % 3 or None for each in numbers], pa.int64())
        arrays = [pa.array(keys, pa.int64()), pa.array(numbers), times, few]
        return ColumnBatch(pa.RecordBatch.from_arrays(arrays, schema=rows))

    made = HeldSessions if is_held else SessionAggregates
    words = ("window_start", "window_end", "window_time")
    input = WindowedInput(rows, window, ("k",) if has_key else ())
    of = Subtasks(
        lambda: made(OF_SESSIONS, words, input, AS_IT_IS, schema), parallelism, batch_of_stamped
    )
    found = [shown(row) for row, _ in of.run(steps).main]
    of_rows, late = by_sessions_of_plain_python(steps, gap)
    sessions: dict[Any, list[Row]] = {}
    for key, number, stamp, start, end in of_rows.elements():
        sessions.setdefault((key, start, end), []).append((number, stamp))
    expected = Counter(
        (
            *([key] if has_key else []),
            len(members),
            sum(number for number, _ in members),
            len({number % 3 for number, _ in members if number % 3}),
            max(stamp for _, stamp in members),
            *(start, end, end - 1),
        )
        for (key, start, end), members in sessions.items()
    )
    assert Counter(found) == expected
    assert ("restart" in str(steps)) or late_in(of) == late


# -- clocks ----------------------------------------------------------------------------------------


def timer_of_flink(local: int, zone: str) -> int:
    """``TimeWindowUtil.toEpochMillsForTimer``: when the timer of a local time fires."""

    def instant(moment: int) -> int:
        shown_at = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=moment)
        placed = shown_at.replace(tzinfo=ZoneInfo(zone))
        return (placed - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)) // (
            datetime.timedelta(milliseconds=1)
        )

    hour = 3_600_000
    one, other = instant(local), instant(local + hour)
    if other - one > hour:
        return other - hour
    return one - one % hour if one == other else one


CHANGES = [1_710_054_000_000, 1_730_613_600_000]  # in New York, 2024


@given(st.sampled_from(CHANGES), st.integers(-7_300, 7_300), st.integers(-7_300, 7_300))
@settings(max_examples=60)
def test_a_local_time_has_passed_when_flinks_timer_for_it_fires(
    change: int, local: int, watermark: int
) -> None:
    zone = "America/New_York"
    clock = WallClock(zone)
    moment = int(clock.local(np.array([change]))[0]) + local * 1000 + 999
    until = change + watermark * 1000
    timer = timer_of_flink(moment, zone)
    assert (clock.passed(until) >= moment) == (timer <= until)
    # an hour that the clock skips has passed for Flink when it is skipped
    assert clock.moment(moment) == timer or clock.passed(timer) > moment


def test_local_times_and_their_instants() -> None:
    clock = WallClock("America/New_York")
    hour = 3_600_000
    forward, back = CHANGES
    shown_at = clock.local(np.array([forward - 1, forward, back - 1, back]))
    assert np.diff(shown_at).tolist()[::2] == [hour + 1, 1 - hour]
    assert clock.instants(shown_at).tolist() == [forward - 1, forward, back - 1, back - hour]
    assert AS_IT_IS.passed(5) == 5
    assert clock.passed(2**63 - 1) == 2**63 - 1


def test_windows_of_processing_time_close_by_the_clock_and_at_the_end() -> None:
    rows = pa.schema([("k", pa.int64()), ("p", TIME)])
    schema = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("we", TIME)])
    window = WindowSpec(WindowKind.TUMBLE, 1, 6_000, is_local=True, is_processing=True)
    count = AggregateCall("COUNT", (), BigIntType())
    clock = WallClock("Asia/Kolkata")  # 5 hours and 30 minutes ahead

    class Slices(SliceOperator):
        process_batch1 = process_batch2 = SliceOperator.process_batch

    def batch(side: int, records: Sequence[Record]) -> Batch:
        keys = pa.array([value[0] for value, _ in records], pa.int64())
        times = pa.nulls(len(records), TIME)  # when a row comes is what counts
        return ColumnBatch(pa.RecordBatch.from_arrays([keys, times], schema=rows))

    store = SqlAggregateSlices(("k",), [count], window, ("window_end",), schema, clock)
    of = Subtasks(lambda: Slices(store, slicing_for(window), event_time=False), 1, batch)
    start = of.timers.now_ms()
    of.push(0, [((1, 0), 0), ((1, 1), 0)])
    of.timers.advance(6)
    of.push(0, [((1, 2), 0)])
    of.watermark(2**63 - 1)
    end = (start // 6_000 + 1) * 6_000 + (5 * 60 + 30) * 60_000
    assert [shown(row) for row, _ in of.output.main] == [(1, 2, end), (1, 1, end + 6_000)]


def test_state_with_the_rows_of_distinct_windows_goes_on_as_parts() -> None:
    """Savepoints from when rows were held; and no other query goes on from them."""
    rows = pa.schema([("k", pa.int64()), ("n", pa.int64()), ("t", TIME)])
    schema = pa.schema([("k", pa.int64()), ("d", pa.int64()), ("we", TIME)])
    window = WindowSpec(WindowKind.HOP, 2, 6, 3)

    def made(form: Any, call: AggregateCall) -> Callable[[], Any]:
        class OfBoth(form):  # type: ignore[misc]
            process_batch1 = process_batch2 = form.process_batch

        input = WindowedInput(rows, window, ("k",))
        return lambda: OfBoth([call], ("window_end",), input, AS_IT_IS, schema)

    def batch_of_stamped(side: int, records: Sequence[Record]) -> Batch:
        arrays: list[Any] = [pa.array(each, pa.int64()) for each in zip(*(v for v, _ in records))]
        arrays.append(pa.array([stamp for _, stamp in records], pa.int64()).cast(TIME))
        return ColumnBatch(pa.RecordBatch.from_arrays(arrays, schema=rows))

    distinct = AggregateCall("COUNT", (1,), BIG, distinct=True)
    of = Subtasks(made(HeldAggregatesOperator, distinct), 2, batch_of_stamped)
    of.push(0, [((1, 5), 1), ((1, 5), 2), ((1, 6), 4), ((2, 5), 4)])
    of.watermark(2)
    of._make = made(PartialAggregatesOperator, distinct)
    of.restart(1)
    of.push(0, [((1, 7), 5)])
    of.watermark(8)
    expected = [(1, 1, 3), (1, 3, 6), (2, 1, 6), (1, 2, 9), (2, 1, 9)]
    assert sorted(shown(row) for row, _ in of.output.main) == sorted(expected)
    of.push(0, [((1, 7), 9)])
    of._make = made(PartialAggregatesOperator, AggregateCall("SUM", (1,), BIG, distinct=True))
    with pytest.raises(SavepointRestoreError, match=r"it has \[k, COUNT\(DISTINCT n\)\] in HOP"):
        of.restart(1)
