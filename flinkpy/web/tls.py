"""The certificate with which the REST endpoint shows who it is, from files."""

from __future__ import annotations

import ssl

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.rest import (
    TLS_KEY,
    TLS_KEY_PASSWORD,
    TLS_KEYSTORE,
    TLS_TRUSTSTORE,
    TlsConfig,
)


def server_context(config: TlsConfig) -> ssl.SSLContext:
    """TLS 1.2 or newer. Raises ConfigurationError that names the option whose file cannot be
    used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    for option, path in (
        (TLS_KEYSTORE, config.keystore),
        (TLS_KEY, config.key),
        (TLS_TRUSTSTORE, config.truststore),
    ):
        if path is not None:
            _check_pem(option.key, path)
    asked = False

    def password() -> str:
        nonlocal asked
        asked = True
        return config.key_password or ""

    try:
        context.load_cert_chain(config.keystore, config.key, password)
    except (ssl.SSLError, ValueError) as error:
        why = (
            f"option {TLS_KEY_PASSWORD.key} is not the password of the key"
            if asked
            else _reason(error)
        )
        where = f"option {TLS_KEYSTORE.key}: {config.keystore}" + (
            f", {TLS_KEY.key}: {config.key}" if config.key else ""
        )
        raise ConfigurationError(f"{where} cannot be used: {why}") from None
    if config.truststore is not None:
        try:
            context.load_verify_locations(config.truststore)
        except ssl.SSLError as error:
            raise ConfigurationError(
                f"option {TLS_TRUSTSTORE.key}: {config.truststore} cannot be used: {_reason(error)}"
            ) from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


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
    if "KEY_VALUES_MISMATCH" in str(error):
        return "the key is another certificate's"
    return (
        "there is no certificate, or no key, in it"
        if isinstance(error, ssl.SSLError)
        else str(error)
    )
