"""The routes of processes, asked of an embedded cluster: TaskExecutors, threads, logs, flame
graphs."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from functools import partial
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.actors.inspector.inspector_gateway import LONGEST_PIECE
from flinkpy.cluster.embedded import stop_embedded
from flinkpy.web.log_stream import part_of
from tests.ports import free_port
from tests.waiting import eventually
from tests.web.rest import Rest, held_job


@pytest.fixture(scope="module")
def options() -> dict[str, Any]:
    return {
        "rest.enabled": "true",
        "rest.authentication": "NONE",
        "rest.port": str(free_port()),
        "taskmanager.network.batch.max-records": "1",
        "rest.token": "not shown",
    }


@pytest.fixture(scope="module")
def rest(options: dict[str, Any]) -> Iterator[Rest]:
    with held_job(options) as client:  # one job for all tests of this file
        rest = Rest(int(options["rest.port"]))
        job = client.get_job_id()
        eventually(
            lambda: (
                sum(vertex["tasks"]["RUNNING"] for vertex in rest.get(f"/jobs/{job}")["vertices"])
                == 3
            )
        )
        yield rest
    stop_embedded()


@pytest.fixture
def job(rest: Rest) -> str:
    [job] = rest.get("/jobs")["jobs"]
    return str(job["id"])


@pytest.fixture
def task_manager(rest: Rest) -> str:
    [found] = rest.get("/taskmanagers")["taskmanagers"]
    return f"/taskmanagers/{found['id']}"


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """A file that a handler of logging writes."""
    path = tmp_path / "program.log"
    handler = logging.FileHandler(path)
    logging.getLogger().addHandler(handler)
    yield path
    logging.getLogger().removeHandler(handler)
    handler.close()


# -- TaskExecutors ---------------------------------------------------------------------------------


def test_the_task_executors_tell_their_slots_and_their_process(
    rest: Rest, task_manager: str, job: str
) -> None:
    found = rest.get(task_manager)
    assert (found["pid"], found["slotsNumber"] - found["freeSlots"], found["jmxPort"]) == (
        os.getpid(),
        2,
        -1,
    )
    assert [slot["jobId"] for slot in found["allocatedSlots"]] == [job] * 2
    assert 0 < found["registered"] <= found["timeSinceLastHeartbeat"] + 1000  # two clocks
    assert found["hardware"]["cpuCores"] > 0
    assert 1_000_000 < found["metrics"]["heapUsed"] < found["hardware"]["physicalMemory"]
    assert found["metrics"]["python"]["threads"] > 3
    assert len(found["metrics"]["garbageCollectors"]) == 3
    [listed] = rest.get("/taskmanagers")["taskmanagers"]
    assert listed.keys() <= found.keys()


@pytest.mark.parametrize("below", ["", "/log", "/logs", "/logs/x", "/stdout", "/thread-dump"])
def test_a_task_executor_that_is_not_there_is_not_found(rest: Rest, below: str) -> None:
    answer = rest.ask(f"/taskmanagers/nobody{below}")
    assert (answer.status, answer.json) == (
        404,
        {"errors": ["there is no TaskExecutor 'nobody' (any more)"]},
    )


# -- threads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["task manager", "/jobmanager"])
def test_a_thread_dump_shows_where_each_thread_is(rest: Rest, task_manager: str, path: str) -> None:
    threads = rest.get(f"{task_manager if path == 'task manager' else path}/thread-dump")[
        "threadInfos"
    ]
    [told] = [
        thread["stringifiedThreadInfo"]
        for thread in threads
        if "in hold" in thread["stringifiedThreadInfo"]
    ]
    # a task that waits has a thread of its own
    assert told.startswith('"Source: Sequence Source -> Map (1/1)#0"')
    assert "GO.wait(60)" in told
    assert any(thread["threadName"].startswith("slots of") for thread in threads)


# -- the JobManager --------------------------------------------------------------------------------


def test_the_options_of_the_cluster_are_told_without_secrets(
    rest: Rest, options: dict[str, Any]
) -> None:
    found = {each["key"]: each["value"] for each in rest.get("/jobmanager/config")}
    assert found["rest.port"] == options["rest.port"]
    assert found["rest.token"] == "******"


def test_the_environment_is_that_of_python_and_tells_no_variables(
    rest: Rest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_SECRET", "hunter2")
    found = rest.get("/jobmanager/environment")
    assert "Python" in found["jvm"]["version"]
    assert found["classpath"]
    assert "hunter2" not in str(found)


def lists(rest: Rest, process: str, name: str) -> bool:
    """An answer may be half a second old, and so older than the log."""
    return name in [each["name"] for each in rest.get(f"{process}/logs")["logs"]]


# -- logs ------------------------------------------------------------------------------------------


def test_a_log_file_of_the_program_is_found_and_read(
    rest: Rest, task_manager: str, log: Path
) -> None:
    logging.getLogger().error("grüße")
    for process in (task_manager, "/jobmanager"):
        eventually(partial(lists, rest, process, "program.log"))
        for path in ("log", "logs/program.log"):
            status, body, headers = rest.text(f"{process}/{path}")
            assert (status, body.decode(), headers["content-type"]) == (
                200,
                "grüße\n",
                "text/plain; charset=utf-8",
            )
            assert headers["x-content-type-options"] == "nosniff"


def test_logs_that_were_rotated_are_listed_too(rest: Rest, tmp_path: Path) -> None:
    handler = RotatingFileHandler(tmp_path / "rotated.log", maxBytes=10, backupCount=3)
    logging.getLogger("rotated").addHandler(handler)
    try:
        for number in range(3):
            logging.getLogger("rotated").error("line %s", number)
        (tmp_path / "rotated.log.link").symlink_to("/etc/passwd")
        eventually(partial(lists, rest, "/jobmanager", "rotated.log.2"))
        assert rest.text("/jobmanager/logs/rotated.log.2")[1] == b"line 0\n"
        assert rest.ask("/jobmanager/logs/rotated.log.link").status == 404
    finally:
        logging.getLogger("rotated").removeHandler(handler)
        handler.close()


@pytest.mark.parametrize(
    "name",
    [
        "../../etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "%2fetc%2fpasswd",
        "%2e%2e%2fprogram.log",
        "program.log%00",
        ".",
        "",
        "%",
    ],
)
def test_no_other_file_can_be_read(rest: Rest, log: Path, name: str) -> None:
    logging.getLogger().error("written")
    # 307: a path with a / behind it is one without
    assert rest.ask(f"/jobmanager/logs/{name}").status in (404, 307)
    (log.parent / "secret.txt").write_text("secret")
    assert rest.ask("/jobmanager/logs/secret.txt").status == 404
    assert (
        rest.ask(f"/jobmanager/logs/{str(log.parent / 'secret.txt').replace('/', '%2f')}").status
        == 404
    )


def test_a_log_that_grows_and_is_large_comes_in_pieces_and_as_it_was(rest: Rest, log: Path) -> None:
    data = os.urandom(1000) * (3 * LONGEST_PIECE // 1000)
    log.write_bytes(data)
    eventually(
        lambda: any(each["size"] == len(data) for each in rest.get("/jobmanager/logs")["logs"])
    )
    assert rest.text("/jobmanager/logs/program.log")[1] == data
    status, body, headers = rest.text("/jobmanager/logs/program.log", {"Range": "bytes=-1234567"})
    assert (status, body, headers["content-range"]) == (
        206,
        data[-1234567:],
        f"bytes {len(data) - 1234567}-{len(data) - 1}/{len(data)}",
    )
    status, body, headers = rest.text(
        "/jobmanager/logs/program.log", {"Range": f"bytes={len(data)}-"}
    )
    assert (status, headers["content-range"]) == (416, f"bytes */{len(data)}")


@given(st.integers(0, 30), st.text(alphabet="0123456789-", max_size=5))
@settings(deadline=None)
def test_a_range_never_reaches_beyond_the_log(size: int, wanted: str) -> None:
    part = part_of(f"bytes={wanted}", size)
    assert part is None or 0 <= part[0] < part[1] <= size


def test_without_a_file_the_log_says_why(rest: Rest) -> None:
    names = [each["kind"] for each in rest.get("/jobmanager/logs")["logs"]]
    if "stderr" not in names and "logging" not in names:  # else this test run writes into files
        answer = rest.ask("/jobmanager/log")
        assert answer.status == 404
        assert "logs into no file" in answer.json["errors"][0]


# -- flame graphs ----------------------------------------------------------------------------------


def names_in(node: dict[str, Any]) -> list[str]:
    return [node["name"], *(name for child in node["children"] for name in names_in(child))]


def flame_graph(rest: Rest, job: str, vertex: int, parameters: str = "") -> dict[str, Any]:
    found: dict[str, Any] = rest.get(
        f"/jobs/{job}/vertices/{rest.get(f'/jobs/{job}')['vertices'][vertex]['id']}/flamegraph{parameters}"
    )
    return found


def test_a_flame_graph_shows_the_function_that_waits_and_not_as_working(
    rest: Rest, job: str
) -> None:
    eventually(lambda: flame_graph(rest, job, 0)["data"]["value"] > 5)
    found = flame_graph(rest, job, 0, "?type=off_cpu")
    assert any(name.startswith("tests.web.rest.hold:") for name in names_in(found["data"]))
    assert found["data"]["name"] == "root"
    assert found["endTimestamp"] > 0
    total, off, on = (
        flame_graph(rest, job, 0, f"?type={kind}")["data"]["value"]
        for kind in ("FULL", "off_cpu", "on_cpu")
    )
    assert on < off <= total


def test_a_vertex_whose_turn_never_came_has_no_samples(rest: Rest, job: str) -> None:
    eventually(lambda: flame_graph(rest, job, 0)["data"]["value"] > 5)
    assert not any("hold" in name for name in names_in(flame_graph(rest, job, 1)["data"]))


def test_a_flame_graph_is_of_one_subtask_if_wanted(rest: Rest, job: str) -> None:
    eventually(lambda: flame_graph(rest, job, 0, "?subtaskindex=0")["data"]["value"] > 5)
    vertex = rest.get(f"/jobs/{job}")["vertices"][0]["id"]
    assert rest.ask(f"/jobs/{job}/vertices/{vertex}/flamegraph?subtaskindex=7").status == 404
    assert rest.ask(f"/jobs/{job}/vertices/{vertex}/flamegraph?type=heap").status == 400
