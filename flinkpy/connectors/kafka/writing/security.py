"""How a connection of one's own to a broker is secured: TLS, and SASL with PLAIN or SCRAM. The
settings are librdkafka's."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from flinkpy.core.errors import ProgramError

_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS = ("PLAIN", *_HASHES)
_PROTOCOLS = ("plaintext", "ssl", "sasl_plaintext", "sasl_ssl")


@dataclass(frozen=True)
class Security:
    """What the settings of a Kafka client say about security. The password is part of no text."""

    tls: ssl.SSLContext | None
    checks_name: bool
    mechanism: str | None
    username: str
    password: str

    @staticmethod
    def of(settings: Mapping[str, str]) -> Security:
        """Raises ProgramError for what connections of one's own do not know."""
        protocol = settings.get("security.protocol", "plaintext").lower()
        if protocol not in _PROTOCOLS:
            raise ProgramError(
                f"security.protocol is one of {', '.join(_PROTOCOLS)}, not {protocol!r}"
            )
        mechanism = None
        if protocol.startswith("sasl_"):
            mechanism = (
                settings.get("sasl.mechanism") or settings.get("sasl.mechanisms") or "GSSAPI"
            ).upper()
            if mechanism not in MECHANISMS:
                raise ProgramError(
                    f"exactly once cannot be kept with sasl.mechanism={mechanism}: after "
                    "a crash another process must end the transaction, and that "
                    f"knows {', '.join(MECHANISMS)} only; choose one of these, or "
                    "DeliveryGuarantee.AT_LEAST_ONCE"
                )
        checks_name = (
            settings.get("ssl.endpoint.identification.algorithm", "https").lower() == "https"
        )
        tls = _tls(settings, checks_name) if protocol.endswith("ssl") else None
        return Security(
            tls,
            checks_name,
            mechanism,
            settings.get("sasl.username", ""),
            settings.get("sasl.password", ""),
        )

    def wrapped(self, connection: socket.socket, host: str) -> socket.socket:
        return (
            connection
            if self.tls is None
            else self.tls.wrap_socket(connection, server_hostname=host)
        )

    def authenticate(self, exchange: Callable[[bytes], bytes]) -> None:
        """Proves who we are; ``exchange`` sends one message and gives the broker's answer to it."""
        if self.mechanism == "PLAIN":
            exchange(f"\0{self.username}\0{self.password}".encode())
        elif self.mechanism is not None:
            scram = Scram(_HASHES[self.mechanism], self.username, self.password)
            scram.check(exchange(scram.final(exchange(scram.first()))))

    def __repr__(self) -> str:
        return f"Security({'TLS' if self.tls else 'plain'}, {self.mechanism})"


def _tls(settings: Mapping[str, str], checks_name: bool) -> ssl.SSLContext:
    for name in ("ssl.ca.pem", "ssl.certificate.pem", "ssl.key.pem", "ssl.keystore.location"):
        if name in settings:
            raise ProgramError(
                f"exactly once cannot be kept with {name}: after a crash another process must "
                "end the transaction, and that takes "
                "ssl.ca.location, ssl.certificate.location and "
                "ssl.key.location; or choose "
                "DeliveryGuarantee.AT_LEAST_ONCE"
            )
    try:
        context = ssl.create_default_context(cafile=settings.get("ssl.ca.location"))
        certificate = settings.get("ssl.certificate.location")
        if certificate is not None:
            context.load_cert_chain(
                certificate, settings.get("ssl.key.location"), settings.get("ssl.key.password")
            )
    except OSError as error:
        raise ProgramError(
            "the files of ssl.ca.location, ssl.certificate.location and ssl.key.location "
            f"cannot be used: {error}"
        ) from None
    context.check_hostname = checks_name
    if settings.get("enable.ssl.certificate.verification", "true").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


class Scram:
    """The client's side of SCRAM (RFC 5802): the password is proved and not sent.

    >>> Scram("sha256", "user", "pencil", "rOprNGfwEbeRWgbNEkqO").first()
    b'n,,n=user,r=rOprNGfwEbeRWgbNEkqO'
    """

    def __init__(
        self, hash_name: str, username: str, password: str, nonce: str | None = None
    ) -> None:
        self._hash, self._password = hash_name, password.encode()
        self._nonce = secrets.token_hex(16) if nonce is None else nonce
        self._bare = f"n={username.replace('=', '=3D').replace(',', '=2C')},r={self._nonce}"
        self._signature = b""

    def first(self) -> bytes:
        return b"n,," + self._bare.encode()

    def final(self, challenge: bytes) -> bytes:
        """The answer to the broker's challenge. Raises PermissionError if that is none."""
        try:
            fields = _fields(challenge)
            nonce, salt, rounds = fields["r"], base64.b64decode(fields["s"]), int(fields["i"])
        except (KeyError, ValueError):
            raise PermissionError(
                f"the broker's SCRAM message cannot be read: {challenge[:80]!r}"
            ) from None
        if not nonce.startswith(self._nonce):
            raise PermissionError("the broker answered another client's SCRAM message")
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, rounds)
        without_proof = f"c=biws,r={nonce}"
        message = f"{self._bare},{challenge.decode()},{without_proof}".encode()
        key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, key).digest(), message)
        proof = bytes(a ^ b for a, b in zip(key, signature))
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), message)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def check(self, verdict: bytes) -> None:
        """Whether the broker knows the password too. Raises PermissionError if not."""
        if _fields(verdict).get("v") != base64.b64encode(self._signature).decode():
            raise PermissionError(
                f"the broker did not prove that it knows the password: {verdict[:80]!r}"
            )

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self._hash).digest()


def _fields(message: bytes) -> dict[str, str]:
    return {
        name: value
        for name, _, value in (
            part.partition("=") for part in message.decode(errors="replace").split(",")
        )
    }
