"""Requests that nobody sane sends: none brings the REST endpoint down, costs it threads, sockets or
memory for good, or makes it tell a secret.

A thousand requests; as many as FUZZ_REQUESTS says, if it is set: `make fuzz` sends 10,000.
"""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.routing import Route

from flinkpy.web.routes import V1
from tests.ports import free_port
from tests.waiting import PATIENCE_S, eventually
from tests.web.rest import Rest

REQUESTS = int(os.environ.get("FUZZ_REQUESTS", "1000"))
TOKEN = "xV7fuzzed-token9"
RIGHT = {"Authorization": f"Bearer {TOKEN}"}
TOLD_NEVER = (b"Traceback", b"root:x:0", b"PRIVATE KEY")
# on the page's files, which need no token
PAGES_MARK = b"content-security-policy: default-src 'none'"
ROOT = Path(__file__).parents[2]
# threads and open files that savepoints, and the end of the job, leave; connections that leaked
# would be hundreds
A_FEW = 16
GROWTH = 64 << 20  # bytes; a leak of 10 KB a request would be seen among 10,000


@dataclass(frozen=True)
class Attempt:
    """What a client sends, in pieces, and how it leaves: it waits for the answer, closes its half
    first, or goes away."""

    pieces: tuple[bytes, ...]
    leaves: str
    has_token: bool


