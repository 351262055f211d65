"""What the REST endpoint answers when the cluster does not, or when the endpoint itself has a
fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flinkpy.actors.execution_graph_info import ExecutionGraphInfo
from flinkpy.actors.gateways import SavepointRequest, SavepointStatus
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.errors import RpcTimeoutError
from flinkpy.core.futures import Future
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import JobState
from flinkpy.core.options.rest import RestConfig
from flinkpy.web.rest_server import RestServer
from tests.web.rest import Rest

JOB = ExecutionGraphInfo(
    JobId("a"), "job", JobState.RUNNING, 0, None, 0, {JobState.RUNNING: 0}, {}, ()
)


class FallingSilent:
    """A Dispatcher that takes the request for a savepoint and does not answer any more."""

    def __init__(self) -> None:
        self.asked = 0

    def request_execution_graph(self, job_id: JobId) -> Future[ExecutionGraphInfo]:
        return Future.completed(JOB)

    def request_savepoint(
        self, job_id: JobId, request: SavepointRequest, wait_s: float
    ) -> Future[SavepointStatus]:
        self.asked += 1
        return (
            Future.completed(SavepointStatus(request.trigger_id))
            if self.asked == 1
            else Future.failed(RpcTimeoutError("no answer"))
        )

    def list_jobs(self) -> Future[Any]:
        raise ZeroDivisionError("secret")


@pytest.fixture
def rest() -> Iterator[Rest]:
    server = RestServer(RestConfig(enabled=True, port=0, needs_token=False), SYSTEM_CLOCK)
    server.serve(FallingSilent())  # type: ignore[arg-type]
    yield Rest(server.port)
    server.stop()


def test_a_savepoint_of_a_silent_cluster_has_not_failed(rest: Rest) -> None:
    asked = rest.ask("/jobs/a/savepoints", "POST", {})
    assert asked.status == 202
    answer = rest.ask(f"/jobs/a/savepoints/{asked.json['request-id']}")
    assert (answer.status, answer.json) == (
        503,
        {"errors": ["the cluster does not answer: no answer"]},
    )


def test_a_fault_of_the_endpoint_is_told_without_its_inside(rest: Rest) -> None:
    answer = rest.ask("/jobs")
    assert (answer.status, answer.json) == (
        500,
        {"errors": ["ZeroDivisionError in the REST endpoint; the JobManager's log has more"]},
    )
