"""Sinks at the end of a recorded stream."""

from __future__ import annotations

from typing import Any

from flinkpy.datastream.checks import located
from flinkpy.datastream.streams.recorded import RecordedStream, RowStream


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
