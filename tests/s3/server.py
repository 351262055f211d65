"""A server that speaks S3, as a process of its own: moto's."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import IO

import pytest

from tests.waiting import eventually

KEY, SECRET = "key", "secret"
_NUMBERS = count()


@dataclass(frozen=True)
class Bucket:
    """``options`` say in a URL where the server is; ``with_keys`` is a URL that also says who asks,
    for processes with another environment."""

    name: str
    host: str

    @property
    def options(self) -> str:
        return f"endpoint_override={self.host}&scheme=http&region=us-east-1"

    def url(self, path: str = "") -> str:
        return f"s3://{self.name}/{path}?{self.options}"

    def with_keys(self, path: str = "") -> str:
        return self.url(path).replace("://", f"://{KEY}:{SECRET}@", 1)

    def objects(self, folder: str = "") -> dict[str, bytes]:
        """All objects below the folder, hidden ones too, by their path in the bucket."""
        from pyarrow import fs

        system = fs.S3FileSystem(
            access_key=KEY,
            secret_key=SECRET,
            endpoint_override=self.host,
            scheme="http",
            region="us-east-1",
        )
        found = system.get_file_info(
            fs.FileSelector(
                f"{self.name}/{folder}".rstrip("/"), recursive=True, allow_not_found=True
            )
        )
        return {
            each.path.removeprefix(f"{self.name}/"): system.open_input_stream(each.path).read()
            for each in found
            if each.is_file
        }


@contextmanager
def running_s3() -> Iterator[str]:
    """Starts a server, and ends it. Gives its host and port; skips the test where there is none."""
    program = shutil.which("moto_server", path=str(Path(sys.executable).parent)) or shutil.which(
        "moto_server"
    )
    if program is None:
        pytest.skip("there is no S3 server on this machine: pip install 'moto[s3,server]'")
    with tempfile.TemporaryFile() as log:
        # It takes a free port itself: one that was found free before may be taken, by the server of
        # another worker, when this one has started.
        server = subprocess.Popen([program, "-H", "127.0.0.1", "-p", "0"], stdout=log, stderr=log)
        try:
            eventually(lambda: server.poll() is None and _address(log) is not None)
            yield str(_address(log))
        finally:
            server.kill()
            server.wait()


def new_bucket(host: str) -> Bucket:
    """A bucket that nobody else has."""
    made = Bucket(f"bucket-{next(_NUMBERS)}", host)
    urllib.request.urlopen(
        urllib.request.Request(f"http://{host}/{made.name}", method="PUT")
    ).close()
    return made


def _address(log: IO[bytes]) -> str | None:
    """Host and port, once the server has logged them."""
    found = re.search(r"Running on http://([\d.]+:\d+)", os.pread(log.fileno(), 4096, 0).decode())
    return None if found is None else found[1]
