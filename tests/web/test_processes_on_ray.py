"""The processes of a session on a real Ray: each worker tells of itself, and nothing of the
others."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from tests.cluster.ray_fixture import RayCluster, finish
from tests.waiting import eventually
from tests.web.rest import Rest

pytestmark = [pytest.mark.wide, pytest.mark.ray, pytest.mark.timeout(400)]

JOB = """
import os
from flinkpy.datastream import StreamExecutionEnvironment

told = []

def squared_in_vain(n):
    if not told:
        told.append(n)
        os.write(1, b"out of the worker\\n")
        os.write(2, b"error of the worker\\n")
    for _ in range(100):
        n * n
    return n

env = StreamExecutionEnvironment.get_execution_environment()
env.set_parallelism(2)
env.from_sequence(0, 10**15).map(squared_in_vain).add_sink(lambda value: None)
env.execute("looked into")
"""


@pytest.fixture(scope="module")
def rest(ray: RayCluster) -> Iterator[Rest]:
    """The endpoint of a session that runs one job, in two workers."""
    options = [
        "rest.enabled=true",
        "rest.port=0",
        "rest.authentication=NONE",
        "rest.token=not-shown",
        "taskmanager.numberOfTaskSlots=1",
    ]
    started = ray.flinkpy(
        "session", "start", *[part for option in options for part in ("-D", option)], "inspected"
    )
    found = re.search(r"http://localhost:(\d+)", started.out)
    assert found is not None, started
    rest = Rest(int(found[1]))
    program = ray.start(
        "run", "-t", "ray-session", "-D", "cluster.id=inspected", ray.job(JOB, "inspected.py")
    )
    try:
        eventually(
            lambda: [job["tasks"]["running"] for job in rest.get("/jobs/overview")["jobs"]] == [2]
        )
        yield rest
    finally:
        program.send_signal(signal.SIGINT)
        finish(program)
        ray.flinkpy("session", "stop", "inspected")


def workers(rest: Rest) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rest.get("/taskmanagers")["taskmanagers"]
    return found


def says(rest: Rest, path: str, words: bytes) -> bool:
    return words in rest.text(path)[1]


def test_each_worker_is_a_process_of_its_own(rest: Rest) -> None:
    one, two = workers(rest)
    assert one["pid"] != two["pid"]
    for worker in (one, two):
        found = rest.get(f"/taskmanagers/{worker['id']}")
        assert (found["slotsNumber"], found["freeSlots"], len(found["allocatedSlots"])) == (1, 0, 1)
        assert found["metrics"]["heapUsed"] > 10_000_000
        assert found["totalResource"]["cpuCores"] > 0


def test_the_logs_of_a_worker_are_those_of_its_process(rest: Rest) -> None:
    for worker in workers(rest):
        path = f"/taskmanagers/{worker['id']}"
        logs = {log["kind"]: log["name"] for log in rest.get(f"{path}/logs")["logs"]}
        assert logs.keys() >= {"stdout", "stderr"}
        assert logs["stdout"].endswith(f"-{worker['pid']}.out")
        eventually(partial(says, rest, f"{path}/stdout", b"out of the worker"))
        eventually(partial(says, rest, f"{path}/log", b"error of the worker"))
        assert b"out of the worker" in rest.text(f"{path}/logs/{logs['stdout']}")[1]
        other = next(each for each in workers(rest) if each["pid"] != worker["pid"])
        assert rest.ask(f"/taskmanagers/{other['id']}/logs/{logs['stdout']}").status == 404


def test_the_job_manager_has_logs_threads_and_options(rest: Rest) -> None:
    assert {log["kind"] for log in rest.get("/jobmanager/logs")["logs"]} >= {"stdout", "stderr"}
    assert rest.text("/jobmanager/log")[0] == rest.text("/jobmanager/stdout")[0] == 200
    names = [thread["threadName"] for thread in rest.get("/jobmanager/thread-dump")["threadInfos"]]
    assert any(name.endswith("/resourcemanager") for name in names)
    config = {each["key"]: each["value"] for each in rest.get("/jobmanager/config")}
    assert (config["rest.token"], config["taskmanager.numberOfTaskSlots"]) == ("******", "1")
    assert rest.get("/jobmanager/environment")["classpath"]


def test_the_threads_of_a_worker_show_the_function_that_runs(rest: Rest) -> None:
    path = f"/taskmanagers/{workers(rest)[0]['id']}/thread-dump"
    eventually(
        lambda: any(
            "squared_in_vain" in each["stringifiedThreadInfo"]
            for each in rest.get(path)["threadInfos"]
        )
    )


def test_a_flame_graph_has_samples_of_both_workers(rest: Rest) -> None:
    job = rest.get("/jobs/overview")["jobs"][0]["jid"]
    vertex = rest.get(f"/jobs/{job}")["vertices"][0]["id"]
    path = f"/jobs/{job}/vertices/{vertex}/flamegraph"

    def samples(parameters: str) -> int:
        return int(rest.get(f"{path}?{parameters}")["data"]["value"])

    eventually(
        lambda: (
            min(samples("type=on_cpu&subtaskindex=0"), samples("type=on_cpu&subtaskindex=1")) > 3
        )
    )
    assert "squared_in_vain" in str(rest.get(path))


def test_top_shows_the_job(rest: Rest, ray: RayCluster) -> None:
    shown = ray.flinkpy("top", "-D", "cluster.id=inspected", "-n", "1").out
    assert "2 TaskExecutors, 0 of 2 slots free, 1 running job" in shown
    assert re.search(r"2/2 +looked into [0-9a-f]{8} +", shown)
