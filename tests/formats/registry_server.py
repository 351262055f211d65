"""A schema registry for tests: a real HTTP server with the routes of Confluent's REST API that
clients use, over a dict. It is a double of the protocol: it checks no compatibility."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


class RegistryServer(ThreadingHTTPServer):
    """Schemas by number, numbers by subject."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.schemas: list[dict[str, Any]] = []
        self.subjects: dict[str, list[int]] = {}
        self.requests: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.refuses: tuple[int, str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def number_of(self, subject: str, schema: dict[str, Any]) -> int:
        if schema not in self.schemas:
            self.schemas.append(schema)
        number = self.schemas.index(schema) + 1
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def answer(self, method: str, parts: list[str], body: Any) -> tuple[int, Any]:
        if self.refuses is not None:
            return self.refuses[0], {"error_code": self.refuses[0], "message": self.refuses[1]}
        if method == "GET" and parts[:2] == ["schemas", "ids"]:
            number = int(parts[2])
            if not 1 <= number <= len(self.schemas):
                return 404, {"error_code": 40403, "message": "Schema not found"}
            found = self.schemas[number - 1]
            return 200, {
                name: value
                for name, value in found.items()
                if (name, value) != ("schemaType", "AVRO")
            }
        subject = parts[1]
        if method == "POST" and parts[2:] == ["versions"]:
            return 200, {"id": self.number_of(subject, body)}
        if subject not in self.subjects:
            return 404, {"error_code": 40401, "message": "Subject not found"}
        number = self.subjects[subject][
            int(parts[3]) - 1 if parts[3:] and parts[3].isdigit() else -1
        ]
        return 200, {
            "subject": subject,
            "id": number,
            "version": len(self.subjects[subject]),
            **self.schemas[number - 1],
        }


class _Handler(BaseHTTPRequestHandler):
    server: RegistryServer

    def _answer(self, body: Any = None) -> None:
        self.server.requests.append(f"{self.command} {self.path}")
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        status, answer = self.server.answer(
            self.command, list(map(unquote, self.path.strip("/").split("/"))), body
        )
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def registry_server() -> Iterator[RegistryServer]:
    server = RegistryServer()
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
