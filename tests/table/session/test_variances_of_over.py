"""Variances of OVER, as a live Flink 2.3 gave them: of whole numbers, in whole numbers."""

from __future__ import annotations

from typing import Any

from flinkpy.table import EnvironmentSettings, TableEnvironment

COLUMNS = (
    "VAR_POP({0}) OVER w, VAR_SAMP({0}) OVER w, STDDEV_POP({0}) OVER w, STDDEV_SAMP({0}) OVER w"
)
ROWS = "(1, 1), (1, 2), (1, 4), (1, 8), (2, 3), (3, -3), (3, 4), (4, 3000000000000), (4, 3000000000007)"
EXPECTED: dict[tuple[int, int], tuple[Any, ...]] = {
    (1, 1): (0, None, 0, None),
    (1, 2): (0, 1, 0, 1),
    (1, 4): (1, 2, 1, 1),
    (1, 8): (7, 9, 2, 3),
    (2, 3): (0, None, 0, None),
    (3, -3): (0, None, 0, None),
    (3, 4): (12, 25, 3, 5),
    (4, 3000000000000): (0, None, 0, None),
    (4, 3000000000007): (12, 24, 3, 4),
}


def test_variances_of_over_are_computed_in_their_type() -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    decimal = "CAST(v AS DECIMAL(10, 2))"
    select = f"SELECT k, v, {COLUMNS.format('v')}, VAR_SAMP({decimal}) OVER w"
    source = f"(SELECT k, CAST(v AS BIGINT) AS v FROM (VALUES {ROWS}) AS t(k, v))"
    found = tables.execute_sql(f"{select} FROM {source} WINDOW w AS (PARTITION BY k ORDER BY v)")
    rows = {(row[0], row[1]): tuple(row)[2:] for row in found.collect() if row[0] < 4}
    assert {key: values[:4] for key, values in rows.items()} == {
        key: values for key, values in EXPECTED.items() if key[0] < 4
    }
    assert str(rows[1, 4][4]) == "2.333334"  # a quotient is rounded before the next one
