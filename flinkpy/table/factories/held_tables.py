"""Tables that the program holds: those of ``from_elements``, ``from_arrow`` and their like, and
streams that were made tables. A table of the catalog names them by a number."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from flinkpy.common.changelog_mode import INSERT_ONLY, ChangelogMode
from flinkpy.common.logical_types.logical_type import LocalZonedTimestampType
from flinkpy.sql.catalog.catalog_port import CatalogTable, SourceAbilities
from flinkpy.sql.syntax.statements import ColumnDefinition
from flinkpy.table.factories.connector_factory import ConnectorFactory
from flinkpy.table.factories.table_options import (
    BOOLEAN,
    CHANGES,
    INT,
    STRING,
    TableOption,
    TableValues,
)

if TYPE_CHECKING:
    from flinkpy.common.logical_types.logical_type import RowType
    from flinkpy.datastream import DataStream, StreamExecutionEnvironment
    from flinkpy.sql.physical.physical_nodes import TableScan

ROWTIME = LocalZonedTimestampType(precision=3)  # of the metadata column of streams

_held: dict[str, Any] = {}
_numbers = itertools.count(1)


def hold(
    schema: RowType,
    stream_of: Callable[[StreamExecutionEnvironment], DataStream],
    *,
    is_bounded: bool,
    rows: int | None = None,
    has_event_time: bool = False,
    changes: ChangelogMode = INSERT_ONLY,
) -> CatalogTable:
    """A table over what ``stream_of`` gives: columns with the names and types of ``schema``, whose
    rows have these kinds. ``has_event_time``: its rows may have event times, and watermarks come
    between them."""
    number = f"held-{next(_numbers)}"
    _held[number] = stream_of
    options = {"connector": "held", "data-id": number, "bounded": str(is_bounded).lower()}
    if rows is not None:
        options["rows"] = str(rows)
    if has_event_time:
        options["event-time"] = "true"
    if not changes.is_insert_only:
        options["changelog-mode"] = str(changes)
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
        TableOption("changelog-mode", CHANGES, INSERT_ONLY, "Which kinds its rows have."),
        TableOption("event-time", BOOLEAN, False, "Whether its rows have event times beside them."),
    )

    def abilities_to_read(self, table: CatalogTable, values: TableValues) -> SourceAbilities:
        return SourceAbilities(
            is_bounded=values["bounded"],
            changes=values["changelog-mode"],
            takes_projection=True,
            metadata={"rowtime": ROWTIME} if values["event-time"] else {},
            gives_watermarks=values["event-time"],
            rows=values["rows"],
        )

    def scan(self, env: StreamExecutionEnvironment, node: TableScan) -> DataStream:
        from flinkpy.columns import col
        from flinkpy.datastream.streams.recorded import copy_place

        stream: DataStream = _held[self.values(node.table)["data-id"]](env)
        if node.metadata:
            stream = _with_rowtime(stream, [name for name, _ in node.metadata])
        names = list(node.schema.names)
        if names == list(_names(stream)):
            return stream
        chosen = stream.select(*map(col, names))
        copy_place(stream.recorded.transformation, chosen.recorded.transformation)
        return chosen


def _names(stream: DataStream) -> Sequence[str]:
    return stream.recorded.column_names() or ()


def _with_rowtime(stream: DataStream, names: Sequence[str]) -> DataStream:
    """The stream with its event times as further columns."""
    import pyarrow as pa

    from flinkpy.columns.sql.arrow_of_logical import arrow_of
    from flinkpy.datastream import DataStream
    from flinkpy.datastream.streams.recorded import copy_place
    from flinkpy.relational.windows.event_times import RowtimeColumnOperator

    for name in names:
        columns = stream.recorded.as_columns("from_data_stream()")
        schema = columns.schema.append(pa.field(name, arrow_of(ROWTIME)))
        made = columns.apply_columns("Rowtime", RowtimeColumnOperator(schema))
        copy_place(columns.transformation, made.transformation)
        stream = DataStream(stream.get_execution_environment(), made)
    return stream
