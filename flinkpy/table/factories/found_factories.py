"""The connectors by name: what planning asks of a table, and what translation makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from flinkpy.sql.catalog.catalog_port import (
    CatalogTable,
    ObjectPath,
    SinkAbilities,
    SourceAbilities,
)
from flinkpy.sql.sql_errors import ValidationError, did_you_mean
from flinkpy.table.factories.connector_factory import ConnectorFactory

if TYPE_CHECKING:
    from flinkpy.datastream import DataStream, StreamExecutionEnvironment
    from flinkpy.operators.columnar.table_join import JoinedTable
    from flinkpy.relational.lookups.lookup_port import AskedTable
    from flinkpy.sql.physical.physical_nodes import LookupJoin, SinkNode, TableScan

# A connector's module is imported when a table has it: Kafka's needs a package of its own.
CONNECTORS: Mapping[str, tuple[str, str]] = {
    "filesystem": ("files.filesystem_tables", "FilesystemFactory"),
    "values": ("values_tables", "ValuesFactory"),
    "datagen": ("generated_tables", "DatagenFactory"),
    "nexmark": ("nexmark_tables", "NexmarkFactory"),
    "print": ("printed_tables", "PrintFactory"),
    "blackhole": ("printed_tables", "BlackholeFactory"),
    "kafka": ("kafka.kafka_tables", "KafkaFactory"),
    "upsert-kafka": ("kafka.upsert_kafka_tables", "UpsertKafkaFactory"),
    "python": ("lookups.python_tables", "PythonFactory"),
    "held": ("held_tables", "HeldFactory"),
    "stream": ("taken_streams", "StreamFactory"),
}
# what from_arrow(), to_changelog_stream() and their like make; no DDL names them
INTERNAL = ("held", "stream")


class FoundFactories:
    """The ports ``Connectors`` and ``TableFactories`` over the factories of this folder."""

    def source_abilities(self, path: ObjectPath, table: CatalogTable) -> SourceAbilities:
        return self.factory(path, table).source_abilities(table)

    def sink_abilities(self, path: ObjectPath, table: CatalogTable) -> SinkAbilities:
        return self.factory(path, table).sink_abilities(table)

    def scan(self, env: StreamExecutionEnvironment, node: TableScan) -> DataStream:
        return self.factory(node.path, node.table).scan(env, node)

    def lookup(self, node: LookupJoin) -> JoinedTable | AskedTable:
        return self.factory(node.path, node.table).lookup(node)

    def sink(self, stream: DataStream, node: SinkNode) -> None:
        self.factory(node.path, node.table).sink(stream, node)

    def factory(self, path: ObjectPath, table: CatalogTable) -> ConnectorFactory:
        """The factory that the table names. Raises ValidationError if there is none."""
        name = table.options.get("connector")
        if name is None:
            near = did_you_mean("connector", table.options)
            raise ValidationError(
                f"the table {path} has no option 'connector'"
                + (near or "; ALTER TABLE ... SET ('connector' = '...') gives it one")
            )
        return factory_of(name)


def factory_of(name: str) -> ConnectorFactory:
    """The factory of this name. Raises ValidationError, which names the nearest, if there is
    none."""
    if name not in CONNECTORS:
        known = [each for each in CONNECTORS if each not in INTERNAL]
        near = did_you_mean(name, known) or f"; there are {', '.join(known)}"
        raise ValidationError(f"there is no connector {name!r}{near}")
    module, factory = CONNECTORS[name]
    made: ConnectorFactory = getattr(import_module(f"flinkpy.table.factories.{module}"), factory)()
    return made
