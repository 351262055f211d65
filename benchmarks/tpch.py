"""Queries of TPC-H over Parquet, in SQL and in DuckDB, in seconds of processor time.

At scale 1 (``--quick``: 0.01), one subtask against one thread. Both read the files anew in each
round; planning is part of it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import Comparison, compare, quick

QUERIES = tuple(f"q{number:02d}" for number in range(1, 23))
OVER_DOUBLES = ("q01", "q03", "q06", "q18")  # also with DOUBLE in place of DECIMAL
TEXTS = Path(__file__).parents[1] / "tests" / "sql" / "tpch"


def generate(folder: Path, scale: str) -> None:
    """Writes a Parquet file for each table."""
    program = Path(sys.executable).parent / "tpchgen-cli"
    command = [str(program), "parquet", "-s", scale, f"--output-dir={folder}"]
    subprocess.run(command, check=True, capture_output=True)


def with_doubles(folder: Path) -> Path:
    """The same tables with DOUBLE in place of DECIMAL, in files of the same row groups."""
    target = folder / "doubles"
    target.mkdir()
    for file in folder.glob("*.parquet"):
        source = pq.ParquetFile(file)
        fields = [
            field.with_type(pa.float64()) if pa.types.is_decimal(field.type) else field
            for field in source.schema_arrow
        ]
        with pq.ParquetWriter(target / file.name, pa.schema(fields)) as writer:
            for number in range(source.num_row_groups):
                writer.write_table(source.read_row_group(number).cast(pa.schema(fields)))
    return target


def session_over(folder: Path) -> Any:
    """A session in BATCH that knows these tables."""
    from flinkpy.columns.sql.arrow_of_logical import row_type_of_schema
    from flinkpy.table import EnvironmentSettings, TableEnvironment

    session = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    session.get_config().set("parallelism.default", "1")
    for file in sorted(folder.glob("*.parquet")):
        row = row_type_of_schema(pq.read_schema(file))
        columns = ", ".join(f"`{each.name}` {each.type}" for each in row)
        session.execute_sql(
            f"CREATE TABLE {file.stem} ({columns}) WITH ('connector' = 'filesystem', "
            f"'path' = '{file}', 'format' = 'parquet')"
        )
    return session


def duckdb_over(folder: Path) -> Any:
    """A connection of one thread that knows the same."""
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    for file in folder.glob("*.parquet"):
        connection.sql(f"CREATE VIEW {file.stem} AS SELECT * FROM '{file}'")
    return connection


def answered(session: Any, text: str) -> list[Any]:
    """All rows of the answer."""
    return list(session.execute_sql(text).collect())


def asked(connection: Any, text: str) -> list[Any]:
    """The same of DuckDB."""
    rows: list[Any] = connection.sql(text).fetchall()
    return rows


def seconds(action: Callable[[], object]) -> float:
    """The processor time of this process's threads."""
    begun = time.process_time()
    action()
    return time.process_time() - begun


def main() -> list[Comparison]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(folder, "0.01" if quick() else "1")
        session, connection = session_over(folder), duckdb_over(folder)
        others = session_over(with_doubles(folder))
        rounds = 1 if quick() else 3

        def compared(label: str, query: str, other: Callable[[str], object]) -> Comparison:
            text = (TEXTS / f"{query}.sql").read_text()
            ours = partial(seconds, partial(answered, session, text))
            theirs = partial(seconds, partial(other, text))
            return compare(f"TPC-H {query}, {label}", ours, theirs, unit="s", rounds=rounds)

        answered(session, "SELECT r_name FROM region")  # imports what all queries need
        with_duckdb = [
            compared("DuckDB on one thread", query, partial(asked, connection)) for query in QUERIES
        ]
        with_double = [
            compared("DECIMAL against DOUBLE", query, partial(answered, others))
            for query in OVER_DOUBLES
        ]
        return with_duckdb + with_double
