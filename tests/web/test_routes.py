"""Flink's routes, asked of a cluster with a running job."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.connectors.discarding_sink import DiscardingSink
from flinkpy.testing.environment import embedded_environment
from flinkpy.web.routes import V1
from tests.ports import free_port
from tests.waiting import eventually
from tests.web import rest as rest_jobs
from tests.web.rest import GO, Rest, held_job


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {
        "rest.enabled": "true",
        "rest.authentication": "NONE",
        "rest.port": str(free_port()),
        "execution.checkpointing.interval": "1 h",
        "execution.checkpointing.dir": str(tmp_path_factory.mktemp("checkpoints")),
        "taskmanager.network.batch.max-records": "1",
        "rest.token": "not shown",
    }


@pytest.fixture(scope="module")
def rest(options: dict[str, Any]) -> Iterator[Rest]:
    try:
        yield Rest(int(options["rest.port"]))
    finally:
        stop_embedded()


@pytest.fixture
def job(rest: Rest, options: dict[str, Any]) -> Iterator[str]:
    """The id of a job whose tasks run."""
    with held_job(options) as client:
        job_id = client.get_job_id()
        eventually(
            lambda: (
                sum(
                    vertex["tasks"]["RUNNING"] for vertex in rest.get(f"/jobs/{job_id}")["vertices"]
                )
                == 3
            )
        )
        yield str(job_id)


REACHED, GO_ON = threading.Event(), threading.Event()


def reach(number: int) -> int:
    """Stands still at a record of a later batch: those before it are counted."""
    if number == 50_000:
        REACHED.set()
        GO_ON.wait(60)
    return number


def test_who_asks_for_the_first_time_is_told_how_it_stands_now(
    rest: Rest, options: dict[str, Any]
) -> None:
    env = embedded_environment(options)
    env.from_sequence(0, 99_999).rebalance().map(reach).sink_to(DiscardingSink())
    client = env.execute_async("first asked")
    try:
        assert REACHED.wait(60)
        source, _ = rest.get(f"/jobs/{client.get_job_id()}")["vertices"]
        assert source["metrics"]["write-records"] > 0
    finally:
        GO_ON.set()
        client.get_job_execution_result().result(60)


def vertices(rest: Rest, job: str) -> list[str]:
    return [vertex["id"] for vertex in rest.get(f"/jobs/{job}")["vertices"]]


def test_every_route_that_can_be_read_answers_with_and_without_v1(rest: Rest, job: str) -> None:
    paths = [
        route.path
        for route in V1
        if isinstance(route, Route)
        and "GET" in (route.methods or ())
        and not {"triggerid", "checkpointid"} & set(route.param_convertors)
    ]
    assert len(paths) > 15
    [task_manager] = [each["id"] for each in rest.get("/taskmanagers")["taskmanagers"]]
    for path in paths:
        if path.endswith(("/log", "/stdout", "{filename}")):
            continue  # text, of files: test_process_routes.py
        path = (
            path.replace("{jobid}", job)
            .replace("{vertexid}", vertices(rest, job)[0])
            .replace("{subtaskindex:int}", "0")
        )
        path = (
            path.replace("{attempt}", "0")
            .replace("{taskmanagerid}", task_manager)
            .replace("{applicationid}", job)
        )
        assert type(rest.get(path)) is type(rest.get(f"/v1{path}"))


def test_the_overview_lists_the_job_as_flinks_command_line_reads_it(rest: Rest, job: str) -> None:
    def listed() -> list[Any]:
        """An answer may be half a second old, and so older than the job."""
        return [
            each
            for each in rest.get("/jobs/overview")["jobs"]
            if each["jid"] == job and each["tasks"]["running"] == 3
        ]

    eventually(lambda: bool(listed()))
    [found] = listed()
    assert (
        found["name"],
        found["state"],
        found["end-time"],
        found["tasks"]["running"],
        found["tasks"]["total"],
    ) == ("held", "RUNNING", -1, 3, 3)
    assert 0 < found["start-time"] <= found["start-time"] + found["duration"]
    assert {"id": job, "status": "RUNNING"} in rest.get("/jobs")["jobs"]
    assert rest.get(f"/jobs/{job}/status") == {"status": "RUNNING"}


def test_a_job_tells_its_graph_and_when_it_entered_which_state(rest: Rest, job: str) -> None:
    found = rest.get(f"/jobs/{job}")
    assert [(each["parallelism"], each["status"]) for each in found["vertices"]] == [
        (1, "RUNNING"),
        (2, "RUNNING"),
    ]
    stamps = found["timestamps"]
    assert (
        found["start-time"]
        == stamps["INITIALIZING"]
        <= stamps["CREATED"]
        <= stamps["RUNNING"]
        <= found["now"]
    )
    assert stamps["FINISHED"] == 0
    source, sink = found["plan"]["nodes"]
    assert source["inputs"] == []
    assert sink["inputs"] == [
        {"num": 0, "id": source["id"], "ship_strategy": "REBALANCE", "exchange": "pipelined"}
    ]
    assert rest.get(f"/jobs/{job}/plan")["plan"] == found["plan"]


def test_a_vertex_tells_its_subtasks_with_their_times_and_places(rest: Rest, job: str) -> None:
    _, second = vertices(rest, job)
    found = rest.get(f"/jobs/{job}/vertices/{second}")
    assert [(each["subtask"], each["status"], each["attempt"]) for each in found["subtasks"]] == [
        (0, "RUNNING", 0),
        (1, "RUNNING", 0),
    ]
    for subtask in found["subtasks"]:
        assert set(subtask["status-duration"]) >= {"CREATED", "SCHEDULED", "DEPLOYING", "RUNNING"}
        assert subtask["end-time"] == -1 < subtask["start-time"]
    times = rest.get(f"/jobs/{job}/vertices/{second}/subtasktimes")["subtasks"]
    assert all(
        each["timestamps"]["DEPLOYING"] > 0 and each["timestamps"]["FINISHED"] == 0
        for each in times
    )
    [manager] = rest.get(f"/jobs/{job}/vertices/{second}/taskmanagers")["taskmanagers"]
    assert (manager["status"], manager["status-counts"]["RUNNING"]) == ("RUNNING", 2)
    assert [
        each["subtask"]
        for each in rest.get(f"/jobs/{job}/vertices/{second}/backpressure")["subtasks"]
    ] == [0, 1]


def test_metrics_are_listed_and_read_by_name(rest: Rest, job: str) -> None:
    source, _ = vertices(rest, job)
    path = f"/jobs/{job}/vertices/{source}/metrics"
    assert {"id": "0.numRecordsOut"} in rest.get(path)
    eventually(
        lambda: (
            rest.get(f"{path}?get=0.numRecordsOut,nothing")
            == [{"id": "0.numRecordsOut", "value": "5"}]
        )
    )
    assert rest.get(
        f"/jobs/{job}/vertices/{source}/subtasks/metrics?get=numRecordsOut&agg=max,sum"
    ) == [{"id": "numRecordsOut", "max": 5, "sum": 5}]
    assert rest.get(f"/jobs/{job}/metrics?get=numRestarts") == [{"id": "numRestarts", "value": "0"}]
    assert (
        rest.ask(f"/jobs/{job}/vertices/{source}/subtasks/metrics?get=numRecordsOut&agg=p99").status
        == 400
    )


@pytest.fixture
def waiting_job(rest: Rest, options: dict[str, Any]) -> Iterator[str]:
    """The id of a job that waits for a checkpoint after each ten records."""
    with rest_jobs.waiting_job(options) as client:
        job_id = str(client.get_job_id())
        eventually(lambda: rest.get(f"/jobs/{job_id}")["status-counts"]["RUNNING"] == 1)
        yield job_id


def outcome(rest: Rest, path: str) -> Any:
    """Of an operation that was asked for, when it is over."""
    eventually(lambda: rest.get(path)["status"]["id"] == "COMPLETED")
    return rest.get(path)["operation"]


def test_a_savepoint_is_asked_for_and_found_under_its_id(
    rest: Rest, waiting_job: str, tmp_path: Path
) -> None:
    asked = rest.ask(
        f"/jobs/{waiting_job}/savepoints",
        "POST",
        {"target-directory": str(tmp_path), "cancel-job": False},
    )
    assert asked.status == 202
    location = Path(
        outcome(rest, f"/jobs/{waiting_job}/savepoints/{asked.json['request-id']}")["location"]
    )
    assert location.parent == tmp_path
    assert location.is_dir()
    assert rest.get(f"/jobs/{waiting_job}/status") == {"status": "RUNNING"}


def test_a_job_is_stopped_with_a_savepoint_that_is_found_when_it_has_ended(
    rest: Rest, waiting_job: str, tmp_path: Path
) -> None:
    asked = rest.ask(
        f"/v1/jobs/{waiting_job}/stop", "POST", {"targetDirectory": str(tmp_path), "drain": False}
    )
    eventually(lambda: rest.get(f"/jobs/{waiting_job}/status") == {"status": "FINISHED"})
    location = Path(
        outcome(rest, f"/jobs/{waiting_job}/savepoints/{asked.json['request-id']}")["location"]
    )
    assert location.is_dir()
    for is_over in (False, True):  # a savepoint is deleted once
        asked = rest.ask("/savepoint-disposal", "POST", {"savepoint-path": str(location)})
        assert asked.status == 200
        done = outcome(rest, f"/savepoint-disposal/{asked.json['request-id']}")
        assert ("failure-cause" in done) is is_over
        assert not location.exists()


def test_a_checkpoint_is_asked_for(rest: Rest, waiting_job: str) -> None:
    asked = rest.ask(f"/jobs/{waiting_job}/checkpoints", "POST", {"checkpointType": "FULL"})
    assert outcome(rest, f"/jobs/{waiting_job}/checkpoints/{asked.json['request-id']}") == {
        "checkpointId": 1,
        "failureCause": None,
    }
    eventually(
        lambda: (
            (rest.get(f"/jobs/{waiting_job}/checkpoints")["latest"]["completed"] or {}).get("id")
            == 1
        )
    )
    assert rest.get(f"/jobs/{waiting_job}/checkpoints/config")["interval"] == 3_600_000


def test_a_checkpoint_tells_how_each_subtask_took_part(
    rest: Rest, waiting_job: str, tmp_path: Path
) -> None:
    asked = rest.ask(f"/jobs/{waiting_job}/checkpoints", "POST", {})
    outcome(rest, f"/jobs/{waiting_job}/checkpoints/{asked.json['request-id']}")
    asked = rest.ask(f"/jobs/{waiting_job}/savepoints", "POST", {"target-directory": str(tmp_path)})
    outcome(rest, f"/jobs/{waiting_job}/savepoints/{asked.json['request-id']}")
    eventually(lambda: rest.get(f"/jobs/{waiting_job}/checkpoints")["counts"]["completed"] == 2)
    found = rest.get(f"/jobs/{waiting_job}/checkpoints")
    assert found["counts"] == {
        "restored": 0,
        "total": 2,
        "in_progress": 0,
        "completed": 2,
        "failed": 0,
    }
    savepoint, checkpoint = found["history"]
    assert (
        savepoint["id"],
        savepoint["checkpoint_type"],
        checkpoint["id"],
        checkpoint["checkpoint_type"],
    ) == (2, "SAVEPOINT", 1, "CHECKPOINT")
    assert (
        found["latest"]["completed"],
        found["latest"]["savepoint"],
        found["latest"]["failed"],
    ) == (checkpoint, savepoint, None)
    assert checkpoint["num_acknowledged_subtasks"] == checkpoint["num_subtasks"] == 1
    assert (
        found["summary"]["state_size"]["max"]
        == max(savepoint["state_size"], checkpoint["state_size"])
        > 0
    )
    details = rest.get(f"/jobs/{waiting_job}/checkpoints/details/1")
    [(vertex_id, vertex)] = details.pop("tasks").items()
    assert vertex.pop("missing") == []
    assert checkpoint == {**details, "tasks": {}}
    assert (
        rest.get(f"/jobs/{waiting_job}/checkpoints/details/1/subtasks/{vertex_id}").items()
        >= vertex.items()
    )
    [subtask] = rest.get(f"/jobs/{waiting_job}/checkpoints/details/1/subtasks/{vertex_id}")[
        "subtasks"
    ]
    assert (subtask["index"], subtask["status"], subtask["state_size"]) == (
        0,
        "completed",
        vertex["state_size"],
    )
    assert (
        subtask["ack_timestamp"]
        == checkpoint["latest_ack_timestamp"]
        >= checkpoint["trigger_timestamp"]
    )


def test_a_savepoint_that_fails_says_why(rest: Rest, waiting_job: str) -> None:
    asked = rest.ask(
        f"/jobs/{waiting_job}/savepoints", "POST", {"target-directory": "/dev/null/no"}
    )
    failure = outcome(rest, f"/jobs/{waiting_job}/savepoints/{asked.json['request-id']}")[
        "failure-cause"
    ]
    assert "/dev/null/no" in failure["stack-trace"]


def test_a_job_that_has_failed_tells_why(rest: Rest, options: dict[str, Any]) -> None:
    env = embedded_environment(
        {
            **options,
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "1",
            "restart-strategy.fixed-delay.delay": "1 ms",
        }
    )
    env.from_collection([1, 0]).map(lambda n: 1 // n).sink_to(DiscardingSink())
    client = env.execute_async("divides")
    job_id = client.get_job_id()
    eventually(lambda: rest.get(f"/jobs/{job_id}/status") == {"status": "FAILED"})
    found = rest.get(f"/jobs/{job_id}/exceptions")
    entries = found["exceptionHistory"]["entries"]
    assert "ZeroDivisionError" in entries[0]["stacktrace"]
    assert [entry["taskName"] for entry in entries] == [
        "Source: Collection Source -> Map -> Sink: Writer (1/1)"
    ] * 2
    assert entries[0]["timestamp"] >= entries[1]["timestamp"]
    assert (
        len(rest.get(f"/jobs/{job_id}/exceptions?maxExceptions=1")["exceptionHistory"]["entries"])
        == 1
    )
    assert rest.get(f"/jobs/{job_id}/metrics?get=numRestarts")[0]["value"] == "1"
    for path, method in (
        (f"/jobs/{job_id}", "PATCH"),
        (f"/jobs/{job_id}/savepoints", "POST"),
        (f"/jobs/{job_id}/stop", "POST"),
    ):
        answer = rest.ask(
            path, method, {"target-directory": "/tmp"} if path.endswith("savepoints") else None
        )
        assert (answer.status, "FAILED" in answer.json["errors"][0]) == (409, True)


def test_what_the_scheduler_did_last_is_told_without_secrets(
    rest: Rest, options: dict[str, Any], job: str
) -> None:
    def fails(number: int) -> int:
        raise ValueError("no access to s3://key:hidden@bucket/folder")

    GO.set()  # the job that is held lets this one have its thread
    env = embedded_environment({**options, "restart-strategy.type": "none"})
    env.from_collection([1]).map(fails).sink_to(DiscardingSink())
    job_id = env.execute_async("no access").get_job_id()
    eventually(lambda: rest.get(f"/jobs/{job_id}/status") == {"status": "FAILED"})
    events = rest.get(f"/jobs/{job_id}/exceptions")["scheduler-events"]

    assert events[0]["event"] == "StartScheduling"
    assert {"JobStateChanged", "RequestSlot"} <= set(events[0]["commands"])
    assert events[0]["timestamp"] <= events[-1]["timestamp"]
    [failed] = [each for each in events if "FAILED" in each["details"]]
    assert (failed["event"], failed["commands"][-1]) == ("TaskStateChanged", "JobStateChanged")
    assert "no access to s3://" in failed["details"]
    assert "hidden" not in str(events)


def test_a_name_that_utf_8_cannot_hold_hides_no_other_job(
    rest: Rest, options: dict[str, Any], job: str
) -> None:
    def fails(number: int) -> int:
        raise ValueError("caf\udce9")

    GO.set()  # the job that is held lets this one have its thread
    env = embedded_environment({**options, "restart-strategy.type": "none"})
    env.from_collection([1]).map(fails).sink_to(DiscardingSink())
    job_id = env.execute_async("caf\udce9").get_job_id()
    eventually(lambda: rest.get(f"/jobs/{job_id}/status") == {"status": "FAILED"})
    eventually(
        lambda: {"held", "caf?"} <= {each["name"] for each in rest.get("/jobs/overview")["jobs"]}
    )
    assert (
        "ValueError: caf?"
        in rest.get(f"/jobs/{job_id}/exceptions")["exceptionHistory"]["entries"][0]["stacktrace"]
    )


def test_secrets_are_not_shown(rest: Rest, job: str) -> None:
    config = rest.get(f"/jobs/{job}/config")["execution-config"]["user-config"]
    assert (config["rest.token"], config["execution.checkpointing.interval"]) == ("******", "1 h")


def test_a_job_is_cancelled_and_then_tells_its_end(rest: Rest, job: str) -> None:
    assert rest.ask(f"/jobs/{job}?mode=cancel", "PATCH").status == 202
    GO.set()
    eventually(lambda: rest.get(f"/jobs/{job}")["state"] == "CANCELED")
    found = rest.get(f"/jobs/{job}")
    assert found["end-time"] == found["timestamps"]["CANCELED"] >= found["start-time"]
    assert [each["status"] for each in found["vertices"]] == ["CANCELED", "CANCELED"]
    assert rest.ask(f"/jobs/{job}", "PATCH").status == 202  # it may be asked again
    assert rest.ask(f"/jobs/{job}?mode=stop", "PATCH").status == 400


@pytest.mark.parametrize(
    ("path", "method", "body", "status", "says"),
    [
        ("/jobs/00", "GET", None, 404, "there is no job 00"),
        ("/nothing", "GET", None, 404, "/nothing is not there"),
        ("/jobs/00/vertices/1", "GET", None, 404, "there is no job 00"),
        ("/jobs/00", "PATCH", None, 404, "there is no job 00"),
        ("/jobs", "DELETE", None, 405, "Method Not Allowed"),
        ("/jobs/JOB/vertices/1", "GET", None, 404, "has no vertex 1"),
        ("/jobs/JOB/stop", "POST", b"{", 400, "the body is no JSON"),
        ("/jobs/JOB/stop", "POST", [1], 400, "the body is a JSON object"),
        (
            "/jobs/JOB/savepoints",
            "POST",
            {"target-directory": 3},
            400,
            "target-directory is a str, this is 3",
        ),
        (
            "/jobs/JOB/savepoints",
            "POST",
            {"formatType": "ZIP"},
            400,
            "formatType is NATIVE or CANONICAL",
        ),
        ("/jobs/JOB/savepoints/77", "GET", None, 404, "nobody has asked for a savepoint 77"),
        ("/savepoint-disposal", "POST", {}, 400, "savepoint-path names"),
        ("/savepoint-disposal/7", "GET", None, 404, "nobody has asked"),
        (
            "/jobs/JOB/resource-requirements",
            "PUT",
            {},
            501,
            "the parallelism of a running job cannot be changed",
        ),
        ("/jobs/JOB/vertices/VERTEX/subtasks/9", "GET", None, 404, "has no subtask 9"),
        ("/jobs/JOB/vertices/VERTEX/subtasks/0/attempts/5", "GET", None, 404, "has no attempt 5"),
        ("/jobs/JOB/checkpoints/details/7", "GET", None, 404, "has no checkpoint 7"),
        ("/jobs/JOB/checkpoints/details/x", "GET", None, 400, "a checkpoint has a number"),
        *(
            (
                f"/jobs/JOB/exceptions?maxExceptions={number}",
                "GET",
                None,
                400,
                "maxExceptions is a whole number from 1 on",
            )
            for number in ("no", "0", "%C2%B2", "9" * 19)
        ),
        (
            "/jobs/JOB/stop",
            "POST",
            {"darin": True},
            400,
            "'darin' is no field of this request; these are: targetDirectory, drain",
        ),
        (
            "/jobs/JOB/checkpoints",
            "POST",
            {"drain": True},
            400,
            "'drain' is no field of this request",
        ),
        (
            "/savepoint-disposal",
            "POST",
            {"path": "/tmp"},
            400,
            "'path' is no field of this request",
        ),
    ],
)
def test_what_cannot_be_answered_is_told_in_flinks_form(
    rest: Rest, job: str, path: str, method: str, body: Any, status: int, says: str
) -> None:
    answer = rest.ask(
        path.replace("VERTEX", vertices(rest, job)[0]).replace("JOB", job), method, body
    )
    assert answer.status == status
    [message] = answer.json["errors"]
    assert says in message
