"""Tables that the program holds: those of ``from_elements``, ``from_arrow`` and their like, and
streams that were made tables. A table of the catalog names them by a number."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flinkpy.sql.catalog.catalog_port import CatalogTable, SourceAbilities
from flinkpy.sql.syntax.statements import ColumnDefinition
from flinkpy.table.factories.connector_factory import ConnectorFactory
from flinkpy.table.factories.table_options import BOOLEAN, INT, STRING, TableOption, TableValues

if TYPE_CHECKING:
    from flinkpy.common.logical_types.logical_type import RowType
    from flinkpy.datastream import DataStream, StreamExecutionEnvironment
    from flinkpy.sql.physical.physical_nodes import TableScan

_held: dict[str, Any] = {}
_numbers = itertools.count(1)


def hold(
    schema: RowType,
    stream_of: Callable[[StreamExecutionEnvironment], DataStream],
    *,
    is_bounded: bool,
    rows: int | None = None,
) -> CatalogTable:
    """A table over what ``stream_of`` gives: columns with the names and types of ``schema``."""
    number = f"held-{next(_numbers)}"
    _held[number] = stream_of
    options = {"connector": "held", "data-id": number, "bounded": str(is_bounded).lower()}
    if rows is not None:
        options["rows"] = str(rows)
    return CatalogTable(
        tuple(ColumnDefinition(field.name, field.type) for field in schema), options
    )


class HeldFactory(ConnectorFactory):
    """Reads what the program holds."""

    identifier = "held"
    writes = False
    options = (
        TableOption("data-id", STRING, None, "Which one.", required=True),
        TableOption("bounded", BOOLEAN, True, "Whether it ends."),
        TableOption("rows", INT, None, "How many rows it has."),
    )

    def abilities_to_read(self, table: CatalogTable, values: TableValues) -> SourceAbilities:
        return SourceAbilities(
            is_bounded=values["bounded"], takes_projection=True, rows=values["rows"]
        )

    def scan(self, env: StreamExecutionEnvironment, node: TableScan) -> DataStream:
        from flinkpy.columns import col

        stream: DataStream = _held[self.values(node.table)["data-id"]](env)
        names = list(node.schema.names)
        whole = [column.name for column in node.table.columns]
        return stream if names == whole else stream.select(*map(col, names))
