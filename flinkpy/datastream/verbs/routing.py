"""Methods that say where records go: partitionings, unions and side outputs. They add no operator;
the graph writes them onto its edges."""

from __future__ import annotations

from collections.abc import Sequence

from flinkpy.common.side_outputs import OutputTag
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.datastream import functions as f
from flinkpy.datastream.checks import caller, check_function, refuse
from flinkpy.datastream.streams.operator_settings import operator_of
from flinkpy.datastream.streams.recorded import ColumnStream, RecordedStream, RowStream
from flinkpy.datastream.verbs.column_verbs import common_columns
from flinkpy.graph.partitioning import KeySpec, Partitioning, PartitioningKind
from flinkpy.graph.transformations import (
    PartitionTransformation,
    SideOutputTransformation,
    UnionTransformation,
)
from flinkpy.operators.functions import method_of


def partitioned(stream: RecordedStream, partitioning: Partitioning, call: str) -> RecordedStream:
    """Implements ``rebalance`` and the other partitionings. Refuses a keyed stream, as Flink does,
    because its key would be lost silently."""
    if stream.key is not None:
        raise refuse(
            f"{call} is not for a keyed stream, whose records go where their keys say: call "
            "it on the stream before key_by(...), or "
            "leave key_by(...) out"
        )
    return stream.routed_by(_partition(stream, partitioning, call))


def partitioned_by_key(stream: RecordedStream, key: KeySpec) -> RecordedStream:
    """The keyed stream, which sends all records of a key to one subtask."""
    made = _partition(stream, Partitioning(PartitioningKind.HASH, key), "key_by()")
    return stream.routed_by(made, key, stream)


def partitioned_by_function(
    stream: RecordedStream, partitioner: object, key_selector: object
) -> RecordedStream:
    """Implements ``partition_custom``."""
    check_function(partitioner, f.Partitioner, "partition", 2, "partition_custom()")
    check_function(key_selector, f.KeySelector, "get_key", 1, "partition_custom()")
    custom, key = method_of(partitioner, "partition"), KeySpec(method_of(key_selector, "get_key"))
    if stream.key is None:
        stream = stream.as_rows(before_edge=True)
    return partitioned(
        stream, Partitioning(PartitioningKind.CUSTOM, key, custom=custom), "partition_custom()"
    )


def _partition(
    stream: RecordedStream, partitioning: Partitioning, call: str
) -> PartitionTransformation:
    return PartitionTransformation(
        id=stream.program.next_id(),
        name=call,
        input=stream.transformation,
        partitioning=partitioning,
        output_type=stream.output_type,
        where=caller(),
    )


def union_of(streams: Sequence[RecordedStream]) -> RecordedStream:
    """Implements ``union``: columns if all streams are columnar, else rows."""
    first = streams[0]
    for stream in streams:
        first.refuse_stranger(stream, "union()")
    types = [stream.output_type for stream in streams]
    if len({repr(each) for each in types}) > 1 and None not in types:
        raise refuse(
            "union() needs streams of one type, these have "
            f"{', '.join(sorted({repr(each) for each in types}))}"
        )
    columnar = [stream for stream in streams if isinstance(stream, ColumnStream)]
    if len(columnar) == len(streams):
        schema = common_columns([stream.schema for stream in columnar], "union()")
        made = _union([stream.with_schema(schema) for stream in columnar], types)
        return ColumnStream(first.program, made, schema=schema)
    return RowStream(
        first.program, _union([stream.as_rows(before_edge=True) for stream in streams], types)
    )


def _union(
    streams: Sequence[RecordedStream], types: list[TypeInformation | None]
) -> UnionTransformation:
    shared = types[0] if None not in types else None
    return UnionTransformation(
        id=streams[0].program.next_id(),
        name="union()",
        union=[stream.transformation for stream in streams],
        output_type=shared,
        where=caller(),
    )


def side_output(stream: RecordedStream, tag: OutputTag) -> RowStream:
    """Implements ``get_side_output``."""
    reader = SideOutputTransformation(
        id=stream.program.next_id(),
        name=f"get_side_output({tag.tag_id!r})",
        input=operator_of(stream, "get_side_output()"),
        tag_id=tag.tag_id,
        output_type=tag.type_info,
        where=caller(),
    )
    return RowStream(stream.program, reader)
