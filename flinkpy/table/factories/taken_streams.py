"""Tables that a program reads as streams: what is written into one is a stream for it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from flinkpy.common.changelog_mode import ChangelogMode
from flinkpy.sql.catalog.catalog_port import CatalogTable, SinkAbilities, SourceAbilities
from flinkpy.table.factories.connector_factory import ConnectorFactory
from flinkpy.table.factories.held_tables import ROWTIME
from flinkpy.table.factories.table_options import CHANGES, STRING, TableOption, TableValues

if TYPE_CHECKING:
    from flinkpy.datastream import DataStream
    from flinkpy.sql.physical.physical_nodes import SinkNode

_taken: dict[str, DataStream] = {}
_numbers = itertools.count(1)


def options_to_take(changes: ChangelogMode) -> dict[str, str]:
    """The options of a table whose rows, of these kinds, become a stream."""
    number = f"taken-{next(_numbers)}"
    return {"connector": "stream", "data-id": number, "changelog-mode": str(changes)}


def taken_stream(table: CatalogTable) -> DataStream:
    """The stream of the rows that a plan writes into the table."""
    return _taken.pop(table.options["data-id"])


class StreamFactory(ConnectorFactory):
    """Gives the program the stream of what is written."""

    identifier = "stream"
    reads = False
    options = (
        TableOption("data-id", STRING, None, "Which one.", required=True),
        TableOption("changelog-mode", CHANGES, None, "Which kinds it takes.", required=True),
    )

    def abilities_to_read(self, table: CatalogTable, values: TableValues) -> SourceAbilities:
        raise NotImplementedError

    def abilities_to_write(self, table: CatalogTable, values: TableValues) -> SinkAbilities:
        return SinkAbilities(changes=values["changelog-mode"], metadata={"rowtime": ROWTIME})

    def sink(self, stream: DataStream, node: SinkNode) -> None:
        from flinkpy.columns import col

        for name, _ in node.metadata:
            stream = with_times_of_column(stream, node.schema.names.index(name))
            stream = stream.select(*(col(each) for each in node.schema.names if each != name))
        _taken[self.values(node.table)["data-id"]] = stream


def with_times_of_column(stream: DataStream, place: int) -> DataStream:
    """The stream, whose rows have the time in the column at this place as event time."""
    from flinkpy.datastream import DataStream
    from flinkpy.datastream.streams.recorded import copy_place
    from flinkpy.relational.windows.event_times import EventTimesOperator

    columns = stream.recorded.as_columns("to_data_stream()")
    made = columns.apply_columns("Event Times", EventTimesOperator(place, columns.schema))
    copy_place(columns.transformation, made.transformation)
    return DataStream(stream.get_execution_environment(), made)
