"""A Ray cluster of three nodes on this machine: each has an address of its own, a raylet and one
CPU. Slots lie on all of them, data goes by TCP between them, and a node may die with all its
processes."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cluster.launch import submitted_jobs
from flinkpy.core.errors import JobExecutionError
from flinkpy.datastream import StreamExecutionEnvironment
from tests.cluster.ray_fixture import RayCluster, joined
from tests.cluster.test_recovery import OPTIONS, newest_checkpoint
from tests.waiting import eventually

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.wide, pytest.mark.timeout(300)]

OTHERS = ("127.0.0.2", "127.0.0.3")
CLUSTER = "several-nodes"
_NODES = """
import sys, json
from ray._private import utils
utils.write_ray_address = lambda *args, **kwargs: None  # programs that look for a cluster must not find this one
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
nodes = {host: cluster.add_node(num_cpus=1, node_ip_address=host) for host in sys.argv[1:]}
print(json.dumps([cluster.address, cluster.head_node.node_ip_address]), flush=True)
for line in sys.stdin:
    command, host = line.split()
    if command == "remove":
        cluster.remove_node(nodes.pop(host), allow_graceful=False)
    else:
        nodes[host] = cluster.add_node(num_cpus=1, node_ip_address=host)
    print("done", flush=True)
cluster.shutdown()
"""


@dataclass(frozen=True)
class Nodes:
    """``head`` is the address of the node that this process belongs to."""

    head: str
    _process: subprocess.Popen[str]

    def remove(self, host: str) -> None:
        """The node and its processes die."""
        self._tell("remove", host)

    def add(self, host: str) -> None:
        self._tell("add", host)

    def _tell(self, command: str, host: str) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{command} {host}\n")
        self._process.stdin.flush()
        assert self._process.stdout.readline() == "done\n"


@contextmanager
def three_nodes(folder: Path) -> Iterator[Nodes]:
    command = [sys.executable, "-c", _NODES, *OTHERS]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as run:
        assert run.stdin is not None
        assert run.stdout is not None
        try:
            address, head = json.loads(run.stdout.readline())
            with joined(RayCluster(address, folder)):
                yield Nodes(head, run)
        finally:
            run.stdin.close()
            run.wait(60)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with three_nodes(tmp_path_factory.mktemp("nodes")) as nodes:
        yield nodes


@pytest.fixture
def options(nodes: Nodes, tmp_path: Path) -> Iterator[dict[str, Any]]:
    from flinkpy.cluster.ray.ray_sessions import stop_session

    chosen = {
        **OPTIONS,
        "execution.target": "ray-session",
        "cluster.id": CLUSTER,
        "client.progress": False,
        "high-availability.type": "filesystem",
        "high-availability.storageDir": str(tmp_path / "ha"),
        "execution.checkpointing.dir": str(tmp_path / "checkpoints"),
    }
    yield chosen
    stop_session(chosen)


def environment(options: dict[str, Any], parallelism: int) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.set_parallelism(parallelism)
    return env


def own_node() -> str:
    import ray

    return str(ray.util.get_node_ip_address())


def tcp_connections() -> list[str]:
    """The hosts of the data ports to which this process has connected by TCP. A data port's Unix
    socket is named after it."""
    ports = set(
        re.findall(r"@flinkpy-data-port/([0-9.]+:[0-9]+)", Path("/proc/self/net/unix").read_text())
    )
    inodes = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            inodes.add(os.readlink(f"/proc/self/fd/{name}"))
        except OSError:  # closed meanwhile
            pass
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    # 01: established
    own = {
        _place(fields[2])
        for fields in rows
        if fields[3] == "01" and f"socket:[{fields[9]}]" in inodes
    }
    return sorted(place.partition(":")[0] for place in own & ports)


def _place(field: str) -> str:
    """``0200007F:1F90`` is port 8080 of 127.0.0.2."""
    host, port = field.split(":")
    return f"{'.'.join(str(part) for part in reversed(bytes.fromhex(host)))}:{int(port, 16)}"


def test_slots_lie_on_all_nodes_and_records_go_by_tcp_between_them(
    nodes: Nodes, options: dict[str, Any]
) -> None:
    env = environment(options, 3)
    numbers = env.generate(lambda number: number, count=3_000).map(
        lambda number: (number % 30, own_node())
    )
    counted = numbers.key_by(lambda pair: pair[0]).map(
        lambda pair: (pair[0], pair[1], own_node(), tcp_connections())
    )
    with counted.execute_and_collect("exchange") as results:
        found = list(results)
    assert len(found) == 3_000
    assert {own for _, _, own, _ in found} | {sent_by for _, sent_by, _, _ in found} == {
        nodes.head,
        *OTHERS,
    }
    connected = {own: set(peers) for _, _, own, peers in found}
    # two processes have one connection, and either of them may have made it
    pairs = {frozenset((own, peer)) for own, peers in connected.items() for peer in peers}
    assert pairs == {frozenset(pair) for pair in combinations(connected, 2)}, connected


@pytest.mark.parametrize("local_recovery", [False, True])
def test_a_node_that_dies_with_its_processes_changes_nothing_in_the_results(
    local_recovery: bool,
    nodes: Nodes,
    options: dict[str, Any],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Three slots are wanted, and two nodes are left: the job goes on when there is another
    node. Where Ray had put the JobManager on the node that dies, the next JobManager goes on with
    the job, and counts its restarts from 0."""
    options |= {
        "execution.state-recovery.from-local": local_recovery,
        "restart-strategy.fixed-delay.attempts": 1_000,
    }
    env = environment(options, 3)

    def slowly(number: int) -> tuple[int, int]:
        threading.Event().wait(0.002)
        return number % 7, number

    sums = (
        env.generate(lambda number: number, count=6_000)
        .map(slowly)
        .key_by(lambda pair: pair[0])
        .sum(1)
    )
    with sums.execute_and_collect("sums") as results:
        job = submitted_jobs()[-1]
        taken = newest_checkpoint(tmp_path / "checkpoints")
        eventually(lambda: newest_checkpoint(tmp_path / "checkpoints") > taken + 1)
        nodes.remove(OTHERS[0])
        nodes.add(OTHERS[0])
        eventually(
            lambda: job.details().restarts > 0 or "the JobManager died" in capfd.readouterr().err
        )
        found = [tuple(record) for record in results]
    assert len(found) == 6_000
    assert {key: max(total for each, total in found if each == key) for key in range(7)} == {
        key: sum(range(key, 6_000, 7)) for key in range(7)
    }


def test_a_file_that_is_not_on_the_node_that_reads_it_is_named_with_that_node(
    options: dict[str, Any], tmp_path: Path
) -> None:
    options["restart-strategy.type"] = "none"
    file = tmp_path / "here"
    file.write_text("one\n")
    env = environment(options, 1)
    lines = env.read_text_file(str(file))
    file.unlink()  # as on a node that never had it
    with pytest.raises(
        JobExecutionError,
        match=(
            rf"No such file or directory on {socket.gethostname()}, where it is to be read "
            r".*here"
        ),
    ):
        list(lines.execute_and_collect("reads"))
