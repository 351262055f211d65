"""The REST endpoint, under Flink's keys where Flink has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.ports import Ports
from flinkpy.core.options.schema import Option, key_in, option, read
from flinkpy.core.options.tls.tls_files import TlsFiles


class RestAuthentication(Enum):
    TOKEN = "TOKEN"
    NONE = "NONE"


REST_ENABLED = option(
    "rest.enabled",
    bool,
    False,
    "Whether the JobManager answers Flink's REST requests. Where it does is printed, with "
    "the token, by a program that runs embedded and by "
    "`flinkpy session start`; `flinkpy session list` prints it too. A program on Ray "
    "prints the address only.",
)
REST_PORT = option(
    "rest.port",
    Ports,
    None,
    "The port of the REST endpoint. Without it 8081, or a free one where that is taken.",
)
REST_BIND_PORT = option(
    "rest.bind-port",
    Ports,
    None,
    "The port at which the REST endpoint listens, instead of rest.port: one, several "
    "(8081,9081) or a range (8081-8090), of which the first free "
    "one is taken.",
)
REST_CONNECTIONS = option(
    "rest.connections-per-client",
    int,
    100,
    "How many connections one client's address may have to the REST endpoint at a time "
    "(not an option of Flink's). Beyond that, the oldest that has "
    "not sent a whole request makes room. Behind a proxy all clients have the proxy's "
    "address.",
    at_least=1,
)
REST_BIND_ADDRESS = option(
    "rest.bind-address",
    str,
    "localhost",
    (
        "Where the REST endpoint listens: only for programs of this machine, unless it is "
        "another address."
    ),
    aliases=("rest.address",),
)
REST_AUTHENTICATION = option(
    "rest.authentication",
    RestAuthentication,
    RestAuthentication.TOKEN,
    (
        "TOKEN: whoever asks must send the header 'Authorization: Bearer …' with the token. "
        "NONE: whoever reaches the port may cancel jobs."
    ),
)
REST_TOKEN = option(
    "rest.token",
    str,
    None,
    "The token, of letters, digits and signs of ASCII; without it, a new one at each start.",
)

TLS_ENABLED = option(
    "security.ssl.rest.enabled",
    bool,
    False,
    "Whether the REST endpoint speaks https, and nothing else.",
)
TLS_KEYSTORE = option(
    "security.ssl.rest.keystore",
    str,
    None,
    (
        "A PEM file with the REST endpoint's certificate, those between it and its authority, "
        "and, unless it has a file of its own, the key."
    ),
    aliases=("security.ssl.keystore",),
)
TLS_KEY = option(
    "security.ssl.rest.key",
    str,
    None,
    "A PEM file with the key of the certificate (not an option of Flink's).",
)
TLS_KEY_PASSWORD = option(
    "security.ssl.rest.key-password",
    str,
    None,
    "The password of the key, if it is encrypted.",
    aliases=("security.ssl.key-password",),
)
TLS_TRUSTSTORE = option(
    "security.ssl.rest.truststore",
    str,
    None,
    "A PEM file with the authorities whose certificates clients may show.",
    aliases=("security.ssl.truststore",),
)
TLS_CLIENTS = option(
    "security.ssl.rest.authentication-enabled",
    bool,
    False,
    (
        "Whether clients must show a certificate of an authority in "
        "security.ssl.rest.truststore. The token is needed all the same."
    ),
)


def tls_files(values: Mapping[str, Any], enabled: Option[bool] = TLS_ENABLED) -> TlsFiles | None:
    """None unless the option ``enabled`` is true. Raises ConfigurationError if a file that is
    needed is not named."""
    if not read(values, enabled):
        return None
    keystore, truststore = read(values, TLS_KEYSTORE), read(values, TLS_TRUSTSTORE)
    if keystore is None:
        raise ConfigurationError(
            f"option {enabled.key}: name the certificate's PEM file with {TLS_KEYSTORE.key}"
        )
    asks_clients = read(values, TLS_CLIENTS)
    if asks_clients and truststore is None:
        raise ConfigurationError(
            f"option {TLS_CLIENTS.key}: name the PEM file of the clients' authorities "
            f"with {TLS_TRUSTSTORE.key}"
        )
    return TlsFiles(
        "security.ssl.rest",
        keystore,
        read(values, TLS_KEY),
        read(values, TLS_KEY_PASSWORD),
        truststore if asks_clients else None,
    )


@dataclass(frozen=True)
class RestConfig:
    """``token`` None: one is made, if there is to be one. ``address_key`` and ``port_key`` are the
    options that said where it listens. Raises ConfigurationError for a token that no header can
    carry."""

    enabled: bool = False
    address: str = "localhost"
    port: int | Ports | None = None
    needs_token: bool = True
    token: str | None = field(default=None, repr=False)
    tls: TlsFiles | None = None
    address_key: str = REST_BIND_ADDRESS.key
    port_key: str = REST_PORT.key
    connections_per_client: int = REST_CONNECTIONS.default

    def __post_init__(self) -> None:
        token = self.token or ""
        if not (token.isascii() and token.isprintable() and token == token.strip()):
            raise ConfigurationError(
                f"option {REST_TOKEN.key} is sent in a header: it has letters, digits and "
                "signs of ASCII, and no blanks at its ends"
            )

    @staticmethod
    def of(values: Mapping[str, Any]) -> RestConfig:
        port = REST_PORT if read(values, REST_BIND_PORT) is None else REST_BIND_PORT
        return RestConfig(
            read(values, REST_ENABLED),
            read(values, REST_BIND_ADDRESS),
            read(values, port),
            read(values, REST_AUTHENTICATION) is RestAuthentication.TOKEN,
            read(values, REST_TOKEN),
            tls_files(values),
            key_in(values, REST_BIND_ADDRESS),
            port.key,
            read(values, REST_CONNECTIONS),
        )
