"""Certificates and keys in PEM, with which an endpoint shows who it is, and checks others.

Errors name the option whose file cannot be used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from flinkpy.core.errors import ConfigurationError

if TYPE_CHECKING:
    import ssl


@dataclass(frozen=True)
class TlsFiles:
    """Files, in PEM. The other side shows a certificate if there is a ``truststore``. The options
    that name them begin with ``options``."""

    options: str
    keystore: str
    key: str | None = None
    key_password: str | None = field(default=None, repr=False)
    truststore: str | None = None

    def load_into(self, context: ssl.SSLContext) -> None:
        """Raises ConfigurationError for a file that cannot be used."""
        for name, path in (
            ("keystore", self.keystore),
            ("key", self.key),
            ("truststore", self.truststore),
        ):
            if path is not None:
                _check_pem(f"{self.options}.{name}", path)
        self._load_keystore(context)
        if self.truststore is not None:
            self._load_truststore(context, self.truststore)

    def _load_keystore(self, context: ssl.SSLContext) -> None:
        import ssl

        asked = False

        def password() -> str:
            nonlocal asked
            asked = True
            return self.key_password or ""

        try:
            context.load_cert_chain(self.keystore, self.key, password)
        except (ssl.SSLError, ValueError) as error:
            why = (
                f"option {self.options}.key-password is not the password of the key"
                if asked
                else _reason(error)
            )
            where = f"option {self.options}.keystore: {self.keystore}" + (
                f", {self.options}.key: {self.key}" if self.key else ""
            )
            raise ConfigurationError(f"{where} cannot be used: {why}") from None

    def _load_truststore(self, context: ssl.SSLContext, truststore: str) -> None:
        import ssl

        try:
            context.load_verify_locations(truststore)
        except ssl.SSLError as error:
            raise ConfigurationError(
                f"option {self.options}.truststore: {truststore} cannot be used: {_reason(error)}"
            ) from None
        context.verify_mode = ssl.CERT_REQUIRED


def _check_pem(key: str, path: str) -> None:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise ConfigurationError(
            f"option {key}: {path} cannot be read ({error.strerror})"
        ) from None
    if b"-----BEGIN" not in data:
        raise ConfigurationError(
            f"option {key}: {path} is no PEM file; `openssl pkcs12 -in STORE.p12 -out "
            "STORE.pem -nodes` makes one of a "
            "Java keystore in the form PKCS12"
        )


def _reason(error: Exception) -> str:
    import ssl

    if "KEY_VALUES_MISMATCH" in str(error):
        return "the key is another certificate's"
    return (
        "there is no certificate, or no key, in it"
        if isinstance(error, ssl.SSLError)
        else str(error)
    )
