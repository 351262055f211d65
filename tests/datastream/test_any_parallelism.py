"""Every kind of window and join as whole jobs: one subtask or four, rows or columns, streaming or
batch, the results are those of the definition.

Watermarks stand in the script, and one source subtask reads it, so that also which records are late
does not depend on the parallelism."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.common import Duration, OutputTag, Time, Types, WatermarkStrategy
from flinkpy.datastream import (
    AggregateFunction,
    DataStream,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    RuntimeExecutionMode,
)
from flinkpy.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    TumblingEventTimeWindows,
)
from flinkpy.table.expressions import col
from flinkpy.testing import At, CollectingSink, ScriptedSource, Watermark, embedded_environment
from tests.windowing.test_window_properties import Model

LATE = OutputTag("late")


def ms(count: int) -> Time:
    return Time.milliseconds(count)


ASSIGNERS: dict[str, Any] = {  # the windows of the model
    "tumbling": TumblingEventTimeWindows.of(ms(10), ms(3)),
    "sliding": SlidingEventTimeWindows.of(ms(12), ms(5), ms(1)),
    "sparse": SlidingEventTimeWindows.of(ms(3), ms(7)),
    "sessions": EventTimeSessionWindows.with_gap(ms(6)),
    "dynamic sessions": EventTimeSessionWindows.with_dynamic_gap(lambda record: 1 + record[1] % 9),
}
GRIDS = ["tumbling", "sliding", "sparse"]


def script(seed: int) -> list[Any]:
    """Records and watermarks; some come before the watermark that passes them, some behind it."""
    chance = random.Random(seed)
    items: list[Any] = []
    watermark = 0
    for _ in range(60):
        if chance.random() < 0.3:
            watermark += chance.randrange(1, 9)
            items.append(Watermark(watermark))
        else:
            stamp = max(0, watermark + chance.randrange(-15, 25))
            items.append(At(stamp, (chance.choice("abcdef"), chance.randrange(50), stamp)))
    return items


def model(kind: str, lateness: int, items: list[Any]) -> Model:
    """With the records of all windows that were fired, and the late ones."""
    made = Model(kind, "default", lateness)
    for item in items:
        if isinstance(item, Watermark):
            made.advance(item.timestamp)
        else:
            made.element(item.value, item.timestamp)
    made.advance(2**63 - 1)
    return made


class Spread(AggregateFunction):
    def create_accumulator(self) -> Any:
        return ()

    def add(self, value: Any, accumulator: Any) -> Any:
        return *accumulator, value[1]

    def get_result(self, accumulator: Any) -> Any:
        return max(accumulator) - min(accumulator)

    def merge(self, acc_a: Any, acc_b: Any) -> Any:
        return acc_a + acc_b


class All(ProcessWindowFunction):
    def process(self, key: Any, context: Any, elements: Any) -> Any:
        yield key, context.window().start, tuple(sorted(elements))


def numbers(records: Any) -> list[int]:
    return [record[1] for record in records]


# The call, what of its results is compared, and what that is for (key, start, end, records). Which
# record came first is left out.
CALLS: dict[str, tuple[Callable[[Any], DataStream], Callable[[Any], Any], Callable[..., Any]]] = {
    "reduce": (
        lambda w: w.reduce(lambda a, b: (a[0], a[1] + b[1], 0)),
        lambda r: r[:2],
        lambda key, start, end, records: (key, sum(numbers(records))),
    ),
    "aggregate": (
        lambda w: w.aggregate(Spread()),
        lambda r: r,
        lambda key, start, end, records: max(numbers(records)) - min(numbers(records)),
    ),
    "process": (
        lambda w: w.process(All()),
        lambda r: r,
        lambda key, start, end, records: (key, start, tuple(records)),
    ),
    "max": (
        lambda w: w.max(1),
        lambda r: r[:2],
        lambda key, start, end, records: (key, max(numbers(records))),
    ),
    "count": (lambda w: w.count(), lambda r: r, lambda key, start, end, records: len(records)),
}


def source(items: list[Any], batch: bool = False) -> DataStream:
    env = embedded_environment()
    if batch:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    return env.from_source(ScriptedSource(items))


def run(*streams: DataStream) -> list[list[Any]]:
    """(record, timestamp) pairs of each."""
    sinks = [CollectingSink() for _ in streams]
    for stream, sink in zip(streams, sinks):
        stream.process(Stamped()).sink_to(sink)
    streams[0].get_execution_environment().execute()
    return [sink.values for sink in sinks]


class Stamped(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.timestamp()


@pytest.mark.parametrize("parallelism", [1, 4])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", ASSIGNERS)
def test_windows_of_a_disordered_stream_are_those_of_the_definition(
    kind: str, call: str, parallelism: int
) -> None:
    make, compared, expected = CALLS[call]
    for seed, lateness in ((1, 0), (2, 7)):
        items = script(seed)
        windowed = make(
            source(items)
            .key_by(lambda r: r[0])
            .window(ASSIGNERS[kind])
            .allowed_lateness(lateness)
            .side_output_late_data(LATE)
        )
        found, late = run(windowed.set_parallelism(parallelism), windowed.get_side_output(LATE))
        defined = model(kind, lateness, items)
        assert Counter((compared(record), stamp) for record, stamp in found) == Counter(
            (expected(*fired), fired[2] - 1) for fired in defined.fired
        )
        assert Counter(late) == Counter(defined.late)
        assert defined.late, "a stream without late records would show less"


@pytest.mark.parametrize("parallelism", [1, 4])
@pytest.mark.parametrize("call", ["max", "sum", "count"])
@pytest.mark.parametrize("kind", GRIDS)
def test_columns_give_what_rows_give_also_of_what_is_late(
    kind: str, call: str, parallelism: int
) -> None:
    fields = Types.ROW_NAMED(["k", "n", "at"], [Types.STRING(), Types.LONG(), Types.LONG()])
    expected = {
        "max": lambda records: max(numbers(records)),
        "sum": lambda records: sum(numbers(records)),
        "count": len,
    }[call]
    for seed, lateness in ((3, 0), (4, 7)):
        items = script(seed)
        named = (
            source(items).map(lambda record: record, fields).select(col("k"), col("n"), col("at"))
        )
        windows = (
            named.key_by("k")
            .window(ASSIGNERS[kind])
            .allowed_lateness(lateness)
            .side_output_late_data(LATE)
        )
        windowed = windows.count() if call == "count" else getattr(windows, call)("n")
        assert windowed.is_columnar
        found, late = run(windowed.set_parallelism(parallelism), windowed.get_side_output(LATE))
        defined = model(kind, lateness, items)
        assert Counter(
            (row.k, row["count" if call == "count" else "n"], stamp) for row, stamp in found
        ) == Counter((key, expected(records), end - 1) for key, _, end, records in defined.fired)
        assert Counter((tuple(row), stamp) for row, stamp in late) == Counter(defined.late)


@pytest.mark.parametrize("parallelism", [1, 4])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", ASSIGNERS)
def test_in_batch_nothing_is_late_and_each_window_is_evaluated_once(
    kind: str, call: str, parallelism: int
) -> None:
    make, compared, expected = CALLS[call]
    items = script(5)
    windowed = make(
        source(items, batch=True)
        .key_by(lambda r: r[0])
        .window(ASSIGNERS[kind])
        .side_output_late_data(LATE)
    )
    found, late = run(windowed.set_parallelism(parallelism), windowed.get_side_output(LATE))
    defined = model(kind, 0, [item for item in items if isinstance(item, At)])
    assert Counter((compared(record), stamp) for record, stamp in found) == Counter(
        (expected(*fired), fired[2] - 1) for fired in defined.fired
    )
    assert late == []


# -- joins -----------------------------------------------------------------------------------------

LEFT = [item.value for item in script(6) if isinstance(item, At)]
RIGHT = [item.value for item in script(7) if isinstance(item, At)]


def window_starts(kind: str, stamp: int) -> set[int]:
    return {start for start, _ in Model(kind, "default", 0).spans((None, 0), stamp)}


JOINED = {
    kind: Counter(
        (one, other)
        for one in LEFT
        for other in RIGHT
        if one[0] == other[0]
        for _ in window_starts(kind, one[2]) & window_starts(kind, other[2])
    )
    for kind in GRIDS
}
NEAR = Counter(
    (one, other)
    for one in LEFT
    for other in RIGHT
    if one[0] == other[0] and -5 < other[2] - one[2] <= 3
)


class Near(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Any:
        yield left, right


def first(record: Any) -> Any:
    return record[0]


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("parallelism", [1, 4])
@pytest.mark.parametrize("kind", [*GRIDS, "interval"])
@pytest.mark.parametrize("form", ["rows", "columns"])
def test_joins_are_those_of_the_definition(
    form: str, kind: str, parallelism: int, batch: bool
) -> None:
    env = embedded_environment(parallelism=parallelism)
    if batch:
        env.set_runtime_mode(RuntimeExecutionMode.BATCH)
    patient = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_minutes(1))

    def side(records: list[Any]) -> DataStream:
        if form == "columns":
            table = pa.table(dict(zip(("k", "n", "at"), map(list, zip(*records)))))
            return env.from_arrow(table).assign_timestamps_and_watermarks(
                patient.with_timestamp_assigner("at")
            )
        return env.from_collection(records).assign_timestamps_and_watermarks(
            patient.with_timestamp_assigner(lambda record: record[2])
        )

    left, right, key = side(LEFT), side(RIGHT), "k" if form == "columns" else first
    if kind == "interval":
        joined = (
            left.key_by(key)
            .interval_join(right.key_by(key))
            .between(ms(-5), ms(3))
            .lower_bound_exclusive()
            .process(Near())
        )
    else:
        windows: Any = left.join(right).where(key).equal_to(key).window(ASSIGNERS[kind])
        joined = (
            windows.apply(lambda one, other: (one, other)) if form == "rows" else windows.apply()
        )
    ((found),) = run(joined)
    results = [record for record, _ in found]
    expected = NEAR if kind == "interval" else JOINED[kind]
    if form == "columns" and kind != "interval":
        assert Counter(
            (row.k, row.n, row.n_right, row.at, row.at_right) for row in results
        ) == Counter(
            (one[0], one[1], other[1], one[2], other[2]) for one, other in expected.elements()
        )
    else:
        assert Counter((tuple(one), tuple(other)) for one, other in results) == expected
