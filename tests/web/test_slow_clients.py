"""Clients that open connections and do not get on: each is sent away, and the others are answered."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.web import client_connection
from flinkpy.web.rest_server import MOST_CONNECTIONS
from tests.ports import free_port
from tests.waiting import PATIENCE_S, eventually
from tests.web.rest import Rest, held_job


@pytest.fixture
def rest(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rest]:
    """Without a token; it waits a twentieth of a second for its clients."""
    monkeypatch.setattr(client_connection, "PATIENCE_S", 0.05)
    rest = Rest(free_port())
    try:
        with held_job({"rest.enabled": "true", "rest.authentication": "NONE", "rest.port": str(rest.port)}):
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


@pytest.mark.parametrize("begins", [
    b"", b"GET /jo", b"GET /jobs HTTP/1.1\r\nHost: localhost\r\n", b"POST /jobs/0/stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{",
    b"POST /jobs/0/stop HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
])
def test_a_request_that_does_not_come_whole_is_not_waited_for(rest: Rest, begins: bytes) -> None:
    with connected(rest) as client:
        client.sendall(begins)
        assert is_sent_away(client)
    eventually(lambda: answers(rest))


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
