"""Lookups of ``values`` tables: each call looks at what is registered then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.common.types import RowKind
from flinkpy.relational.lookups.lookup_port import AskedTable
from flinkpy.table.factories.connector_factory import stored_columns
from flinkpy.table.factories.lookups.lookup_options import cache_of
from flinkpy.table.factories.registered_rows import registered_rows
from flinkpy.table.factories.table_options import TableValues

if TYPE_CHECKING:
    from flinkpy.sql.physical.physical_nodes import LookupJoin


def looked_up_rows(node: LookupJoin, values: TableValues) -> AskedTable:
    """The rows of a ``values`` table by these keys."""
    columns = stored_columns(node.table)
    names = tuple(column.name for column in columns)
    keys = tuple(node.columns.names[column] for column, _ in node.keys)
    return AskedTable(
        _asked(values["data-id"], names, is_async=values["async"]),
        RowType.of(*((column.name, column.type) for column in columns)),
        keys,
        keys,
        node.columns.names,
        values["async"],
        values["lookup.max-retries"],
        cache_of(values),
    )


def _asked(data_id: str | None, names: tuple[str, ...], *, is_async: bool) -> Callable[..., Any]:
    def rows(**keys: object) -> list[tuple[Any, ...]]:
        found: list[tuple[Any, ...]] = []
        for kind, values in (registered_rows(data_id) or []) if data_id else []:
            row = values[: len(names)]
            if any(values[names.index(name)] != value for name, value in keys.items()):
                continue
            if kind in (RowKind.INSERT, RowKind.UPDATE_AFTER):
                found.append(row)
            elif row in found:
                found.remove(row)
        return found

    async def rows_later(**keys: object) -> list[tuple[Any, ...]]:
        return rows(**keys)

    return rows_later if is_async else rows
