"""Connections from tasks to the program that waits for their job. The program listens; tasks
connect, and send it results or printed lines.

Both sides prove that they know the job's random token before anything is unpickled
(``flinkpy.network.wire.handshake``; the program accepts). Then frames of ``kind | length |
payload`` flow to the program.

A stream of results begins with its subtask and attempt. One of a job with checkpoints says so
(``Begin``); then a marker stands behind the records of each checkpoint, with its id, and a notice
tells that such a marker's checkpoint is complete, of this stream or of one that was before."""

from __future__ import annotations

import secrets
import socket
import struct
from typing import NamedTuple, TypeAlias

from flinkpy.core.errors import NetworkProtocolError, RecipientUnreachableError
from flinkpy.network.wire.handshake import Handshake

HEADER = struct.Struct("!BQ")
SUBTASK_ATTEMPT = struct.Struct("!II")
CHECKPOINTED_BEGIN = struct.Struct("!III?")
MARKER = struct.Struct("!QQ")
COMPLETE = struct.Struct("!IIQ")
KIND_BATCH = 1
KIND_END = 2
KIND_BEGIN = 3
KIND_CHECKPOINTED_BEGIN = 4
KIND_MARKER = 5
KIND_COMPLETE = 6
_SIZES = {
    KIND_BEGIN: SUBTASK_ATTEMPT.size,
    KIND_CHECKPOINTED_BEGIN: CHECKPOINTED_BEGIN.size,
    KIND_MARKER: MARKER.size,
    KIND_COMPLETE: COMPLETE.size,
    KIND_END: 0,
}
MAX_FRAME_BYTES = 1 << 30
HANDSHAKE_TIMEOUT_S = 10.0
TOKEN_NAME = "the token of this job's results"
UNKNOWN = -1  # subtask and attempt of a connection that has not sent KIND_BEGIN


class Begin(NamedTuple):
    """What a client knows of a stream of a job with checkpoints: the sink's parallelism, and
    whether this attempt goes on from a checkpoint."""

    parallelism: int
    restored: bool


class Marker(NamedTuple):
    """Behind the records of a checkpoint; counted by each stream."""

    number: int
    checkpoint_id: int


class Complete(NamedTuple):
    """The checkpoint of that marker is complete, and with it all before it in that stream."""

    subtask: int
    attempt: int
    number: int


Frame: TypeAlias = bytes | Marker | Complete  # bytes: a batch


def client_name(host: str, port: int) -> str:
    """How errors name the program."""
    return f"the client collecting results at {host}:{port}"


def connect_to_client(host: str, port: int, token: bytes) -> socket.socket:
    """A connection to the program that listens at that address, after both sides have proved that
    they know the token."""
    peer = client_name(host, port)
    try:
        sock = socket.create_connection((host, port), timeout=HANDSHAKE_TIMEOUT_S)
    except OSError as error:
        raise RecipientUnreachableError(f"{peer} cannot be reached: {error}") from error
    try:
        _prove_token(
            sock, Handshake(token, "task", False, secrets.token_bytes, secret_name=TOKEN_NAME)
        )
    except OSError as error:
        sock.close()
        raise RecipientUnreachableError(
            f"{peer} broke off the handshake: {error or type(error).__name__}"
        ) from error
    except NetworkProtocolError as error:
        sock.close()
        raise NetworkProtocolError(f"{peer}: {error}") from None
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _prove_token(sock: socket.socket, handshake: Handshake) -> None:
    sock.sendall(handshake.greeting())
    while handshake.peer_id is None:
        data = sock.recv(4096)
        if not data:
            raise ConnectionResetError("connection closed (was the token refused?)")
        answer = handshake.receive(data)
        if answer:
            sock.sendall(answer)


class IncomingChannel:
    """The program's side of one connection: first the handshake, then frames. It is pure: bytes in,
    bytes out."""

    def __init__(self, token: bytes, opened_at: float) -> None:
        self._handshake = Handshake(
            token, "client", True, secrets.token_bytes, secret_name=TOKEN_NAME
        )
        self.opened_at = opened_at
        self.ended = False
        self.subtask = self.attempt = UNKNOWN
        self.begin: Begin | None = None  # of a job with checkpoints
        self._data = bytearray()

    def greeting(self) -> bytes:
        """The bytes to send first."""
        return self._handshake.greeting()

    @property
    def authenticated(self) -> bool:
        return self._handshake.peer_id is not None

    def receive(self, data: bytes) -> tuple[bytes, list[Frame]]:
        """Takes received bytes; returns the bytes to send, and the frames that are complete now.
        Raises NetworkProtocolError."""
        if self._handshake.peer_id is not None:
            self._data += data
            return b"", self._frames()
        answer = self._handshake.receive(data)
        self._data += self._handshake.rest if self.authenticated else b""
        return answer, self._frames()

    def _frames(self) -> list[Frame]:
        frames: list[Frame] = []
        at = 0
        while len(self._data) - at >= HEADER.size:
            kind, length = HEADER.unpack_from(self._data, at)
            self._check(kind, length, bool(frames))
            if len(self._data) - at - HEADER.size < length:
                break
            at += HEADER.size
            frame = self._frame(kind, bytes(self._data[at : at + length]))
            if frame is not None:
                frames.append(frame)
            at += length
        del self._data[:at]
        return frames

    def _check(self, kind: int, length: int, is_late: bool) -> None:
        begins = kind in (KIND_BEGIN, KIND_CHECKPOINTED_BEGIN)
        if begins and (length != _SIZES[kind] or is_late or self.attempt != UNKNOWN):
            raise NetworkProtocolError(
                "a stream of results begins once, with its subtask and attempt"
            )
        is_known = (
            length == _SIZES[kind]
            if kind in _SIZES
            else kind == KIND_BATCH and length <= MAX_FRAME_BYTES
        )
        is_out_of_place = self.begin is None if kind in (KIND_MARKER, KIND_COMPLETE) else self.ended
        if not is_known or is_out_of_place:
            raise NetworkProtocolError(f"frame of kind {kind} and {length} bytes")

    def _frame(self, kind: int, payload: bytes) -> Frame | None:
        if kind == KIND_BATCH:
            return payload
        if kind == KIND_MARKER:
            return Marker(*MARKER.unpack(payload))
        if kind == KIND_COMPLETE:
            return Complete(*COMPLETE.unpack(payload))
        if kind == KIND_END:
            self.ended = True
        elif kind == KIND_BEGIN:
            self.subtask, self.attempt = SUBTASK_ATTEMPT.unpack(payload)
        else:
            self.subtask, self.attempt, *rest = CHECKPOINTED_BEGIN.unpack(payload)
            self.begin = Begin(*rest)
        return None
