"""What translation needs of connectors: a stream for a scan, a sink for a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from flinkpy.datastream import DataStream, StreamExecutionEnvironment
    from flinkpy.operators.columnar.table_join import JoinedTable
    from flinkpy.relational.lookups.lookup_port import AskedTable
    from flinkpy.sql.physical.physical_nodes import LookupJoin, SinkNode, TableScan


class TableFactories(Protocol):
    """Streams of columns for tables. Raises ValidationError for options that do not fit."""

    def scan(self, env: StreamExecutionEnvironment, node: TableScan) -> DataStream:
        """A stream of columns with the names and types of ``node.schema``."""

    def lookup(self, node: LookupJoin) -> JoinedTable | AskedTable:
        """What is asked for the rows of keys; they have the columns ``node.columns``."""

    def sink(self, stream: DataStream, node: SinkNode) -> None:
        """Writes a stream whose columns are those of ``node.schema``."""
