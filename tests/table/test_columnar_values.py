"""What keys and values mean over columns: held against a few lines of plain Python, over real
domains, however records are cut into batches, through restores, and over several subtasks."""

from __future__ import annotations

import datetime
import functools
import math
import operator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.columns.aggregate_plan import AggregateCall
from flinkpy.columns.expression_functions import col
from flinkpy.core.elements import MAX_TIMESTAMP, ColumnBatch, Watermark
from flinkpy.core.keys import channel_of_key_group
from flinkpy.network.partitioning.column_hashes import key_hashes
from flinkpy.operators.batch.batch_forms import batch_form
from flinkpy.operators.keyed_columns import state_tables
from flinkpy.operators.keyed_columns.group_aggregate import KeyedAggregatesOperator
from flinkpy.operators.keyed_columns.running_aggregate import KeyedColumnAggregateOperator
from flinkpy.windowing.slicing import Slicing
from tests.windowing.slice_harness import (
    MAX_PARALLELISM,
    Alone,
    aggregate_windows,
    field_windows,
    rescaled,
)

NANS = [math.nan, -math.nan]


@dataclass(frozen=True)
class Domain:
    """Values of a column of ``kind``, written as values of ``stored``."""

    kind: Any
    values: list[Any]
    stored: Any = None
    has_sum: bool = True

    def array(self, values: list[Any]) -> Any:
        return (
            pa.array(values, self.kind)
            if self.stored is None
            else pa.array(values, self.stored).view(self.kind)
        )

    def read(self, column: Any) -> list[Any]:
        found: list[Any] = (
            column if self.stored is None or column.type != self.kind else column.view(self.stored)
        ).to_pylist()
        return found


FLOATS = [None, *NANS, 0.0, -0.0, 1.0, 2.5]
KEYS = [
    Domain(pa.float64(), FLOATS),
    Domain(pa.float32(), FLOATS),
    Domain(pa.int64(), [None, 0, 1, -1, 2**40]),
    Domain(pa.int32(), [0, 1, 2]),
    Domain(pa.string(), [None, "", "a", "ß"]),
    Domain(pa.bool_(), [None, True, False]),
    Domain(pa.timestamp("ns"), [None, 0, 1, 1000], pa.int64()),
    Domain(pa.time64("ns"), [None, 0, 1, 1000], pa.int64()),
    Domain(pa.decimal128(4, 2), [None, Decimal("1.50"), Decimal("0.00")]),
    Domain(pa.dictionary(pa.int32(), pa.string()), [None, "a", "b"]),
    Domain(
        pa.struct([("a", pa.float64()), ("b", pa.string())]),
        [None, *({"a": a, "b": b} for a in FLOATS for b in (None, "x"))],
    ),
]
NUMBERS = [
    Domain(pa.float64(), [*FLOATS, math.inf, -math.inf, 0.1, 1e300]),
    Domain(pa.float32(), [*FLOATS, math.inf, 0.5]),
    Domain(pa.int64(), [None, 0, 1, -3, 2**55, -(2**55), 2**53 + 1]),
    Domain(pa.int8(), [None, 1, -128, 127]),
    Domain(pa.decimal128(5, 2), [None, Decimal("999.99"), Decimal("-0.01"), Decimal("0.00")]),
]
OTHERS = [
    Domain(pa.timestamp("us"), [None, 0, -1, 10**15], pa.int64(), False),
    Domain(pa.duration("ns"), [None, 0, -1, 1001], pa.int64(), False),
    Domain(pa.time64("ns"), [None, 0, 1, 1001], pa.int64(), False),
    Domain(pa.date32(), [None, 0, -1, 20_000], pa.int32(), False),
    Domain(pa.string(), [None, "", "a", "ß", "é"], None, False),
    Domain(pa.bool_(), [None, True, False], None, False),
    Domain(pa.uint64(), [None, 0, 1, 2**63, 2**64 - 1], None, False),
    Domain(pa.decimal32(5, 2), [None, Decimal("999.99"), Decimal("-0.01")], None, False),
]


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value


def before(one: Any, other: Any) -> bool:
    """The order of values, in which a not-a-number is the greatest."""
    return not is_nan(one) and (is_nan(other) or bool(one < other))


def aggregate(kind: str, values: list[Any]) -> Any:
    present = [value for value in values if value is not None]
    if kind == "count":
        return len(present)
    if not present:
        return None
    if kind == "avg":
        total = functools.reduce(operator.add, present)
        return float(total / len(present))
    choose = {
        "sum": operator.add,
        "min": lambda old, new: new if before(new, old) else old,
        "max": lambda old, new: new if before(old, new) else old,
    }
    return functools.reduce(choose[kind], present)


