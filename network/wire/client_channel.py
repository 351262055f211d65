"""Connections from tasks to the program that waits for their job. The program listens; tasks connect, and send it
results or printed lines.

Both sides prove that they know the job's random token before anything is unpickled (``flinkpy.network.wire.handshake``; the program accepts). Then
frames of ``kind | length | payload`` flow to the program.
"""

from __future__ import annotations

import secrets
import socket
import struct

from flinkpy.core.errors import NetworkProtocolError, RecipientUnreachableError
from flinkpy.network.wire.handshake import Handshake

HEADER = struct.Struct("!BQ")
SUBTASK_ATTEMPT = struct.Struct("!II")
KIND_BATCH, KIND_END, KIND_BEGIN = 1, 2, 3
MAX_FRAME_BYTES = 1 << 30
HANDSHAKE_TIMEOUT_S = 10.0
TOKEN_NAME = "the token of this job's results"
UNKNOWN = -1  # subtask and attempt of a connection that has not sent KIND_BEGIN


def client_name(host: str, port: int) -> str:
    """How errors name the program."""
    return f"the client collecting results at {host}:{port}"


def connect_to_client(host: str, port: int, token: bytes) -> socket.socket:
    """A connection to the program that listens at that address, after both sides have proved that they know the
    token."""
    peer = client_name(host, port)
    try:
        sock = socket.create_connection((host, port), timeout=HANDSHAKE_TIMEOUT_S)
    except OSError as error:
        raise RecipientUnreachableError(f"{peer} cannot be reached: {error}") from error
    try:
        _prove_token(sock, Handshake(token, "task", False, secrets.token_bytes, secret_name=TOKEN_NAME))
    except OSError as error:
        sock.close()
        raise RecipientUnreachableError(f"{peer} broke off the handshake: {error or type(error).__name__}") from error
    except NetworkProtocolError as error:
        sock.close()
        raise NetworkProtocolError(f"{peer}: {error}") from None
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def _prove_token(sock: socket.socket, handshake: Handshake) -> None:
    while handshake.peer_id is None:
        data = sock.recv(4096)
        if not data:
            raise ConnectionResetError("connection closed (was the token refused?)")
        answer = handshake.receive(data)
        if answer:
            sock.sendall(answer)


class IncomingChannel:
    """The program's side of one connection: first the handshake, then frames. It is pure: bytes in, bytes out."""

    def __init__(self, token: bytes, opened_at: float) -> None:
        self._handshake = Handshake(token, "client", True, secrets.token_bytes, secret_name=TOKEN_NAME)
        self.opened_at = opened_at
        self.ended = False
        self.subtask = self.attempt = UNKNOWN
        self._data = bytearray()

    def greeting(self) -> bytes:
        """The bytes to send first."""
        return self._handshake.greeting()

    @property
    def authenticated(self) -> bool:
        return self._handshake.peer_id is not None

    def receive(self, data: bytes) -> tuple[bytes, list[bytes]]:
        """Takes received bytes; returns the bytes to send, and the payloads that are complete now. Raises NetworkProtocolError."""
        if self._handshake.peer_id is not None:
            self._data += data
            return b"", self._payloads()
        answer = self._handshake.receive(data)
        self._data += self._handshake.rest if self.authenticated else b""
        return answer, self._payloads()

    def _payloads(self) -> list[bytes]:
        payloads: list[bytes] = []
        at = 0
        while len(self._data) - at >= HEADER.size:
            kind, length = HEADER.unpack_from(self._data, at)
            if kind not in (KIND_BATCH, KIND_END, KIND_BEGIN) or length > MAX_FRAME_BYTES or self.ended:
                raise NetworkProtocolError(f"frame of kind {kind} and {length} bytes")
            if kind == KIND_BEGIN and (length != SUBTASK_ATTEMPT.size or payloads or self.attempt != UNKNOWN):
                raise NetworkProtocolError("a stream of results begins once, with its subtask and attempt")
            if len(self._data) - at - HEADER.size < length:
                break
            at += HEADER.size
            if kind == KIND_END:
                self.ended = True
            elif kind == KIND_BEGIN:
                self.subtask, self.attempt = SUBTASK_ATTEMPT.unpack_from(self._data, at)
            else:
                payloads.append(bytes(self._data[at:at + length]))
            at += length
        del self._data[:at]
        return payloads
