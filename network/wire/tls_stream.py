"""One end of a connection whose bytes are encrypted.

Encryption is OpenSSL's, in memory; the bytes then go through another stream. So one send takes many
TLS records, which a socket of Python's ``ssl`` would write one by one."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator, Sequence
from typing import Any

from flinkpy.core.errors import NetworkProtocolError
from flinkpy.core.options.engine import INTERNAL_KEYSTORE, INTERNAL_TRUSTSTORE
from flinkpy.network.wire.handshake import SAME
from flinkpy.network.wire.transport import ByteStream

AT_ONCE = 128 << 10  # so many bytes are encrypted, then sent, while the processor's cache has them
RECEIVED_AT_ONCE = 64 << 10  # larger buffers would come from the system each time
EARLY_BYTES = 1024
EXPIRED = 10  # OpenSSL's X509_V_ERR_CERT_HAS_EXPIRED
SPEAKS_TLS = bytes.fromhex("15 0303 0002 0246")  # a fatal alert: protocol version
NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNKNOWN_PROTOCOL", "PACKET_LENGTH_TOO_LONG")


class TlsStream:
    """Implements ``flinkpy.network.wire.transport.ByteStream``. It shakes hands with the other
    side as soon as something is sent or received; what is sent until then follows at once."""

    def __init__(self, stream: ByteStream, context: ssl.SSLContext) -> None:
        self._stream = stream
        self._received, self._encrypted = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._received, self._encrypted, server_side=context.protocol is ssl.PROTOCOL_TLS_SERVER
        )
        self._early = b""  # to be sent when the handshake is done
        self._open = self._ended = False
        self._unsent = memoryview(b"")  # encrypted
        self._under_way = 0  # bytes that were encrypted, and are not reported as sent

    @property
    def carrier(self) -> ByteStream:
        return self._stream

    def fileno(self) -> int:
        return self._stream.fileno()

    def close(self) -> None:
        self._stream.close()

    def pending(self) -> bool:
        return bool(self._tls.pending() or self._received.pending)

    # -- sending -----------------------------------------------------------------------------------

    def send(self, data: bytes, /) -> int:
        return self.sendmsg((data,))

    def sendmsg(self, buffers: Sequence[Any], /) -> int:
        """As long as the other stream has not taken all that was made of some bytes, these are not
        reported as sent: so whoever sends them comes again, as soon as there is room."""
        if not self._open:
            return self._send_early(buffers)
        if not self._drain():
            raise BlockingIOError
        sent, self._under_way = self._under_way, 0
        encrypt, encrypted = self._tls.write, self._encrypted
        for piece in _pieces(buffers, sent):
            encrypt(piece)
            self._under_way += len(piece)
            if encrypted.pending >= AT_ONCE:
                if not self._drain():
                    break
                sent, self._under_way = sent + self._under_way, 0
        else:
            if self._drain():
                sent, self._under_way = sent + self._under_way, 0
        if not sent:
            raise BlockingIOError
        return sent

    def _send_early(self, buffers: Sequence[Any]) -> int:
        early = b"".join(buffers)
        if len(self._early) + len(early) > EARLY_BYTES:
            raise BlockingIOError
        self._early += early
        self._shake_hands()
        return len(early)

    def _drain(self) -> bool:
        """Sends what is encrypted; returns whether all of it was taken."""
        unsent = self._unsent or memoryview(self._encrypted.read())
        try:
            while unsent:
                unsent = unsent[self._stream.sendmsg((unsent,)) :]
                unsent = unsent or memoryview(self._encrypted.read())
        except BlockingIOError:
            return False
        finally:
            self._unsent = unsent
        return True

    # -- receiving ---------------------------------------------------------------------------------

    def recv(self, count: int, /) -> bytes:
        buffer = bytearray(count)
        return bytes(buffer[: self.recv_into(buffer)])

    def recv_into(self, buffer: Any, /) -> int:
        """Reads as much as there is, so that after less than the buffer takes nothing is left."""
        if not self._open and not self._shake_hands():
            if self._ended:
                return 0
            raise BlockingIOError
        view, wanted, count = memoryview(buffer), len(buffer), 0
        read: Any = self._tls.read  # gives the number of bytes, as there is a buffer
        while count < wanted:
            try:
                taken = read(wanted - count, view[count:])  # of one record
            except ssl.SSLWantReadError:
                if not self._receive():
                    break
            except ssl.SSLError as error:
                raise self._refused(error) from None
            else:
                if not taken:
                    self._ended = True
                    break
                count += taken
        if not count and not self._ended:
            raise BlockingIOError
        return count

    def _receive(self) -> bool:
        """Whether something came."""
        if self._ended:
            return False
        try:
            data = self._stream.recv(RECEIVED_AT_ONCE)
        except BlockingIOError:
            return False
        if not data:
            self._ended = True
            return False
        self._received.write(data)
        return True

    # -- the handshake -----------------------------------------------------------------------------

    def _shake_hands(self) -> bool:
        """Goes on with the handshake as far as it can; returns whether it is done."""
        while not self._open:
            try:
                self._tls.do_handshake()
                self._open = True
                self._tls.write(self._early)
            except ssl.SSLWantReadError:
                self._drain()
                if not self._receive():
                    return False
            except ssl.SSLError as error:
                raise self._refused(error) from None
        if not self._drain():
            raise NetworkProtocolError("the peer does not read what the handshake says")
        return True

    def _refused(self, error: ssl.SSLError) -> NetworkProtocolError:
        """Lets the other side know, too. (OpenSSL says nothing to one that does not speak TLS.)"""
        with contextlib.suppress(OSError):
            if error.reason in NOT_TLS:
                self._stream.send(SPEAKS_TLS)
            self._drain()
        return NetworkProtocolError(refusal(error))

    def __repr__(self) -> str:
        return f"TlsStream({self._tls.version() if self._open else 'in its handshake'})"


def _pieces(buffers: Sequence[Any], skipped: int) -> Iterator[memoryview]:
    """What is behind the first ``skipped`` bytes, in pieces of at most ``AT_ONCE``."""
    for buffer in buffers:
        size = len(buffer)
        if skipped >= size:
            skipped -= size
            continue
        view = memoryview(buffer)
        for start in range(skipped, size, AT_ONCE):
            yield view[start : start + AT_ONCE]
        skipped = 0


def refusal(error: ssl.SSLError) -> str:
    """Why a handshake failed, with the option to look at."""
    reason = error.reason or str(error)
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code == EXPIRED:
            return f"the peer's certificate ({INTERNAL_KEYSTORE.key} there) has expired"
        return (
            "the peer's certificate is not from an authority in "
            f"{INTERNAL_TRUSTSTORE.key} ({error.verify_message})"
        )
    if "CERTIFICATE_EXPIRED" in reason:
        return f"the peer says that this side's certificate ({INTERNAL_KEYSTORE.key}) has expired"
    if "UNKNOWN_CA" in reason:
        return (
            f"the peer's {INTERNAL_TRUSTSTORE.key} lacks the authority of this side's "
            f"certificate ({INTERNAL_KEYSTORE.key})"
        )
    if reason in NOT_TLS:
        return f"this side speaks TLS and the peer does not; {SAME}"
    return f"TLS: {reason.lower().replace('_', ' ')}"
