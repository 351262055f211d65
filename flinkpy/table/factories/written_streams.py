"""From a stream of rows to the sink of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flinkpy.sql.sql_errors import ValidationError

if TYPE_CHECKING:
    from flinkpy.datastream import DataStream
    from flinkpy.operators.sinks.sink_port import Sink
    from flinkpy.sql.physical.physical_nodes import SinkNode


def write_stream(
    stream: DataStream, node: SinkNode, sink: Sink, parallelism: int | None = None
) -> None:
    """Writes the rows of a sink's node. Changes stay in their order: without a parallelism of the
    sink's own there are as many writers as subtasks that the rows come from; with one, all changes
    of a primary key go to one writer. Raises ValidationError if there is no key for that."""
    if not node.input.changes.is_insert_only:
        here = stream.recorded.transformation.parallelism
        if parallelism is None:
            parallelism = here
        elif parallelism > 1:
            stream = _to_writers(stream, node, parallelism)
    written = stream.sink_to(sink).name(f"Sink: {node.path.name}")
    if parallelism is not None:
        written.set_parallelism(parallelism)


def _to_writers(stream: DataStream, node: SinkNode, parallelism: int) -> DataStream:
    key = node.table.primary_key
    if key is not None:
        return _by_key(stream, key.columns)
    here = stream.recorded.transformation.parallelism
    if here is None:
        here = stream.get_execution_environment().get_parallelism()
    if here != parallelism:
        raise ValidationError(
            f"the table {node.path} has 'sink.parallelism' = '{parallelism}', its rows change and "
            f"come from {here} {'subtask' if here == 1 else 'subtasks'}, and there is no primary "
            "key by which changes stay in their order: declare one, or leave the option out"
        )
    return stream


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
