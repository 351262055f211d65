"""Both sides of a new connection prove that they know a common secret, before anything else is
read. It is pure: bytes in, bytes out.

TaskExecutors use it for data connections, with the cluster's secret; tasks and the program that
waits for their job use it for results and output, with a token made for that job
(``flinkpy.network.wire.client_channel``).

    accepting side                              connecting side
    magic, nonce A                           →
                                             ←  magic, nonce C
                                             ←  id, HMAC(secret, "connect" A C id)
    id, HMAC(secret, "accept" C A both ids)  →

Both sides begin at once, so that each soon knows whether the other speaks TLS, and it does not.

The proofs are HMAC-SHA256. They differ by role, so that neither can be replayed to its maker, and
cover both fresh nonces, so that none can be replayed later. Every deviation is a
NetworkProtocolError."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

from flinkpy.core.errors import NetworkProtocolError
from flinkpy.core.options.engine import INTERNAL_TLS

MAGIC = b"flinkpy\x01"  # the last byte is the version of the protocol
NONCE_BYTES = 32
PROOF_BYTES = 32
MAX_ID_BYTES = 255
TLS_RECORDS = (b"\x15", b"\x16")  # an alert, and the begin of a handshake; then comes b"\x03"
SAME = f"set {INTERNAL_TLS.key} for all TaskExecutors or for none"


def _proof(secret: bytes, *parts: bytes) -> bytes:
    """Each part is preceded by its length, so that different lists of parts never give the same
    text."""
    digest = hmac.new(secret, digestmod=hashlib.sha256)
    for part in parts:
        digest.update(len(part).to_bytes(4, "little") + part)
    return digest.digest()


class Handshake:
    """One side of one handshake. Send ``greeting()``; pass received bytes to ``receive`` and send
    its answers, until ``peer_id`` is known.

    ``draw(count)`` returns fresh random bytes. ``rest`` are the bytes received after the handshake.
    ``secret_name`` is used in errors."""

    def __init__(
        self,
        secret: bytes,
        own_id: str,
        accepting: bool,
        draw: Callable[[int], bytes],
        expected_peer: str | None = None,
        secret_name: str = "the cluster's secret",
    ) -> None:
        if not secret:
            raise ValueError(f"{secret_name} must not be empty")
        self._secret_name = secret_name
        self._secret = secret
        self._accepting = accepting
        self._expected_peer = expected_peer
        self._id = own_id.encode()
        if len(self._id) > MAX_ID_BYTES:
            raise ValueError(f"a resource id of {len(self._id)} bytes; at most {MAX_ID_BYTES}")
        self._nonce = draw(NONCE_BYTES)
        self._received = bytearray()
        self._peer_nonce = b""
        self.peer_id: str | None = None

    def greeting(self) -> bytes:
        """The bytes this side sends first."""
        return MAGIC + self._nonce

    def receive(self, data: bytes | bytearray | memoryview) -> bytes:
        """Takes received bytes; returns the bytes to send. Raises NetworkProtocolError."""
        if self.peer_id is not None:
            raise NetworkProtocolError("the handshake is over")
        self._received += data
        self._check_magic()
        return self._receive_accepting() if self._accepting else self._receive_connecting()

    @property
    def rest(self) -> bytes:
        return bytes(self._received)

    def _check_magic(self) -> None:
        if not self._peer_nonce:
            begin = bytes(self._received[: len(MAGIC)])
            if begin[:1] in TLS_RECORDS and begin[1:2] in (b"", b"\x03"):
                raise NetworkProtocolError(f"the peer speaks TLS and this side does not; {SAME}")
            if begin != MAGIC[: len(begin)]:
                raise NetworkProtocolError("not a flinkpy connection, or one of another version")

    def _receive_accepting(self) -> bytes:
        fixed = len(MAGIC) + NONCE_BYTES + 1
        if (
            len(self._received) < fixed
            or len(self._received) < fixed + self._received[fixed - 1] + PROOF_BYTES
        ):
            return b""
        self._take(len(MAGIC))
        self._peer_nonce = self._take(NONCE_BYTES)
        peer = self._take_id()
        self._check(
            self._take(PROOF_BYTES),
            _proof(self._secret, b"connect", self._nonce, self._peer_nonce, peer),
        )
        self._accept(peer)
        proof = _proof(self._secret, b"accept", self._peer_nonce, self._nonce, peer, self._id)
        return bytes([len(self._id)]) + self._id + proof

    def _receive_connecting(self) -> bytes:
        answer = b""
        if not self._peer_nonce:
            if len(self._received) < len(MAGIC) + NONCE_BYTES:
                return b""
            self._take(len(MAGIC))
            self._peer_nonce = self._take(NONCE_BYTES)
            proof = _proof(self._secret, b"connect", self._peer_nonce, self._nonce, self._id)
            answer = bytes([len(self._id)]) + self._id + proof
        if self._received and len(self._received) >= 1 + self._received[0] + PROOF_BYTES:
            peer = self._take_id()
            self._check(
                self._take(PROOF_BYTES),
                _proof(self._secret, b"accept", self._nonce, self._peer_nonce, self._id, peer),
            )
            self._accept(peer)
        return answer

    def _take(self, count: int) -> bytes:
        taken = bytes(self._received[:count])
        del self._received[:count]
        return taken

    def _take_id(self) -> bytes:
        return self._take(self._take(1)[0])

    def _check(self, given: bytes, right: bytes) -> None:
        if not hmac.compare_digest(given, right):
            raise NetworkProtocolError(f"the peer does not know {self._secret_name}")

    def _accept(self, peer: bytes) -> None:
        name = peer.decode("utf-8", "replace")
        if self._expected_peer is not None and name != self._expected_peer:
            raise NetworkProtocolError(
                f"TaskExecutor {name} answered where {self._expected_peer} was expected"
            )
        self.peer_id = name
