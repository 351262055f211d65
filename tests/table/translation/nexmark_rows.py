"""The events of Nexmark as rows for the tables of tests: as they are, and with mistakes that are
corrected soon after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.sql.arrow_of_logical import arrow_of
from flinkpy.common.logical_types.logical_type import BigIntType, TimestampType, VarCharType
from flinkpy.common.types import Row, RowKind
from flinkpy.connectors.memory.nexmark import NexmarkGenerator
from flinkpy.table import TableEnvironment
from flinkpy.table.factories.nexmark_tables import COLUMNS, NexmarkColumns
from flinkpy.testing.tables import register_rows

TIMES = ("dateTime", "expires")
NUMBERS = ("id", "initialBid", "reserve", "seller", "category", "auction", "bidder", "price")
INSERT, BEFORE, AFTER, DELETE = RowKind


def _types(kind: str) -> dict[str, Any]:
    return {
        name: TimestampType(3)
        if name in TIMES
        else BigIntType()
        if name in NUMBERS
        else VarCharType(length=2**31 - 1)
        for name in COLUMNS[kind]
    }


def declared_columns(kind: str) -> str:
    """The columns of the table of these events, as DDL."""
    return ", ".join(f"`{name}` {type}" for name, type in _types(kind).items())


def rows_of(generator: NexmarkGenerator, kind: str) -> list[dict[str, Any]]:
    """All events of a kind."""
    schema = pa.schema([(name, arrow_of(type)) for name, type in _types(kind).items()])
    numbers = np.arange(generator.count(kind) or 0)
    found: list[dict[str, Any]] = NexmarkColumns(generator, kind, schema)(numbers).to_pylist()
    return found


def declare_corrected(
    tables: TableEnvironment, generator: NexmarkGenerator, rows_per_batch: int
) -> None:
    """Tables of all kinds of events whose rows change before they are those of the generator."""
    for kind in COLUMNS:
        rows = register_rows(corrected(rows_of(generator, kind), Random(kind)))
        tables.execute_sql(
            f"CREATE TEMPORARY TABLE {kind} ({declared_columns(kind)}, WATERMARK FOR `dateTime` AS "
            f"`dateTime` - INTERVAL '4' SECOND) WITH ('connector' = 'values', 'bounded' = 'true', "
            f"'data-id' = '{rows}', 'rows-per-batch' = '{rows_per_batch}', "
            "'changelog-mode' = 'I,UB,UA,D')"
        )


def corrected(rows: Sequence[dict[str, Any]], random: Random) -> Iterator[Row]:
    """Changes after which these rows stand. A third comes with the numbers and texts of another
    row; some come that are deleted. Either is mended a few rows later."""
    waiting: list[list[tuple[RowKind, dict[str, Any]]]] = []
    for row in rows:
        other = random.choice(rows)
        wrong = {name: row[name] if name in TIMES else value for name, value in other.items()}
        how = random.randrange(6)
        if how < 2:
            yield _of_kind(INSERT, wrong)
            waiting.append([(BEFORE, wrong), (AFTER, row)])
        else:
            yield _of_kind(INSERT, row)
        if how == 2:
            yield _of_kind(INSERT, wrong)
            waiting.append([(DELETE, wrong)])
        while len(waiting) > 5 or (waiting and random.random() < 0.3):
            yield from _changed(waiting.pop(random.randrange(len(waiting))))
    for changes in waiting:
        yield from _changed(changes)


def _changed(changes: Sequence[tuple[RowKind, dict[str, Any]]]) -> Iterator[Row]:
    for kind, row in changes:
        yield _of_kind(kind, row)


def _of_kind(kind: RowKind, row: dict[str, Any]) -> Row:
    made = Row(*row.values())
    made.set_row_kind(kind)
    return made