@dataclass(frozen=True)
class Program:
    """The process with the endpoint, as Linux tells of it."""

    pid: int
    port: int
    job_id: str
    log: Path

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/task"))

    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def memory(self) -> int:
        """Bytes in use."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )


def attempts(job_id: str, vertex: str, folder: str) -> st.SearchStrategy[Attempt]:
    odd = st.sampled_from(
        [
            "",
            ".",
            "..",
            "%2e%2e",
            "..%2f..%2fetc%2fpasswd",
            "%00",
            "%ff%fe",
            "\\..\\",
            "a" * 3000,
            "-1",
            "0",
            "1e9",
            "99999999999999999999",
            "٣",
            "&",
            "';--",
            "{jobid}",
            "%25%32%65",
            job_id.upper(),
            "0" * 32,
        ]
    ) | st.text(max_size=20)
    known = st.sampled_from(
        [*(getattr(route, "path", "/") for route in V1), "/", "/page/app.js", "/page/{name}"]
    )

    posted = st.sampled_from(
        [route.path for route in V1 if isinstance(route, Route) and "POST" in (route.methods or ())]
    )

    def filled(path: str, ids: list[str], has_job: bool) -> str:
        given = iter([job_id, *([vertex] if "vertex" in path else []), *ids] if has_job else ids)
        return re.sub(r"\{[^}]*\}", lambda _: next(given, "0"), path)

    joined = st.lists(odd, max_size=5).map(lambda parts: "/" + "/".join(parts))
    paths = st.builds(filled, known, st.lists(odd, max_size=4), st.booleans()) | joined | odd
    queries = st.lists(
        st.tuples(
            st.sampled_from(
                ["get", "agg", "maxExceptions", "mode", "type", "subtaskindex", "taskmanagers"]
            ),
            odd,
        ),
        max_size=3,
    )
    values: st.SearchStrategy[Any] = st.sampled_from(
        [None, 3, [], {}, True, 1e400, "\0", "/dev/null/no", "nosuch://x", folder]
    )
    bodies = (
        st.binary(max_size=200)
        | st.just(b"{" * 50_000)
        | st.just(b"[" * 50_000)
        | st.dictionaries(
            st.sampled_from(
                [
                    "target-directory",
                    "targetDirectory",
                    "cancel-job",
                    "drain",
                    "formatType",
                    "triggerId",
                ]
            ),
            values,
        ).map(lambda body: json.dumps(body).encode())
    )
    tokens = st.sampled_from(
        [
            "",
            "Bearer",
            "Bearer ",
            "Bearer " + TOKEN[:-1],
            f"Bearer {TOKEN}x",
            f"bearer {TOKEN}",
            f"Basic {TOKEN}",
            TOKEN,
            "Bearer \xff\xfe",
            "Bearer " + "a" * 5000,
            f"Bearer {TOKEN.upper()}",
        ]
    )
    names = st.sampled_from(
        [
            "Content-Length",
            "Transfer-Encoding",
            "Connection",
            "Upgrade",
            "Expect",
            "Host",
            "Origin",
            "X-Long",
            "Range",
            "Accept",
            "Cookie",
            "Content-Type",
            "",
        ]
    )
    contents = st.sampled_from(
        [
            "",
            "0",
            "-1",
            "1, 2",
            "9" * 30,
            "chunked",
            "chunked, gzip",
            "close",
            "websocket",
            "upgrade",
            "100-continue",
            "localhost",
            "evil.example",
            "http://evil.example",
            "null",
            "a" * 30_000,
            "http://[x",
            "[x",
            "//[::1",
            "http://localhost:x",
            "bytes=0-99999",
            "\x01",
            "a\tb",
        ]
    )
    ends = st.sampled_from([b"\r\n", b"\n", b"\r", b"\r\n "])

    def written(
        method: str,
        path: str,
        query: list[tuple[str, str]],
        token: str | None,
        headers: list[tuple[str, str]],
        body: bytes,
        length: bool,
        version: str,
        end: bytes,
        cuts: list[int],
        leaves: str,
        chunks: int = 0,
    ) -> Attempt:
        target = path + (
            "?" + "&".join(f"{name}={value}" for name, value in query) if query else ""
        )
        lines = [
            f"{method} {target} {version}",
            "Host: localhost",
            *(f"{name}: {value}" for name, value in headers),
        ]
        lines.append(f"Authorization: {f'Bearer {TOKEN}' if token is None else token}")
        if chunks:  # more than a body may have, without saying so before
            lines.append("Transfer-Encoding: chunked")
            body, length = b"10000\r\n" + b" " * 0x10000 + b"\r\n", False
            body = body * chunks
        if length:
            lines.append(f"Content-Length: {len(body)}")
        data = end.join(line.encode("utf-8", "surrogatepass") for line in lines) + end * 2 + body
        places = sorted({cut % (len(data) + 1) for cut in cuts})
        return Attempt(
            tuple(data[start:stop] for start, stop in zip([0, *places], [*places, len(data)])),
            leaves,
            token is None,
        )

    sane = st.builds(
        written,
        st.sampled_from(
            [
                "GET",
                "GET",
                "GET",
                "POST",
                "PATCH",
                "PUT",
                "DELETE",
                "OPTIONS",
                "HEAD",
                "TRACE",
                "CONNECT",
            ]
        ),
        paths,
        queries,
        st.none() | tokens,
        st.lists(st.tuples(names, contents), max_size=2),
        bodies,
        st.booleans(),
        st.sampled_from(["HTTP/1.1"] * 4 + ["HTTP/1.0", "HTTP/2"]),
        st.just(b"\r\n"),
        st.lists(st.integers(0, 10_000), max_size=2),
        st.sampled_from(["waits", "waits", "waits", "half", "goes"]),
    )
    proper = st.builds(
        written,
        st.sampled_from(["GET", "GET", "POST"]),
        st.builds(filled, known, st.lists(odd, max_size=4), st.just(True)),
        queries,
        st.none(),
        st.just([]),
        bodies,
        st.just(True),
        st.just("HTTP/1.1"),
        st.just(b"\r\n"),
        st.just([]),
        st.just("waits"),
    )
    endless = st.builds(
        written,
        st.just("POST"),
        st.builds(filled, posted, st.just([]), st.just(True)),
        st.just([]),
        st.none(),
        st.just([]),
        st.just(b""),
        st.just(False),
        st.just("HTTP/1.1"),
        st.just(b"\r\n"),
        st.just([]),
        st.just("waits"),
        st.just(20),
    )
    broken = st.builds(
        written,
        st.text(max_size=5),
        paths,
        queries,
        tokens,
        st.lists(st.tuples(names, contents), max_size=60),
        bodies,
        st.booleans(),
        st.sampled_from(["", "HTTP", "HTTP/9.9", "\x00"]),
        ends,
        st.lists(st.integers(0, 10_000), max_size=3),
        st.sampled_from(["waits", "half", "goes"]),
    )
    noise = st.builds(
        Attempt,
        st.lists(st.binary(max_size=300), max_size=3).map(tuple),
        st.sampled_from(["half", "goes"]),
        st.just(False),
    )
    return st.one_of(proper, proper, proper, sane, sane, sane, broken, noise, endless)


def answer_to(port: int, attempt: Attempt, tls: ssl.SSLContext | None = None) -> bytes:
    """What the server says until it falls silent for a moment, or closes."""
    said = b""
    with (
        suppress(OSError),
        socket.create_connection(("localhost", port), 30) as plain,
        ExitStack() as stack,
    ):
        connection = (
            plain
            if tls is None
            else stack.enter_context(tls.wrap_socket(plain, server_hostname="localhost"))
        )
        for piece in attempt.pieces:
            connection.sendall(piece)
        if attempt.leaves == "goes":
            return b""
        if attempt.leaves == "half":
            connection.shutdown(socket.SHUT_WR)
        else:  # it is answered if it is whole; the server may also wait for more
            connection.settimeout(0.05)
        while data := connection.recv(1 << 16):
            said += data
            connection.settimeout(0.005)
    return said


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """A process of its own, so that what it uses is not the test's."""
    port, log = free_port(), tmp_path / "log"
    with log.open("wb") as errors:
        command = [sys.executable, "-m", "tests.web.waiting_program", str(port), TOKEN]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=ROOT,
            text=True,
        )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        job_id = next((line.split()[1] for line in process.stdout if line.startswith("job ")), "")
        assert job_id, log.read_text()
        yield Program(process.pid, port, job_id, log)
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.wide
def test_no_request_brings_it_down_costs_it_for_good_or_makes_it_tell(
    program: Program, tmp_path: Path
) -> None:
    statuses: Counter[int] = Counter()
    rest = Rest(program.port)
    vertex = rest.ask(f"/jobs/{program.job_id}", headers=RIGHT).json["vertices"][0]["id"]

    @settings(
        max_examples=REQUESTS, deadline=None, database=None, suppress_health_check=list(HealthCheck)
    )
    @given(attempts(program.job_id, vertex, str(tmp_path)))
    def ask(attempt: Attempt) -> None:
        said = answer_to(program.port, attempt)
        assert not [secret for secret in TOLD_NEVER if secret in said], said
        # who has it may read it where it was printed, in the log
        assert attempt.has_token or TOKEN.encode() not in said, said
        for status in map(int, re.findall(rb"^HTTP/1\.1 (\d\d\d)", said)):
            statuses[status] += 1
            assert status != 500, said
            assert attempt.has_token or status >= 400 or status == 100 or PAGES_MARK in said, said

    for _ in range(100):  # what is made once is made
        answer_to(program.port, Attempt((b"GET /jobs HTTP/1.1\r\n\r\n",), "waits", False))
    threads, files, memory = program.threads(), program.open_files(), program.memory()
    ask()
    try:
        eventually(
            lambda: program.threads() <= threads + A_FEW and program.open_files() <= files + A_FEW
        )
    finally:
        grown = program.memory() - memory
        print(
            f"answers by status: {dict(sorted(statuses.items()))}; threads {threads} then "
            f"{program.threads()}, open files {files} then "
            f"{program.open_files()}, memory grew by {grown >> 10} KB"
        )
    assert grown < GROWTH
    assert rest.ask("/jobs", headers=RIGHT).status == 200
    assert [
        line
        for line in program.log.read_text().splitlines()
        if TOKEN in line and not line.startswith("in the browser: ")
    ] == []
    assert {200, 400, 401, 404, 405, 413} <= set(statuses), statuses  # all kinds were tried
