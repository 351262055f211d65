"""How the results of statements are shown: as a tableau while rows come, or as the table that they
make in the end."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from flinkpy.common.types import Row, RowKind
from flinkpy.table import ResultKind, TableResult

_ADDS = (RowKind.INSERT, RowKind.UPDATE_AFTER)


def show_result(result: TableResult, mode: str) -> None:
    """Prints the rows. ``mode`` is tableau, changelog or table: the last shows only the rows that
    are left when the query has ended."""
    if result.get_result_kind() is ResultKind.SUCCESS:
        print("OK")
        return
    lines = final_lines(result) if mode == "table" else result.lines()
    at_once = sys.stdout.isatty()
    for line in lines:
        print(line, flush=at_once)


def final_lines(result: TableResult) -> Iterator[str]:
    """The lines of the table that the changes of a query make."""
    with result.collect() as rows:
        return result.lines_of(folded(rows))


def folded(changes: Iterable[Row]) -> list[Row]:
    """The rows that are left of a changelog, in the order in which they came.

    >>> folded([Row(1), Row(2)])
    [Row(1), Row(2)]
    """
    left: dict[tuple[object, ...], list[Row]] = {}
    for row in changes:
        same = left.setdefault(_key(row), [])
        if row.get_row_kind() in _ADDS:
            row.set_row_kind(RowKind.INSERT)
            same.append(row)
        elif same:
            same.pop()
    return [row for rows in left.values() for row in rows]


def _key(row: Row) -> tuple[object, ...]:
    return tuple(value if value.__hash__ is not None else repr(value) for value in row)
