"""Columnar operators agree with their row forms, record by record, with and without event times."""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.columns.aggregate_plan import aggregate_calls
from flinkpy.columns.expression_functions import col, named
from flinkpy.columns.values.conversion import rows_of_batch
from flinkpy.common import Row, Types
from flinkpy.connectors.memory.arrow_tables import ArrowSource
from flinkpy.core.elements import ColumnBatch, RowBatch
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.datastream.verbs.field_keys import FieldKey
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.columnar.column_operators import (
    ColumnsToRowsOperator,
    FilterColumnsOperator,
    MapBatchesOperator,
    RowsToColumnsOperator,
    SelectColumnsOperator,
)
from flinkpy.operators.columnar.key_index import KeyIndex
from flinkpy.operators.keyed_columns.group_aggregate import KeyedAggregatesOperator
from flinkpy.operators.keyed_columns.running_aggregate import KeyedColumnAggregateOperator
from flinkpy.operators.rows.keyed import KeyedAggregateOperator
from tests.operators.batch_harness import BatchHarness
from tests.table.harness import run

SCHEMA = pa.schema(
    [
        ("k", pa.string()),
        ("j", pa.int64()),
        ("n", pa.int64()),
        ("x", pa.float64()),
        ("note", pa.string()),
    ]
)
RECORD = st.tuples(
    st.sampled_from(["a", "b", "c", None]),
    st.integers(0, 2),
    st.integers(-(2**40), 2**40),
    st.floats(-1e6, 1e6),
    st.text("xyz", max_size=3),
)
BATCHES = st.lists(st.lists(RECORD, min_size=1, max_size=30), min_size=1, max_size=6)


def batch_of(records: list[tuple[Any, ...]], stamped: bool = False) -> ColumnBatch:
    data = pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(zip(*records), SCHEMA)],
        schema=SCHEMA,
    )
    return ColumnBatch(data, np.arange(len(records), dtype=np.int64) if stamped else None)


def tuples(batches: list[Any]) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for batch in batches for row in batch.data.to_pylist()]


@given(
    BATCHES,
    st.sampled_from(["sum", "min", "max"]),
    st.sampled_from([2, 3]),
    st.sampled_from([("k",), ("k", "j"), ("j",)]),
)
@settings(max_examples=120, deadline=None)
def test_running_aggregates_of_columns_are_those_of_rows(
    batches: list[Any], kind: str, position: int, keys: tuple[str, ...]
) -> None:
    places = tuple(SCHEMA.names.index(name) for name in keys)
    by_rows = run(
        KeyedAggregateOperator(kind, position, KeySpec(FieldKey(places))),
        [RowBatch(list(records)) for records in batches],
    )
    by_columns = run(
        KeyedColumnAggregateOperator(kind, SCHEMA.names[position], keys),
        [batch_of(records) for records in batches],
    )
    expected = [value for batch in by_rows for value in batch.values]  # type: ignore[union-attr]
    assert tuples(by_columns) == expected


@given(BATCHES)
@settings(max_examples=60, deadline=None)
def test_the_last_row_of_each_key_is_what_pandas_gets_of_all_records(batches: list[Any]) -> None:
    calls = aggregate_calls(
        [
            col("n").count.alias("count"),
            col("n").sum.alias("sum"),
            col("n").avg.alias("avg"),
            col("n").min.alias("min"),
            col("x").max.alias("max"),
            col("note").max.alias("last"),
        ],
        "test",
    )
    results = tuples(
        run(KeyedAggregatesOperator(["k", "j"], calls), [batch_of(records) for records in batches])
    )
    last = {row[:2]: row[2:] for row in results}
    frame = pd.DataFrame(
        [record for records in batches for record in records], columns=SCHEMA.names
    )
    for (k, j), group in frame.groupby([frame["k"].fillna("none"), "j"]):
        count, total, mean, low, high, note = last[(None if k == "none" else k, j)]
        numbers = group["n"].tolist()
        assert (count, total, mean, low) == (
            len(numbers),
            sum(numbers),
            sum(numbers) / len(numbers),
            min(numbers),
        )
        assert (high, note) == (group["x"].max(), max(group["note"]))
    assert len(last) == len(frame.drop_duplicates(["k", "j"]))


def test_each_batch_gives_one_row_for_every_key_it_touched() -> None:
    operator = KeyedAggregatesOperator(["k"], aggregate_calls([col("n").sum.alias("n")], "test"))
    first_records = [("a", 0, 1, 0.0, ""), ("b", 0, 2, 0.0, ""), ("a", 0, 3, 0.0, "")]
    batches = [
        batch_of(first_records, stamped=True),
        batch_of([("b", 0, 5, 0.0, "")], stamped=True),
    ]
    first, second = run(operator, batches)
    assert (tuples([first]), first.timestamps.tolist()) == ([("a", 4), ("b", 2)], [2, 1])  # type: ignore[union-attr]
    assert tuples([second]) == [("b", 7)]


