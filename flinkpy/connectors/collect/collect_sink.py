"""The sink that sends a job's results to the program that waits for them (``flinkpy.network.wire.client_channel``).

The first frame names the subtask and its attempt. When a later attempt begins, the program drops the subtask's
records, because that attempt produces all of them again. If a program does not iterate, it stops reading its sockets;
the sinks' outboxes fill, and back-pressure reaches the sources.
"""

from __future__ import annotations

import pickle
from typing import Any

from flinkpy.connectors.sockets.outbox import Outbox
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.core.program.by_value import StreamPickler
from flinkpy.core.program.code import dumps
from flinkpy.network.wire.client_channel import HEADER, KIND_BATCH, KIND_BEGIN, KIND_END, SUBTASK_ATTEMPT, client_name, connect_to_client
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import Sink, SinkWriter


class CollectSink(Sink):
    """Sends every batch to the :class:`~flinkpy.connectors.collect.collect_server.CollectServer` at ``host:port``;
    created by ``server.sink()``."""

    def __init__(self, host: str, port: int, token: bytes) -> None:
        self._host, self._port, self._token = host, port, token

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        sock = connect_to_client(self._host, self._port, self._token)
        outbox = Outbox(sock, context.timers, client_name(self._host, self._port))
        outbox.send(HEADER.pack(KIND_BEGIN, SUBTASK_ATTEMPT.size), SUBTASK_ATTEMPT.pack(context.task.subtask_index, context.task.attempt_id.attempt))
        return _CollectWriter(outbox)

    def __repr__(self) -> str:
        return f"CollectSink({self._host}:{self._port})"


class _Columns:
    """Pickles only the data of a ``pyarrow.RecordBatch``: Arrow's own pickle of a slice contains all the data that it
    was cut from."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __reduce__(self) -> tuple[Any, ...]:
        import pyarrow as pa

        into = pa.BufferOutputStream()
        with pa.ipc.new_stream(into, self._data.schema) as stream:
            stream.write_batch(self._data)
        return _columns, (into.getvalue(),)


def _columns(data: Any) -> Any:
    import pyarrow as pa

    return pa.ipc.open_stream(data).read_next_batch()


class _CollectWriter(SinkWriter):
    """Writes the frames of one subtask."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._by_value: StreamPickler | None = None

    def write_batch(self, batch: Batch) -> None:
        payload = self._pickled(batch.values if isinstance(batch, RowBatch) else _Columns(batch.data))
        self._outbox.send(HEADER.pack(KIND_BATCH, len(payload)), payload)

    @property
    def available(self) -> bool:
        return self._outbox.available

    def set_listener(self, on_available: Any) -> None:
        self._outbox.set_listener(on_available)

    def flush(self) -> None:
        self._outbox.flush()

    def finish(self) -> None:
        self._outbox.send(HEADER.pack(KIND_END, 0))
        self._outbox.flush()

    def close(self) -> None:
        self._outbox.close()

    def _pickled(self, records: Any) -> bytes:
        """The records with plain pickle if that works; otherwise classes that the program defines are sent with their
        first instances."""
        if self._by_value is None:
            try:
                return pickle.dumps(records, protocol=5)
            except Exception:
                self._by_value = StreamPickler()
        try:
            return self._by_value.dumps(records)
        except Exception:
            return dumps(records, "a collected record")
