"""The client's side of collecting: one thread reads the connections of all sinks into a bounded
queue; iterating takes from the queue.

A job that restarts without checkpoints makes its results again, so the records of a subtask's
earlier attempt are dropped when a later one begins. Records that the program was already given
cannot be taken back: iterating then ends with an error. Callers that gather all records first
(``gathered``) get those of the last attempt only.

Records of a job with checkpoints are held back until their checkpoint is complete
(``collect.held_results``), so each is given once."""

from __future__ import annotations

import pickle
import secrets
import select
import selectors
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from flinkpy.connectors.collect.collect_sink import CollectSink
from flinkpy.connectors.collect.collected_results import CollectedResults
from flinkpy.connectors.rows import rows_of
from flinkpy.core.clock import SYSTEM_CLOCK, Clock
from flinkpy.core.errors import JobRestartedError, NetworkProtocolError
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.network.wire.client_channel import HANDSHAKE_TIMEOUT_S, Frame, IncomingChannel

__all__ = ["CollectServer", "CollectSink", "CollectStatistics"]

_LOG = engine_logger(__name__)

QUEUE_BYTES = 16 << 20
RECEIVE_BYTES = 256 << 10
# silence of an earlier attempt of a subtask, when a later one goes on from a checkpoint
EARLIER_TIMEOUT_S = 1.0
# silence after the job's end on connections that neither end nor break; of a failed job these are
# of tasks that it has ended without
DRAIN_TIMEOUT_S, FAILED_DRAIN_TIMEOUT_S = 10.0, 1.0


@dataclass(frozen=True)
class CollectStatistics:
    """Counters of a collecting client."""

    connections: int
    refused: int
    batches: int
    queued_bytes: int
    ended: int  # sinks that have finished


