"""Sinks to use and to derive from: what ``stream.sink_to(...)`` takes.

Your own sink derives from :class:`Sink`. It travels to the workers, and makes a :class:`SinkWriter` in each subtask,
which gets whole batches; :func:`rows_of` returns a batch's records. Any object with ``write(value)`` is a sink too.
Files are written by the sinks and formats in ``flinkpy.datastream.connectors.file_system``.
"""

from flinkpy.connectors.print_sink import PrintSink
from flinkpy.connectors.rows import rows_of
from flinkpy.connectors.sockets.socket_sink import SocketSink
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import Sink, SinkWriter

__all__ = ["Batch", "ColumnBatch", "OperatorContext", "PrintSink", "RowBatch", "Sink", "SinkWriter", "SocketSink", "rows_of"]
