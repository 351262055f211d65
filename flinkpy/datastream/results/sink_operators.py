"""Sinks at the end of a recorded stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.datastream.checks import located, refuse
from flinkpy.datastream.results.data_stream_sink import GLOBAL_COMMITTER
from flinkpy.datastream.streams.recorded import RecordedStream, RowStream

if TYPE_CHECKING:
    from flinkpy.operators.sinks.sink_port import SupportsGlobalCommitter


def add_sink(stream: RecordedStream, sink: Any, name: str, *, as_table: bool = False) -> RowStream:
    """Adds the sink's operator, which has no output. ``as_table``: it takes only the last result of
    each key."""
    from flinkpy.operators.sinks.sink_operator import SinkOperator
    from flinkpy.operators.sinks.sink_port import Sink

    with located():
        if isinstance(sink, Sink):
            sink.check_stream(stream.column_names(), stream.is_columnar)
        operator = SinkOperator(sink)
        operator.takes_last_results = as_table
    return stream.apply(name, operator)


def add_globally_committed_sink(
    stream: RecordedStream, sink: SupportsGlobalCommitter
) -> tuple[RowStream, RowStream]:
    """Adds the operator of the sink's writers, and behind it the one of its global committer, which
    has one subtask."""
    from flinkpy.operators.sinks.global_commits import GlobalCommitterOperator, SinkWriterOperator
    from flinkpy.operators.sinks.sink_port import Sink

    name = type(sink).__name__
    if not isinstance(sink, Sink):
        raise refuse(f"{name} supports a global committer, and is no sink: derive it from Sink too")
    if type(sink).create_committer is not Sink.create_committer:
        raise refuse(
            f"{name} has a committer and a global committer, and what its writers prepare goes to "
            "one of them: leave create_committer() or SupportsGlobalCommitter out"
        )
    with located():
        sink.check_stream(stream.column_names(), stream.is_columnar)
    writers = stream.apply("Sink: Writer", SinkWriterOperator(sink))
    committer = writers.apply(GLOBAL_COMMITTER, GlobalCommitterOperator(sink))
    committer.transformation.parallelism = 1
    return writers, committer
