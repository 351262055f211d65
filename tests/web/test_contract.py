"""What the REST endpoint answers of a running, a failed and a finished job, held against the
description of Flink's routes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.routing import Route

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.connectors.discarding_sink import DiscardingSink
from flinkpy.testing.environment import embedded_environment
from flinkpy.web.routes import V1
from flinkpy.web.routes.job_routes import CHANGING_BY_GET
from flinkpy.web.routes.metric_routes import PROMETHEUS_ROUTES
from tests.ports import free_port
from tests.waiting import eventually
from tests.web.flink_routes import CHANGE, READ, AnyKey, AnyOf, Maybe
from tests.web.rest import Answer, Rest, held_job
from tests.web.told_routes import BEGIN, PAGE, told

# Routes of our own, which Flink does not have
OURS = frozenset(
    {
        "/jobs/:jobid/loads",
        "/jobs/:jobid/watermarks",
        "/jobs/:jobid/vertices/:vertexid/attempts",
        "/taskmanagers/figures",
        # Flink's page asks these from 2.3 on: tests/web/test_flinks_page.py
        "/applications/overview",
        "/applications/:applicationid",
        "/applications/:applicationid/exceptions",
        "/applications/:applicationid/cancel",
    }
)
# Fields of our own, beside Flink's
OWN_FIELDS: dict[str, tuple[str, ...]] = {
    "/jobs/overview": ("restarts", "last-failure"),
    "/jobs/:jobid": ("restarts", "last-failure"),
    "/jobs/:jobid/exceptions": ("scheduler-events",),
    "/jobs/:jobid/checkpoints/details/:checkpointid": ("missing",),
    "/taskmanagers": ("host", "pid", "registered", "jobs"),
    "/taskmanagers/:taskmanagerid": ("host", "pid", "registered", "jobs", "python", "memory"),
    "/taskmanagers/:taskmanagerid/logs": ("kind",),
    "/jobmanager/logs": ("kind",),
}
JOBS = ("running", "failed", "finished")


def flinks(path: str) -> str:
    """A route's path as Flink writes it: ``/jobs/:jobid``."""
    return re.sub(r"\{(\w+)[^}]*\}", r":\1", path)


def routes(method: str) -> list[str]:
    return [
        flinks(route.path)
        for route in V1
        if isinstance(route, Route) and method in (route.methods or ())
    ]


def faults(found: Any, shape: Any, where: str = "answer") -> Iterator[str]:
    """What is not as the shape says."""
    if isinstance(shape, Maybe):
        if found is not None:
            yield from faults(found, shape.shape, where)
    elif isinstance(shape, AnyOf):
        if all(any(faults(found, each, where)) for each in shape.shapes):
            yield (
                f"{where} is {found!r}, as no kind of it: "
                f"{[list(faults(found, each, where)) for each in shape.shapes]}"
            )
    elif isinstance(shape, AnyKey):
        yield from _faults_of_kind(found, dict, where)
        for key, value in found.items() if isinstance(found, dict) else ():
            yield from faults(value, shape.shape, f"{where}.{key}")
    elif isinstance(shape, dict):
        yield from _faults_of_kind(found, dict, where)
        if isinstance(found, dict):
            yield from (
                f"{where} has {key}, which Flink's has not"
                for key in sorted(set(found) - set(shape))
            )
            missing = (
                key
                for key, each in shape.items()
                if key not in found and not isinstance(each, Maybe)
            )
            yield from (f"{where} has no {key}" for key in missing)
            for key in set(shape) & set(found):
                yield from faults(found[key], shape[key], f"{where}.{key}")
    elif isinstance(shape, list):
        yield from _faults_of_kind(found, list, where)
        for number, each in enumerate(found if isinstance(found, list) else ()):
            yield from faults(each, shape[0], f"{where}[{number}]")
    elif isinstance(shape, set):
        if found not in shape:
            yield f"{where} is {found!r}, not one of {sorted(shape)}"
    elif isinstance(shape, re.Pattern):
        if not isinstance(found, str) or not shape.fullmatch(found):
            yield f"{where} is {found!r}, not {shape.pattern}"
    else:
        yield from _faults_of_kind(found, shape, where)


