"""Nexmark in SQL: the queries of the auction house as the benchmark writes them, as streams or over
what has ended.

    python examples/nexmark/queries_in_sql.py q5 [--events 100000] [--batch] [--explain]

The texts are ``sql/q0.sql`` and so on, the tables ``sql/tables.sql``; ``queries.py`` has the same
queries as programs of streams."""

from __future__ import annotations

import argparse
import functools
from pathlib import Path
from tempfile import TemporaryDirectory

from flinkpy.table import DataTypes, EnvironmentSettings, TableEnvironment
from flinkpy.table.udf import udf

SQL = Path(__file__).parent / "sql"
# those that only add rows, as a stream must
APPENDED = (0, 1, 2, 3, 5, 7, 8, 10, 11, 12, 13, 14, 20, 21, 22)
_BEFORE_TABLES = "'connector' = 'nexmark'"
_BEFORE_SIDE_INPUT = "'path' = 'side_input'"
SIDE_INPUTS = 10_000  # keys that q13 looks up


@udf(result_type=DataTypes.BIGINT())
def count_char(text: str, character: str) -> int:
    """How often the character is in the text: the benchmark's own function, of q14."""
    return text.count(character)


def auction_house(
    events: int, *, rate: int = 10_000, is_batch: bool = False, parallelism: int = 1
) -> TableEnvironment:
    """An environment with the tables of the benchmark: so many events, ``rate`` of them a second
    of event time."""
    mode = EnvironmentSettings.in_batch_mode if is_batch else EnvironmentSettings.in_streaming_mode
    tables = TableEnvironment.create(mode())
    tables.get_config().set("parallelism.default", str(parallelism))
    tables.create_temporary_system_function("count_char", count_char)
    options = f"'events.num' = '{events}', 'first-event.rate' = '{rate}'"
    text = (SQL / "tables.sql").read_text()
    text = text.replace(_BEFORE_TABLES, f"{_BEFORE_TABLES}, {options}")
    text = text.replace(_BEFORE_SIDE_INPUT, f"'path' = '{_side_input().name}'")
    for statement in text.split(";"):
        tables.execute_sql(statement)
    return tables


@functools.cache
def _side_input() -> TemporaryDirectory[str]:
    """The table that q13 looks up, in a folder that goes when the program ends."""
    folder = TemporaryDirectory(prefix="nexmark-side-input-")
    rows = "".join(f"{key},{key}\n" for key in range(SIDE_INPUTS))
    Path(folder.name, "part-0.csv").write_text(rows)
    return folder


def query(name: str) -> str:
    """The text of a query, without the table that it goes into."""
    lines = (SQL / f"{name}.sql").read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith(("--", "INSERT INTO")))


def main() -> None:
    parser = argparse.ArgumentParser(description="Nexmark queries in SQL.")
    parser.add_argument("query", choices=[f"q{number}" for number in range(23)])
    parser.add_argument("--events", type=int, default=100_000, help="of all kinds")
    parser.add_argument("--batch", action="store_true", help="as a job that ends: all queries run")
    parser.add_argument("--explain", action="store_true", help="show the plan instead")
    arguments = parser.parse_args()
    tables = auction_house(arguments.events, is_batch=arguments.batch)
    if arguments.explain:
        print(tables.explain_sql(query(arguments.query)))
    else:
        tables.execute_sql(query(arguments.query)).print()


if __name__ == "__main__":
    main()
