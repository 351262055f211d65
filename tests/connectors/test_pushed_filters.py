"""Filters behind files: what they need not read is not read, and nobody sees it in the result."""

from __future__ import annotations

import datetime
import decimal
import math
import operator
import tempfile
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.columns.expression import Expression
from flinkpy.connectors.files.reading.column_files import CsvSource, ParquetSource
from flinkpy.connectors.files.reading.value_ranges import ValueRange, can_be_pushed, may_be_true
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.operators.columnar.column_operators import FilterColumnsOperator
from flinkpy.table.expressions import col, lit
from tests.connectors.harness import World, read_all

FLOATS = st.sampled_from([0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf, float(1 << 53)])
WHOLE = st.sampled_from([-5, 0, 1, 7, (1 << 53) + 1, (1 << 63) - 1, -(1 << 63)])
MOMENTS = st.datetimes(datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 3))
KINDS: dict[str, tuple[pa.DataType, Any]] = {
    "i": (pa.int64(), WHOLE),
    "b": (pa.bool_(), st.booleans()),
    "f": (pa.float64(), FLOATS),
    "g": (pa.float32(), st.sampled_from([0.5, 0.0, -0.0])),
    "s": (pa.string(), st.sampled_from(["", "a", "b", "ø", "\U0001f600"])),
    "t": (pa.timestamp("us"), MOMENTS),
    "z": (
        pa.timestamp("ms", "Europe/Oslo"),
        MOMENTS.map(lambda at: at.replace(microsecond=0, tzinfo=datetime.timezone.utc)),
    ),
    "d": (pa.date32(), MOMENTS.map(datetime.datetime.date)),
    "m": (pa.decimal128(10, 2), st.sampled_from([decimal.Decimal("1.50"), decimal.Decimal(0)])),
}
COMPARED = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(1, 12))
    drawn = {
        name: draw(st.lists(st.none() | values, min_size=rows, max_size=rows))
        for name, (_, values) in KINDS.items()
    }
    return pa.table({name: pa.array(values, KINDS[name][0]) for name, values in drawn.items()})


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> Expression:
    shape = draw(
        st.sampled_from(
            ["compare", "compare", "null", "in", "and", "or", "not"]
            if depth
            else ["compare", "null", "in"]
        )
    )
    if shape in ("and", "or"):
        left, right = draw(conditions(depth - 1)), draw(conditions(depth - 1))
        return left & right if shape == "and" else left | right
    if shape == "not":
        return ~draw(conditions(depth - 1))
    name = draw(st.sampled_from(list(KINDS)))
    if shape == "null":
        return col(name).is_null if draw(st.booleans()) else col(name).is_not_null
    values = KINDS[name][1]
    if shape == "in":
        return col(name).in_(*draw(st.lists(values, min_size=1, max_size=3)))
    left, right = col(name), lit(draw(values))
    if draw(st.booleans()):
        left, right = right, left
    compared: Expression = left._call(draw(COMPARED), right)
    return compared


def shown(batch: Any) -> list[str]:
    return [repr(row) for row in batch.to_pylist()]


@settings(max_examples=300, deadline=None)
@given(table=tables(), condition=conditions(), group=st.integers(1, 4))
def test_what_is_filtered_in_the_source_is_what_is_filtered_behind_it(
    table: pa.Table, condition: Expression, group: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "t.parquet")
        pq.write_table(table, path, row_group_size=group)
        behind = FilterColumnsOperator(condition)
        try:
            behind.prepare(table.schema)
        except Exception:  # no filter of this table
            return
        source = ParquetSource(path, batch_rows=100)
        wanted = [row for row, kept in zip(shown(table), kept_of(behind, table)) if kept]
        pushed = pa.Table.from_batches(batches(source.filtered(condition)), table.schema)
        assert [row for row, kept in zip(shown(pushed), kept_of(behind, pushed)) if kept] == wanted


def kept_of(behind: FilterColumnsOperator, table: pa.Table) -> list[bool | None]:
    if not table.num_rows:
        return []
    kept: list[bool | None] = behind._evaluate(table.combine_chunks().to_batches()[0]).to_pylist()
    return kept


def batches(source: Any) -> list[Any]:
    world = World(source)
    try:
        world.run()
        assert not world.errors
        return [batch.data for subtask in world.subtasks for batch in subtask.output.batches]  # type: ignore[union-attr]
    finally:
        world.close()


def test_groups_of_rows_that_a_filter_drops_are_not_read_and_counted(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"n": range(1000), "s": [f"{n:04}" for n in range(1000)]}),
        tmp_path / "t.parquet",
        row_group_size=100,
    )
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    stream = env.from_parquet(tmp_path).filter(col("n") >= 850).filter(col("s") < "0950")
    stream.map(lambda row: row.n).print()
    result = env.execute("filtered")
    assert result.get_metrics()["Source: Parquet Source.0.numRowGroupsSkipped"] == 8
    assert sorted(
        row.n for row in env.from_parquet(tmp_path).filter(col("n") >= 850).take(1000)
    ) == list(range(850, 1000))


def test_a_filter_is_taken_where_some_files_have_integers_and_others_floats(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, 2, 3, None]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [1.5, 2.5]}), tmp_path / "2.parquet")
    pq.write_table(pa.table({"b": ["x"]}), tmp_path / "3.parquet")
    env = StreamExecutionEnvironment.get_execution_environment()
    assert sorted(row.a for row in env.from_parquet(tmp_path).filter(col("a") > 2).take()) == [
        2.5,
        3.0,
    ]


