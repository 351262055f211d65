"""A running job, and the REST endpoint of the cluster that runs it."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from flinkpy.common.job_client import JobClient
from flinkpy.connectors.discarding_sink import DiscardingSink
from flinkpy.testing.connectors.paced_source import PacedSource
from flinkpy.testing.environment import embedded_environment


@dataclass
class Answer:
    status: int
    json: Any
    headers: dict[str, str]


class Rest:
    """Asks a REST endpoint."""

    def __init__(
        self,
        port: int,
        host: str = "localhost",
        *,
        token: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.host = host
        self.port = port
        self._tls = tls
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def _connection(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self.host, self.port, timeout=30)
        return http.client.HTTPSConnection(self.host, self.port, timeout=30, context=self._tls)

    def ask(
        self,
        path: str,
        method: str = "GET",
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        connection = self._connection()
        try:
            data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            connection.request(method, path, data, {**self._headers, **(headers or {})})
            response = connection.getresponse()
            return Answer(
                response.status,
                json.loads(response.read() or b"null"),
                {name.lower(): value for name, value in response.getheaders()},
            )
        finally:
            connection.close()

    def text(
        self, path: str, headers: dict[str, str] | None = None
    ) -> tuple[int, bytes, dict[str, str]]:
        """An answer that is no JSON: status, body and headers."""
        connection = self._connection()
        try:
            connection.request("GET", path, headers={**self._headers, **(headers or {})})
            response = connection.getresponse()
            return (
                response.status,
                response.read(),
                {name.lower(): value for name, value in response.getheaders()},
            )
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        answer = self.ask(path)
        assert answer.status == 200, answer
        return answer.json


GO = threading.Event()


def hold(record: int) -> int:
    """Waits at the fifth record until the test lets it go."""
    if record == 5:
        GO.wait(60)
    return record


@contextmanager
def held_job(options: dict[str, Any]) -> Iterator[JobClient]:
    """A job of two vertices, with one and two subtasks, that has read a few records and does not go
    on; cancelled in the end. ``options`` say that a batch has one record."""
    GO.clear()
    env = embedded_environment(options, parallelism=2)
    env.from_sequence(0, 9).set_parallelism(1).map(hold).set_parallelism(1).rebalance().map(
        str
    ).sink_to(DiscardingSink())
    client = env.execute_async("held")
    try:
        yield client
    finally:
        GO.set()
        client.cancel().result(30)


@contextmanager
def waiting_job(options: dict[str, Any]) -> Iterator[JobClient]:
    """A job of one vertex that waits for a checkpoint after each ten records; cancelled in the
    end."""
    env = embedded_environment(options)
    env.from_source(
        PacedSource([(number, number) for number in range(1000)], 10, 1), source_name="numbers"
    ).sink_to(DiscardingSink())
    client = env.execute_async("waiting")
    try:
        yield client
    finally:
        client.cancel().result(30)
