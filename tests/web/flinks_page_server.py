"""Flink's own page, out of Flink's jar, before a REST endpoint of ours."""

from __future__ import annotations

import http.client
import mimetypes
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread


@dataclass
class FlinksPage:
    """Where it is, and what our endpoint has answered to it."""

    url: str
    answers: list[tuple[str, str, int]] = field(default_factory=list)

    def refused(self) -> list[tuple[str, str, int]]:
        return [each for each in self.answers if each[2] >= 400]


@contextmanager
def flinks_page(jar: Path, rest_port: int) -> Iterator[FlinksPage]:
    """Serves the page's files; what is none of them is asked of the endpoint."""
    archive = zipfile.ZipFile(jar)
    files = set(archive.namelist())

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0].lstrip("/") or "index.html"
            if f"web/{path}" not in files:
                self.forward()
                return
            data = archive.read(f"web/{path}")
            self.answer(200, mimetypes.guess_type(path)[0] or "application/octet-stream", data)

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            connection = http.client.HTTPConnection("localhost", rest_port, timeout=30)
            told = {
                name: value
                for name, value in self.headers.items()
                if name.lower().startswith(("sec-fetch", "user-agent"))
            }
            connection.request(self.command, self.path, body or None, told)
            response = connection.getresponse()
            page.answers.append((self.command, self.path, response.status))
            self.answer(response.status, response.getheader("Content-Type", ""), response.read())
            connection.close()

        do_POST = do_PATCH = do_PUT = do_DELETE = forward

        def answer(self, status: int, kind: str, data: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("localhost", 0), Handler)
    page = FlinksPage(f"http://localhost:{server.server_port}")
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield page
    finally:
        server.shutdown()
        server.server_close()
        archive.close()
