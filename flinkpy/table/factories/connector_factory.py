"""What a connector gives to tables. A factory is one connector; it says what it can do, and makes
sources and sinks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from flinkpy.sql.catalog.catalog_port import CatalogTable, SinkAbilities, SourceAbilities
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.statements import ColumnDefinition
from flinkpy.table.factories.table_options import STRING, OptionTable, TableOption, TableValues

if TYPE_CHECKING:
    from flinkpy.datastream import DataStream, StreamExecutionEnvironment
    from flinkpy.operators.columnar.table_join import JoinedTable
    from flinkpy.relational.lookups.lookup_port import AskedTable
    from flinkpy.sql.physical.physical_nodes import LookupJoin, SinkNode, TableScan

CONNECTOR = TableOption("connector", STRING, None, "Which connector the table has.", required=True)


class ConnectorFactory(ABC):
    """One connector. A subclass overrides what its connector can do: to be read, to be written."""

    identifier: ClassVar[str]
    reads: ClassVar[bool] = True
    writes: ClassVar[bool] = True
    options: ClassVar[tuple[TableOption, ...]] = ()

    def option_table(self, table: CatalogTable) -> OptionTable:
        """The options of this table; also those of its format, where it has one."""
        return OptionTable((CONNECTOR, *self.options))

    def values(self, table: CatalogTable) -> TableValues:
        """The options' values. Raises ValidationError for what does not fit."""
        whose = f"a table with the connector {self.identifier!r}"
        return self.option_table(table).read(table.options, whose)

    def source_abilities(self, table: CatalogTable) -> SourceAbilities:
        """What may be pushed into a scan. Raises ValidationError if it cannot be read."""
        if not self.reads:
            raise ValidationError(f"a table with the connector {self.identifier!r} cannot be read")
        return self.abilities_to_read(table, self.values(table))

    def sink_abilities(self, table: CatalogTable) -> SinkAbilities:
        """What a sink takes. Raises ValidationError if it cannot be written."""
        if not self.writes:
            raise ValidationError(
                f"a table with the connector {self.identifier!r} cannot be written"
            )
        return self.abilities_to_write(table, self.values(table))

    @abstractmethod
    def abilities_to_read(self, table: CatalogTable, values: TableValues) -> SourceAbilities: ...

    def abilities_to_write(self, table: CatalogTable, values: TableValues) -> SinkAbilities:
        return SinkAbilities()

    # -- partitions ------------------------------------------------------------------------------

    def partitions(self, table: CatalogTable) -> Sequence[str]:
        """The partitions of a table, such as ``city=Oslo/year=2024``, sorted."""
        raise self._without_partitions()

    def add_partition(self, table: CatalogTable, values: Mapping[str, object]) -> bool:
        """Makes a partition that has no rows yet. Whether it is new."""
        raise self._without_partitions()

    def drop_partition(self, table: CatalogTable, values: Mapping[str, object]) -> bool:
        """Removes a partition with its rows. Whether there was one."""
        raise self._without_partitions()

    def _without_partitions(self) -> ValidationError:
        return ValidationError(
            f"a table with the connector {self.identifier!r} has no partitions; one of "
            "'filesystem' can have"
        )

    # -- translation -----------------------------------------------------------------------------

    def scan(self, env: StreamExecutionEnvironment, node: TableScan) -> DataStream:
        """A stream of columns with the names and types of ``node.schema``."""
        raise ValidationError(f"a table with the connector {self.identifier!r} cannot be read")

    def lookup(self, node: LookupJoin) -> JoinedTable | AskedTable:
        """What is asked for the rows of keys; they have the columns ``node.columns``."""
        raise ValidationError(f"a table with the connector {self.identifier!r} cannot be looked up")

    def sink(self, stream: DataStream, node: SinkNode) -> None:
        """Writes a stream whose columns are those of ``node.schema``."""
        raise ValidationError(f"a table with the connector {self.identifier!r} cannot be written")


def stored_columns(table: CatalogTable) -> list[ColumnDefinition]:
    """The physical columns, in order."""
    return [column for column in table.columns if isinstance(column, ColumnDefinition)]
