"""Windows in two phases against the same windows in one: whatever the records, however late, and
however the senders stand to each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from flinkpy.aggregates.of_records import OF_RECORDS
from flinkpy.columns.aggregate_plan import aggregate_calls
from flinkpy.core.elements import (
    MAX_TIMESTAMP,
    MIN_TIMESTAMP,
    Batch,
    ColumnBatch,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from flinkpy.graph.partitioning import KeySpec
from flinkpy.table.expressions import col
from flinkpy.windowing.slices import local_operator
from flinkpy.windowing.slices.operator import SliceOperator
from flinkpy.windowing.slices.phases import in_two_phases
from flinkpy.windowing.slices.row_slices import RowSlices
from flinkpy.windowing.slicing import Slicing
from tests.operators.harness import do_all
from tests.values import shown
from tests.windowing.slice_harness import (
    ELEMENTS,
    LATE,
    SLICINGS,
    Alone,
    aggregate_windows,
    by_time,
    elements_of,
    field_windows,
    row_windows,
)

KEY = KeySpec(itemgetter(0))
IDLE, BARRIER = "idle", "barrier"
INTERRUPTIONS = st.lists(
    st.tuples(st.integers(0, 14), st.sampled_from([IDLE, BARRIER])), max_size=2
)
NUMBERS = (
    st.integers(-5, 5)
    | st.booleans()
    | st.sampled_from([0.0, -0.0, 1.0, 0.1, math.nan, math.inf, 0.3, -1e-3, 2**70])
)
VALUES = [
    NUMBERS,
    NUMBERS | st.none(),
    st.text("abé", max_size=2),
    st.sampled_from([Decimal("0.1"), Decimal(1), Decimal("-0")]),
    st.lists(st.integers(0, 3), max_size=2),
    st.tuples(st.integers(0, 2), st.text("ab", max_size=1)),
]
KINDS = ["count", *OF_RECORDS]
SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64()), ("x", pa.float64())])


@dataclass
class Sender:
    """The first phase; what it gives is for ``receiver``."""

    operator: Any
    receiver: Alone
    alone: Alone = field(init=False)

    def __post_init__(self) -> None:
        self.alone = Alone(self.operator)
        self.alone.out.emit = self.receiver.push  # type: ignore[method-assign, assignment]
        # a test says what time the receiver has
        self.alone.out.emit_control = lambda element: None  # type: ignore[method-assign]

    def push(self, element: Any) -> None:
        if element == IDLE:
            self.alone.operator.process_watermark_status(WatermarkStatus(True))
        elif element == BARRIER:
            self.alone.operator.prepare_snapshot_pre_barrier(1)
        else:
            self.alone.push(element)


def phases(operator: SliceOperator) -> tuple[Any, Any]:
    found = in_two_phases(operator)
    assert found is not None
    return found.local, found.merging


def with_values(elements: list[Any], values: list[Any]) -> list[Any]:
    """The same records with these values, one after the other."""
    upcoming = iter(values * 200)
    return [
        RowBatch([(key, next(upcoming), tag) for key, _, tag in each.values], each.timestamps)
        if isinstance(each, RowBatch)
        else each
        for each in elements
    ]


def with_interruptions(elements: list[Any], interruptions: list[tuple[int, str]]) -> list[Any]:
    for at, what in interruptions:
        elements.insert(min(at, len(elements) - 1), what)
    return elements


def outcome(run: Any) -> Any:
    """What it gives, or the kind of error it ends with."""
    try:
        return run()
    except Exception as error:
        return type(error), type(error.__cause__)


def in_one(operator: SliceOperator, elements: list[Any]) -> Any:
    windows = Alone(operator)
    for element in elements:
        if not isinstance(element, str):
            windows.push(element)
    return [
        (shown(value), stamp) for value, stamp in by_time(windows.results)
    ], operator.late_records_dropped


def in_two(operator: SliceOperator, elements: list[Any]) -> Any:
    local, merging = phases(operator)
    receiver = Alone(merging)
    sender = Sender(local, receiver)
    for element in elements:
        sender.push(element)
        if isinstance(element, Watermark):
            receiver.push(element)
    return [
        (shown(value), stamp) for value, stamp in by_time(receiver.results)
    ], merging.late_records_dropped


@given(
    ELEMENTS,
    SLICINGS,
    st.sampled_from(KINDS),
    st.sampled_from([0, 0, 3, MAX_TIMESTAMP]),
    INTERRUPTIONS,
    st.sampled_from(VALUES).flatmap(lambda values: st.lists(values, min_size=1, max_size=12)),
)
@example(
    [[(("a", 0, 0), 0), (("a", 0, 0), 0)], 6, [(("a", 0, 0), -8)]],
    Slicing(4, 2, 0),
    "sum",
    3,
    [(1, BARRIER)],
    [0.1, 0.2],
)
def test_one_sender_and_one_receiver_give_what_one_operator_gives(
    drawn: list[Any],
    slicing: Slicing,
    kind: str,
    lateness: int,
    interruptions: list[tuple[int, str]],
    values: list[Any],
) -> None:
    elements = with_interruptions(with_values(elements_of(drawn), values), interruptions)
    position = None if kind == "count" else 1

    def operator() -> SliceOperator:
        return row_windows(KEY, slicing, True, kind, position, lateness=lateness)

    assert outcome(lambda: in_two(operator(), elements)) == outcome(
        lambda: in_one(operator(), elements)
    )


def as_columns(element: Any) -> Any:
    if not isinstance(element, RowBatch):
        return element
    keys, numbers, tags = zip(*element.values)
    floats = pa.array([tag / 10 if tag else None for tag in tags], pa.float64())
    data = pa.record_batch([pa.array(keys), pa.array(numbers, pa.int64()), floats], SCHEMA)
    stamps = pa.array(element.timestamps, pa.int64()).to_numpy()
    return ColumnBatch(data, stamps)


def calls(*aggregates: Any) -> Any:
    return aggregate_calls(aggregates, "aggregate()")


COLUMNAR: dict[str, Callable[[Slicing, int], SliceOperator]] = {
    "sum of whole numbers": lambda slicing, late: field_windows(
        ("k",), slicing, True, "sum", 1, late
    ),
    "sum of floats": lambda slicing, late: field_windows(("k",), slicing, True, "sum", "x", late),
    "max": lambda slicing, late: field_windows(("k",), slicing, True, "max", "x", late),
    "aggregates": lambda slicing, late: aggregate_windows(
        ("k",),
        slicing,
        True,
        calls(
            col("n").count.alias("c"),
            col("n").avg.alias("a"),
            col("x").min.alias("m"),
            (col("n") + 1).sum.alias("s"),
        ),
        late,
    ),
    "aggregates of floats": lambda slicing, late: aggregate_windows(
        ("k",), slicing, True, calls(col("x").sum.alias("s"), col("x").avg.alias("a")), late
    ),
}


@given(
    ELEMENTS, SLICINGS, st.sampled_from(sorted(COLUMNAR)), st.sampled_from([0, 3]), INTERRUPTIONS
)
def test_columns_in_two_phases_are_columns_in_one(
    drawn: list[Any],
    slicing: Slicing,
    form: str,
    lateness: int,
    interruptions: list[tuple[int, str]],
) -> None:
    elements = [as_columns(each) for each in with_interruptions(elements_of(drawn), interruptions)]
    make = COLUMNAR[form]
    assert in_two(make(slicing, lateness), elements) == in_one(make(slicing, lateness), elements)


@given(
    ELEMENTS,
    ELEMENTS,
    SLICINGS,
    st.sampled_from(["count", "sum", "max"]),
    st.sampled_from([0, 3]),
    st.lists(st.booleans(), max_size=30),
)
def test_several_senders_give_what_they_give_together(
    first: list[Any],
    second: list[Any],
    slicing: Slicing,
    kind: str,
    lateness: int,
    turns: list[bool],
) -> None:
    """Their records have two fields, so that it is no matter whose is first."""
    position = None if kind == "count" else 1
    whole = row_windows(KEY, slicing, True, kind, position, lateness=lateness)
    one = Alone(whole)
    local, merging = phases(row_windows(KEY, slicing, True, kind, position, lateness=lateness))
    receiver = Alone(merging)
    senders = [
        Sender(local, receiver),
        Sender(
            phases(row_windows(KEY, slicing, True, kind, position, lateness=lateness))[0], receiver
        ),
    ]
    queues = [elements_of(first), elements_of(second)]
    reached = [MIN_TIMESTAMP, MIN_TIMESTAMP]
    order = [int(turn) for turn in turns] + [0] * len(queues[0]) + [1] * len(queues[1])
    for turn in order:
        if not queues[turn]:
            continue
        element: Any = queues[turn].pop(0)
        if isinstance(element, Watermark):
            reached[turn] = max(reached[turn], element.timestamp)
            senders[turn].push(element)
            one.push(Watermark(min(reached)))
            receiver.push(Watermark(min(reached)))
        else:
            element = RowBatch([record[:2] for record in element.values], element.timestamps)
            one.push(element)
            senders[turn].push(element)
    assert by_time(receiver.results) == by_time(one.results)
    assert merging.late_records_dropped == whole.late_records_dropped


def held_by(operator: SliceOperator, *elements: Any) -> tuple[Any, list[Batch]]:
    alone = Alone(phases(operator)[0])
    alone.out.emit_control = lambda element: None  # type: ignore[method-assign]
    for element in elements:
        alone.push(element)
    return alone.operator, alone.out.batches


def test_a_thousand_records_of_a_key_cross_the_exchange_as_one() -> None:
    operator, sent = held_by(
        row_windows(KEY, Slicing(10, 10, 0), True, "sum", 1),
        RowBatch([("a", 1)] * 1000, [5] * 1000),
    )
    assert sent == []
    do_all(operator.process_watermark(Watermark(8)))
    assert sent == []
    do_all(operator.process_watermark(Watermark(9)))
    assert [(batch.values, batch.timestamps) for batch in sent if isinstance(batch, RowBatch)] == [
        ([("a", ("a", 1000))], [0])
    ]


@pytest.mark.parametrize(
    "values",
    [[0.5], [[1]], [None], ["x", 1]],
    ids=["floats", "what can be changed", "None", "of two kinds"],
)
def test_what_cannot_be_put_together_exactly_goes_at_once(values: list[Any]) -> None:
    _, sent = held_by(
        row_windows(KEY, Slicing(10, 10, 0), True, "sum", 1),
        RowBatch([("a", 1)], [5]),
        RowBatch([("a", each) for each in values], [5] * len(values)),
    )
    assert [batch.values for batch in sent if isinstance(batch, RowBatch)] == [
        [("a", ("a", 1))],
        [("a", ("a", each)) for each in values],
    ]


def test_nothing_is_held_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_operator, "_MOST_HELD", 10)
    operator, sent = held_by(
        row_windows(KEY, Slicing(10, 10, 0), True, "count"),
        *(RowBatch([(key, 0)], [key % 30]) for key in range(100)),
    )
    assert operator.store.held <= 10
    assert sum(map(len, sent)) >= 90


def test_late_records_for_a_side_output_reduce_functions_and_windows_of_the_clock_have_one_phase() -> (
    None
):
    assert in_two_phases(row_windows(KEY, Slicing(10, 10, 0), True, "count", late_tag=LATE)) is None
    assert (
        in_two_phases(row_windows(KEY, Slicing(10, 10, 0), True, "reduce", None, lambda a, b: a))
        is None
    )
    assert in_two_phases(row_windows(KEY, Slicing(10, 10, 0), False, "count")) is None
    assert in_two_phases(row_windows(None, Slicing(10, 10, 0), True, "count")) is None


def test_the_state_of_the_second_phase_is_that_of_one_phase() -> None:
    """So a savepoint fits whatever the parallelism was."""
    one = Alone(row_windows(KEY, Slicing(10, 10, 0), True, "count"))
    one.push(RowBatch([("a", 0), ("b", 0), ("a", 0)], [1, 2, 3]))
    local, merging = phases(row_windows(KEY, Slicing(10, 10, 0), True, "count"))
    receiver = Alone(merging, restored=one.snapshot())
    sender = Sender(local, receiver)
    sender.push(RowBatch([("a", 0)], [4]))
    for each in (sender, receiver):
        each.push(Watermark(MAX_TIMESTAMP))
    assert by_time(receiver.results) == [(1, 9), (3, 9)]
    assert isinstance(merging.store, RowSlices)
