"""A worker on Ray whose state outgrows its size: its sources rest, and a sentence says what has the
memory. The system never gets to kill it; where it does so all the same, the job's exception says
that it was for memory, with what the worker had told last."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cluster.ray_fixture import Finished, RayCluster, ray_cluster

pytestmark = [pytest.mark.wide, pytest.mark.ray, pytest.mark.timeout(400)]

GROWS = """
import itertools, time
from flinkpy.common import Types
from flinkpy.connectors.source_api.python_source import PythonSource
from flinkpy.datastream import KeyedProcessFunction, StreamExecutionEnvironment
from flinkpy.datastream.state import ValueStateDescriptor

class Endless(PythonSource):
    bounded = False
    def splits(self, parallelism):
        return [0]
    def read(self, split, position):
        return itertools.count(position)

class Keeps(KeyedProcessFunction):
    def open(self, runtime_context):
        self.kept = runtime_context.get_state(ValueStateDescriptor("kept", Types.PICKLED_BYTE_ARRAY()))
    def process_element(self, value, ctx):
        self.kept.update(b"%d" % value + b"x" * 1500)
        if value % 500 == 0:  # a worker that fills in a second is full before it tells of what
            time.sleep(0.01)

env = StreamExecutionEnvironment.get_execution_environment()
env.from_source(Endless(), None, "endless").key_by(lambda n: n).process(Keeps()).name("keeps").print()
env.execute("grows")
"""
_SIZES = {
    "process.size": "700m",
    "framework.heap.size": "32m",
    "framework.off-heap.size": "64m",
    "managed.size": "16m",
    "network.size": "32m",
    "jvm-metaspace.size": "200m",
    "jvm-overhead.min": "100m",
    "sources-rest.timeout": "2 s",
}
SIZES = [f"taskmanager.memory.{name}={size}" for name, size in _SIZES.items()]
STARTS = "client.timeout=5 min"  # also on a machine that has much to do
PACE = "heartbeat.interval=500 ms"


def run(ray: RayCluster, program: str, *options: str) -> Finished:
    """What comes of the program with one subtask."""
    given = [each for option in (*options, STARTS) for each in ("-D", option)]
    job = ray.job(program)
    return ray.flinkpy("run", "-t", "ray-application", "-p", "1", *given, job, timeout=300)


def test_state_that_outgrows_its_worker_ends_with_a_sentence(ray: RayCluster) -> None:
    done = run(ray, GROWS, *SIZES)
    assert done.code == 1
    told = re.search(r"has (\d+)% of the 700 MB that taskmanager.memory.process.size", done.err)
    assert told is not None, done.err
    assert 85 <= int(told[1]) <= 115
    assert "keeps (1/1): state in memory" in done.err, done.err
    assert "(state.backend.type: rocksdb)" in done.err
    assert "sources rest; " in done.err
    assert "lost" not in done.err


KILLED = (
    GROWS.replace(
        """    def process_element""",
        """        self.full_since = None
    def process_element""",
    )
    .replace(
        """        self.kept.update""",
        """        if self.full_since is not None:
            if time.monotonic() - self.full_since > 4:  # its worker has told of its memory since
                os.kill(os.getpid(), signal.SIGKILL)
            return
        pages = int(open("/proc/self/statm").read().split()[1]) if value % 100 == 0 else 0
        if pages * os.sysconf("SC_PAGE_SIZE") > 0.84 * (700 << 20):
            self.full_since = time.monotonic()
        self.kept.update""",
    )
    .replace("import itertools, time", "import itertools, os, signal, time")
)


def test_a_worker_that_the_system_kills_is_told_as_such_with_its_last_figures(
    ray: RayCluster,
) -> None:
    """The kernel's signal comes from the function itself, when its worker is nearly full."""
    done = run(ray, KILLED, *SIZES, PACE)
    assert done.code == 1
    told = re.search(r"killed for memory, as it seems\. It had (\d+)% of the 700 MB of", done.err)
    assert told is not None, done.err
    assert 80 <= int(told[1]) <= 95
    assert "keeps (1/1): state in memory" in done.err, done.err


HOARDS = """
import itertools, time
from flinkpy.connectors.source_api.python_source import PythonSource
from flinkpy.datastream import StreamExecutionEnvironment

class Endless(PythonSource):
    bounded = False
    def splits(self, parallelism):
        return [0]
    def read(self, split, position):
        return itertools.count(position)

kept = []
def keep(number):
    if len(kept) < 400:
        kept.append(b"x" * (20 << 20))
        time.sleep(0.04)

env = StreamExecutionEnvironment.get_execution_environment()
env.from_source(Endless(), None, "endless").map(keep).name("hoards").print()
env.execute("hoards")
"""


def test_a_worker_that_rays_own_monitor_kills_is_told_as_such(tmp_path: Path) -> None:
    """The cluster's nodes may have 3 GB more than what the machine uses now."""
    memory = {
        name: int(number) << 10
        for name, number in re.findall(r"(\w+): +(\d+) kB", Path("/proc/meminfo").read_text())
    }
    used = memory["MemTotal"] - memory["MemAvailable"]
    threshold = (used + (3 << 30)) / memory["MemTotal"]
    variables = {
        "RAY_memory_usage_threshold": f"{threshold:.3f}",
        "RAY_memory_monitor_refresh_ms": "100",
    }
    with ray_cluster(tmp_path, variables) as ray:
        done = run(ray, HOARDS, PACE)
    assert done.code == 1
    assert "killed for memory" in done.err, done.err
    assert "connection" not in done.err
