"""Ray clusters for tests, each of four CPUs and of this test run only: it ends with the fixture,
whatever happened.

``sessions`` is a process that has called ``ray.init``: light, and quickly there. ``started_ray`` is
what people have: ``ray start --head``, with the dashboard that ``ray job submit`` talks to, and
with token authentication."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.ports import free_port
from tests.waiting import PATIENCE_S

_HEAD = """
import sys, ray
ray.init(address="local", num_cpus=4, include_dashboard=False, logging_level="error", log_to_driver=False)
[head] = ray._private.worker._global_node.all_processes["gcs_server"]
print(ray.get_runtime_context().gcs_address, head.process.pid, flush=True)
sys.stdin.read()
"""
_EYES = """
import json, sys, ray
from flinkpy.cluster.ray.ray_connection import connect_ray
from ray._private import state
connect_ray({"ray.address": sys.argv[1]}, start=False)
for _ in sys.stdin:
    actors = [actor["Name"] for actor in state.actors().values() if actor["State"] != "DEAD"]
    groups = [name for name, group in ray.util.placement_group_table().items() if group["state"] != "REMOVED"]
    stored = ray.cluster_resources()["object_store_memory"] - ray.available_resources().get("object_store_memory", 0)
    print(json.dumps({"actors": actors, "groups": groups, "stored": stored}), flush=True)
"""
_STARTED_WITHIN_S = 90
_STARTS = 3
# stay on a cluster once a Dataset was used there
RAY_DATAS_OWN = {"AutoscalingCoordinator", "DataUsageCollectionActor", "datasets_stats_actor"}


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
    control: int = 0  # the process of its global control service

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "FLINKPY_RAY_ADDRESS": self.address, "PYTHONWARNINGS": "default"}

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return self.python("-m", "flinkpy", *arguments)

    def python(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
            cwd=self.folder,
        )

    def flinkpy(self, *arguments: str, timeout: float = PATIENCE_S) -> Finished:
        return finish(self.start(*arguments), timeout)

    def job(self, text: str, name: str = "job.py") -> str:
        (self.folder / name).write_text(text)
        return name


@dataclass(frozen=True)
class StartedRay(RayCluster):
    """One that takes Ray jobs."""

    dashboard: str = ""
    token: str = field(default="", repr=False)
    head: int = 0

    @property
    def environment(self) -> dict[str, str]:
        """That of a user who has set what Ray's own messages say: no address, as a Ray job must
        find its cluster by itself."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("RAY_", "FLINKPY_"))
        }
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        return {
            **kept,
            "PATH": path,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": self.token,
            "PYTHONWARNINGS": "ignore",
        }

    def ray(
        self, *arguments: str, folder: Path | None = None, timeout: float = PATIENCE_S
    ) -> Finished:
        """The ``ray`` command."""
        command = [sys.executable, "-m", "ray.scripts.scripts", *arguments]
        return finish(
            subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=self.environment,
                cwd=folder or self.folder,
            ),
            timeout,
        )

    def ray_job(
        self, command: str, *arguments: str, folder: Path | None = None, timeout: float = PATIENCE_S
    ) -> Finished:
        """``ray job COMMAND``."""
        return self.ray(
            "job", command, "--address", self.dashboard, *arguments, folder=folder, timeout=timeout
        )

    def asked(self, path: str) -> Any:
        """What the dashboard answers, as it answers its page."""
        request = urllib.request.Request(
            f"{self.dashboard}{path}", headers={"Authorization": f"Bearer {self.token}"}
        )
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            return json.loads(answer.read())


@dataclass(frozen=True)
class Census:
    """What there is on a Ray cluster now; ``stored`` is the size of the objects in its store."""

    actors: frozenset[str]
    groups: frozenset[str]
    stored: int

    def beyond(self, before: Census) -> list[str]:
        """What was not there before."""
        found = [
            *sorted(self.actors - before.actors - RAY_DATAS_OWN),
            *sorted(self.groups - before.groups),
        ]
        return (
            found
            if self.stored <= before.stored
            else [*found, f"{self.stored - before.stored} bytes of objects"]
        )


