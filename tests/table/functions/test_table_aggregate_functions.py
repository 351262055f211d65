"""Table aggregates of users: any number of rows for each group, also over rows that are taken
back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from flinkpy.common.types import RowKind
from flinkpy.core.errors import ProgramError
from flinkpy.table import EnvironmentSettings, TableEnvironment
from flinkpy.table.expressions import col
from flinkpy.table.udf import AggregateFunction, TableAggregateFunction, udaf, udtaf
from flinkpy.testing.tables import register_rows


class Top2(TableAggregateFunction[tuple[int, int], "list[int]"]):
    """PyFlink's example."""

    def create_accumulator(self) -> list[int]:
        return []

    def accumulate(self, accumulator: list[int], *args: Any) -> None:
        accumulator += [args[0]] if args[0] is not None else []

    def retract(self, accumulator: list[int], *args: Any) -> None:
        if args[0] is not None:
            accumulator.remove(args[0])

    def emit_value(self, accumulator: list[int]) -> Iterator[tuple[int, int]]:
        for rank, value in enumerate(sorted(accumulator, reverse=True)[:2], 1):
            yield value, rank


class Values(Top2):
    """Rows of one column as plain values."""

    def emit_value(self, accumulator: list[int]) -> Any:
        return sorted(accumulator)


top2 = udtaf(Top2(), result_type="ROW<v INT, r INT>")
values = udtaf(Values(), result_type="INT")
ROWS = [(1, "a", 5), (2, "a", 7), (3, "b", None), (1, "c", 5), (4, "a", 6)]


@pytest.fixture(scope="module")
def tables() -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, key in (("growing", ""), ("upserts", ", PRIMARY KEY (id) NOT ENFORCED")):
        mode = "I,UA,D" if key else "I"
        made.execute_sql(
            f"CREATE TABLE {name} (id INT, k STRING, n INT{key}) WITH ('connector' = 'values', "
            f"'data-id' = '{register_rows(ROWS)}', 'bounded' = 'true', 'rows-per-batch' = '1', "
            f"'changelog-mode' = '{mode}')"
        )
    return made


def left_of(table: Any) -> Counter[tuple[Any, ...]]:
    left: Counter[tuple[Any, ...]] = Counter()
    with table.execute().collect() as rows:
        for row in rows:
            adds = row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER)
            left[tuple(row)] += 1 if adds else -1
            assert left[tuple(row)] >= 0
    return +left


def test_a_group_gives_many_rows(tables: TableEnvironment) -> None:
    grouped = tables.from_path("growing").group_by(col("k"))
    found = grouped.flat_aggregate(top2(col("n")).alias("value", "rank"))
    wanted = {("a", 7, 1): 1, ("a", 6, 2): 1, ("c", 5, 1): 1}
    assert left_of(found.select(col("k"), col("value"), col("rank"))) == wanted
    assert left_of(grouped.flat_aggregate(top2(col("n"))).select(col("r"))) == {(1,): 2, (2,): 1}


def test_a_table_without_groups_is_one(tables: TableEnvironment) -> None:
    found = tables.from_path("growing").flat_aggregate(values(col("n"))).select(col("f0"))
    assert left_of(found) == {(5,): 2, (6,): 1, (7,): 1}


def test_rows_that_are_replaced_are_taken_back(tables: TableEnvironment) -> None:
    found = tables.from_path("upserts").group_by(col("k")).flat_aggregate(top2(col("n")))
    wanted = {("a", 7, 1): 1, ("a", 6, 2): 1, ("c", 5, 1): 1}
    assert left_of(found.select(col("k"), col("v"), col("r"))) == wanted


def test_what_is_no_table_aggregate_is_refused(tables: TableEnvironment) -> None:
    class Sum(AggregateFunction[int, Any]):
        def create_accumulator(self) -> Any: ...
        def accumulate(self, accumulator: Any, *args: Any) -> None: ...
        def get_value(self, accumulator: Any) -> int:
            return 0

    table = tables.from_path("growing")
    with pytest.raises(ProgramError, match="flat_aggregate"):
        table.flat_aggregate(udaf(Sum(), result_type="INT")(col("n")))
    with pytest.raises(ProgramError, match="flat_aggregate"):
        table.aggregate(top2(col("n")))
    with pytest.raises(ProgramError, match="emit_value"):
        udtaf(Sum(), result_type="INT")
