"""Aggregate functions of users: by row and by group; of groups, windows and frames."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
import pytest

from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table import DataTypes, EnvironmentSettings, TableEnvironment
from flinkpy.table.expressions import col
from flinkpy.table.udf import AggregateFunction, FunctionContext, udaf

CLOSED: list[str] = []


class WeightedAverage(AggregateFunction[float | None, list[int]]):
    """PyFlink's example."""

    def open(self, function_context: FunctionContext) -> None:
        CLOSED.append("open")

    def close(self) -> None:
        CLOSED.append("close")

    def create_accumulator(self) -> list[int]:
        return [0, 0]

    def accumulate(self, accumulator: list[int], *args: Any) -> None:
        value, weight = args
        if value is not None:
            accumulator[0] += value * weight
            accumulator[1] += weight

    def get_value(self, accumulator: list[int]) -> float | None:
        return None if accumulator[1] == 0 else accumulator[0] / accumulator[1]

    def get_result_type(self) -> str:
        return "DOUBLE"


weighted = udaf(WeightedAverage())


@udaf(result_type="BIGINT", func_type="pandas")
def spread(values: Any) -> Any:
    return values.max() - values.min()


@udaf(result_type="ROW<low BIGINT, high BIGINT>", func_type="arrow")
def limits(values: Any) -> Any:
    found = pc.min_max(values).as_py()
    return found["min"], found["max"]


@pytest.fixture(scope="module")
def tables() -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    register(made)
    rows = [("a", 1, 1), ("b", 5, 2), ("a", 4, 2), ("b", None, 7), ("c", None, 1)]
    of = RowType.of(("k", DataTypes.STRING()), ("v", DataTypes.BIGINT()), ("w", DataTypes.INT()))
    made.create_temporary_view("d", made.from_elements(rows, of))
    return made


def register(tables: TableEnvironment) -> None:
    for name, function in {"weighted": weighted, "spread": spread, "limits": limits}.items():
        tables.create_temporary_system_function(name, function)


QUERIES: dict[str, list[tuple[object, ...]]] = {
    "SELECT k, weighted(v, w), COUNT(*) FROM d GROUP BY k": [
        ("a", 3.0, 2),
        ("b", 5.0, 2),
        ("c", None, 1),
    ],
    "SELECT k, spread(v), limits(w).high FROM d WHERE v IS NOT NULL GROUP BY k": [
        ("a", 3, 2),
        ("b", 0, 2),
    ],
    "SELECT weighted(v, w) FILTER (WHERE k = 'a'), weighted(DISTINCT v, 1) FROM d": [(3.0, 10 / 3)],
    "SELECT k, weighted(v, w) OVER (PARTITION BY k ORDER BY w) FROM d WHERE k = 'a'": [
        ("a", 1.0),
        ("a", 3.0),
    ],
    "SELECT k, spread(v) OVER (PARTITION BY k) FROM d WHERE k = 'a'": [("a", 3), ("a", 3)],
}


@pytest.mark.parametrize("query", QUERIES, ids=range(len(QUERIES)))
def test_aggregates_of_groups_and_frames(tables: TableEnvironment, query: str) -> None:
    CLOSED.clear()
    found = tables.sql_query(query).to_arrow().to_pylist()
    assert sorted((tuple(row.values()) for row in found), key=repr) == QUERIES[query]
    assert CLOSED.count("open") == CLOSED.count("close")


def test_aggregates_as_expressions(tables: TableEnvironment) -> None:
    d = tables.from_path("d")
    grouped = d.group_by(col("k")).select(col("k"), weighted(col("v"), col("w")).alias("m"))
    assert sorted(grouped.to_arrow()["k"].to_pylist()) == ["a", "b", "c"]
    assert d.select(weighted(col("v"), col("w"))).to_arrow().num_rows == 1
    limited = d.group_by(col("k")).aggregate(limits(col("w")).alias("l", "h"))
    found = limited.select(col("k"), col("h")).to_arrow().to_pylist()
    assert sorted((row["k"], row["h"]) for row in found) == [("a", 2), ("b", 7), ("c", 1)]
    whole = d.aggregate(limits(col("w"))).select(col("low"), col("high"))
    assert whole.to_arrow().to_pylist() == [{"low": 1, "high": 7}]


@pytest.mark.parametrize("is_streaming", [False, True])
def test_aggregates_of_windows(is_streaming: bool) -> None:
    mode = (
        EnvironmentSettings.in_streaming_mode if is_streaming else EnvironmentSettings.in_batch_mode
    )
    tables = TableEnvironment.create(mode())
    register(tables)
    sequence(tables)
    windows = "TABLE(TUMBLE(TABLE r, DESCRIPTOR(ts), INTERVAL '4' SECOND))"
    found = tables.sql_query(
        "SELECT MOD(n, 2) AS k, weighted(n, 1) AS w, spread(n) AS s, COUNT(DISTINCT n) AS c, "
        "LISTAGG(CAST(n AS STRING)) AS l, EXTRACT(SECOND FROM window_end) AS e "
        f"FROM {windows} GROUP BY MOD(n, 2), window_start, window_end"
    )
    rows = [tuple(row.values()) for row in found.to_arrow().to_pylist()]
    assert sorted(rows, key=lambda row: (row[-1], row[0])) == [
        (0, 1.0, 2, 2, "0,2", 4),
        (1, 2.0, 2, 2, "1,3", 4),
        (0, 5.0, 2, 2, "4,6", 8),
        (1, 6.0, 2, 2, "5,7", 8),
        (0, 8.0, 0, 1, "8", 12),
        (1, 9.0, 0, 1, "9", 12),
    ]


def test_groups_that_never_end_have_no_whole() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    register(tables)
    with pytest.raises(ValidationError, match="Pandas UDAFs are not supported in streaming mode"):
        tables.execute_sql("SELECT spread(n) FROM (VALUES (1), (2)) AS t(n)")


def test_a_failing_row_is_named(tables: TableEnvironment) -> None:
    class Broken(WeightedAverage):
        def accumulate(self, accumulator: list[int], *args: Any) -> None:
            accumulator[0] += 1 // args[0]

    broken = udaf(Broken(), result_type="DOUBLE")
    with pytest.raises(JobExecutionError) as failure:
        tables.from_path("d").select(broken(col("w") - 1)).to_arrow()
    assert "Broken(...): integer division or modulo by zero, in the row (argument 1=0)" in str(
        failure.value
    )
    assert "accumulator[0] += 1 // args[0]" in str(failure.value)


def test_a_function_that_is_no_aggregate_is_refused() -> None:
    with pytest.raises(ProgramError, match=r"udaf\(\) takes an AggregateFunction"):
        udaf(lambda values: 1, result_type="INT")


def test_aggregates_over_rows_in_time() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    register(tables)
    sequence(tables)
    found = tables.sql_query(
        "SELECT n, weighted(n, 1) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS w "
        "FROM r WHERE n < 3"
    )
    assert sorted(tuple(row.values()) for row in found.to_arrow().to_pylist()) == [
        (0, 0.0),
        (1, 0.5),
        (2, 1.5),
    ]


def sequence(tables: TableEnvironment) -> None:
    tables.execute_sql(
        "CREATE TABLE r (n BIGINT, ts AS TO_TIMESTAMP_LTZ(n * 1000, 3), WATERMARK FOR ts AS ts) "
        "WITH ('connector' = 'datagen', 'number-of-rows' = '10', 'fields.n.kind' = 'sequence', "
        "'fields.n.start' = '0', 'fields.n.end' = '9')"
    )
