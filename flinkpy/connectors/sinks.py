"""Sinks to use and to derive from: what ``stream.sink_to(...)`` takes.

A sink of one's own derives from :class:`Sink`: it travels to the workers, and makes a
:class:`SinkWriter` in each subtask, which gets whole batches. A :class:`Committer` makes it
exactly-once: it shows results when the checkpoint that has them is complete. A
:class:`GlobalCommitter` does so for all writers together. :func:`rows_of` gives
a batch's records. A writer that may wait for a server runs in a :class:`ThreadedSinkWriter`. Any
object with ``write(value)`` is a sink too. Files are written by the sinks and formats of
``flinkpy.datastream.connectors.file_system``."""

from flinkpy.connectors.print_sink import PrintSink
from flinkpy.connectors.rows import rows_of
from flinkpy.connectors.sockets.socket_sink import SocketSink
from flinkpy.connectors.threaded_writer import ThreadedSinkWriter
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.program.public_names import publish
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import (
    Committer,
    GlobalCommitter,
    Sink,
    SinkWriter,
    SupportsGlobalCommitter,
)

__all__ = [
    "Batch",
    "ColumnBatch",
    "Committer",
    "GlobalCommitter",
    "OperatorContext",
    "PrintSink",
    "RowBatch",
    "Sink",
    "SinkWriter",
    "SocketSink",
    "SupportsGlobalCommitter",
    "ThreadedSinkWriter",
    "rows_of",
]

publish(__name__)