def group(key: Any) -> Any:
    """What is the same for equal keys."""
    if isinstance(key, dict):
        return tuple(map(group, key.values()))
    return "not a number" if is_nan(key) else key


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)  # tells the zeros apart, and a not-a-number from none


@dataclass(frozen=True)
class Case:
    keys: Domain
    values: Domain
    records: list[tuple[Any, Any]]
    size: int  # of a batch

    def batches(self, records: list[tuple[Any, Any]] | None = None) -> list[ColumnBatch]:
        records = self.records if records is None else records
        return [
            self._batch(records[at : at + self.size]) for at in range(0, len(records), self.size)
        ]

    def _batch(self, records: list[tuple[Any, Any]]) -> ColumnBatch:
        arrays = [
            self.keys.array([key for key, _ in records]),
            self.values.array([value for _, value in records]),
        ]
        return ColumnBatch(
            pa.RecordBatch.from_arrays(arrays, names=["k", "v"]), np.zeros(len(records), np.int64)
        )

    def kinds(self, *of_numbers: str) -> list[str]:
        return ["min", "max", *(of_numbers if self.values.has_sum else ())]


def rounded(domain: Domain, value: Any) -> Any:
    """As a column of the domain's type has it."""
    return (
        value
        if value is None
        else domain.array([value]).to_pylist()[0]
        if domain.kind == pa.float32()
        else value
    )


@st.composite
def cases(draw: Any) -> Case:
    keys, values = draw(st.sampled_from(KEYS)), draw(st.sampled_from(NUMBERS + OTHERS))
    records = draw(
        st.lists(
            st.tuples(st.sampled_from(keys.values), st.sampled_from(values.values)),
            min_size=1,
            max_size=14,
        )
    )
    return Case(keys, values, records, draw(st.sampled_from([1, 2, 3, 14])))


