"""The sink that sends a job's results to the program that waits for them
(``flinkpy.network.wire.client_channel``).

The first frame names the subtask and its attempt: the program drops a subtask's records when a
later attempt of it begins, as that attempt makes all of them again. A program that does not iterate
stops reading its sockets; the sinks' outboxes fill, and back-pressure reaches the sources.

In a job with checkpoints the program holds records back until their checkpoint is complete. A
marker stands behind the records of each checkpoint; it is what this sink commits. A job that starts
from a checkpoint of another one finds markers of that one's program, which mean nothing to its own.
All up to a marker has been handed to the operating system when the checkpoint is taken: it arrives
although the process dies, but not if the machine does in that moment."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple

from flinkpy.connectors.sockets.outbox import Outbox
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch
from flinkpy.core.options.checkpointing import takes_checkpoints
from flinkpy.core.program.by_value import StreamPickler
from flinkpy.core.program.code import dumps
from flinkpy.network.wire import client_channel as wire
from flinkpy.network.wire.client_channel import HEADER, client_name, connect_to_client
from flinkpy.operators.context import OperatorContext, TaskInfo
from flinkpy.operators.sinks.sink_port import Committer, Sink, SinkWriter


class CollectSink(Sink):
    """Sends every batch to the :class:`~flinkpy.connectors.collect.collect_server.CollectServer` at
    ``host:port``; created by ``server.sink()``."""

    takes_kinds = True

    def __init__(self, host: str, port: int, token: bytes) -> None:
        self._host = host
        self._port = port
        self._token = token
        self._writer: _CollectWriter | None = None  # in the task
        self._early: list[_Mark] = []  # committed before there is a writer
        # the token itself is in no checkpoint
        self._program = hashlib.sha256(token).hexdigest()[:16]

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        sock = connect_to_client(self._host, self._port, self._token)
        outbox = Outbox(sock, context.timers, client_name(self._host, self._port))
        writer = _CollectWriter(outbox, context.task, self._program)
        writer.begin(
            context.operator_state.restored if takes_checkpoints(context.configuration) else None
        )
        self._writer = writer
        self._tell(self._early)
        self._early = []
        return writer

    def create_committer(self, context: OperatorContext) -> Committer | None:
        return _CollectCommitter(self) if takes_checkpoints(context.configuration) else None

    def _tell(self, committables: Sequence[_Mark]) -> None:
        """Tells the program which checkpoints are complete; those of the restored state when there
        is a connection."""
        own = [mark for mark in committables if mark.program == self._program]
        if self._writer is None:
            self._early += own
        else:
            self._writer.complete(own)

    def __repr__(self) -> str:
        return f"CollectSink({self._host}:{self._port})"


class _Columns:
    """Pickles only the data of a batch, without event times: Arrow's own pickle of a slice contains
    all the data that it was cut from."""

    def __init__(self, batch: ColumnBatch) -> None:
        self._batch = batch

    def __reduce__(self) -> tuple[Any, ...]:
        import pyarrow as pa

        into, data, kinds = pa.BufferOutputStream(), self._batch.data, self._batch.kinds
        with pa.ipc.new_stream(into, data.schema) as stream:
            stream.write_batch(data)
        return _columns, (into.getvalue(), None if kinds is None else kinds.tobytes())


def _columns(data: object, kinds: bytes | None) -> ColumnBatch:
    import numpy as np
    import pyarrow as pa

    return ColumnBatch(
        pa.ipc.open_stream(data).read_next_batch(),
        kinds=None if kinds is None else np.frombuffer(kinds, np.int8),
    )


class _Mark(NamedTuple):
    """What is committed: a marker of a stream."""

    subtask: int
    attempt: int
    number: int
    program: str = ""  # to which the stream goes


class _CollectCommitter(Committer):
    def __init__(self, sink: CollectSink) -> None:
        self._sink = sink

    def commit(self, committables: Sequence[_Mark]) -> None:
        self._sink._tell(committables)


class _CollectWriter(SinkWriter):
    """Writes the frames of one subtask."""

    def __init__(self, outbox: Outbox, task: TaskInfo, program: str = "") -> None:
        self._outbox = outbox
        self._task = task
        self._program = program
        self._by_value: StreamPickler | None = None
        self._markers = 0
        self._is_marked = True  # whether nothing stands behind the last marker
        self._is_sent = True  # whether it is

    def begin(self, restored: bool | None) -> None:
        """``restored``: whether this attempt goes on from a checkpoint; None: the job takes
        none."""
        subtask, attempt = self._task.subtask_index, self._task.attempt_id.attempt
        if restored is None:
            self._send(wire.KIND_BEGIN, wire.SUBTASK_ATTEMPT.pack(subtask, attempt))
        else:
            self._send(
                wire.KIND_CHECKPOINTED_BEGIN,
                wire.CHECKPOINTED_BEGIN.pack(subtask, attempt, self._task.parallelism, restored),
            )

    def _send(self, kind: int, payload: bytes) -> None:
        self._outbox.send(HEADER.pack(kind, len(payload)), payload)

    def write_batch(self, batch: Batch) -> None:
        self._send(
            wire.KIND_BATCH,
            self._pickled(batch.values if isinstance(batch, RowBatch) else _Columns(batch)),
        )
        self._is_marked = False

    def prepare_commit(self) -> Sequence[_Mark]:
        if self._is_marked:
            return ()
        self._is_marked, self._is_sent = True, False
        self._markers += 1
        return [
            _Mark(
                self._task.subtask_index,
                self._task.attempt_id.attempt,
                self._markers,
                self._program,
            )
        ]

    def snapshot_state(self, checkpoint_id: int) -> Sequence[Any]:
        if not self._is_sent:
            self._is_sent = True
            self._send(wire.KIND_MARKER, wire.MARKER.pack(self._markers, checkpoint_id))
            self._outbox.flush()  # what the checkpoint has must not die with this process
        return ()

    def complete(self, marks: Sequence[_Mark]) -> None:
        for mark in marks:
            self._send(
                wire.KIND_COMPLETE, wire.COMPLETE.pack(mark.subtask, mark.attempt, mark.number)
            )
        self._outbox.flush()

    @property
    def available(self) -> bool:
        return self._outbox.available

    def set_listener(self, on_available: Any) -> None:
        self._outbox.set_listener(on_available)

    def flush(self) -> None:
        self._outbox.begin_flush()

    @property
    def flushed(self) -> bool:
        return self._outbox.flushed

    def finish(self) -> None:
        self._send(wire.KIND_END, b"")
        self._outbox.begin_flush()

    def close(self) -> None:
        self._outbox.close()

    def _pickled(self, records: object) -> bytes:
        """The records with plain pickle if that works; otherwise classes that the program defines
        are sent with their first instances."""
        if self._by_value is None:
            try:
                return pickle.dumps(records, protocol=5)
            except Exception:
                self._by_value = StreamPickler()
        try:
            return self._by_value.dumps(records)
        except Exception:
            return dumps(records, "a collected record")
