"""The tables of TPC-H as Parquet files, in a session of SQL and in DuckDB."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from flinkpy.columns.sql.arrow_of_logical import row_type_of_schema
from flinkpy.table import EnvironmentSettings, TableEnvironment

QUERIES = sorted((Path(__file__).parents[2] / "sql" / "tpch").glob("q*.sql"))


def generate(folder: Path, scale: str) -> None:
    """Writes a Parquet file for each table."""
    program = Path(sys.executable).parent / "tpchgen-cli"
    command = [str(program), "parquet", "-s", scale, f"--output-dir={folder}"]
    subprocess.run(command, check=True, capture_output=True)


def session_over(folder: Path, parallelism: int) -> TableEnvironment:
    """A session in BATCH that knows these tables."""
    session = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    session.get_config().set("parallelism.default", str(parallelism))
    for file in sorted(folder.glob("*.parquet")):
        row = row_type_of_schema(pq.read_schema(file))
        columns = ", ".join(f"`{each.name}` {each.type}" for each in row)
        session.execute_sql(
            f"CREATE TABLE {file.stem} ({columns}) WITH ('connector' = 'filesystem', "
            f"'path' = '{file}', 'format' = 'parquet')"
        )
    return session


def duckdb_over(folder: Path) -> Any:
    """A connection that knows the same."""
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    for file in folder.glob("*.parquet"):
        connection.sql(f"CREATE VIEW {file.stem} AS SELECT * FROM '{file}'")
    return connection


def is_same(found: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether two rows have the same values. An average of decimals has 6 digits behind the point,
    and is one of DOUBLE in DuckDB; CHAR has no spaces at its end there."""
    return len(found) == len(wanted) and all(map(_is_same_value, found, wanted))


def _is_same_value(one: Any, other: Any) -> bool:
    if isinstance(one, (float, Decimal)):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-6)
    if isinstance(one, str) and isinstance(other, str):
        return one.rstrip() == other.rstrip()
    return bool(one == other)
