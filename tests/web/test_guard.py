"""Who may ask the REST endpoint, and what becomes of it when it cannot have its port."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.rest import RestConfig
from flinkpy.network.wire.outward_address import outward_address
from flinkpy.web.guard import LARGEST_BODY
from flinkpy.web.rest_server import RestServer
from tests.ports import free_port
from tests.web.rest import Rest, held_job

TOKEN = {"Authorization": "Bearer right"}
FAULT_6 = pytest.mark.finding("faults 6")


@pytest.fixture(scope="module")
def rest() -> Iterator[Rest]:
    port = free_port()
    options = {"rest.enabled": "true", "rest.port": str(port), "rest.token": "right"}
    try:
        with held_job(options):
            yield Rest(port)
    finally:
        stop_embedded()


@pytest.mark.parametrize(
    ("headers", "status", "says"),
    [
        (TOKEN, 200, ""),
        ({}, 401, "the token is missing or wrong"),
        ({"Authorization": "Bearer wrong"}, 401, "the token is missing or wrong"),
        ({"Authorization": "right"}, 401, "the token is missing or wrong"),
        ({"Authorization": "Bearer rïght"}, 401, "the token is missing or wrong"),
        (
            {**TOKEN, "Host": "evil.example:80"},
            403,
            "this endpoint is not asked as 'evil.example:80'",
        ),
        ({**TOKEN, "Host": "[broken"}, 403, "this endpoint is not asked as"),
        ({**TOKEN, "Host": "127.0.0.1"}, 200, ""),
        (
            {**TOKEN, "Origin": "http://evil.example"},
            403,
            "pages of 'http://evil.example' may not ask here",
        ),
        ({**TOKEN, "Origin": "null"}, 403, "pages of 'null' may not ask here"),
        ({**TOKEN, "Host": "localhost:1", "Origin": "http://localhost:1"}, 200, ""),
        pytest.param(
            {**TOKEN, "Origin": "http://[x"},
            403,
            "pages of 'http://[x' may not ask here",
            marks=FAULT_6,
        ),
        pytest.param(
            {"Origin": "http://[x"}, 403, "pages of 'http://[x' may not ask here", marks=FAULT_6
        ),
        pytest.param(
            {**TOKEN, "Origin": "http://[::1]]:x"}, 403, "may not ask here", marks=FAULT_6
        ),
        pytest.param(
            {**TOKEN, "Origin": "", "Host": "localhost"},
            403,
            "pages of '' may not ask here",
            marks=FAULT_6,
        ),
        ({"Authorization": "bearer right"}, 200, ""),
        ({"Authorization": "Basic right"}, 401, "the token is missing or wrong"),
        (
            {**TOKEN, "Content-Length": str(LARGEST_BODY + 1)},
            413,
            "a body has at most 1048576 bytes",
        ),
    ],
)
def test_who_may_ask(rest: Rest, headers: dict[str, str], status: int, says: str) -> None:
    answer = rest.ask(
        "/jobs", headers={name: value.encode().decode("latin-1") for name, value in headers.items()}
    )
    assert answer.status == status
    assert status == 200 or says in answer.json["errors"][0]
    assert (answer.headers.get("www-authenticate") == "Bearer") is (status == 401)
    assert "right" not in str(answer.json)


@pytest.mark.finding("faults 6")
def test_a_body_in_chunks_that_is_too_long_is_told_so(rest: Rest) -> None:
    with socket.create_connection((rest.host, rest.port), 30) as connection:
        connection.sendall(
            b"POST /jobs/1/stop HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "
            b"right\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        for _ in range(2 * LARGEST_BODY // 0x10000):
            connection.sendall(chunk)
        answer = b""
        while not answer.endswith(b"}") and (more := connection.recv(1000)):
            answer += more
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"a body has at most 1048576 bytes" in answer
    assert rest.ask("/jobs", headers=TOKEN).status == 200


def test_what_is_no_http_is_refused_and_the_next_one_is_answered(rest: Rest) -> None:
    for nonsense in (
        b"\x16\x03\x01\x02\x00\x01",
        b"GET /" + b"a" * 100_000,
        b"GET /jobs HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    ):
        with socket.create_connection((rest.host, rest.port), 30) as connection:
            connection.sendall(nonsense + b"\r\n\r\n")
            assert b" 200 " not in connection.recv(100)
    assert rest.ask("/jobs", headers=TOKEN).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/jobs/..%2f..%2fetc%2fpasswd",
        "/v1//etc/passwd",
        "/jobs/%00",
        "/jobs/" + "a" * 3000,
    ],
)
def test_a_path_leads_nowhere_else(rest: Rest, path: str) -> None:
    assert rest.ask(path, headers=TOKEN).status == 404


def test_a_path_that_is_too_long_is_refused(rest: Rest) -> None:
    answer = rest.ask(f"/jobs/1/vertices/1/subtasks/{'9' * 5000}", headers=TOKEN)
    assert (answer.status, answer.json) == (414, {"errors": ["a path has at most 4000 characters"]})


@pytest.mark.parametrize("path", ["/jobs/", "/v1", "/v1/jobs/"])
def test_a_path_that_is_nearly_there_is_told_in_flinks_form(rest: Rest, path: str) -> None:
    answer = rest.ask(path, headers=TOKEN)
    assert (answer.status, list(answer.json)) == (404, ["errors"])


@pytest.mark.finding("faults 6")
def test_an_odd_host_is_no_fault_where_any_host_may_be_named() -> None:
    server = RestServer(config(port=0, address="0.0.0.0", needs_token=False), SYSTEM_CLOCK)
    server.begin()
    try:
        answer = Rest(server.port, "127.0.0.1").ask("/nowhere", headers={"Host": "[x"})
        assert (answer.status, answer.json) == (404, {"errors": ["/nowhere is not there"]})
    finally:
        server.stop()


def config(**changes: Any) -> RestConfig:
    return RestConfig(**{"enabled": True, **changes})


def test_a_port_that_was_asked_for_and_is_taken_is_named() -> None:
    first = RestServer(config(port=0), SYSTEM_CLOCK)
    try:
        with pytest.raises(
            ConfigurationError,
            match=(
                rf"option rest.port: localhost:{first.port} cannot be had \(Address already in "
                r"use\)"
            ),
        ):
            RestServer(config(port=first.port), SYSTEM_CLOCK)
    finally:
        first.stop()


@pytest.mark.finding("newcomers 7")
def test_of_a_range_the_first_free_port_is_taken_and_a_full_one_is_told_with_the_key_that_was_used() -> (
    None
):
    first = RestServer(config(port=0), SYSTEM_CLOCK)
    one = RestConfig.of({"rest.bind-port": f"{first.port},0", "rest.port": "8081"})
    second = RestServer(one, SYSTEM_CLOCK)
    try:
        assert second.port not in (first.port, 8081)
        taken = rf"option rest.bind-port: localhost:{first.port},{second.port} cannot be had"
        with pytest.raises(ConfigurationError, match=taken):
            RestServer(
                RestConfig.of({"rest.bind-port": f"{first.port},{second.port}"}), SYSTEM_CLOCK
            )
    finally:
        first.stop()
        second.stop()


def test_without_a_port_a_free_one_is_taken() -> None:
    servers = [RestServer(config(), SYSTEM_CLOCK) for _ in range(2)]
    assert servers[0].port != servers[1].port
    for server in servers:
        server.stop()


def test_an_address_of_another_machine_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"option rest.bind-address: .*192.0.2.1"):
        RestServer(config(address="192.0.2.1"), SYSTEM_CLOCK)


@pytest.mark.parametrize("token", ["schlüssel", "my\nsecret", " secret", "secret "])
def test_a_token_that_no_header_can_carry_is_refused_and_not_told(token: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"option rest\.token is sent in a header"
    ) as refused:
        config(token=token)
    assert token.strip() not in str(refused.value)


def test_who_listens_everywhere_tells_an_address_at_which_it_is_reached() -> None:
    server = RestServer(config(port=0, address="0.0.0.0", needs_token=False), SYSTEM_CLOCK)
    assert server.told == f"http://{outward_address()}:{server.port}"
    server.stop()


def test_each_start_makes_its_own_token_and_tells_it() -> None:
    servers = first, second, free = [
        RestServer(config(port=0, needs_token=needs_token), SYSTEM_CLOCK)
        for needs_token in (True, True, False)
    ]
    assert len({first.token, second.token, None}) == 3
    assert first.told == (
        f"http://localhost:{first.port}/#token={first.token} (for scripts: header "
        f"'Authorization: Bearer {first.token}')"
    )
    assert free.told == f"http://localhost:{free.port}"
    for server in servers:
        server.stop()


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_where_it_listens_everywhere_it_names_an_address_at_which_it_is_reached(
    address: str,
) -> None:
    try:
        server = RestServer(RestConfig(enabled=True, address=address, port=0), SYSTEM_CLOCK)
    except ConfigurationError:
        pytest.skip(f"nothing can listen at {address} here")
    try:
        host = urlsplit(server.url).hostname
        assert host not in ("0.0.0.0", "::")
        socket.create_connection((host, server.port), timeout=30).close()
    finally:
        server.stop()