class CollectServer:
    """Listens for the sinks of one job. Iterating yields the records, in order per subtask, until
    ``job_ended`` was called and everything has been read.

    ``host`` is the address to listen on; the workers must be able to reach it. Results that wait
    for a checkpoint, beyond some megabytes, lie in files under ``folders``. Iterating raises the
    error given to ``job_ended``.

    >>> with CollectServer() as server:                     # doctest: +SKIP
    ...     job = submit(program_with(server.sink()))
    ...     job.on_end(server.job_ended)
    ...     for record in server: print(record)
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        *,
        clock: Clock = SYSTEM_CLOCK,
        queue_bytes: int = QUEUE_BYTES,
        decode: Callable[[bytes], Any] = pickle.loads,
        folders: Sequence[str] = (),
    ) -> None:
        self._decode = decode
        self.token = secrets.token_bytes(32)
        self._clock = clock
        self._results = CollectedResults(queue_bytes, folders)
        self._listener = socket.create_server((host, 0))
        self._listener.setblocking(False)
        self.host, self.port = host, self._listener.getsockname()[1]
        self._waker = _Waker()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._waker.inbound, selectors.EVENT_READ)
        self._connections: dict[socket.socket, IncomingChannel] = {}
        self._refused = self._ended = 0
        self._paused: bool | None = False  # None: to be found out for all connections
        self._quiet_since = clock.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"collect {self.port}", daemon=True)
        self._thread.start()

    def sink(self) -> CollectSink:
        """A sink that sends to this server."""
        return CollectSink(self.host, self.port, self.token)

    # -- the client's thread -----------------------------------------------------------------------

    def job_ended(
        self, error: BaseException | None = None, checkpoint_id: int | None = None
    ) -> None:
        """Says that the job has ended; may be called from any thread. Records in transit are still
        returned; then iterating ends, and raises ``error`` if there is one. ``checkpoint_id`` is
        the job's newest that is complete: what it has is returned too, though the tasks were not
        told any more."""
        self._results.end_job(error, checkpoint_id)
        self._waker.wake()

    def batches(self) -> Iterator[Any]:
        """The batches as they were sent: lists of records, or columns (ColumnBatch). Raises
        JobRestartedError when a later attempt replaces records that were already returned."""
        for _, batch in self._attributed():
            if batch is None:
                raise JobRestartedError(
                    "the job was restarted from its beginning, and makes again what this "
                    "iterator has given out already; take(), to_arrow(), "
                    "to_pandas() and execute_and_collect(limit=...) give the last "
                    "attempt's results only"
                )
            yield batch

    def gathered(self, limit: int | None = None) -> list[Any]:
        """All batches of the job, or enough to hold ``limit`` records, without repetitions; the
        batches of a subtask are in order."""
        kept: list[tuple[int, Any]] = []
        records = 0
        for subtask, batch in self._attributed():
            if batch is None:
                kept = [each for each in kept if each[0] != subtask]
                records = sum(len(each) for _, each in kept)
                continue
            kept.append((subtask, batch))
            records += len(batch)
            if limit is not None and records >= limit:
                break
        return [batch for _, batch in kept]

    def _attributed(self) -> Iterator[tuple[int, Any | None]]:
        """Batches with their subtasks. None in place of a batch means that the subtask's batches
        returned so far came from an earlier attempt and are void."""
        while (taken := self._results.take()) is not None:
            if taken.made_room:
                self._waker.wake()
            yield taken.subtask, None if taken.payload is None else self._decode(taken.payload)

    def __iter__(self) -> Iterator[Any]:
        for batch in self.batches():
            yield from batch if isinstance(batch, list) else rows_of(batch)

    def close(self) -> None:
        """Stops listening and breaks all connections, so sinks that are still writing fail.
        Iterating ends."""
        if not self._results.close():
            self._waker.wake()
            self._thread.join()
            self._waker.outbound.close()

    def __enter__(self) -> CollectServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def statistics(self) -> CollectStatistics:
        results = self._results
        return CollectStatistics(
            len(self._connections),
            self._refused,
            results.batches,
            results.queued_bytes,
            self._ended,
        )

    def __repr__(self) -> str:
        return f"<CollectServer {self.host}:{self.port}: {self.statistics()}>"

    # -- the reading thread ------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._results.closed and not self._results.complete:
                for key, _ in self._selector.select(
                    1.0 if self._connections or self._results.job_ended else None
                ):
                    sock: Any = key.fileobj
                    if sock is self._listener:
                        self._accept()
                    elif sock is self._waker.inbound:
                        self._waker.drain()
                    elif sock in self._connections:
                        self._read(sock)
                self._regulate()
        except Exception as error:
            _LOG.exception("collecting failed")
            self._results.reading_failed(error)
        finally:
            self._shut()

    def _accept(self) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return  # the client has gone away again
        sock.setblocking(False)
        connection = IncomingChannel(self.token, self._clock.monotonic())
        self._connections[sock] = connection
        self._selector.register(sock, selectors.EVENT_READ)
        self._answer(sock, connection.greeting())

    def _answer(self, sock: socket.socket, data: bytes) -> None:
        """Sends a few bytes, which fit into a new socket's buffer; if the connection does not take
        them, drops it."""
        try:
            if data and sock.send(data) == len(data):
                return
        except OSError:
            pass
        if data:
            self._drop(sock)

    def _read(self, sock: socket.socket) -> None:
        connection = self._connections[sock]
        was_authenticated = connection.authenticated
        try:
            data = sock.recv(RECEIVE_BYTES)
            answer, frames = connection.receive(data)
        except BlockingIOError:
            return
        except NetworkProtocolError as error:
            self._refused += 1
            _LOG.warning("refused a connection to the results of this job: %s", error)
            self._drop(sock)
            return
        except OSError:
            data, answer, frames = b"", b"", []
        self._quiet_since = self._clock.monotonic()
        self._keep(connection, frames)
        if not was_authenticated:
            # its handshake was read although the queue may be full; what follows waits
            self._paused = None
        if not data:
            self._drop(sock)
        elif answer:
            self._answer(sock, answer)

    def _keep(self, connection: IncomingChannel, frames: list[Frame]) -> None:
        begin = connection.begin
        if begin is not None and begin.restored and self._results.is_later(connection):
            self._read_earlier(connection.subtask, connection.attempt)
        self._results.add(connection, frames)

    def _read_earlier(self, subtask: int, attempt: int) -> None:
        """Reads what earlier attempts of the subtask still have on the way: it comes before what
        the new one sends."""
        for sock, each in list(self._connections.items()):
            if each.subtask != subtask or each.attempt >= attempt:
                continue
            give_up = self._clock.monotonic() + DRAIN_TIMEOUT_S
            while sock in self._connections and self._clock.monotonic() < give_up:
                if not select.select([sock], [], [], EARLIER_TIMEOUT_S)[0]:
                    break
                self._read(sock)

    def _drop(self, sock: socket.socket) -> None:
        connection = self._connections.pop(sock, None)
        if connection is not None:
            self._ended += connection.ended
            if sock in self._selector.get_map():
                self._selector.unregister(sock)
            sock.close()

    def _regulate(self) -> None:
        """Stops reading while the queue is full, drops connections whose handshake takes too long,
        and detects the end."""
        full, job_ended = self._results.is_full, self._results.job_ended
        if full != self._paused:
            self._paused = full
            registered = self._selector.get_map()
            for sock, connection in self._connections.items():
                if full and sock in registered and connection.authenticated:
                    self._selector.unregister(sock)
                elif not full and sock not in registered:
                    self._selector.register(sock, selectors.EVENT_READ)
        now = self._clock.monotonic()
        for sock, connection in list(self._connections.items()):
            if not connection.authenticated and (
                job_ended or now - connection.opened_at > HANDSHAKE_TIMEOUT_S
            ):
                self._drop(sock)
        if not job_ended or self._paused:
            self._quiet_since = now
            return
        silence_s = FAILED_DRAIN_TIMEOUT_S if self._results.has_failed else DRAIN_TIMEOUT_S
        if not self._connections or now - self._quiet_since > silence_s:
            self._results.all_is_read()

    def _shut(self) -> None:
        for sock in list(self._connections):
            self._drop(sock)
        self._selector.close()
        self._listener.close()
        self._waker.inbound.close()
        self._results.reading_ends()


class _Waker:
    """Interrupts the thread that waits for sockets."""

    def __init__(self) -> None:
        self.inbound, self.outbound = socket.socketpair()
        self.inbound.setblocking(False)

    def wake(self) -> None:
        try:
            self.outbound.send(b"\0")
        except OSError:
            pass  # closed, or enough wake-ups are pending already

    def drain(self) -> None:
        try:
            self.inbound.recv(4096)
        except BlockingIOError:
            pass