def test_nulls_are_left_out_of_aggregates() -> None:
    data = pa.RecordBatch.from_pydict(
        {"k": ["a", "a", "b"], "n": pa.array([None, 4, None], pa.int64())}
    )
    calls = aggregate_calls(
        [
            col("n").count,
            col("n").avg,
            col("n").sum,
            col("n").min,
            (col("n") > 3).cast(Types.LONG()).sum.alias("big"),
        ],
        "test",
    )
    assert tuples(run(KeyedAggregatesOperator(["k"], calls), [ColumnBatch(data)])) == [
        ("a", 1, 4.0, 4, 4, 1),
        ("b", 0, None, None, None, None),
    ]
    running = run(KeyedColumnAggregateOperator("sum", "n", ["k"]), [ColumnBatch(data)])
    assert tuples(running) == [("a", None), ("a", 4), ("b", None)]


def test_keys_that_are_equal_are_one_key() -> None:
    data = pa.RecordBatch.from_pydict(
        {"k": [0.0, -0.0, float("nan"), float("nan"), None], "n": [1, 2, 3, 4, 5]}
    )
    last = tuples(
        run(
            KeyedAggregatesOperator(["k"], aggregate_calls([col("n").sum], "test")),
            [ColumnBatch(data), ColumnBatch(data)],
        )
    )[3:]
    assert [total for _, total in last] == [6, 14, 10]


