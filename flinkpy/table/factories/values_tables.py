"""``values``: tables of tests. A test registers rows, which may have kinds, and reads what a job
wrote. They are in the process of the program, so jobs run embedded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkpy.common.changelog_mode import ALL_CHANGES, INSERT_ONLY, ChangelogMode
from flinkpy.common.logical_types.logical_type import LogicalType, RowType
from flinkpy.sql.catalog.catalog_port import CatalogTable, SinkAbilities, SourceAbilities
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.factories.connector_factory import ConnectorFactory, stored_columns
from flinkpy.table.factories.lookups.lookup_options import ASKED_OPTIONS, cache_of
from flinkpy.table.factories.registered_rows import begin_results, registered_rows
from flinkpy.table.factories.table_options import (
    BOOLEAN,
    CHANGES,
    INT,
    STRING,
    OptionKind,
    TableOption,
    TableValues,
)
from flinkpy.table.factories.written_streams import write_stream

if TYPE_CHECKING:
    from flinkpy.datastream import DataStream, StreamExecutionEnvironment
    from flinkpy.relational.lookups.lookup_port import AskedTable
    from flinkpy.sql.physical.physical_nodes import LookupJoin, SinkNode, TableScan


def _metadata(text: str) -> dict[str, LogicalType]:
    from flinkpy.sql.parsing.parse import parse_type

    found: dict[str, LogicalType] = {}
    for part in text.split(","):
        name, colon, type = part.partition(":")
        if not colon:
            raise ValueError("it is name:TYPE, with commas between several")
        found[name.strip()] = parse_type(type.strip())
    return found


METADATA = OptionKind("Map", _metadata)


class ValuesFactory(ConnectorFactory):
    """Reads registered rows in their order, and keeps written ones."""

    identifier = "values"
    options = (
        TableOption("data-id", STRING, None, "What register_rows() gave; without it no rows."),
        TableOption("bounded", BOOLEAN, False, "Whether the planner takes the table as bounded."),
        TableOption("changelog-mode", CHANGES, INSERT_ONLY, "Which kinds its rows have."),
        TableOption("rows-per-batch", INT, 8192, "How many rows a batch has."),
        TableOption(
            "readable-metadata",
            METADATA,
            None,
            "What METADATA columns can read, as name:TYPE, ...; rows have it behind their columns.",
        ),
        TableOption("disable-lookup", BOOLEAN, False, "Whether it cannot be looked up."),
        TableOption("async", BOOLEAN, False, "Whether lookups are answered by a coroutine."),
        *ASKED_OPTIONS,
        TableOption("sink-insert-only", BOOLEAN, True, "Whether it takes inserts only."),
        TableOption("sink-changelog-mode-enforced", CHANGES, None, "Which kinds it takes."),
    )

    def abilities_to_read(self, table: CatalogTable, values: TableValues) -> SourceAbilities:
        data_id = values["data-id"]
        rows = [] if data_id is None else registered_rows(data_id)
        if rows is None:
            raise ValidationError(f"there are no rows {data_id!r}: register_rows() gives a data-id")
        cache_of(values)
        return SourceAbilities(
            is_bounded=values["bounded"],
            changes=values["changelog-mode"],
            takes_projection=True,
            metadata=values["readable-metadata"] or {},
            rows=len(rows),
            takes_lookups=not values["disable-lookup"],
        )

    def abilities_to_write(self, table: CatalogTable, values: TableValues) -> SinkAbilities:
        if values["sink-changelog-mode-enforced"] is not None:
            return SinkAbilities(changes=values["sink-changelog-mode-enforced"])
        if values["sink-insert-only"]:
            return SinkAbilities()
        has_key = table.primary_key is not None
        return SinkAbilities(changes=ChangelogMode.upsert() if has_key else ALL_CHANGES)

    def scan(self, env: StreamExecutionEnvironment, node: TableScan) -> DataStream:
        from flinkpy.table.factories.changing_tables import changes_source

        values = self.values(node.table)
        columns = stored_columns(node.table)
        columns_of = {key: name for name, key in node.metadata}
        metadata = values["readable-metadata"] or {}
        declared = RowType.of(
            *((column.name, column.type) for column in columns),
            *((columns_of.get(key, f"${key}"), type) for key, type in metadata.items()),
        )
        data_id = values["data-id"]
        rows = [] if data_id is None else registered_rows(data_id) or []
        source = changes_source(rows, declared, node.schema.names, values["rows-per-batch"])
        stream = env.from_source(source, source_name=f"Source: {node.path.name}")
        return stream.set_parallelism(1)

    def lookup(self, node: LookupJoin) -> AskedTable:
        from flinkpy.table.factories.lookups.registered_lookups import looked_up_rows

        return looked_up_rows(node, self.values(node.table))

    def sink(self, stream: DataStream, node: SinkNode) -> None:
        from flinkpy.table.factories.changing_tables import KeepingSink

        begin_results(node.path.name)
        write_stream(stream, node, KeepingSink(node.path.name))
