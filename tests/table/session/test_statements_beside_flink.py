"""Statements have the types and the rows that a live Flink 2.3 gave in BATCH, or are refused as there,
when they are planned or by a row. Each line of ``statements_beside_flink.tsv`` has one, and they run
in this order: its types with semicolons between, and its rows, cells with bars between; those of a
query without ORDER BY are sorted."""

from __future__ import annotations

import csv
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from flinkpy.core.errors import FlinkpyError
from flinkpy.table import EnvironmentSettings, TableEnvironment
from flinkpy.table.results.folded_rows import folded
from flinkpy.table.results.tableau import CellTexts
from flinkpy.testing.tables import register_rows

STATEMENTS = Path(__file__).with_name("statements_beside_flink.tsv")
PEOPLE = [
    (1, "a", "10.50", 1.5),
    (2, "b", "20.25", None),
    (3, None, None, -2.0),
    (4, "a", "-3", 4.0),
]
VISITS = [(1, "x", 5), (1, "y", 6), (2, "z", 7), (9, "w", None)]
_MIDNIGHT = datetime(2024, 1, 1)
EVENTS = [
    (_MIDNIGHT + timedelta(seconds=seconds), name, number)
    for seconds, name, number in [
        *((1, "p", 1), (4.5, "q", None), (9, "p", 3), (11, "p", 4), (12, "q", 5)),
        *((31, "q", 6), (60.25, "p", -7)),
    ]
]
SCRIPT = """
CREATE TABLE n0 (id INT NOT NULL, s STRING, d STRING, f DOUBLE) WITH ('connector' = 'values',
  'bounded' = 'true', 'data-id' = '{people}');
CREATE VIEW n AS SELECT id, s, CAST(d AS DECIMAL(10, 2)) AS d, f FROM n0;
CREATE TABLE k (id INT NOT NULL, c STRING, v INT) WITH ('connector' = 'values',
  'bounded' = 'true', 'data-id' = '{visits}');
CREATE TABLE e (ts TIMESTAMP(3), u STRING, a INT, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
  WITH ('connector' = 'values', 'bounded' = 'true', 'data-id' = '{events}');
CREATE VIEW y AS SELECT id, CAST(id AS TINYINT) ti, CAST(id AS SMALLINT) si, CAST(id AS BIGINT) bi,
  CAST(f AS FLOAT) fl, f db, d de, id > 2 AS bo, CAST(s AS CHAR(2)) ch, CAST(s AS VARCHAR(5)) vc,
  CAST(s AS BYTES) by0, DATE '2024-01-30' + INTERVAL '1' DAY dt, TIME '10:20:30' ti3,
  TIMESTAMP '2024-02-29 12:34:56.789' tm,
  CAST(TIMESTAMP '2024-02-29 12:34:56.789' AS TIMESTAMP_LTZ(3)) lz FROM n;
CREATE VIEW nest AS SELECT * FROM (VALUES
  (1, ARRAY[1, 2, 3], MAP['a', 1, 'b', 2], ROW(1, 'p')),
  (2, ARRAY[CAST(NULL AS INT)], MAP['c', CAST(NULL AS INT)], ROW(2, 'q')),
  (3, CAST(NULL AS ARRAY<INT>), CAST(NULL AS MAP<STRING, INT>), CAST(NULL AS ROW<a INT, b STRING>))
) AS t(id, arr, mp, rw);
"""
OF_NOTHING = ("WHERE FALSE", "WHERE id > 100")  # an aggregate has no row then in a stream
BATCH, STREAMING = EnvironmentSettings.in_batch_mode(), EnvironmentSettings.in_streaming_mode()


@pytest.mark.parametrize(
    "settings", [pytest.param(BATCH, id="batch"), pytest.param(STREAMING, marks=pytest.mark.wide)]
)
def test_statements_give_what_flink_gave(settings: EnvironmentSettings) -> None:
    tables = prepared(settings)
    with STATEMENTS.open(encoding="utf-8") as file:
        lines = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    assert len(lines) >= 480
    is_streaming = settings is STREAMING
    wrong = []
    for statement, types, rows in lines:
        if is_streaming and (types == "refused" or statement.endswith(OF_NOTHING)):
            continue
        found = answer(tables, statement)
        if found[0] == "refused" and is_streaming and _is_of_batch(statement):
            continue
        if is_streaming:  # in no order
            found_types, shown = (each.replace(" *ROWTIME*", "") for each in found)  # not in BATCH
            found = found_types, " ; ".join(sorted(shown.split(" ; ")))
            rows = " ; ".join(sorted(rows.split(" ; ")))
        if found != (types, rows):
            wrong.append(f"{statement}\n  Flink  {types}: {rows}\n  flinkpy {found[0]}: {found[1]}")
    assert not wrong, "\n".join(wrong)


def prepared(settings: EnvironmentSettings) -> TableEnvironment:
    """The tables that the statements read."""
    tables = TableEnvironment.create(settings)
    tables.get_config().set("table.local-time-zone", "UTC").set("parallelism.default", "1")
    script = SCRIPT.format(
        people=register_rows(PEOPLE), visits=register_rows(VISITS), events=register_rows(EVENTS)
    )
    for statement in script.split(";")[:-1]:
        tables.execute_sql(statement)
    return tables


def answer(tables: TableEnvironment, statement: str) -> tuple[str, str]:
    """Types and rows as the file has them."""
    try:
        result = tables.execute_sql(statement)
        if statement.startswith("INSERT"):
            result.wait()
        schema = result.get_resolved_schema()
        texts = CellTexts(schema)
        with result.collect() as rows:
            left = folded(rows) if result.has_kinds else rows
            shown = [" | ".join(texts(row)) for row in left]
    except FlinkpyError:
        return "refused", ""
    if "ORDER BY" not in statement:
        shown.sort()
    return "; ".join(str(field).replace("`", "") for field in schema), " ; ".join(shown)


def _is_of_batch(statement: str) -> bool:
    """What a stream cannot do: sort all its rows, and look ahead."""
    return "ORDER BY" in statement or "OVER" in statement