def rows_of(alone: Alone, case: Case, names: list[str]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for batch in alone.out.batches:
        assert isinstance(batch, ColumnBatch)
        domains = [case.keys, *([case.values] * (len(names) - 1))]
        rows += zip(*(domain.read(batch.data.column(name)) for domain, name in zip(domains, names)))
    return rows


def expected_rows(
    case: Case, kinds: list[str], records: list[tuple[Any, Any]]
) -> dict[Any, tuple[Any, ...]]:
    of_key: dict[Any, list[tuple[Any, Any]]] = {}
    for record in records:
        of_key.setdefault(group(record[0]), []).append(record)
    return {
        key: (its[0][0], *(aggregate(kind, [value for _, value in its]) for kind in kinds))
        for key, its in of_key.items()
    }


def calls(kinds: list[str]) -> list[AggregateCall]:
    return [AggregateCall(kind, col("v"), kind) for kind in kinds]


# -- running ---------------------------------------------------------------------------------------


@pytest.mark.finding("first-use 5")
@given(cases())
@settings(max_examples=300)
def test_running_aggregates_of_a_batch_are_those_of_all_records_so_far(case: Case) -> None:
    kinds = ["count", *case.kinds("sum", "avg")]
    alone = Alone(KeyedAggregatesOperator(["k"], calls(kinds)))
    seen = 0
    for batch in case.batches():
        alone.out.batches.clear()
        alone.push(batch)
        touched = {group(key) for key, _ in case.records[seen : seen + len(batch)]}
        seen += len(batch)
        expected = {
            key: row
            for key, row in expected_rows(case, kinds, case.records[:seen]).items()
            if key in touched
        }
        found = {group(row[0]): row for row in rows_of(alone, case, ["k", *kinds])}
        assert same(sorted(found.values(), key=repr), sorted(expected.values(), key=repr))


ZEROS = Case(KEYS[2], NUMBERS[0], [(0, -0.0), (1, 0.0), (0, 0.0), (1, -0.0), (-1, 1.0)], 5)


def ended(operator: Any) -> None:
    """A batch job's operator at the end of its input."""
    operator.finish()
    while operator.has_rest:
        operator.emit_rest()


@pytest.mark.parametrize("form", ["aggregates", "field"])
@given(cases(), st.sampled_from(["sum", "min", "max"]), st.sampled_from([0, 4, 1 << 18]))
@example(ZEROS, "min", 0)
@settings(max_examples=200)
def test_a_batch_job_gives_for_each_key_what_all_its_records_come_to(
    form: str, case: Case, kind: str, waiting: int
) -> None:
    if not case.values.has_sum and kind == "sum":
        kind = "min"
    kinds = ["count", *case.kinds("sum", "avg")] if form == "aggregates" else [kind]
    names = ["k", *kinds] if form == "aggregates" else ["k", "v"]
    running: Any = (
        KeyedAggregatesOperator(["k"], calls(kinds))
        if form == "aggregates"
        else KeyedColumnAggregateOperator(kind, "v", ["k"])
    )
    alone = Alone(batch_form(running))
    # how many records wait to be grouped changes nothing
    with mock.patch.object(state_tables, "_WAITING", waiting):
        for batch in case.batches():
            alone.push(batch)
        ended(alone.operator)
    expected = expected_rows(case, kinds, case.records)
    if form == "field":
        expected = {key: (row[0], rounded(case.values, row[1])) for key, row in expected.items()}
    assert same(rows_of(alone, case, names), list(expected.values()))


@pytest.mark.parametrize(("form", "stamp"), [("aggregates", 9), ("field", 4)])
def test_a_batch_job_gives_the_time_that_the_last_running_row_has(form: str, stamp: int) -> None:
    running: Any = (
        KeyedAggregatesOperator(["k"], calls(["sum"]))
        if form == "aggregates"
        else KeyedColumnAggregateOperator("sum", "v", ["k"])
    )
    alone = Alone(batch_form(running))
    alone.push(
        ColumnBatch(
            pa.RecordBatch.from_pydict({"k": [1, 1, 1], "v": [1, 2, 3]}), np.array([3, 9, 4])
        )
    )
    ended(alone.operator)
    assert [batch.timestamps.tolist() for batch in alone.out.batches] == [[stamp]]  # type: ignore[union-attr]


def test_a_mean_is_exact_where_its_sum_leaves_64_bits() -> None:
    moments = [1_700_000_000_000_000 + at for at in range(20_001)]
    for size in (1000, 20_001):
        case = Case(
            Domain(pa.int64(), []),
            Domain(pa.int64(), []),
            [(1, moment) for moment in moments],
            size,
        )
        alone = Alone(KeyedAggregatesOperator(["k"], calls(["avg"])))
        for batch in case.batches():
            alone.push(batch)
        again = Alone(KeyedAggregatesOperator(["k"], calls(["avg"])), alone.snapshot())
        again.push(case.batches([(1, moments[0])])[0])
        assert rows_of(alone, case, ["k", "avg"])[-1] == (1, sum(moments) / len(moments))
        assert rows_of(again, case, ["k", "avg"])[-1] == (
            1,
            (sum(moments) + moments[0]) / (len(moments) + 1),
        )


@pytest.mark.finding("hunts 11")
@given(cases(), st.sampled_from(["sum", "min", "max"]))
@example(ZEROS, "min")
@example(ZEROS, "max")
@settings(max_examples=300)
def test_a_running_column_has_at_each_record_what_its_key_came_to(case: Case, kind: str) -> None:
    if not case.values.has_sum and kind == "sum":
        kind = "min"
    alone = Alone(KeyedColumnAggregateOperator(kind, "v", ["k"]))
    for batch in case.batches():
        alone.push(batch)
    expected = [
        expected_rows(case, [kind], case.records[: at + 1])[group(record[0])]
        for at, record in enumerate(case.records)
    ]
    assert same(rows_of(alone, case, ["k", "v"]), expected)


# -- windows ---------------------------------------------------------------------------------------


@given(cases(), st.sampled_from(["sum", "min", "max"]))
@settings(max_examples=300)
def test_windows_have_the_aggregates_of_their_records(case: Case, kind: str) -> None:
    if not case.values.has_sum and kind == "sum":
        kind = "min"
    kinds = ["count", *case.kinds("sum", "avg")]
    slicing = Slicing(10, 10, 0)
    many = Alone(aggregate_windows(["k"], slicing, True, calls(kinds)))
    one = Alone(field_windows(["k"], slicing, True, kind, "v"))
    for alone in (many, one):
        for batch in case.batches():
            alone.push(batch)
        alone.push(Watermark(MAX_TIMESTAMP))
    assert same(
        sorted(rows_of(many, case, ["k", *kinds]), key=repr),
        sorted(expected_rows(case, kinds, case.records).values(), key=repr),
    )
    assert same(
        sorted(rows_of(one, case, ["k", "v"]), key=repr),
        sorted(expected_rows(case, [kind], case.records).values(), key=repr),
    )


def test_a_mean_of_a_window_is_exact_where_its_sum_leaves_64_bits() -> None:
    moments = [1_700_000_000_000_000 + at for at in range(6_001)]
    case = Case(
        Domain(pa.int64(), []), Domain(pa.int64(), []), [(1, moment) for moment in moments], 1000
    )

    def make() -> Any:
        return aggregate_windows(["k"], Slicing(10, 10, 0), True, calls(["avg"]))

    alone = Alone(make())
    for batch in case.batches():
        alone.push(batch)
    again = Alone(make(), alone.snapshot())
    again.push(case.batches([(1, moments[0])])[0])
    again.push(Watermark(MAX_TIMESTAMP))
    assert rows_of(again, case, ["k", "avg"]) == [
        (1, (sum(moments) + moments[0]) / (len(moments) + 1))
    ]


# -- restores and subtasks -------------------------------------------------------------------------


def subtask_of(case: Case, key: Any, parallelism: int) -> int:
    hashes = key_hashes(case._batch([(key, None)]).data, ["k"])
    return channel_of_key_group(int(hashes[0]) % MAX_PARALLELISM, MAX_PARALLELISM, parallelism)


def pushed(case: Case, subtasks: list[Alone], records: list[tuple[Any, Any]]) -> None:
    for subtask, alone in enumerate(subtasks):
        for batch in case.batches(
            [record for record in records if subtask_of(case, record[0], len(subtasks)) == subtask]
        ):
            alone.push(batch)


@pytest.mark.finding("hunts 13")
@given(
    cases(),
    st.sampled_from(["aggregates", "field"]),
    st.integers(0, 14),
    st.sampled_from([(1, 1), (1, 3), (3, 1), (2, 3)]),
)
@settings(max_examples=200)
def test_what_was_restored_goes_on_as_if_it_had_never_failed_also_at_another_parallelism(
    case: Case, form: str, cut: int, scales: tuple[int, int]
) -> None:
    kinds = ["count", *case.kinds("sum", "avg")]
    names = ["k", *kinds] if form == "aggregates" else ["k", "v"]

    def make() -> Any:
        return (
            KeyedAggregatesOperator(["k"], calls(kinds))
            if form == "aggregates"
            else KeyedColumnAggregateOperator("max", "v", ["k"])
        )

    whole = [Alone(make())]
    pushed(case, whole, case.records)
    first = [Alone(make(), None, subtask, scales[0]) for subtask in range(scales[0])]
    pushed(case, first, case.records[:cut])
    saved = [each.snapshot() for each in first]
    after = [
        Alone(make(), rescaled(saved, subtask, scales[1]), subtask, scales[1])
        for subtask in range(scales[1])
    ]
    pushed(case, after, case.records[cut:])
    again = [each.snapshot() for each in after]  # also of what was not touched since
    last = [Alone(make(), rescaled(again, subtask, 1), subtask, 1) for subtask in range(1)]
    for key in case.keys.values:
        pushed(case, [*whole], [(key, None)])
        pushed(case, last, [(key, None)])
    asked = len(case.keys.values)
    assert same(rows_of(last[0], case, names)[-asked:], rows_of(whole[0], case, names)[-asked:])


def test_a_key_is_kept_by_key_group_whatever_it_is() -> None:
    case = Case(
        Domain(pa.date32(), []),
        Domain(pa.int64(), []),
        [(datetime.date(2020, 1, day), day) for day in range(1, 29)],
        5,
    )
    alone = Alone(KeyedColumnAggregateOperator("sum", "v", ["k"]))
    pushed(case, [alone], case.records)
    both = [
        Alone(
            KeyedColumnAggregateOperator("sum", "v", ["k"]),
            rescaled([alone.snapshot()], subtask, 2),
            subtask,
            2,
        )
        for subtask in range(2)
    ]
    assert sorted(len(each.operator._index) for each in both) != [0, 28]  # type: ignore[attr-defined]
    pushed(case, both, case.records)
    found = sorted(row for each in both for row in rows_of(each, case, ["k", "v"]))
    assert found == [(day, 2 * number) for day, number in case.records]


@pytest.mark.parametrize("keys", [[1, 1, 1], [1, 2, 2]])
def test_a_sum_of_large_floats_is_an_infinity_without_a_warning(keys: list[int]) -> None:
    alone = Alone(KeyedAggregatesOperator(["k"], calls(["sum"])))
    alone.push(ColumnBatch(pa.record_batch({"k": keys, "v": [1e308] * 3})))
    [result] = alone.out.batches
    assert isinstance(result, ColumnBatch)
    assert result.data["sum"].to_pylist()[-1] == math.inf
