"""The rows that tests register for ``values`` tables, and those that jobs wrote into them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from flinkpy.common.types import Row, RowKind
from flinkpy.core.errors import ProgramError

_numbers = itertools.count(1)
Registered: TypeAlias = list[tuple[RowKind, tuple[Any, ...]]]
_registered: dict[str, Registered] = {}
_written: dict[str, list[Row]] = {}
_arrived = threading.Condition()


def register_rows(rows: Iterable[object], data_id: str | None = None) -> str:
    """Keeps rows for a table ``WITH ('connector' = 'values', 'data-id' = ...)``, and gives the
    data-id. A row is a tuple, a list or a Row; only a Row has a kind other than INSERT. With a
    ``data_id`` they replace those that it had.

    >>> register_rows([(1, "a")]).startswith("rows-")
    True
    """
    if data_id is None:
        data_id = f"rows-{next(_numbers)}"
    _registered[data_id] = [_kind_and_values(row) for row in rows]
    return data_id


def results(table: str) -> list[Row]:
    """The rows, with their kinds, that jobs wrote into the ``values`` table of this name."""
    with _arrived:
        return list(_written.get(table, []))


def clear_results() -> None:
    """Forgets what was written and registered."""
    with _arrived:
        _written.clear()
    _registered.clear()


def wait_for_rows(counts: dict[str, int], timeout: float = 10.0) -> dict[str, list[Row]]:
    """The rows of these tables, as soon as each has so many. Raises ProgramError if that takes
    longer than ``timeout`` seconds."""

    def are_there() -> bool:
        return all(len(_written.get(table, [])) >= count for table, count in counts.items())

    with _arrived:
        if not _arrived.wait_for(are_there, timeout):
            found = {table: len(_written.get(table, [])) for table in counts}
            raise ProgramError(f"after {timeout:g} seconds there were {found} of {counts} rows")
        return {table: list(_written.get(table, [])) for table in counts}


def keep_rows(table: str, rows: Sequence[Row]) -> None:
    """What the sink's writers call."""
    with _arrived:
        _written.setdefault(table, []).extend(rows)
        _arrived.notify_all()


def begin_results(table: str) -> None:
    """A job is going to write this table."""
    with _arrived:
        _written.setdefault(table, [])


def registered_rows(data_id: str) -> Registered | None:
    """The rows of a data-id; None if there are none."""
    return _registered.get(data_id)


def _kind_and_values(row: object) -> tuple[RowKind, tuple[Any, ...]]:
    if isinstance(row, Row):
        return row.get_row_kind(), tuple(row)
    if isinstance(row, (tuple, list)):
        return RowKind.INSERT, tuple(row)
    raise ProgramError(f"register_rows() takes tuples, lists or Rows, this is {row!r:.80}")
