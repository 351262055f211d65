"""Programs with windows and joins, over rows and over columns. No record is ever late."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from flinkpy.common import Time, Types
from flinkpy.datastream import (
    DataStream,
    ProcessJoinFunction,
    ProcessWindowFunction,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkpy.table.expressions import col
from flinkpy.testing.simulation.programs.keyed_programs import key_of
from flinkpy.testing.simulation.programs.program_inputs import (
    STEP_MS,
    Fragile,
    keyed_lists,
    read,
    write,
)

KEY_NUMBER = Types.TUPLE([Types.STRING(), Types.LONG()])


def slices(env: StreamExecutionEnvironment) -> None:
    """Sums over overlapping windows, kept as slices."""
    timed = (
        read(env, "input", keyed_lists(3, 50, 5), timed=True)
        .map(Fragile("a map"), output_type=KEY_NUMBER)
        .uid("map")
    )
    write(
        timed.key_by(key_of)
        .window(SlidingEventTimeWindows.of(Time.milliseconds(120), Time.milliseconds(40)))
        .sum(1)
        .uid("sums")
    )


def counted_windows(env: StreamExecutionEnvironment) -> None:
    """How many records each overlapping window has: counted by who sends them, where there are
    several."""
    timed = read(env, "input", keyed_lists(3, 50, 5), timed=True)
    write(
        timed.key_by(key_of)
        .window(SlidingEventTimeWindows.of(Time.milliseconds(120), Time.milliseconds(40)))
        .count()
        .uid("counts")
    )


class Contents(ProcessWindowFunction):
    """All records of a window, in order."""

    def process(
        self, key: object, context: ProcessWindowFunction.Context, elements: Iterable[Any]
    ) -> Iterator[Any]:
        window = context.window()
        yield key, window.start, window.end, sorted(number for _, number in elements)


def sessions(env: StreamExecutionEnvironment) -> None:
    """Windows that merge, with their contents."""
    lists = [
        [(record, time + 500 * (time // 130)) for record, time in records]
        for records in keyed_lists(3, 40, 6)
    ]
    timed = read(env, "input", lists, timed=True)
    write(
        timed.key_by(key_of)
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(90)))
        .process(Contents())
        .uid("sessions")
    )


def count_windows(env: StreamExecutionEnvironment) -> None:
    """Windows that end with a number of records."""
    ones = read(env, "input", keyed_lists(4, 30, 5)).map(lambda record: (record[0], 1)).uid("ones")
    write(
        ones.key_by(key_of).count_window(4).reduce(lambda a, b: (a[0], a[1] + b[1])).uid("counts")
    )


def window_join(env: StreamExecutionEnvironment) -> None:
    """Pairs of two streams within windows."""
    left = read(env, "left", keyed_lists(2, 40, 6), timed=True)
    right = read(env, "right", keyed_lists(2, 30, 6, 50_000), timed=True)
    write(
        left.join(right)
        .where(key_of)
        .equal_to(key_of)
        .window(TumblingEventTimeWindows.of(Time.milliseconds(8 * STEP_MS)))
        .apply(lambda a, b: (a[0], a[1], b[1]))
    )


class Pair(ProcessJoinFunction):
    """Both numbers of two records that are near, with their key."""

    def process_element(
        self, left: Any, right: Any, ctx: ProcessJoinFunction.Context
    ) -> Iterator[Any]:
        Fragile("a join")(left)
        yield left[0], left[1], right[1]


def interval_join(env: StreamExecutionEnvironment) -> None:
    """Pairs of two streams that are near in time."""
    left = read(env, "left", keyed_lists(2, 40, 6), timed=True)
    right = read(env, "right", keyed_lists(2, 30, 6, 50_000), timed=True)
    write(
        left.key_by(key_of)
        .interval_join(right.key_by(key_of))
        .between(Time.milliseconds(-40), Time.milliseconds(60))
        .process(Pair())
        .uid("join")
    )


def columnar_windows(env: StreamExecutionEnvironment) -> None:
    """Aggregates of columns over windows."""
    timed = read(env, "input", keyed_lists(3, 50, 5), timed=True, columns=("key", "number"))
    sums = (
        timed.key_by("key")
        .window(SlidingEventTimeWindows.of(Time.milliseconds(120), Time.milliseconds(40)))
        .aggregate(col("number").sum.alias("total"), col("number").count.alias("count"))
        .uid("sums")
    )
    write(sums)


def columnar_join(env: StreamExecutionEnvironment) -> None:
    """Pairs of two streams of columns within windows."""
    left: DataStream = read(env, "left", keyed_lists(2, 30, 6), timed=True, columns=("key", "a"))
    right = read(env, "right", keyed_lists(2, 30, 6, 50_000), timed=True, columns=("key", "b"))
    write(
        left.join(right)
        .where("key")
        .equal_to("key")
        .window(TumblingEventTimeWindows.of(Time.milliseconds(8 * STEP_MS)))
        .apply()
    )