class Eyes:
    """A process that looks at a cluster, again and again."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def look(self) -> Census:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        seen = json.loads(self._process.stdout.readline())
        own = {name for name in seen["actors"] if not name.startswith("_ray_internal_job_actor")}
        return Census(frozenset(own), frozenset(seen["groups"]), int(seen["stored"]))


@contextmanager
def eyes_on(cluster: RayCluster) -> Iterator[Eyes]:
    with subprocess.Popen(
        [sys.executable, "-c", _EYES, cluster.address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=cluster.environment,
    ) as process:
        yield Eyes(process)


@contextmanager
def joined(cluster: RayCluster) -> Iterator[None]:
    """This process is connected to the cluster, as a program is."""
    import ray

    from flinkpy.cluster.ray.ray_connection import connect_ray

    handler = signal.getsignal(signal.SIGTERM)
    connect_ray({"ray.address": cluster.address}, start=False)
    try:
        yield
    finally:
        ray.shutdown()
        signal.signal(signal.SIGTERM, handler)


def finish(process: subprocess.Popen[str], timeout: float = PATIENCE_S) -> Finished:
    with process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(
                f"did not end within {timeout} s; said {out!r} and {err!r}"
            ) from None
    return Finished(process.returncode, out, err)


@contextmanager
def ray_cluster(folder: Path, variables: Mapping[str, str] | None = None) -> Iterator[RayCluster]:
    """Ends when its process's standard input closes. ``variables`` are further ones of its
    environment."""
    with subprocess.Popen(
        [sys.executable, "-c", _HEAD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **(variables or {})},
    ) as head:
        assert head.stdin is not None
        assert head.stdout is not None
        try:
            address, control = head.stdout.readline().split()
            yield RayCluster(address, folder, int(control))
        finally:
            head.stdin.close()
            head.wait(30)


@contextmanager
def started_ray(folder: Path) -> Iterator[StartedRay]:
    """Its files lie in a folder of a short name: Ray makes sockets there."""
    with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as files:
        cluster, head = _start_ray(folder, files, _STARTS)
        try:
            yield cluster
        finally:
            _end(head)


def _start_ray(folder: Path, files: str, starts: int) -> tuple[StartedRay, subprocess.Popen[bytes]]:
    """Starts Ray on ports that are free now. Another program may take one of them meanwhile: then
    it starts again."""
    port, dashboard, agent = free_port(), free_port(), free_port()
    cluster = StartedRay(
        f"127.0.0.1:{port}",
        folder,
        dashboard=f"http://127.0.0.1:{dashboard}",
        token=secrets.token_hex(32),
    )
    ports = {
        "--port": port,
        "--dashboard-port": dashboard,
        "--ray-client-server-port": free_port(),
        "--dashboard-agent-listen-port": agent,
        "--min-worker-port": 0,
        "--max-worker-port": 0,
    }
    command = [
        sys.executable,
        "-m",
        "ray.scripts.scripts",
        "start",
        "--head",
        "--block",
        "--node-ip-address=127.0.0.1",
        "--num-cpus=4",
        f"--temp-dir={files}",
        "--include-dashboard=true",
        "--disable-usage-stats",
        "--object-store-memory=200000000",
        *(f"{name}={number}" for name, number in ports.items()),
    ]
    said = Path(files, "said")
    with said.open("w") as out:
        head = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=cluster.environment,
            start_new_session=True,
        )
    # The agent says of its node that it is registered and well; then a program must find all that
    # it needs
    urls = (
        f"{cluster.dashboard}/api/version",
        f"http://127.0.0.1:{agent}/api/local_raylet_healthz",
    )
    if all(_answers(cluster, head, url) for url in urls) and _takes_programs(cluster):
        return replace(cluster, head=head.pid), head
    is_alive = head.poll() is None
    _end(head)
    print(
        (
            f"Ray at {cluster.address} did not come up, its head is "
            f"{'alive' if is_alive else 'dead'}: {said.read_text()[-3000:]}"
        ),
        file=sys.stderr,
    )
    if starts <= 1:
        raise AssertionError("`ray start` did not come up")
    return _start_ray(folder, files, starts - 1)


def _takes_programs(cluster: StartedRay) -> bool:
    try:
        with eyes_on(cluster) as eyes:
            eyes.look()
    except (OSError, ValueError):  # the process that looks has died
        return False
    return True


def _end(head: subprocess.Popen[bytes]) -> None:
    end_session(head.pid)
    head.wait(30)


def end_session(leader: int) -> None:
    """Kills all processes of the session that process leads: for Ray, as if the machine had
    gone."""
    for process in processes_of_session(leader):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass


def processes_of_session(leader: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and os.getsid(int(entry.name)) == leader:
                found.append(int(entry.name))
        except ProcessLookupError:
            pass
    return found


def _answers(cluster: StartedRay, head: subprocess.Popen[bytes], url: str) -> bool:
    """Waits for an answer; False when Ray ends before, or does not answer in time."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {cluster.token}"})
    deadline = time.perf_counter() + _STARTED_WITHIN_S
    while head.poll() is None and time.perf_counter() < deadline:
        try:
            urllib.request.urlopen(request, timeout=5).close()
            return True
        except (urllib.error.URLError, OSError):
            _pause_while_running(head)
    return False


def _pause_while_running(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(0.1)
    except subprocess.TimeoutExpired:
        pass
