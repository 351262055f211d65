"""``print`` and ``blackhole``: tables that only take rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.sql.catalog.catalog_port import CatalogTable, SinkAbilities, SourceAbilities
from flinkpy.table.factories.connector_factory import ConnectorFactory
from flinkpy.table.factories.table_options import BOOLEAN, INT, STRING, TableOption, TableValues
from flinkpy.table.factories.written_streams import write_stream

if TYPE_CHECKING:
    from flinkpy.datastream import DataStream
    from flinkpy.sql.physical.physical_nodes import SinkNode


class PrintFactory(ConnectorFactory):
    """Prints each row with its kind: ``+I[1, a]``."""

    identifier = "print"
    reads = False
    options = (
        TableOption("print-identifier", STRING, None, "What each line begins with."),
        TableOption("standard-error", BOOLEAN, False, "Whether it prints to standard error."),
        TableOption("sink.parallelism", INT, None, "How many writers there are."),
    )

    def abilities_to_read(self, table: CatalogTable, values: TableValues) -> SourceAbilities:
        raise NotImplementedError

    def abilities_to_write(self, table: CatalogTable, values: TableValues) -> SinkAbilities:
        return SinkAbilities(changes=ALL_CHANGES)

    def sink(self, stream: DataStream, node: SinkNode) -> None:
        from flinkpy.connectors.print_sink import PrintSink

        values = self.values(node.table)
        printed = PrintSink(
            values["print-identifier"],
            to_stderr=values["standard-error"],
            formatter=_KindAndValues(),
        )
        write_stream(stream, node, printed, values["sink.parallelism"])


class _KindAndValues:
    """The text of a row, as Flink prints it."""

    def __call__(self, row: Any) -> str:
        from flinkpy.table.results.cell_texts import cell_text

        return f"{row.get_row_kind()}[{', '.join(map(cell_text, row))}]"


class BlackholeFactory(ConnectorFactory):
    """Takes all rows and keeps none, to measure a program."""

    identifier = "blackhole"
    reads = False

    def abilities_to_read(self, table: CatalogTable, values: TableValues) -> SourceAbilities:
        raise NotImplementedError

    def abilities_to_write(self, table: CatalogTable, values: TableValues) -> SinkAbilities:
        return SinkAbilities(changes=ALL_CHANGES)

    def sink(self, stream: DataStream, node: SinkNode) -> None:
        from flinkpy.connectors.discarding_sink import DiscardingSink

        stream.sink_to(DiscardingSink()).name(f"Sink: {node.path.name}")
