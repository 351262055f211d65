"""A server that speaks S3: moto's, as a process. Every test has a bucket of its own on it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from tests.waiting import eventually

_NUMBERS = count()


@dataclass(frozen=True)
class Bucket:
    """``options`` say in a URL where the server is."""

    name: str
    host: str

    @property
    def options(self) -> str:
        return f"endpoint_override={self.host}&scheme=http&region=us-east-1"

    def url(self, path: str = "") -> str:
        return f"s3://{self.name}/{path}?{self.options}"


@pytest.fixture(scope="session")
def s3_host() -> Iterator[str]:
    """Host and port of the server."""
    program = shutil.which("moto_server", path=str(Path(sys.executable).parent)) or shutil.which("moto_server")
    if program is None:
        pytest.skip("there is no S3 server on this machine: pip install 'moto[s3,server]'")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([program, "-H", "127.0.0.1", "-p", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: server.poll() is None and answers(port))
        yield f"127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def bucket(s3_host: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    for name, value in {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(name, value)
    made = Bucket(f"bucket-{next(_NUMBERS)}", s3_host)
    urllib.request.urlopen(urllib.request.Request(f"http://{s3_host}/{made.name}", method="PUT")).close()
    return made
