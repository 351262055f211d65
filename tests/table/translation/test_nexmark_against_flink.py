"""Nexmark's queries give the rows of a live Flink, with the same kinds. Set FLINK_PYTHON to a Python
that has apache-flink 2.3 (and Java)."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from examples.nexmark.queries_in_sql import query
from flinkpy.connectors.memory.nexmark import NexmarkGenerator
from flinkpy.table import EnvironmentSettings, TableEnvironment
from tests.table.translation.nexmark_rows import declared_columns, rows_of

FLINK = os.environ.get("FLINK_PYTHON")
QUERIES = (0, 1, 2, 3, 5, 7, 8, 10, 11, 20, 21, 22)
ASK_FLINK = """
import json, sys
from pyflink.table import EnvironmentSettings, TableEnvironment
tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
tables.get_config().set("parallelism.default", "1")
asked = json.load(sys.stdin)
for statement in asked["tables"]:
    tables.execute_sql(statement)
found = []
for text in asked["queries"]:
    with tables.execute_sql(text).collect() as rows:
        found.append([[str(row.get_row_kind()), *map(str, row)] for row in rows])
print(json.dumps(found))
"""


def tables_of_files(folder: Path) -> list[str]:
    """Writes events as JSON, and says the tables of these files."""
    generator = NexmarkGenerator(events=3_000, rate=100)
    return [_table_of(folder, generator, kind) for kind in ("person", "auction", "bid")]


def _table_of(folder: Path, generator: NexmarkGenerator, kind: str) -> str:
    file = folder / f"{kind}.json"
    rows = rows_of(generator, kind)
    file.write_text("".join(json.dumps(_jsonable(row)) + "\n" for row in rows))
    columns = declared_columns(kind)
    return (
        f"CREATE TABLE {kind} ({columns}, WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' "
        f"SECOND) WITH ('connector' = 'filesystem', 'path' = '{file}', 'format' = 'json')"
    )


def _jsonable(row: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.isoformat(" ", "milliseconds") if isinstance(value, datetime) else value
        for name, value in row.items()
    }


@pytest.mark.wide
@pytest.mark.skipif(FLINK is None, reason="FLINK_PYTHON names no Python with apache-flink")
def test_queries_give_the_rows_and_kinds_of_flink(tmp_path: Path) -> None:
    statements = tables_of_files(tmp_path)
    queries = [query(f"q{number}") for number in QUERIES]
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for statement in statements:
        tables.execute_sql(statement)
    asked = json.dumps({"tables": statements, "queries": queries})
    told = subprocess.run(
        [str(FLINK), "-c", ASK_FLINK], input=asked, capture_output=True, text=True, check=True
    )
    expected = json.loads(told.stdout.splitlines()[-1])
    for text, rows in zip(queries, expected):
        with tables.execute_sql(text).collect() as results:
            found = [(str(row.get_row_kind()), *map(str, row)) for row in results]
        assert Counter(found) == Counter(map(tuple, rows)), text
