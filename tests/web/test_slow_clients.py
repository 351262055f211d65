"""Clients that open connections and do not get on: each is sent away, and the others are
answered."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.options.rest import RestConfig
from flinkpy.web import client_connection
from flinkpy.web.rest_server import MOST_CONNECTIONS, RestServer
from tests.ports import free_port
from tests.waiting import PATIENCE_S, eventually
from tests.web.rest import Rest, held_job


@pytest.fixture
def rest(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rest]:
    """Without a token; it waits a twentieth of a second for its clients."""
    monkeypatch.setattr(client_connection, "PATIENCE_S", 0.05)
    rest = Rest(free_port())
    try:
        with held_job(
            {"rest.enabled": "true", "rest.authentication": "NONE", "rest.port": str(rest.port)}
        ):
            yield rest
    finally:
        stop_embedded()


def connected(rest: Rest) -> socket.socket:
    return socket.create_connection((rest.host, rest.port), PATIENCE_S)


def send_until_ended(client: socket.socket, request: bytes) -> None:
    """Fills the connection, and waits until the server ends it."""
    while True:
        client.sendall(request)


def is_sent_away(client: socket.socket) -> bool:
    """Waits until the server has ended the connection."""
    try:
        while client.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


@pytest.mark.wide
@pytest.mark.parametrize(
    "begins",
    [
        b"",
        b"GET /jo",
        b"GET /jobs HTTP/1.1\r\nHost: localhost\r\n",
        b"POST /jobs/0/stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{",
        (
            b"POST /jobs/0/stop HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
            b"chunked\r\n\r\n5\r\n{"
        ),
    ],
)
def test_a_request_that_does_not_come_whole_is_not_waited_for(rest: Rest, begins: bytes) -> None:
    with connected(rest) as client:
        client.sendall(begins)
        assert is_sent_away(client)
    eventually(lambda: answers(rest))


@pytest.mark.wide
def test_a_client_that_does_not_read_is_not_waited_for(rest: Rest) -> None:
    request = b"GET /jobs/overview HTTP/1.1\r\nHost: localhost\r\n\r\n" * 1000
    with connected(rest) as client, pytest.raises(ConnectionError):
        send_until_ended(client, request)
    eventually(lambda: answers(rest))


def test_more_idle_connections_than_may_be_do_not_shut_out_others(rest: Rest) -> None:
    idle = [connected(rest) for _ in range(MOST_CONNECTIONS + 50)]
    try:
        eventually(lambda: answers(rest))
    finally:
        for client in idle:
            client.close()


@pytest.fixture
def patient_rest() -> Iterator[Rest]:
    """It waits ten seconds for its clients, and lets one address have three connections."""
    server = RestServer(
        RestConfig(
            enabled=True, port=0, needs_token=False, address="0.0.0.0", connections_per_client=3
        ),
        SYSTEM_CLOCK,
    )
    server.begin()
    yield Rest(server.port, "127.0.0.1")
    server.stop()


@pytest.mark.finding("faults 7")
def test_a_client_with_too_many_half_open_connections_loses_the_oldest_and_shuts_nobody_out(
    patient_rest: Rest,
) -> None:
    idle = [connected(patient_rest) for _ in range(3)]
    try:
        idle[0].sendall(b"GET /nowhere HTTP/1.1\r\n")
        for _ in range(5):
            assert patient_rest.ask("/nowhere").status == 404  # at once: each makes room for itself
        assert is_sent_away(idle[0])
    finally:
        for client in idle:
            client.close()


@pytest.mark.finding("faults 7")
def test_where_all_connections_are_in_use_the_address_with_the_most_makes_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("flinkpy.web.rest_server.MOST_CONNECTIONS", 4)
    server = RestServer(
        RestConfig(enabled=True, port=0, needs_token=False, address="0.0.0.0"), SYSTEM_CLOCK
    )
    server.begin()
    rest = Rest(server.port, "127.0.0.1")
    other = socket.create_connection(
        ("127.0.0.1", server.port), PATIENCE_S, source_address=("127.0.0.2", 0)
    )
    other.sendall(b"GET /no")
    idle = [connected(rest) for _ in range(4)]
    try:
        assert rest.ask("/nowhere").status == 404
        assert is_sent_away(idle[0])
        other.sendall(b"where HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert other.recv(100).startswith(b"HTTP/1.1 404 ")
    finally:
        for client in (other, *idle):
            client.close()
        server.stop()


def test_the_port_of_prometheus_does_not_wait_either(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_connection, "PATIENCE_S", 0.05)
    port = free_port()
    try:
        options = {"metrics.reporters": "prom", "metrics.reporter.prom.port": port}
        with held_job(options), socket.create_connection(("localhost", port), PATIENCE_S) as client:
            client.sendall(b"GET /me")
            assert is_sent_away(client)
    finally:
        stop_embedded()


def answers(rest: Rest) -> bool:
    try:
        return rest.ask("/jobs").status == 200
    except OSError:
        return False
