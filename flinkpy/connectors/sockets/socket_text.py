"""A source of lines from a TCP server. One subtask reads, on a thread of its own that may block;
the others have nothing to do."""

from __future__ import annotations

import socket
import threading
from dataclasses import dataclass
from typing import Any

from flinkpy.connectors.source_api.enumerators import SplitQueue
from flinkpy.connectors.source_api.readers import SequentialReader, SplitReader, ThreadedSplitReader
from flinkpy.connectors.source_api.source import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.core.errors import ProgramError

RECEIVE_BYTES = 64 << 10
CONNECT_TIMEOUT_S = 10.0
RETRY_DELAY_S = 0.5
LONGEST_LINE_BYTES = 64 << 20


@dataclass(frozen=True)
class SocketSplit:
    """The server. There is no position, because a socket cannot be read again."""

    split_id: str
    host: str
    port: int


class SocketTextSource(Source[SocketSplit]):
    """Reads text from a server and cuts it at ``delimiter``. The source is unbounded. It ends when
    the server closes the connection and ``max_retries`` attempts to connect again have failed (0:
    ends at once; -1: tries for ever). If the first connection fails, it raises ProgramError; so it
    does for an invalid port and an empty delimiter."""

    has_timestamps = False
    can_replay = False

    def __init__(
        self,
        host: str,
        port: int,
        delimiter: str = "\n",
        max_retries: int = 0,
        charset: str = "utf-8",
    ) -> None:
        if not isinstance(port, int) or not 0 < port < 65536:
            raise ProgramError(f"port {port!r:.80} is not a whole number between 1 and 65535")
        if not delimiter:
            raise ProgramError("the delimiter is empty")
        self._host = host
        self._port = port
        self._charset = charset
        self._retries = max_retries
        self._delimiter = delimiter.encode(charset)

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.CONTINUOUS_UNBOUNDED

    def create_enumerator(
        self, context: SplitEnumeratorContext[SocketSplit], checkpoint: Any = None
    ) -> SplitEnumerator[SocketSplit]:
        split = SocketSplit(f"{self._host}:{self._port}", self._host, self._port)
        return SplitQueue(context, lambda _: [split], checkpoint)

    def create_reader(self, context: ReaderContext) -> SourceReader[SocketSplit]:
        def open_split(split: SocketSplit) -> SplitReader[SocketSplit]:
            return _SocketReader(split, self._delimiter, self._charset, self._retries)

        def open_on_thread(split: SocketSplit) -> SplitReader[SocketSplit]:
            return ThreadedSplitReader(
                split, open_split, RECEIVE_BYTES, context.wake_up, f"socket {split.split_id}"
            )

        return SequentialReader(context, open_on_thread)

    def __repr__(self) -> str:
        return f"SocketTextSource({self._host}:{self._port})"


class _SocketReader(SplitReader[SocketSplit]):
    """Blocks in connect and receive; ``interrupt`` ends either."""

    def __init__(self, split: SocketSplit, delimiter: bytes, charset: str, retries: int) -> None:
        self._split = split
        self._delimiter = delimiter
        self._charset = charset
        self._retries = retries
        self._stopped = threading.Event()
        self._socket: socket.socket | None = None
        self._rest = b""
        self._received = 0

    def next_batch(self, limit: int) -> Batch | None:
        while not self._stopped.is_set():
            sock = self._socket or self._connect()
            if sock is None:
                return self._last_line()
            data = self._receive(sock)
            if not data:
                self._drop()
                if self._retries == 0:
                    self._stopped.set()
                    return self._last_line()
                continue
            *lines, self._rest = (self._rest + data).split(self._delimiter)
            if lines:
                return RowBatch(self._decoded(lines))
            if len(self._rest) > LONGEST_LINE_BYTES:
                raise ProgramError(
                    f"{self._split.split_id} sent {len(self._rest)} bytes without a delimiter "
                    f"{self._delimiter!r}"
                )
        return None

    def _receive(self, sock: socket.socket) -> bytes:
        try:
            data = sock.recv(RECEIVE_BYTES)
        except OSError:
            return b""  # the connection was reset, or interrupted
        self._received += len(data)
        return data

    def _connect(self) -> socket.socket | None:
        """A connection; None if the reader was stopped, or if the connection was lost and cannot be
        made again."""
        failures = 0
        while not self._stopped.is_set():
            try:
                sock = socket.create_connection(
                    (self._split.host, self._split.port), timeout=CONNECT_TIMEOUT_S
                )
            except OSError as error:
                if 0 <= self._retries <= failures:
                    if self._received:
                        self._stopped.set()
                        return None
                    raise ProgramError(
                        f"nobody listens at {self._split.split_id}: {error}; start the server "
                        "first or set max_retries"
                    ) from error
                failures += 1
                self._stopped.wait(RETRY_DELAY_S)
            else:
                sock.settimeout(None)
                self._socket = sock
                return sock
        return None

    def _decoded(self, lines: list[bytes]) -> list[str]:
        text = [line.decode(self._charset, "replace") for line in lines]
        return (
            [line[:-1] if line.endswith("\r") else line for line in text]
            if self._delimiter == b"\n"
            else text
        )

    def _last_line(self) -> Batch | None:
        rest, self._rest = self._rest, b""
        return RowBatch(self._decoded([rest])) if rest else None

    def _drop(self) -> None:
        sock, self._socket = self._socket, None
        if sock is not None:
            sock.close()

    def snapshot(self) -> SocketSplit:
        return self._split

    def position(self) -> str:
        return f"socket {self._split.split_id}, about byte {self._received}"

    def interrupt(self) -> None:
        self._stopped.set()
        sock = self._socket
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # closed already

    def close(self) -> None:
        self._drop()
