"""Results back to the client: it listens, the sink's subtasks connect and stream batches, iterating gives records as they come.

Both sides prove that they know the job's random token before anything is unpickled (challenge and response by HMAC-SHA256)::

    client → sink   magic, nonce A
    sink → client   nonce B, HMAC(token, "sink" A B)
    client → sink   HMAC(token, "client" A B)

then frames of ``kind | length | payload`` flow to the client, the first of which says whose they are: the client drops what it has of a subtask when
a later attempt of it begins, as that makes all of it again. A client that does not iterate stops reading its sockets, the sinks' outboxes fill,
and back-pressure travels to the sources.
"""

from __future__ import annotations

import hmac
import os
import pickle
import socket
import struct
from typing import Any

from flinkpy.connectors.sockets.outbox import Outbox
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.core.errors import NetworkProtocolError, RecipientUnreachableError
from flinkpy.core.program.by_value import StreamPickler
from flinkpy.core.program.code import dumps
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import Sink, SinkWriter

MAGIC = b"flinkpy collect 2"
NONCE_BYTES = 32
DIGEST_BYTES = 32
HEADER = struct.Struct("!BQ")
WHOSE = struct.Struct("!II")  # subtask, attempt
KIND_BATCH, KIND_END, KIND_BEGIN = 1, 2, 3
MAX_FRAME_BYTES = 1 << 30
HANDSHAKE_TIMEOUT_S = 10.0


def proof(token: bytes, role: bytes, server_nonce: bytes, sink_nonce: bytes) -> bytes:
    """What only a holder of the token can say to these nonces."""
    return hmac.digest(token, role + server_nonce + sink_nonce, "sha256")


class CollectSink(Sink):
    """Streams every batch to the :class:`~flinkpy.connectors.collect.collect_server.CollectServer` at ``host:port``; made by it
    (``server.sink()``)."""

    def __init__(self, host: str, port: int, token: bytes) -> None:
        self._host, self._port, self._token = host, port, token

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        sock = connect_to_client(self._host, self._port, self._token)
        outbox = Outbox(sock, context.timers, _peer(self._host, self._port))
        outbox.send(HEADER.pack(KIND_BEGIN, WHOSE.size), WHOSE.pack(context.task.subtask_index, context.task.attempt_id.attempt))
        return _CollectWriter(outbox)

    def __repr__(self) -> str:
        return f"CollectSink({self._host}:{self._port})"


def connect_to_client(host: str, port: int, token: bytes) -> socket.socket:
    """A connection to the CollectServer there, after both sides have proven that they know the token."""
    peer = _peer(host, port)
    try:
        sock = socket.create_connection((host, port), timeout=HANDSHAKE_TIMEOUT_S)
    except OSError as error:
        raise RecipientUnreachableError(f"{peer} cannot be reached: {error}") from error
    try:
        _introduce(sock, f"{host}:{port}", token)
    except OSError as error:
        sock.close()
        raise RecipientUnreachableError(f"{peer} broke off the handshake: {error or type(error).__name__}") from error
    except NetworkProtocolError:
        sock.close()
        raise
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _peer(host: str, port: int) -> str:
    return f"the client collecting results at {host}:{port}"


def _introduce(sock: socket.socket, where: str, token: bytes) -> None:
    hello = _receive(sock, len(MAGIC) + NONCE_BYTES)
    if not hello.startswith(MAGIC):
        raise NetworkProtocolError(f"{where} is no flinkpy client collecting results")
    server_nonce, own_nonce = hello[len(MAGIC):], os.urandom(NONCE_BYTES)
    sock.sendall(own_nonce + proof(token, b"sink", server_nonce, own_nonce))
    if not hmac.compare_digest(_receive(sock, DIGEST_BYTES), proof(token, b"client", server_nonce, own_nonce)):
        raise NetworkProtocolError(f"{where} does not know the token of this job's results")


def _receive(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = sock.recv(count - len(data))
        if not more:
            raise ConnectionResetError("connection closed (was the token refused?)")
        data += more
    return data


class _Columns:
    """Pickles a ``pyarrow.RecordBatch`` without what lies around it: Arrow's own pickle of a slice holds all it was cut from."""

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
    """One subtask's stream of frames."""

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
        """Plainly where that works; classes that came with the program go along with their first instances."""
        if self._by_value is None:
            try:
                return pickle.dumps(records, protocol=5)
            except Exception:
                self._by_value = StreamPickler()
        try:
            return self._by_value.dumps(records)
        except Exception:
            return dumps(records, "a collected record")
