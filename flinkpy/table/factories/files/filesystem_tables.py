"""``filesystem``: files of a folder as a table; folders such as ``city=Oslo`` are partitions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from flinkpy.common.logical_types.logical_type import (
    UNBOUNDED,
    BigIntType,
    LocalZonedTimestampType,
    VarCharType,
)
from flinkpy.sql.catalog.catalog_port import CatalogTable, SinkAbilities, SourceAbilities
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.factories.connector_factory import CONNECTOR, ConnectorFactory
from flinkpy.table.factories.files.file_table_formats import FORMATS, FileTableFormat
from flinkpy.table.factories.files.sink_options import SINK_OPTIONS
from flinkpy.table.factories.files.table_partitions import TablePartitions
from flinkpy.table.factories.lookups.lookup_options import RELOAD_INTERVAL, RELOAD_STRATEGY
from flinkpy.table.factories.table_options import (
    DURATION,
    STRING,
    OptionTable,
    TableOption,
    TableValues,
    one_of,
    prefixed,
)

if TYPE_CHECKING:
    from flinkpy.connectors.files.reading.column_source import ColumnFileSource
    from flinkpy.datastream import DataStream, StreamExecutionEnvironment
    from flinkpy.operators.columnar.table_join import JoinedTable
    from flinkpy.sql.physical.physical_nodes import LookupJoin, SinkNode, TableScan

MONITOR_INTERVAL = "source.monitor-interval"
_METADATA = {
    "file.path": VarCharType(UNBOUNDED).not_null(),
    "file.name": VarCharType(UNBOUNDED).not_null(),
    "file.size": BigIntType(is_nullable=False),
    "file.modification-time": LocalZonedTimestampType(precision=3, is_nullable=False),
}
FILES_WITH_COUNTED_ROWS = 64  # for the estimate of rows the footers are read


class FilesystemFactory(ConnectorFactory):
    """Reads and writes files of a format."""

    identifier = "filesystem"
    options = (
        TableOption("path", STRING, None, "A folder, a file or a pattern with *.", required=True),
        TableOption("format", one_of(*FORMATS), None, "What the files are.", required=True),
        TableOption(
            MONITOR_INTERVAL,
            DURATION,
            None,
            "How often new files are looked for; without it the table ends with what is there.",
        ),
        TableOption("partition.default-name", STRING, "__HIVE_DEFAULT_PARTITION__", "Of null."),
        RELOAD_STRATEGY,
        RELOAD_INTERVAL,
        *SINK_OPTIONS,
    )

    def option_table(self, table: CatalogTable) -> OptionTable:
        return OptionTable((CONNECTOR, *self.options, *_format_options(table)))

    def abilities_to_read(self, table: CatalogTable, values: TableValues) -> SourceAbilities:
        changes = _format(table).changes
        return SourceAbilities(
            is_bounded=values[MONITOR_INTERVAL] is None,
            changes=changes,
            takes_projection=True,
            takes_filters=changes.is_insert_only,
            rows=_counted_rows(values),
            takes_lookups=_format(table).reads_columns,
            metadata=_METADATA if _format(table).reads_columns else {},
        )

    def abilities_to_write(self, table: CatalogTable, values: TableValues) -> SinkAbilities:
        return SinkAbilities(
            changes=_format(table).changes,
            takes_overwrite=True,
            takes_partitions=bool(table.partition_keys),
        )

    def partitions(self, table: CatalogTable) -> Sequence[str]:
        return TablePartitions(self.values(table)["path"], table.partition_keys).names()

    def add_partition(self, table: CatalogTable, values: Mapping[str, object]) -> bool:
        return TablePartitions(self.values(table)["path"], table.partition_keys).add(values)

    def drop_partition(self, table: CatalogTable, values: Mapping[str, object]) -> bool:
        return TablePartitions(self.values(table)["path"], table.partition_keys).drop(values)

    def scan(self, env: StreamExecutionEnvironment, node: TableScan) -> DataStream:
        from flinkpy.columns.sql.arrow_of_logical import arrow_schema_of
        from flinkpy.connectors.files.paths import NoFilesError

        values = self.values(node.table)
        try:
            return _format(node.table).stream(env, node, values, _pushed(node))
        except NoFilesError:
            if not os.path.isdir(values["path"]):
                raise
            return env.from_arrow(arrow_schema_of(node.schema).empty_table())

    def lookup(self, node: LookupJoin) -> JoinedTable:
        from flinkpy.columns.sql.arrow_of_logical import arrow_schema_of
        from flinkpy.table.factories.files.looked_up_files import FilesTable

        interval = self.values(node.table)[RELOAD_INTERVAL.name]
        reload_s = None if interval is None else interval.total_seconds()
        return FilesTable(self, node.table, arrow_schema_of(node.columns), reload_s)

    def source(self, table: CatalogTable, columns: list[str], rows: int) -> ColumnFileSource:
        """Reads these columns of the files that are there now."""
        given = {key: each for key, each in table.options.items() if key != MONITOR_INTERVAL}
        table = replace(table, options=given)
        return _format(table).source(table, self.values(table), columns, rows)

    def sink(self, stream: DataStream, node: SinkNode) -> None:
        from flinkpy.table.factories.files.file_table_sinks import add_file_sink

        values, format = self.values(node.table), _format(node.table)
        stream = format.as_written(stream, node, values)
        add_file_sink(stream, node, values, format.written(values))


def _format(table: CatalogTable) -> FileTableFormat:
    name = table.options.get("format", "")
    if name.lower() not in FORMATS:
        raise ValidationError(
            f"a table with the connector 'filesystem' has one of the formats {', '.join(FORMATS)}, "
            f"not {name!r}"
        )
    return FORMATS[name.lower()]


def _format_options(table: CatalogTable) -> tuple[TableOption, ...]:
    name = table.options.get("format", "").lower()
    return prefixed(FORMATS[name].options, name) if name in FORMATS else ()


def _pushed(node: TableScan) -> Any:
    from flinkpy.table.factories.files.pushed_conditions import expression_of

    return expression_of(node.filters, node.schema.names) if node.filters else None


def _counted_rows(values: TableValues) -> int | None:
    """How many rows the files say that they have; None if that is not known without reading
    them."""
    if values["format"] != "parquet" or "://" in values["path"]:
        return None
    from flinkpy.connectors.files.paths import find_files
    from flinkpy.core.errors import FlinkpyError

    try:
        files = find_files(values["path"])
        if len(files) > FILES_WITH_COUNTED_ROWS:
            return None
        import pyarrow.parquet as pq

        return sum(int(pq.read_metadata(file.path).num_rows) for file in files)
    except (FlinkpyError, OSError, ValueError):
        return None  # the scan says what is wrong
