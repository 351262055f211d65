"""The table that changes make: an insert and a +U add a row, a -U and a -D take one equal row
back."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from flinkpy.common.types import Row, RowKind

if TYPE_CHECKING:
    import pyarrow as pa

    from flinkpy.core.elements import ColumnBatch

_ADDS = (RowKind.INSERT, RowKind.UPDATE_AFTER)


def folded(changes: Iterable[Row]) -> list[Row]:
    """The rows that are left of a changelog.

    >>> folded([Row(1), Row(2)])
    [<Row(1)>, <Row(2)>]
    """
    table = FoldedRows()
    for row in changes:
        table.add(row)
    return table.rows()


class FoldedRows:
    """The rows that are left, while changes come."""

    def __init__(self) -> None:
        self._left: dict[tuple[object, ...], list[Row]] = {}

    def add(self, row: Row) -> None:
        """One change."""
        key = _key(row)
        kind = row.get_row_kind()
        if kind in _ADDS:
            if kind is not RowKind.INSERT:
                row = copy.copy(row)
                row.set_row_kind(RowKind.INSERT)
            self._left.setdefault(key, []).append(row)
            return
        same = self._left.get(key)
        if same:
            same.pop()
            if not same:
                del self._left[key]

    def rows(self) -> list[Row]:
        """Those that are left now."""
        return [row for rows in self._left.values() for row in rows]


def _key(row: Row) -> tuple[object, ...]:
    return tuple(map(_hashable, row))


def _hashable(value: object) -> object:
    try:
        hash(value)
    except TypeError:  # a list or a dict, or a ROW that has one
        return repr(value)
    return value


def folded_columns(batches: Sequence[ColumnBatch], schema: pa.Schema) -> pa.Table:
    """The rows that are left of batches of changes, in the order in which they came last."""
    import numpy as np
    import pyarrow as pa

    from flinkpy.relational.group_numbers import GroupNumbers

    groups = GroupNumbers(range(len(schema)))
    tables, numbers, adding = [], [], []
    for batch in batches:
        numbers.append(groups.of(batch.data))
        kinds = np.zeros(len(batch), np.int8) if batch.kinds is None else batch.kinds
        adding.append(np.isin(kinds, [kind.value for kind in _ADDS]))
        tables.append(pa.Table.from_batches([batch.data]).rename_columns(schema.names).cast(schema))
    table = pa.concat_tables([schema.empty_table(), *tables])
    if not numbers:
        return table
    number, adds = np.concatenate(numbers), np.concatenate(adding)
    size = int(number.max()) + 1
    left = np.bincount(number, np.where(adds, 1, -1), size)
    # of the rows that were added, as many of each as are left: those that came last
    added = np.flatnonzero(adds)[::-1]
    order = np.argsort(number[added], kind="stable")
    sorted_numbers = number[added][order]
    firsts = np.searchsorted(sorted_numbers, sorted_numbers)
    stays = np.arange(len(order)) - firsts < left[sorted_numbers]
    return table.take(pa.array(np.sort(added[order[stays]])))
