"""The built-in aggregates of rows in every form (running, slices, windows, sessions, batch) against
what ``docs/values.md`` says of a list."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.aggregates.builtin import BUILT_IN
from flinkpy.aggregates.of_records import OF_RECORDS, FieldAggregate
from flinkpy.common.types import Row
from flinkpy.core.elements import MAX_TIMESTAMP, RowBatch, Watermark
from flinkpy.core.errors import UserCodeError
from flinkpy.datastream import AllWindowedStream, KeyedStream, WindowedStream
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.batch.batch_forms import batch_form
from flinkpy.operators.rows.keyed import KeyedAggregateOperator
from flinkpy.table.expressions import col
from flinkpy.windowing.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows
from flinkpy.windowing.general.contents import ReduceContents
from flinkpy.windowing.general.window_operator import WindowOperator
from flinkpy.windowing.session_windows import EventTimeSessionWindows
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.windowing_strategy import WindowingStrategy
from tests.values import DECIMALS, NUMBERS, add_up, is_nan, shown
from tests.windowing.slice_harness import Alone, row_windows

KEY = KeySpec(selector=lambda record: 0)
VALUES = st.lists(NUMBERS, min_size=1, max_size=12).filter(add_up) | st.lists(
    DECIMALS, min_size=1, max_size=12
)


def in_pair(value: Any, number: int) -> Any:
    return number, value


def in_dict(value: Any, number: int) -> Any:
    return {"n": number, "v": value}


def in_row(value: Any, number: int) -> Any:
    return Row(n=number, v=value)


def alone(value: Any, number: int) -> Any:
    return value


def mixed(value: Any, number: int) -> Any:
    return {"n": number, "v": value} if number % 3 else Row(n=number, v=value)


SHAPES: dict[str, tuple[Callable[[Any, int], Any], Any]] = {
    "pairs": (in_pair, 1),
    "dicts": (in_dict, "v"),
    "rows": (in_row, "v"),
    "numbers": (alone, 0),
    "dicts and rows": (mixed, "v"),
}


def value_in(record: Any) -> Any:
    return (
        record[1]
        if isinstance(record, tuple)
        else record["v"]
        if isinstance(record, (dict, Row))
        else record
    )


def replaced(record: Any, value: Any) -> Any:
    if isinstance(record, tuple):
        return record[0], value
    return (
        {**record, "v": value}
        if isinstance(record, dict)
        else Row(n=record["n"], v=value)
        if isinstance(record, Row)
        else value
    )


def wanted(kind: str, records: list[Any]) -> Any:
    """Worked out of all of them at once."""
    present = [record for record in records if value_in(record) is not None]
    if not present:
        return records[0]
    values = list(map(value_in, present))
    if kind == "sum":
        total = values[0]
        for value in values[1:]:
            total = total + value
        return replaced(records[0], total)
    numbers = [value for value in values if not is_nan(value)]
    if kind.startswith("min"):
        at = values.index(min(numbers)) if numbers else 0
    else:
        at = next((at for at, value in enumerate(values) if is_nan(value)), -1)
        at = values.index(max(numbers)) if at < 0 else at
    if kind.endswith("_by"):
        return present[at]
    return replaced(records[0], values[at])


@pytest.mark.parametrize("kind", OF_RECORDS)
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=60)
@given(values=VALUES, size=st.sampled_from([1, 3, 12]))
@example(values=[None, 2, None], size=3)
@example(values=[3.0, float("nan"), 1.0], size=3)
@example(values=[float("nan"), 3.0, 1.0], size=1)
@example(values=[0.0, -0.0, 0], size=3)
def test_running_it_is_that_of_the_records_so_far(
    kind: str, shape: str, values: list[Any], size: int
) -> None:
    made, position = SHAPES[shape]
    records = [made(value, number) for number, value in enumerate(values)]
    subtask = Alone(KeyedAggregateOperator(kind, position, KEY))
    for at in range(0, len(records), size):
        batch = records[at : at + size]
        subtask.push(RowBatch(batch, [1] * len(batch)))
    found = [record for record, _ in subtask.results]
    assert shown(found) == shown(
        [wanted(kind, records[: number + 1]) for number in range(len(records))]
    )


def reduced(kind: str, position: Any) -> ReduceContents:
    return ReduceContents(FieldAggregate(kind, position).update)


FORMS: dict[str, Callable[[str, Any], Any]] = {
    "batch": lambda kind, position: batch_form(KeyedAggregateOperator(kind, position, KEY)),
    "slices": lambda kind, position: row_windows(KEY, Slicing(10, 10, 0), True, kind, position),
    "slices that overlap": lambda kind, position: row_windows(
        KEY, Slicing(10, 5, 0), True, kind, position
    ),
    "slices of all": lambda kind, position: row_windows(
        None, Slicing(10, 5, 0), True, kind, position
    ),
    "windows": lambda kind, position: WindowOperator(
        KEY, WindowingStrategy(TumblingEventTimeWindows(10)), reduced(kind, position)
    ),
    "windows that overlap": lambda kind, position: WindowOperator(
        KEY, WindowingStrategy(SlidingEventTimeWindows(10, 5)), reduced(kind, position)
    ),
    "sessions": lambda kind, position: WindowOperator(
        KEY, WindowingStrategy(EventTimeSessionWindows(50)), reduced(kind, position)
    ),
}


@pytest.mark.parametrize("kind", OF_RECORDS)
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=40)
@given(
    values=VALUES,
    shape=st.sampled_from(sorted(SHAPES)),
    size=st.sampled_from([1, 12]),
    restart=st.booleans(),
)
@example(values=[1, None, 2], shape="pairs", size=1, restart=False)
def test_of_a_window_or_a_batch_it_is_that_of_all_records(
    kind: str, form: str, values: list[Any], shape: str, size: int, restart: bool
) -> None:
    made, position = SHAPES[shape]
    records = [made(value, number) for number, value in enumerate(values)]
    subtask = Alone(FORMS[form](kind, position))
    for at in range(0, len(records), size):
        if restart and at == size and form != "batch":
            subtask = Alone(FORMS[form](kind, position), subtask.snapshot())
        batch = records[at : at + size]
        subtask.push(RowBatch(batch, [7] * len(batch)))
    subtask.push(Watermark(MAX_TIMESTAMP))
    if form == "batch":
        subtask.operator.finish()
        while subtask.operator.has_rest:
            subtask.operator.emit_rest()
    found = [record for record, _ in subtask.results]
    assert shown(found) == shown(
        [wanted(kind, records)] * (2 if "overlap" in form or form == "slices of all" else 1)
    )


@given(values=VALUES, at=st.integers(0, 12))
@pytest.mark.parametrize("kind", [kind for kind in OF_RECORDS if kind != "sum"])
def test_parts_can_be_put_together(kind: str, values: list[Any], at: int) -> None:
    update = FieldAggregate(kind, 1).update
    records = list(enumerate(values))
    parts = [part for part in (records[:at], records[at:]) if part]
    found = wanted(kind, parts[0])
    for part in parts[1:]:
        found = update(found, wanted(kind, part))
    assert shown(found) == shown(wanted(kind, records))


@pytest.mark.parametrize("kind", OF_RECORDS)
@pytest.mark.parametrize("stream", [KeyedStream, WindowedStream, AllWindowedStream])
def test_every_aggregate_of_records_is_a_verb(stream: type[Any], kind: str) -> None:
    assert callable(getattr(stream, kind))


def test_a_percentile_is_one_of_expressions() -> None:
    assert repr(col("v").percentile(0.9)) == f"{col('v')!r}.percentile(0.9)"


@pytest.mark.parametrize("name", sorted(BUILT_IN.keys() - {"percentile"}))
def test_every_aggregate_is_one_of_expressions(name: str) -> None:
    assert repr(getattr(col("v"), name)) == f"{col('v')!r}.{name}"


def test_what_cannot_be_added_up_is_an_error_of_the_user() -> None:
    with pytest.raises(UserCodeError, match="unsupported operand") as caught:
        Alone(KeyedAggregateOperator("sum", 1, KEY)).push(RowBatch([(0, 1), (0, "x")], [1, 1]))
    assert caught.value.record == "(0, 'x')"
