"""Data connections over TLS: another transport's streams, each of them encrypted, with a
certificate on both sides.

Also those between processes of one host are encrypted, as in Flink."""

from __future__ import annotations

import ssl
from collections.abc import Callable

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.tls.tls_files import TlsFiles
from flinkpy.core.reactor import Reactor
from flinkpy.network.wire.data_port import Sockets
from flinkpy.network.wire.tls_stream import EXPIRED, TlsStream
from flinkpy.network.wire.transport import ByteStream, Listener, Transport


class TlsTransport:
    """Implements ``flinkpy.network.wire.transport.Transport``. Raises ConfigurationError for files
    that cannot be used, or a certificate that other TaskExecutors with the same files would
    refuse."""

    def __init__(self, transport: Transport, files: TlsFiles) -> None:
        self._transport = transport
        self._accepting = context_of(ssl.PROTOCOL_TLS_SERVER, files)
        self._accepting.num_tickets = 0  # a connection lives as long as its process
        self._connecting = context_of(ssl.PROTOCOL_TLS_CLIENT, files)
        _check_own_certificate(self._accepting, self._connecting, files)

    def listen(
        self, host: str, port: int, reactor: Reactor, on_accepted: Callable[[ByteStream, str], None]
    ) -> Listener:
        return self._transport.listen(
            host,
            port,
            reactor,
            lambda stream, peer: on_accepted(TlsStream(stream, self._accepting), peer),
        )

    def connect(self, address: tuple[str, int]) -> tuple[ByteStream, bool]:
        stream, is_connected = self._transport.connect(address)
        return TlsStream(stream, self._connecting), is_connected

    def connect_error(self, stream: ByteStream) -> OSError | None:
        assert isinstance(stream, TlsStream)
        return self._transport.connect_error(stream.carrier)


def check_certificates(files: TlsFiles | None) -> None:
    """Raises ConfigurationError for files that no data connection could use."""
    if files is not None:
        TlsTransport(Sockets(), files)


def context_of(protocol: int, files: TlsFiles) -> ssl.SSLContext:
    """Names are not checked: TaskExecutors come and go on any host, and prove that they know the
    cluster's secret."""
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    files.load_into(context)
    return context


def _check_own_certificate(
    accepting: ssl.SSLContext, connecting: ssl.SSLContext, files: TlsFiles
) -> None:
    """Shakes hands with itself, in memory."""
    here, there = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = connecting.wrap_bio(here, there)
    server = accepting.wrap_bio(there, here, server_side=True)
    try:
        for side in (client, server, client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    except ssl.SSLCertVerificationError as error:
        why = (
            "has expired"
            if error.verify_code == EXPIRED
            else f"is not from an authority in {files.truststore} ({error.verify_message}); see "
            f"{files.options}.truststore"
        )
        raise ConfigurationError(
            f"option {files.options}.keystore: the certificate in {files.keystore} {why}"
        ) from None
