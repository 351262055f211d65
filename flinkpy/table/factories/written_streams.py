"""From a stream of rows to the sink of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flinkpy.datastream import DataStream
    from flinkpy.operators.sinks.sink_port import Sink
    from flinkpy.sql.physical.physical_nodes import SinkNode


def write_stream(
    stream: DataStream, node: SinkNode, sink: Sink, parallelism: int | None = None
) -> None:
    """Writes the rows of a sink's node. With a parallelism of the sink's own, all changes of a
    primary key go to one writer, in their order."""
    key = node.table.primary_key
    if parallelism is not None and key is not None and not node.input.changes.is_insert_only:
        stream = _by_key(stream, key.columns)
    written = stream.sink_to(sink).name(f"Sink: {node.path.name}")
    if parallelism is not None:
        written.set_parallelism(parallelism)


def _by_key(stream: DataStream, key: tuple[str, ...]) -> DataStream:
    from flinkpy.datastream import DataStream
    from flinkpy.datastream.streams.recorded import ColumnStream
    from flinkpy.graph.partitioning import KeySpec, Partitioning, PartitioningKind
    from flinkpy.graph.transformations import PartitionTransformation

    columns = stream.recorded.as_columns("a sink")
    made = PartitionTransformation(
        id=columns.program.next_id(),
        name="Exchange",
        input=columns.transformation,
        partitioning=Partitioning(PartitioningKind.HASH, KeySpec(columns=key)),
    )
    keyed = ColumnStream(columns.program, made, schema=columns.schema)
    return DataStream(stream.get_execution_environment(), keyed)
