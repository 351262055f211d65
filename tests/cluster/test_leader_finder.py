"""A worker learns which ResourceManager leads its session, also when the JobManager has died and
come back."""

from __future__ import annotations

import pytest

from flinkpy.actors.rpc.leadership import LeaderInformation
from flinkpy.actors.rpc.simulated.unreliable_network import SimulatedNetwork
from flinkpy.cluster.leader_finder import LeaderFinder
from flinkpy.cluster.session import RestPlace, SessionEndpoint
from flinkpy.core.futures import Future
from flinkpy.core.ids import FencingToken

FIRST, SECOND = (
    LeaderInformation("jobmanager/resourcemanager", FencingToken(term)) for term in ("one", "two")
)


class Worker:
    """One that asks a session whose process is ``jobmanager``."""

    def __init__(self, exists: bool = True) -> None:
        self.network = SimulatedNetwork()
        self.exists, self.gone = exists, 0
        self.leaders: list[LeaderInformation] = []
        self.finder = LeaderFinder(
            self.network.service("worker"),
            "jobmanager/session",
            "today",
            lambda: self.exists,
            self._on_gone,
        )
        self.finder.start(self.leaders.append)

    def _on_gone(self) -> None:
        self.gone += 1

    def start_session(
        self, resource_manager: Future[LeaderInformation], session_id: str = "today"
    ) -> None:
        service = self.network.service("jobmanager")
        SessionEndpoint(
            service,
            {},
            Future.completed(FIRST),
            resource_manager,
            RestPlace(),
            session_id=session_id,
        ).start()
        self.network.run_for(1)


def test_it_asks_until_the_session_is_there_and_its_resource_manager_leads() -> None:
    worker = Worker()
    worker.network.run_for(1)
    leading: Future[LeaderInformation] = Future()
    worker.start_session(leading)
    assert worker.leaders == []
    leading.complete(FIRST)
    worker.network.run_for(1)
    assert worker.leaders == [FIRST]


def test_when_the_job_manager_has_died_it_finds_the_next_one() -> None:
    worker = Worker()
    worker.start_session(Future.completed(FIRST))
    worker.network.crash("jobmanager", noticed=True)
    worker.network.run_for(1)
    worker.start_session(Future.completed(SECOND))
    assert (worker.leaders, worker.gone) == ([FIRST, SECOND], 0)


@pytest.mark.finding("faults 16")
def test_it_finds_the_next_one_also_if_nobody_notices_the_death() -> None:
    """The process dies between its answer and the beginning of the watch: Ray has started the next
    one under its name when that begins."""
    worker = Worker()
    worker.start_session(Future.completed(FIRST))
    worker.network.crash("jobmanager", noticed=False)
    worker.start_session(Future.completed(SECOND))
    worker.network.run_for(15)
    assert (worker.leaders, worker.gone) == ([FIRST, SECOND], 0)


def test_a_session_that_does_not_come_back_is_told_once() -> None:
    worker = Worker(exists=False)
    worker.network.run_for(5)
    assert (worker.leaders, worker.gone) == ([], 1)


def test_a_worker_does_not_go_over_to_a_later_session_of_the_same_name() -> None:
    worker = Worker()
    worker.start_session(Future.completed(FIRST), session_id="tomorrow")
    assert (worker.leaders, worker.gone) == ([], 1)