def _faults_of_kind(found: Any, kind: type, where: str) -> Iterator[str]:
    kinds = (int, float) if kind is float else kind
    if not isinstance(found, kinds) or (isinstance(found, bool) and kind in (int, float)):
        yield f"{where} is {found!r}, not {kind.__name__}"


@pytest.mark.parametrize(
    ("found", "shape", "says"),
    [
        (1, int, []),
        (1, float, []),
        (True, int, ["answer is True, not int"]),
        ("1", int, ["answer is '1', not int"]),
        ([1, "a"], [int], ["answer[1] is 'a', not int"]),
        ({"a": 1}, {"a": int, "b": Maybe(str)}, []),
        ({"a": {"x": 1}}, {"a": AnyKey(int)}, []),
        ({"c": 1}, {"a": int}, ["answer has c, which Flink's has not", "answer has no a"]),
        ("no", {"ok", "low"}, ["answer is 'no', not one of ['low', 'ok']"]),
        ({"b": None}, {"b": Maybe(int)}, []),
        (None, int, ["answer is None, not int"]),
        ("g", re.compile("[0-9a-f]"), ["answer is 'g', not [0-9a-f]"]),
        ({"a": 1}, AnyOf(({"b": int}, {"a": int})), []),
    ],
)
def test_a_shape_is_told_from_another(found: Any, shape: Any, says: list[str]) -> None:
    assert list(faults(found, shape)) == says


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {
        "rest.enabled": "true",
        "rest.authentication": "NONE",
        "rest.port": str(free_port()),
        "execution.checkpointing.interval": "10 ms",
        "execution.checkpointing.dir": str(tmp_path_factory.mktemp("checkpoints")),
        "taskmanager.network.batch.max-records": "1",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": "1",
        "restart-strategy.fixed-delay.delay": "1 ms",
    }


@pytest.fixture(scope="module")
def rest(options: dict[str, Any]) -> Iterator[Rest]:
    try:
        yield Rest(int(options["rest.port"]))
    finally:
        stop_embedded()


