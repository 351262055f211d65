"""Windows over columns against the same windows over rows: aggregates of a field, lists of
aggregates, snapshots, rescaling, forgotten keys."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.columns.aggregate_plan import aggregate_calls
from flinkpy.columns.expression_functions import col
from flinkpy.core.elements import MAX_TIMESTAMP, ColumnBatch, RowBatch, Watermark
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.core.keys import channel_of_key_group, key_group
from flinkpy.graph.partitioning import KeySpec
from flinkpy.state.snapshots.saved_state import SavedState
from flinkpy.windowing.slices import grouped_parts
from flinkpy.windowing.slices.operator import SliceOperator
from flinkpy.windowing.slicing import Slicing
from tests.operators.harness import ManualTimers
from tests.windowing.slice_harness import (
    ELEMENTS,
    LATE,
    MAX_PARALLELISM,
    SLICINGS,
    Alone,
    Model,
    aggregate_windows,
    by_time,
    elements_of,
    field_windows,
    rescaled,
    row_windows,
)

SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64()), ("x", pa.float64())])
TUMBLING, SLIDING = Slicing(10, 10, 0), Slicing(10, 5, 0)
CALLS = aggregate_calls(
    [
        col("n").sum.alias("total"),
        col("n").count.alias("records"),
        (col("n") + 1).min.alias("least"),
        col("x").max.alias("most"),
        col("x").avg.alias("mean"),
        col("k").max.alias("last_key"),
        col("x").count.alias("xs"),
    ],
    "test",
)


def with_floats(drawn: list[Any]) -> list[RowBatch | Watermark]:
    """The third field as a float whose sums are rounded."""
    return [
        element
        if isinstance(element, Watermark)
        else RowBatch([(k, n, x / 7) for k, n, x in element.values], element.timestamps)
        for element in elements_of(drawn)
    ]


def as_columns(element: RowBatch | Watermark, schema: Any = SCHEMA) -> ColumnBatch | Watermark:
    if isinstance(element, Watermark):
        return element
    columns = list(zip(*element.values)) if element.values else [()] * len(schema)
    data = pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, schema)], schema=schema
    )
    return ColumnBatch(data, np.array(element.timestamps, dtype=np.int64))


@pytest.fixture(autouse=True)
def _few_records_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouped_parts, "_WAITING", 3)


@pytest.mark.parametrize("waiting", [0, 5, 1 << 15])
@given(
    ELEMENTS,
    SLICINGS,
    st.sampled_from(["sum", "min", "max"]),
    st.sampled_from([1, 2]),
    st.sampled_from([0, 0, 3, MAX_TIMESTAMP]),
    st.sampled_from([("k",), (), ("k", "n")]),
)
@settings(max_examples=40)
def test_a_field_over_windows_of_columns_is_what_it_is_over_windows_of_rows(
    waiting: int,
    drawn: list[Any],
    slicing: Slicing,
    kind: str,
    position: int,
    lateness: int,
    keys: tuple[str, ...],
) -> None:
    # how many records wait to be grouped changes nothing
    with mock.patch.object(grouped_parts, "_WAITING", waiting):
        compare_with_rows(drawn, slicing, kind, position, lateness, keys)


def compare_with_rows(
    drawn: list[Any],
    slicing: Slicing,
    kind: str,
    position: int,
    lateness: int,
    keys: tuple[str, ...],
) -> None:
    position = 2 if "n" in keys else position
    selectors: dict[tuple[str, ...], Any] = {
        (): None,
        ("k",): KeySpec(lambda row: row[0]),
        ("k", "n"): KeySpec(lambda row: (row[0], row[1])),
    }
    rows = Alone(
        row_windows(selectors[keys], slicing, True, kind, position, None, None, lateness, LATE)
    )
    columns = Alone(
        field_windows(keys, slicing, True, kind, SCHEMA.names[position], lateness, LATE)
    )
    for element in with_floats(drawn):
        rows.push(element)
        columns.push(as_columns(element))
        assert columns.results == rows.results
        assert columns.out.side == rows.out.side
    operator: Any = columns.operator
    assert not operator.store.starts


def expected_row(records: list[Any]) -> tuple[Any, ...]:
    ns = [n for _, n, _ in records if n is not None]
    xs = [x for _, _, x in records if x is not None]
    return (
        sum(ns) if ns else None,
        len(ns),
        min(ns) + 1 if ns else None,
        max(xs) if xs else None,
        sum(xs) / len(xs) if xs else None,
        max(k for k, _, _ in records),
        len(xs),
    )


@given(
    ELEMENTS, SLICINGS, st.sampled_from([0, 3]), st.booleans(), st.randoms(use_true_random=False)
)
@settings(max_examples=60)
def test_aggregates_leave_nulls_out_and_say_of_which_window_they_are(
    drawn: list[Any], slicing: Slicing, lateness: int, keyed: bool, random: Any
) -> None:
    elements = [
        e
        if isinstance(e, Watermark)
        else RowBatch(
            [
                (k, random.choice([n, None]), random.choice([float(x), None]))
                for k, n, x in e.values
            ],
            e.timestamps,
        )
        for e in elements_of(drawn)
    ]
    columns = Alone(
        aggregate_windows(("k",) if keyed else (), slicing, True, CALLS, lateness, LATE)
    )
    model = Model(
        slicing,
        lambda records: (*([records[0][0]] if keyed else []), *expected_row(records)),
        lambda row: row[0] if keyed else None,
        lateness,
    )
    for element in elements:
        columns.push(as_columns(element))
        model.push(element)
    given = columns.results
    for row, stamp in given:
        begin, end = (
            int(moment.timestamp() * 1000 + (0.5 if moment.timestamp() > 0 else -0.5))
            for moment in row[-2:]
        )
        assert (begin, end) == (stamp + 1 - slicing.size, stamp + 1)
    assert by_time([(row[:-2], stamp) for row, stamp in given]) == by_time(model.results)
    assert columns.out.side == model.late


def operators(
    form: str, slicing: Slicing, lateness: int, keys: tuple[str, ...] = ("k",)
) -> SliceOperator:
    if form == "field":
        return field_windows(keys, slicing, True, "sum", "n", lateness, LATE)
    return aggregate_windows(keys, slicing, True, CALLS, lateness, LATE)


@given(
    ELEMENTS,
    SLICINGS,
    st.sampled_from(["field", "aggregates"]),
    st.sampled_from([0, 4]),
    st.integers(0, 14),
    st.sampled_from([("k",), ()]),
)
@settings(max_examples=50)
def test_what_was_restored_goes_on_as_if_it_had_never_failed(
    drawn: list[Any], slicing: Slicing, form: str, lateness: int, cut: int, keys: tuple[str, ...]
) -> None:
    elements = [as_columns(element) for element in with_floats(drawn)]
    whole = Alone(operators(form, slicing, lateness, keys))
    for element in elements[:cut]:
        whole.push(element)
    again = Alone(operators(form, slicing, lateness, keys), whole.snapshot())
    for told in whole.out.watermarks[-1:]:
        again.push(Watermark(told))
    assert again.results == []
    before = len(whole.results), len(whole.out.side)
    for element in elements[cut:]:
        whole.push(element)
        again.push(element)
    assert by_time(again.results) == by_time(whole.results[before[0] :])
    assert again.out.side == whole.out.side[before[1] :]


def share(element: RowBatch | Watermark, subtask: int, parallelism: int) -> ColumnBatch | Watermark:
    if isinstance(element, Watermark) or element.timestamps is None:
        return Watermark(0) if not isinstance(element, Watermark) else element
    pairs = [
        (record, stamp)
        for record, stamp in zip(element.values, element.timestamps)
        if channel_of_key_group(key_group(record[0], MAX_PARALLELISM), MAX_PARALLELISM, parallelism)
        == subtask
    ]
    return as_columns(RowBatch([record for record, _ in pairs], [stamp for _, stamp in pairs]))


@given(
    ELEMENTS,
    SLICINGS,
    st.sampled_from(["field", "aggregates"]),
    st.integers(0, 14),
    st.sampled_from([(1, 3), (3, 1), (2, 3)]),
)
@settings(max_examples=40)
def test_rescaled_subtasks_give_together_what_one_gives(
    drawn: list[Any], slicing: Slicing, form: str, cut: int, scales: tuple[int, int]
) -> None:
    elements = with_floats(drawn)
    whole = Alone(operators(form, slicing, 3))
    for element in elements:
        whole.push(as_columns(element))
    before = [
        Alone(operators(form, slicing, 3), None, subtask, scales[0]) for subtask in range(scales[0])
    ]
    for element in elements[:cut]:
        for subtask, each in enumerate(before):
            each.push(share(element, subtask, scales[0]))
    saved = [each.snapshot() for each in before]
    after = [
        Alone(operators(form, slicing, 3), rescaled(saved, subtask, scales[1]), subtask, scales[1])
        for subtask in range(scales[1])
    ]
    for told in before[0].out.watermarks[-1:]:
        for each in after:
            each.push(Watermark(told))
    for element in elements[cut:]:
        for subtask, each in enumerate(after):
            each.push(share(element, subtask, scales[1]))
    assert by_time([result for each in (*before, *after) for result in each.results]) == by_time(
        whole.results
    )


def test_keys_of_a_subtask_that_was_ahead_are_not_evaluated_twice() -> None:
    keys = {
        channel_of_key_group(key_group(key, MAX_PARALLELISM), MAX_PARALLELISM, 2): key
        for key in "abcdefgh"
    }
    attempts = []
    for subtask, key in keys.items():
        alone = Alone(operators("field", SLIDING, 0), None, subtask, 2)
        alone.push(as_columns(RowBatch([(key, 1, 0.0), (key, 2, 0.0)], [3, 7])))
        attempts.append(alone)
    attempts[0].push(Watermark(9))
    one = Alone(
        operators("field", SLIDING, 0), rescaled([each.snapshot() for each in attempts], 0, 1)
    )
    one.push(Watermark(MAX_TIMESTAMP))
    first = attempts[0].results[0][0][0]
    second = next(key for key in keys.values() if key != first)
    assert by_time(one.results) == by_time(
        [
            ((second, 1, 0.0), 4),
            ((second, 3, 0.0), 9),
            ((second, 2, 0.0), 14),
            ((first, 2, 0.0), 14),
        ]
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("sum", [math.nan, math.nan]), ("min", [2.0, 1.0]), ("max", [math.nan, math.nan])],
)
def test_a_not_a_number_is_the_greatest_of_all_and_makes_every_sum_one(
    kind: str, expected: list[float]
) -> None:
    records = [("a", 1, math.nan), ("a", 1, 2.0), ("b", 1, 2.0), ("b", 1, math.nan), ("b", 1, 1.0)]
    alone = Alone(field_windows(("k",), TUMBLING, True, kind, "x"))
    alone.push(as_columns(RowBatch(records, [1, 2, 3, 4, 5])))
    alone.push(Watermark(9))
    assert repr([value[2] for value, _ in alone.results]) == repr(expected)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([3, 1, 2], pa.timestamp("us")),
        pa.array(["c", "a", None]),
        pa.array([3, 1, 2], pa.int8()),
        pa.array([True, False, True]),
        pa.array([3, 1, 2], pa.date32()),
        pa.array([1.5, 0.5, 2.5], pa.float32()),
    ],
)
@pytest.mark.parametrize("kind", ["min", "max"])
def test_the_extreme_of_any_type_is_of_that_type(column: Any, kind: str) -> None:
    data = pa.RecordBatch.from_arrays([column], names=["v"])
    alone = Alone(field_windows((), SLIDING, True, kind, 0))
    alone.push(ColumnBatch(data, np.array([3, 6, 8])))
    again = Alone(field_windows((), SLIDING, True, kind, 0), alone.snapshot())
    again.push(Watermark(9))
    pick = min if kind == "min" else max
    present = [value for value in column.to_pylist() if value is not None]
    assert [value for (value,), _ in again.results] == [column.to_pylist()[0], pick(present)]
    last = again.out.batches[-1]
    assert isinstance(last, ColumnBatch)
    assert last.data.schema.field(0).type == column.type


def test_keys_that_no_window_holds_any_more_are_forgotten() -> None:
    alone = Alone(
        aggregate_windows(
            ("k",), TUMBLING, True, aggregate_calls([col("n").count.alias("records")], "test")
        )
    )
    operator: Any = alone.operator
    for window in range(20):
        names = [f"key {window} {number}" for number in range(1000)]
        alone.push(
            as_columns(
                RowBatch([(name, 1, 0.0) for name in (*names, *names[:10])], [window * 10] * 1010)
            )
        )
        alone.push(Watermark(window * 10 + 8))
        assert len(operator.store.known_keys) <= 6000
    alone.push(Watermark(MAX_TIMESTAMP))
    assert len(alone.results) == 20_000
    assert {(row[0], row[1]) for row, stamp in alone.results if stamp == 199} == {
        (f"key 19 {number}", 2 if number < 10 else 1) for number in range(1000)
    }


def test_processing_time_windows_are_evaluated_when_the_clock_has_passed_their_end() -> None:
    timers = ManualTimers()
    begin = timers.now_ms() // 1000 * 1000
    timers.advance((begin + 1000 - timers.now_ms()) / 1000)
    alone = Alone(field_windows(("k",), Slicing(1000, 1000, 0), False, "sum", "n"), timers=timers)
    data = as_columns(RowBatch([("a", 1, 0.0), ("b", 2, 0.0), ("a", 3, 0.0)], [0, 0, 0]))
    assert isinstance(data, ColumnBatch)
    alone.push(ColumnBatch(data.data))
    timers.advance(0.999)
    assert alone.results == []
    timers.advance(0.001)
    assert alone.results == [(("a", 4, 0.0), begin + 1999), (("b", 2, 0.0), begin + 1999)]
    assert timers.pending == []


def test_a_sum_that_leaves_64_bits_is_refused_and_one_that_only_comes_near_is_exact() -> None:
    big = 2**62
    alone = Alone(field_windows(("k",), TUMBLING, True, "sum", "n"))
    alone.push(
        as_columns(
            RowBatch(
                [("a", big, 0.0), ("a", -big, 0.0), ("a", big, 0.0), ("a", big - 1, 0.0)],
                [1, 2, 3, 4],
            )
        )
    )
    alone.push(Watermark(9))
    assert alone.results == [(("a", 2 * big - 1, 0.0), 9)]
    alone.push(as_columns(RowBatch([("a", big, 0.0), ("a", big, 0.0)], [11, 12])))
    with pytest.raises(UserCodeError, match="64 bits"):
        alone.push(Watermark(19))


def test_mistakes_are_told() -> None:
    alone = Alone(operators("field", TUMBLING, 0))
    data = as_columns(RowBatch([("a", 1, 1.0)], [1]))
    assert isinstance(data, ColumnBatch)
    with pytest.raises(ProgramError, match="assign_timestamps_and_watermarks"):
        alone.push(ColumnBatch(data.data))
    with pytest.raises(ProgramError, match="'window_end'"):
        aggregate_windows(
            ("k",), TUMBLING, True, aggregate_calls([col("n").sum.alias("window_end")], "test")
        )
    with pytest.raises(ProgramError, match="part of the key"):
        field_windows(("k",), TUMBLING, True, "min", "k").output_schema(SCHEMA)
    with pytest.raises(ProgramError, match="there are 3 columns"):
        field_windows((), TUMBLING, True, "min", 3).output_schema(SCHEMA)
    with pytest.raises(ProgramError, match="needs numbers"):
        field_windows((), TUMBLING, True, "sum", "k").output_schema(SCHEMA)
    assert aggregate_windows(("k",), TUMBLING, True, CALLS[:1]).output_schema(SCHEMA).names == [
        "k",
        "total",
        "window_start",
        "window_end",
    ]


@pytest.mark.parametrize(
    "keys",
    [
        pa.array(["x", "y", None, "x"]).dictionary_encode(),
        pa.array([1, 2, 1, 1], pa.timestamp("us", tz="UTC")),
        pa.array([True, False, None, True]),
        pa.array([1.5, math.nan, 0.0, 1.5]),
        pa.array([b"a", b"b", None, b"a"]),
        pa.array([-1, 2**60, None, -1]),
        pa.array([1, 2, 1, 1], pa.date32()),
    ],
)
def test_keys_of_any_type_are_found_again_after_a_restore(keys: Any) -> None:
    def made(saved: SavedState | None = None) -> Alone:
        return Alone(field_windows(("key",), SLIDING, True, "sum", "n"), saved)

    data = pa.RecordBatch.from_arrays(
        [keys, pa.array([1, 2, 3, 4]), keys], names=["key", "n", "again"]
    )
    whole, first = made(), made()
    for alone in (whole, first):
        alone.push(ColumnBatch(data, np.array([1, 2, 3, 6])))
    second = made(first.snapshot())
    for alone in (whole, second):
        alone.push(ColumnBatch(data.slice(1), np.array([4, 6, 7])))
        alone.push(Watermark(MAX_TIMESTAMP))
    assert sorted(map(repr, second.results)) == sorted(map(repr, whole.results))
    assert len(whole.results) > len(set(map(repr, keys.to_pylist())))


@pytest.mark.parametrize(
    ("kind", "value", "total"),
    [
        (pa.decimal128(3, 2), "9.99", "19.98"),
        (
            pa.decimal128(38, 2),
            "12345678901234567890123456789012345.12",
            "24691357802469135780246913578024690.24",
        ),
    ],
)
def test_sums_of_decimals_are_exact_and_may_have_more_digits(
    kind: Any, value: str, total: str
) -> None:
    alone = Alone(
        aggregate_windows((), TUMBLING, True, aggregate_calls([col("d").sum.alias("s")], "test"))
    )
    alone.push(
        ColumnBatch(
            pa.RecordBatch.from_pydict({"d": pa.array([Decimal(value)] * 2, kind)}),
            np.array([1, 2]),
        )
    )
    alone.push(Watermark(9))
    assert str(alone.results[0][0][0]) == total
