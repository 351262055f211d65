"""The REST endpoint over https: what it needs, and who gets through."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.history import HistoryConfig
from flinkpy.core.options.rest import RestConfig
from flinkpy.web.history.history_server import history_server
from flinkpy.web.rest_server import RestServer
from tests.ports import free_port
from tests.web.certificates import Authority, Signed
from tests.web.rest import held_job


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder, "authority")


@pytest.fixture(scope="module")
def server(authority: Authority) -> Signed:
    return authority.sign("server")


def trusting(authority: Authority, shown: Signed | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    if shown is not None:
        context.load_cert_chain(shown.certificate, shown.key)
    return context


def status_of(port: int, context: ssl.SSLContext, host: str = "localhost") -> int:
    connection = http.client.HTTPSConnection(host, port, timeout=30, context=context)
    try:
        connection.request("GET", "/jobs/overview", headers={"Authorization": "Bearer right"})
        response = connection.getresponse()
        assert json.loads(response.read())
        return response.status
    finally:
        connection.close()


@pytest.fixture(scope="module")
def port(authority: Authority, server: Signed) -> Iterator[int]:
    """Of a cluster whose REST endpoint asks for clients' certificates, and whose options are texts,
    as from a file."""
    port = free_port()
    options: dict[str, Any] = {
        "rest.enabled": "true",
        "rest.port": str(port),
        "rest.token": "right",
        "security.ssl.rest.enabled": "true",
        "security.ssl.rest.keystore": str(server.certificate),
        "security.ssl.rest.key": str(server.key),
        "security.ssl.rest.authentication-enabled": "true",
        "security.ssl.rest.truststore": str(authority.certificate),
    }
    try:
        with held_job(options):
            yield port
    finally:
        stop_embedded()


def test_a_client_that_trusts_the_authority_and_is_trusted_is_answered(
    port: int, authority: Authority
) -> None:
    context = trusting(authority, authority.sign("client"))
    assert status_of(port, context) == status_of(port, context, "127.0.0.1") == 200


def test_a_client_without_a_certificate_or_with_a_strangers_is_not_answered(
    port: int, authority: Authority, folder: Path
) -> None:
    stranger = Authority(folder, "stranger")
    for shown in (None, stranger.sign("impostor"), authority.sign("old", valid=False)):
        with pytest.raises((ssl.SSLError, ConnectionError)):
            status_of(port, trusting(authority, shown))
    assert status_of(port, trusting(authority, authority.sign("next"))) == 200


def test_a_client_does_not_talk_to_a_server_it_does_not_trust(port: int, folder: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        status_of(port, trusting(Authority(folder, "another")))


def test_plain_http_is_not_answered(port: int, authority: Authority) -> None:
    with socket.create_connection(("localhost", port), 30) as connection:
        connection.sendall(
            b"GET /jobs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer right\r\n\r\n"
        )
        assert b"HTTP/1.1 200" not in connection.recv(1000)
    assert status_of(port, trusting(authority, authority.sign("after"))) == 200


def of(**options: str) -> RestConfig:
    """Of options of TLS alone, ``key_password`` for security.ssl.rest.key-password."""
    named = {
        f"security.ssl.rest.{name.replace('_', '-')}": value for name, value in options.items()
    }
    return RestConfig.of(
        {"rest.enabled": True, "rest.port": 0, "security.ssl.rest.enabled": True, **named}
    )


def test_one_file_with_certificate_and_encrypted_key_will_do(
    authority: Authority, folder: Path
) -> None:
    signed = authority.sign("both", password="secret")
    both = folder / "both.pem"
    both.write_bytes(signed.certificate.read_bytes() + signed.key.read_bytes())
    server = RestServer(of(keystore=str(both), key_password="secret"), SYSTEM_CLOCK)
    assert server.url == f"https://localhost:{server.port}"
    server.stop()
    with pytest.raises(
        ConfigurationError,
        match=r"option security\.ssl\.rest\.key-password is not the password of the key",
    ) as caught:
        RestServer(of(keystore=str(both), key_password="wrong"), SYSTEM_CLOCK)
    assert "wrong" not in str(caught.value)
    assert "secret" not in repr(of(keystore=str(both), key_password="secret"))


def test_what_is_missing_or_wrong_is_named(
    authority: Authority, server: Signed, folder: Path
) -> None:
    store = folder / "store.jks"
    store.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    empty = folder / "empty.pem"
    empty.write_text("-----BEGIN CERTIFICATE-----\nnothing\n-----END CERTIFICATE-----\n")
    certificate, key = str(server.certificate), str(server.key)
    for options, says in (
        ({}, "name the certificate's PEM file with security.ssl.rest.keystore"),
        (
            {"keystore": str(folder / "no.pem")},
            "security.ssl.rest.keystore: .*no.pem cannot be read",
        ),
        ({"keystore": str(store)}, "store.jks is no PEM file; `openssl pkcs12"),
        ({"keystore": str(empty), "key": key}, "there is no certificate, or no key, in it"),
        ({"keystore": certificate}, "there is no certificate, or no key, in it"),
        (
            {"keystore": certificate, "key": str(authority.sign("other").key)},
            "the key is another certificate's",
        ),
        (
            {"keystore": certificate, "key": key, "authentication_enabled": "true"},
            "with security.ssl.rest.truststore",
        ),
        (
            {
                "keystore": certificate,
                "key": key,
                "authentication_enabled": "true",
                "truststore": str(empty),
            },
            "rest.truststore: .*empty.pem",
        ),
    ):
        with pytest.raises(ConfigurationError, match=says):
            RestServer(of(**options), SYSTEM_CLOCK)


def test_the_history_server_speaks_https_with_the_same_files(
    authority: Authority, server: Signed, tmp_path: Path
) -> None:
    options = {
        "historyserver.archive.fs.dir": str(tmp_path),
        "historyserver.web.port": 0,
        "historyserver.web.ssl.enabled": True,
        "rest.token": "right",
        "security.ssl.rest.keystore": str(server.certificate),
        "security.ssl.rest.key": str(server.key),
    }
    history = history_server(HistoryConfig.of(options), SYSTEM_CLOCK)
    try:
        assert history.url == f"https://localhost:{history.port}"
        assert status_of(history.port, trusting(authority)) == 200
    finally:
        history.stop()


def test_a_history_server_without_a_certificate_names_its_own_option(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"option historyserver.web.ssl.enabled: name .* with security.ssl.rest.keystore",
    ):
        HistoryConfig.of(
            {"historyserver.archive.fs.dir": str(tmp_path), "historyserver.web.ssl.enabled": True}
        )
