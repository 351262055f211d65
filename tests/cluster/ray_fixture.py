"""A private Ray cluster of four CPUs in a process of its own: it ends when that process's standard input closes, whatever happened."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_HEAD = """
import sys, ray
ray.init(address="local", num_cpus=4, include_dashboard=False, logging_level="error", log_to_driver=False)
print(ray.get_runtime_context().gcs_address, flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str


@dataclass(frozen=True)
class RayCluster:
    """Programs run against it through the command line, each in a process of its own."""

    address: str
    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "FLINKPY_RAY_ADDRESS": self.address, "PYTHONWARNINGS": "default"}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen([sys.executable, "-m", "flinkpy", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                env=self.environment, cwd=self.folder)

    def flinkpy(self, *arguments: str, timeout: float = 30) -> Finished:
        return finish(self.start(*arguments), timeout)

    def job(self, text: str, name: str = "job.py") -> str:
        (self.folder / name).write_text(text)
        return name


def finish(process: subprocess.Popen[str], timeout: float = 30) -> Finished:
    with process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"did not end within {timeout} s; said {out!r} and {err!r}") from None
    return Finished(process.returncode, out, err)


@contextmanager
def ray_cluster(folder: Path) -> Iterator[RayCluster]:
    with subprocess.Popen([sys.executable, "-c", _HEAD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as head:
        assert head.stdin is not None
        assert head.stdout is not None
        try:
            yield RayCluster(head.stdout.readline().strip(), folder)
        finally:
            head.stdin.close()
            head.wait(30)