def test_integers_are_read_as_decimals_of_few_digits_if_they_fit(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1, -7]}), tmp_path / "1.parquet")
    declared = pa.schema([("a", pa.decimal128(4, 2))])
    read = read_all(ParquetSource(tmp_path, schema=declared))
    assert [tuple(row) for row in read] == [(decimal.Decimal("1.00"),), (decimal.Decimal("-7.00"),)]
    pq.write_table(pa.table({"a": [100]}), tmp_path / "1.parquet")
    with pytest.raises(ProgramError, match="column 'a'"):
        read_all(ParquetSource(tmp_path, schema=declared))


def test_a_source_that_others_read_too_is_read_whole(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": range(100)}), tmp_path / "t.parquet", row_group_size=10)
    env = StreamExecutionEnvironment.get_execution_environment()
    numbers = env.from_parquet(tmp_path)
    both = numbers.filter(col("n") > 94).union(numbers.select(col("n")))
    assert sorted(row.n for row in both.take(1000)) == sorted([*range(95, 100), *range(100)])


def test_a_source_finds_its_state_again_when_the_filter_behind_it_has_changed(
    tmp_path: Path,
) -> None:
    pq.write_table(pa.table({"n": range(100)}), tmp_path / "t.parquet")
    source = ParquetSource(tmp_path)
    assert (
        source.filtered(col("n") > 5).told_apart_by()
        == source.told_apart_by()
        == source.filtered(col("n") > 6).told_apart_by()
    )


@pytest.mark.parametrize("steps", range(0, 24, 3))
def test_a_position_means_the_same_with_and_without_a_filter(tmp_path: Path, steps: int) -> None:
    pq.write_table(pa.table({"n": range(100)}), tmp_path / "t.parquet", row_group_size=10)
    plain = ParquetSource(tmp_path, batch_rows=4)
    first = World(plain.filtered((col("n") < 20) | (col("n") > 60)))
    for _ in range(steps):
        first.step()
    second = first.checkpoint()
    second.subtasks[0].operator.close()
    second = World(plain, 1, restored=second.restored)
    second.run()
    read = [row.n for row in first.values] + [row.n for row in second.values]
    assert [n for n in read if n < 20 or n > 60] == [*range(20), *range(61, 100)]
    assert len(set(read)) == len(read)
    first.close()
    second.close()


def test_files_in_folders_that_a_filter_drops_are_not_opened(tmp_path: Path) -> None:
    for city in ("Oslo", "Rome"):
        (tmp_path / f"city={city}").mkdir()
        (tmp_path / f"city={city}" / "t.csv").write_text("n\n1\n2\n")
    source = CsvSource(tmp_path)
    (tmp_path / "city=Rome" / "t.csv").unlink()
    assert [
        tuple(row) for row in read_all(source.filtered((col("city") == "Oslo") & (col("n") > 0)))
    ] == [(1, "Oslo"), (2, "Oslo")]


def test_a_filter_that_could_fail_is_not_looked_into() -> None:
    schema = pa.schema(
        [("n", pa.int64()), ("u", pa.uint64()), ("f", pa.float32()), ("ns", pa.timestamp("ns"))]
    )
    assert can_be_pushed((col("n") > 1) | ~col("n").is_null, schema)
    at = datetime.datetime(2020, 1, 1)
    for unsafe in (
        col("n") % 2 == 0,
        (col("n") > 1) & (lit(1) / col("n") > 2),
        col("u") > 1,
        col("f") == 0.1,
        col("ns") == at,
    ):
        assert not can_be_pushed(unsafe, schema)


@pytest.mark.parametrize(
    ("condition", "found", "expected"),
    [
        (col("x") > 5, ValueRange(1, 5), False),
        (col("x") >= 5, ValueRange(1, 5), True),
        (lit(0) > col("x"), ValueRange(1, 5), False),
        (col("x") == 3, ValueRange(only_nulls=True), False),
        (col("x").is_null, ValueRange(1, 5, no_nulls=True), False),
        (col("x").is_null, ValueRange(1, 5), True),
        (col("x") != 3, ValueRange(3, 3), True),
        (~(col("x") > 5), ValueRange(6, 9), True),
        (col("x") > 5, ValueRange(math.nan, math.nan), True),
        (col("x") == math.nan, ValueRange(1.0, 2.0), True),
        (col("x") == -0.0, ValueRange(0.0, 0.0), True),
        (col("x") == "a", ValueRange(1, 5), True),
        (col("x").in_(7, 9), ValueRange(1, 5), False),
        (col("y") > 5, ValueRange(1, 5), True),
    ],
)
def test_a_range_says_whether_a_condition_may_hold(
    condition: Expression, found: ValueRange, expected: bool
) -> None:
    assert may_be_true(condition, {"x": found}) is expected


@pytest.mark.parametrize(
    ("sign", "holds"),
    [
        ("==", operator.eq),
        ("!=", operator.ne),
        ("<", operator.lt),
        ("<=", operator.le),
        (">", operator.gt),
        (">=", operator.ge),
    ],
)
def test_a_range_excludes_exactly_what_no_value_in_it_fulfils(sign: str, holds: Any) -> None:
    for low, high in combinations_with_replacement(range(4), 2):
        for value in range(-1, 5):
            found, inside = {"x": ValueRange(low, high)}, range(low, high + 1)
            expected = sign == "!=" or any(holds(x, value) for x in inside)
            assert may_be_true(col("x")._call(sign, lit(value)), found) is expected
            expected = sign == "!=" or any(holds(value, x) for x in inside)
            assert may_be_true(lit(value)._call(sign, col("x")), found) is expected