@pytest.fixture(scope="module")
def jobs(rest: Rest, options: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The ids of a job that runs, one that has failed twice and one that has finished."""
    ended = []
    for name, numbers in (("failed", [1, 0]), ("finished", [1, 1])):
        env = embedded_environment(options)
        env.from_collection(numbers).map(lambda number: 1 // number).sink_to(DiscardingSink())
        ended.append(str(env.execute_async(name).get_job_id()))
        eventually(
            lambda name=name: rest.get(f"/jobs/{ended[-1]}/status")["status"] == name.upper()  # type: ignore[misc]
        )
    with held_job(options) as client:
        running = str(client.get_job_id())
        eventually(lambda: tasks_running(rest, running) == 3)
        yield dict(zip(JOBS, (running, *ended)))


def tasks_running(rest: Rest, job_id: str) -> int:
    return sum(vertex["tasks"]["RUNNING"] for vertex in rest.get(f"/jobs/{job_id}")["vertices"])


def ids_of(rest: Rest, job_id: str, path: str) -> dict[str, str] | None:
    """What stands for the parameters of a path; None if the job has no such thing."""
    vertex = rest.get(f"/jobs/{job_id}")["vertices"][0]["id"]
    found = {"jobid": job_id, "vertexid": vertex, "subtaskindex": "0", "attempt": "0"}
    if ":taskmanagerid" in path:
        found["taskmanagerid"] = rest.get(f"/jobs/{job_id}/vertices/{vertex}/taskmanagers")[
            "taskmanagers"
        ][0]["taskmanager-id"]
        if found["taskmanagerid"] not in [
            each["id"] for each in rest.get("/taskmanagers")["taskmanagers"]
        ]:
            return None
    if ":checkpointid" in path:
        history = rest.get(f"/jobs/{job_id}/checkpoints")["history"]
        if not history:
            return None
        found["checkpointid"] = str(history[0]["id"])
    if ":filename" in path:
        logs = rest.get(filled(path.rsplit("/", 1)[0], found))["logs"]
        if not logs:
            return None
        found["filename"] = logs[0]["name"]
    return found


def filled(path: str, ids: dict[str, str]) -> str:
    return re.sub(r":(\w+)", lambda match: ids[match[1]], path)


def answer_of(rest: Rest, path: str) -> Answer:
    """503 says that the cluster has not answered in time: with much else to do it may be late."""
    answers: list[Answer] = []

    def has_answered() -> bool:
        answers.append(rest.ask(path))
        return answers[-1].status != 503

    eventually(has_answered)
    return answers[-1]


# What was asked for is tested apart; a route of text has no fields
ASKED = [path for path in routes("GET") if ":triggerid" not in path and path not in OURS]


def test_every_route_is_one_of_flinks() -> None:
    assert set(routes("GET")) - set(READ) - OURS == set()
    changing = {
        (method, path) for method in ("POST", "PATCH", "PUT", "DELETE") for path in routes(method)
    }
    assert {each for each in changing - set(CHANGE) if each[1] not in OURS} == set()


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(
    "path", [path for path in ASKED if path in READ and READ[path].answer is not None]
)
def test_an_answer_has_flinks_fields_with_their_types(
    rest: Rest, jobs: dict[str, str], path: str, job: str
) -> None:
    ids = ids_of(rest, jobs[job], path)
    if ids is None:
        pytest.skip("this job has none")
    answer = answer_of(rest, filled(path, ids))
    assert answer.status == 200, answer.json
    found = [
        fault
        for fault in faults(answer.json, READ[path].answer)
        if not any(f" has {field}, " in fault for field in OWN_FIELDS.get(path, ()))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "/jobs/:jobid/savepoints",
            {
                "target-directory": "FOLDER",
                "cancel-job": False,
                "formatType": "CANONICAL",
                "triggerId": "0123456789abcdef" * 2,
            },
        ),
        ("/jobs/:jobid/savepoints", {"target-directory": "/dev/null/no"}),
        ("/jobs/:jobid/checkpoints", {"checkpointType": "FULL"}),
    ],
)
def test_an_operation_is_asked_for_and_told_in_flinks_form(
    rest: Rest, jobs: dict[str, str], tmp_path: Path, path: str, body: dict[str, Any]
) -> None:
    described, where = CHANGE["POST", path], filled(path, {"jobid": jobs["running"]})
    assert set(body) <= set(described.body)
    asked = rest.ask(
        where,
        "POST",
        {name: str(tmp_path) if value == "FOLDER" else value for name, value in body.items()},
    )
    assert (asked.status, list(faults(asked.json, described.answer))) == (described.status, [])
    assert asked.json["request-id"] == body.get("triggerId", asked.json["request-id"])
    assert (
        list(
            faults(
                rest.get(f"{where}/{asked.json['request-id']}"), READ[f"{path}/:triggerid"].answer
            )
        )
        == []
    )


def test_the_page_lists_every_route_and_no_other() -> None:
    """In full, so that a search for a path finds it; it may name the parameters otherwise."""
    page, _, _ = PAGE.read_text().partition(BEGIN)
    listed = {
        (method, re.sub(r":[\w-]+", ":", path))
        for method, path in re.findall(r"`([A-Z]+) (/[^`?]*)", page)
    }
    there = {
        (method, re.sub(r":\w+", ":", flinks(route.path)))
        for route in [*V1, *CHANGING_BY_GET, *PROMETHEUS_ROUTES]
        if isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}
    }
    assert listed == there


def test_the_page_tells_which_of_flinks_routes_are_there() -> None:
    assert told() in PAGE.read_text(), "make rest-routes writes it anew"