@given(
    st.lists(
        st.lists(
            st.none() | st.integers(0, 9) | st.sampled_from([-1, 2**22, 2**40]),
            min_size=1,
            max_size=20,
        ),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=80, deadline=None)
def test_every_key_keeps_its_number_whatever_keys_come(batches: list[list[int | None]]) -> None:
    index = KeyIndex(["k"])
    numbers: dict[int | None, int] = {}
    for keys in batches:
        keyed = index.of(pa.RecordBatch.from_arrays([pa.array(keys, pa.int64())], names=["k"]))
        new = {key for key in keys if key not in numbers}
        assert [keys[first] for first in keyed.firsts] == [
            keys[keys.index(keys[first])] for first in keyed.firsts
        ]
        assert {
            keys[first]
            for first, is_new in zip(keyed.firsts.tolist(), keyed.is_new.tolist())
            if is_new
        } == new
        for key, code in zip(keys, keyed.codes.tolist()):
            assert numbers.setdefault(key, int(keyed.ids[code])) == keyed.ids[code]
    assert sorted(numbers.values()) == list(range(len(index)))


def test_a_sum_that_leaves_64_bits_is_an_error() -> None:
    data = pa.RecordBatch.from_pydict({"k": ["a", "a"], "n": [2**62, 2**62]})
    for operator in (
        KeyedAggregatesOperator(["k"], aggregate_calls([col("n").sum], "test")),
        KeyedColumnAggregateOperator("sum", "n", ["k"]),
    ):
        with pytest.raises(UserCodeError, match="64 bits"):
            run(operator, [ColumnBatch(data)])


@given(st.lists(RECORD, min_size=1, max_size=40))
@settings(max_examples=40, deadline=None)
def test_filter_and_select_keep_records_and_times_together(records: list[Any]) -> None:
    [*filtered] = run(FilterColumnsOperator(col("j") == 1), [batch_of(records, stamped=True)])
    kept = [at for at, record in enumerate(records) if record[1] == 1]
    assert tuples(filtered) == [records[at] for at in kept]
    assert [stamp for batch in filtered for stamp in batch.timestamps.tolist()] == kept  # type: ignore[union-attr]
    [selected] = run(
        SelectColumnsOperator(named([(col("n") + 1).alias("next"), "k"], "test")),
        [batch_of(records)],
    )
    assert tuples([selected]) == [(record[2] + 1, record[0]) for record in records]


@given(st.lists(RECORD, min_size=1, max_size=40))
@settings(max_examples=40, deadline=None)
def test_rows_and_columns_convert_into_each_other(records: list[Any]) -> None:
    declared = Types.ROW_NAMED(
        SCHEMA.names, [Types.STRING(), Types.LONG(), Types.LONG(), Types.DOUBLE(), Types.STRING()]
    )
    [rows] = run(ColumnsToRowsOperator(), [batch_of(records, stamped=True)])
    assert isinstance(rows, RowBatch)
    assert [tuple(row) for row in rows.values] == records
    assert rows.values[0].k == records[0][0]
    for values in (rows.values, records, [row.as_dict() for row in rows.values]):
        [columns] = run(RowsToColumnsOperator(declared), [RowBatch(values, rows.timestamps)])
        assert columns == batch_of(records, stamped=True)


def test_a_row_that_is_not_of_its_declared_type_is_named() -> None:
    declared = Types.ROW_NAMED(["a", "b"], [Types.LONG(), Types.STRING()])
    with pytest.raises(
        UserCodeError, match=r"field 'a' of \('x', 'y'\) is not of its declared type int64"
    ):
        run(RowsToColumnsOperator(declared), [RowBatch([(1, "x"), ("x", "y")])])
    with pytest.raises(UserCodeError, match="has 3 fields, the declared type 2: a, b"):
        run(RowsToColumnsOperator(declared), [RowBatch([(1, "x", 2)])])


@pytest.mark.parametrize(
    "result",
    [
        lambda batch: batch,
        lambda batch: pa.Table.from_batches([batch]),
        lambda batch: batch.to_pandas(),
        lambda batch: batch.to_pydict(),
    ],
)
def test_a_batch_function_may_return_any_kind_of_batch(result: Any) -> None:
    batch = batch_of([("a", 1, 2, 3.5, "n"), ("b", 2, 3, 4.5, "m")], stamped=True)
    [given_back] = run(MapBatchesOperator(result), [batch])
    assert tuples([given_back]) == tuples([batch])
    assert given_back.timestamps.tolist() == [0, 1]  # type: ignore[union-attr]


def test_a_batch_function_gets_a_frame_and_may_return_rows() -> None:
    batch = batch_of([("a", 1, 2, 3.5, "n"), ("b", 2, 3, 4.5, "m")])
    assert run(
        MapBatchesOperator(lambda frame: frame["n"].tolist(), "pandas", "rows"), [batch]
    ) == [RowBatch([2, 3])]
    assert run(MapBatchesOperator(lambda data: data.slice(0, 0)), [batch]) == []
    with pytest.raises(UserCodeError, match="must return a RecordBatch"):
        run(MapBatchesOperator(lambda data: 3), [batch])


def test_what_was_prepared_for_a_schema_does_not_travel() -> None:
    operator = KeyedAggregatesOperator(
        ["k"], aggregate_calls([col("n").sum.alias("total")], "test")
    )
    assert operator.output_schema(SCHEMA).names == ["k", "total"]
    assert set(pickle.loads(pickle.dumps(operator)).__dict__) == {"keys", "calls", "results"}


def test_a_column_that_is_not_there_is_told_with_the_operator() -> None:
    with pytest.raises(
        ProgramError, match="operator 'test': there is no column 'noto'; did you mean 'note'"
    ):
        run(FilterColumnsOperator(col("noto") > 1), [batch_of([("a", 1, 2, 3.5, "n")])])
    with pytest.raises(ProgramError, match="needs a truth value"):
        FilterColumnsOperator(col("n") + 1).output_schema(SCHEMA)


def test_rows_of_a_columnar_stream_have_names() -> None:
    [rows] = run(ColumnsToRowsOperator(), [batch_of([("a", 1, 2, 3.5, "n")])])
    assert rows == RowBatch([Row(k="a", j=1, n=2, x=3.5, note="n")])


# -- values of less usual types --------------------------------------------------------------------

NARROW, WIDE = pa.decimal128(3, 2), pa.decimal128(38, 2)


@pytest.mark.parametrize(
    ("kind", "values", "total"),
    [
        (NARROW, ["9.99"] * 11, "109.89"),
        (
            WIDE,
            ["12345678901234567890123456789012345.12"] * 2,
            "24691357802469135780246913578024690.24",
        ),
    ],
)
@pytest.mark.parametrize("rows", [1, 100])
def test_sums_of_decimals_are_exact_and_may_have_more_digits(
    kind: Any, values: list[str], total: str, rows: int
) -> None:
    table = pa.table({"k": [1] * len(values), "d": pa.array(map(Decimal, values), kind)})
    batches = [ColumnBatch(batch) for batch in table.to_batches(max_chunksize=rows)]
    calls = aggregate_calls([col("d").sum.alias("s")], "test")
    for operator in (
        KeyedAggregatesOperator(["k"], calls),
        KeyedColumnAggregateOperator("sum", "d", ["k"]),
    ):
        assert str(tuples(run(operator, batches))[-1][1]) == total


@pytest.mark.parametrize("kind", [pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_extremes_of_text_are_found_in_whichever_form_it_comes(kind: Any) -> None:
    column = pa.array(["b", None, "a"], pa.string()).cast(kind)
    operator = KeyedAggregatesOperator(
        ["k"], aggregate_calls([col("s").min.alias("low"), col("s").max.alias("high")], "test")
    )
    assert tuples(
        run(operator, [ColumnBatch(pa.RecordBatch.from_pydict({"k": [1, 1, 1], "s": column}))])
    ) == [(1, "a", "b")]


def test_a_sum_of_decimals_that_leaves_38_digits_is_an_error() -> None:
    table = pa.table({"k": [1, 1], "d": pa.array([Decimal("9" * 38)] * 2, pa.decimal128(38, 0))})
    operator = KeyedAggregatesOperator(["k"], aggregate_calls([col("d").sum.alias("s")], "test"))
    with pytest.raises(UserCodeError, match="precision"):
        run(operator, [ColumnBatch(table.to_batches()[0])])


@pytest.mark.parametrize(
    "column",
    [
        pa.array([0.0, -0.0, math.nan, None, -math.nan, None, -0.0]),
        pa.array([0.0, -0.0, math.nan, None, -math.nan, None, -0.0], pa.float32()),
        pa.array(np.array([0, 0, 1, 2, 1, 2, 0], dtype=np.float16)),
        pa.array([{"a": 0}, {"a": 0}, {"a": 1}, None, {"a": 1}, None, {"a": 0}]),
        pa.array(["a", "a", "", None, "", None, "a"]).dictionary_encode(),
    ],
    ids=lambda column: str(column.type),
)
@pytest.mark.parametrize("rows", [1, 3, 7])
def test_a_batch_jobs_last_rows_have_the_keys_of_the_running_ones(column: Any, rows: int) -> None:
    table = pa.table({"k": column, "v": [1, 2, 3, 4, 5, 6, 7]})
    harness = BatchHarness(
        KeyedAggregatesOperator(["k"], aggregate_calls([col("v").sum.alias("v")], "test"))
    )
    for batch in table.to_batches(max_chunksize=rows):
        harness.chain.batch_inputs()[0](ColumnBatch(batch))
    harness.end()
    results = [batch for batch in harness.writers[0].elements if isinstance(batch, ColumnBatch)]
    assert sorted(value for batch in results for value in batch.data.column("v").to_pylist()) == [
        8,
        10,
        10,
    ]


NESTED = Types.ROW_NAMED(
    ["point", "path", "by_name"],
    [
        Types.ROW_NAMED(["x", "y"], [Types.INT(), Types.STRING()]),
        Types.LIST(Types.ROW_NAMED(["x"], [Types.INT()])),
        Types.MAP(Types.STRING(), Types.ROW_NAMED(["x"], [Types.INT()])),
    ],
)
POINTS = st.builds(
    lambda x, y: Row(x=x, y=y), st.none() | st.integers(0, 9), st.sampled_from(["a", None])
)
STEPS = st.builds(lambda x: Row(x=x), st.none() | st.integers(0, 9))


@given(
    st.lists(
        st.builds(
            lambda a, b, c: Row(point=a, path=b, by_name=c),
            st.none() | POINTS,
            st.none() | st.lists(st.none() | STEPS, max_size=3),
            st.none() | st.dictionaries(st.sampled_from("abc"), st.none() | STEPS),
        ),
        min_size=2,
        max_size=8,
    ),
    st.integers(0, 2),
)
def test_rows_lists_and_maps_within_rows_are_the_same_after_columns(
    records: list[Row], start: int
) -> None:
    [columns] = run(RowsToColumnsOperator(NESTED), [RowBatch(list(records))])
    assert rows_of_batch(columns.data) == records  # type: ignore[union-attr]
    assert rows_of_batch(columns.data.slice(start, 2)) == records[start : start + 2]  # type: ignore[union-attr]


def test_views_of_text_become_text_where_they_enter() -> None:
    table = pa.table(
        {
            "s": pa.array(["a", None], pa.string_view()),
            "b": pa.array([b"x", None], pa.binary_view()),
        }
    )
    plain = pa.schema([("s", pa.string()), ("b", pa.binary())])
    assert ArrowSource(table).schema == plain
    [batch] = run(
        MapBatchesOperator(lambda batch: table),
        [ColumnBatch(pa.RecordBatch.from_pydict({"a": [1, 2]}))],
    )
    assert batch.data.to_pydict() == {"s": ["a", None], "b": [b"x", None]}  # type: ignore[union-attr]
    assert batch.data.schema == plain  # type: ignore[union-attr]
