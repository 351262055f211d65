from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from flinkpy.actors.gateways import DispatcherGateway, JobDetails, JobOverview, JobResult
from flinkpy.cluster.client import ClientConfig, ClientSession, ClusterClient, Leaders
from flinkpy.cluster.display.watcher import Watcher
from flinkpy.core.clock import ManualClock
from flinkpy.core.errors import (
    FencingError,
    JobCancelledError,
    JobExecutionError,
    ProgramError,
    RecipientUnreachableError,
    ResourceUnavailableError,
    RpcTimeoutError,
    UserCodeError,
)
from flinkpy.core.futures import Future
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import JobState
from flinkpy.graph.job_graph import JobGraph

JOB_ID = JobId("ab12")


def ended(state: JobState, error: BaseException | None = None) -> JobResult:
    return JobResult(JOB_ID, "wc", state, 5, error)


class ScriptedDispatcher:
    """Answers result polls from a script: a result, None (not yet; the clock moves on), or an error
    raised in the client."""

    def __init__(self, clock: ManualClock, *answers: JobResult | BaseException | None) -> None:
        self.clock, self.answers = clock, list(answers)
        self.polls: list[float] = []
        self.cancelled = 0

    def submit_job(self, job_graph: JobGraph) -> Future[JobId]:
        return Future.completed(job_graph.job_id)

    def request_job_result(self, job_id: JobId, wait_s: float) -> Future[JobResult | None]:
        self.polls.append(wait_s)
        answer = self.answers.pop(0)
        if isinstance(answer, RpcTimeoutError | RecipientUnreachableError | FencingError):
            self.clock.advance(11.0)
            return Future.failed(answer)
        if isinstance(answer, BaseException):
            raise answer
        if answer is None:
            self.clock.advance(wait_s)
        return Future.completed(answer)

    def request_job_status(self, job_id: JobId) -> Future[JobState]:
        return Future.completed(JobState.RUNNING)

    def request_job_details(self, job_id: JobId) -> Future[JobDetails]:
        return Future.completed(JobDetails(self._overview("ab12"), ()))

    def cancel_job(self, job_id: JobId) -> Future[None]:
        self.cancelled += 1
        return Future.completed(None)

    def list_jobs(self) -> Future[list[JobOverview]]:
        return Future.completed([self._overview(job_id) for job_id in ("ab12", "ab34", "cd56")])

    def _overview(self, job_id: str) -> JobOverview:
        return JobOverview(JobId(job_id), "wc", JobState.RUNNING, 0, None)


class CountingWatcher:
    interval_s = 0.5

    def __init__(self) -> None:
        self.updates, self.closed = 0, False

    def update(self, details: JobDetails) -> None:
        self.updates += 1

    def close(self) -> None:
        self.closed = True


class Session(ClientSession):
    def __init__(self, leaders: Leaders | None = None, watcher: Watcher | None = None) -> None:
        self.leaders = leaders
        self._watcher = watcher

    def watcher(self) -> Watcher | None:
        return self._watcher


def client(
    *answers: JobResult | BaseException | None, watcher: Watcher | None = None
) -> tuple[ClusterClient, ScriptedDispatcher]:
    clock = ManualClock()
    dispatcher = ScriptedDispatcher(clock, *answers)
    return ClusterClient(
        cast(DispatcherGateway, dispatcher),
        ClientConfig(gone="the session went away"),
        clock,
        Session(watcher=watcher),
    ), dispatcher


def test_the_result_is_polled_for_until_the_job_has_ended() -> None:
    session, dispatcher = client(None, None, ended(JobState.FINISHED))
    job = session.submit(JobGraph(JOB_ID, "wc", []))
    assert job.status() is JobState.RUNNING
    assert job.result().state is JobState.FINISHED
    assert len(dispatcher.polls) == 3
    assert job.status() is JobState.FINISHED
    assert job.result() is job.result()


def test_a_failed_job_raises_with_its_cause() -> None:
    error = UserCodeError("ZeroDivisionError: division by zero", operator="Map")
    session, _ = client(ended(JobState.FAILED, error))
    with pytest.raises(JobExecutionError, match="job 'wc' failed: ZeroDivisionError") as raised:
        session.job(JOB_ID).result()
    assert raised.value.cause is error


def test_a_cancelled_job_raises() -> None:
    session, _ = client(ended(JobState.CANCELED))
    with pytest.raises(JobCancelledError, match="wc"):
        session.job(JOB_ID).result()


def test_a_wait_ends_with_its_timeout_and_may_be_taken_up_again() -> None:
    session, dispatcher = client(None, None, ended(JobState.FINISHED))
    job = session.job(JOB_ID)
    with pytest.raises(RpcTimeoutError, match=r"within 7 s"):
        job.result(timeout=7)
    assert dispatcher.polls == [5.0, 2.0]
    assert job.result().state is JobState.FINISHED


def test_an_interrupted_wait_cancels_the_job_and_waits_for_its_end() -> None:
    session, dispatcher = client(None, KeyboardInterrupt(), None, ended(JobState.CANCELED))
    job = session.job(JOB_ID)
    with pytest.raises(KeyboardInterrupt):
        job.result()
    assert dispatcher.cancelled == 1
    assert job.status() is JobState.CANCELED


def test_an_interrupted_wait_does_not_keep_the_user_when_the_job_will_not_end() -> None:
    session, dispatcher = client(KeyboardInterrupt(), None, None, None)
    with pytest.raises(KeyboardInterrupt):
        session.job(JOB_ID).result()
    assert dispatcher.cancelled == 1


def test_a_session_that_went_away_is_one_clear_message() -> None:
    session, _ = client(RecipientUnreachableError("no process jobmanager"))
    with pytest.raises(ResourceUnavailableError, match="the session went away"):
        session.job(JOB_ID).result()


def test_a_call_is_made_again_while_its_answer_is_late() -> None:
    session, dispatcher = client(*[RpcTimeoutError("no answer")] * 4, ended(JobState.FINISHED))
    assert session.job(JOB_ID).result().state is JobState.FINISHED
    assert len(dispatcher.polls) == 5


def test_a_session_that_does_not_answer_for_a_minute_has_gone_away() -> None:
    session, dispatcher = client(*[RpcTimeoutError("no answer")] * 10)
    with pytest.raises(ResourceUnavailableError, match="the session went away"):
        session.job(JOB_ID).result()
    assert len(dispatcher.polls) == 7


def test_a_watcher_is_shown_the_job_between_polls_and_closed_at_the_end() -> None:
    watcher = CountingWatcher()
    session, dispatcher = client(None, None, ended(JobState.FINISHED), watcher=watcher)
    session.submit(JobGraph(JOB_ID, "wc", [])).result()
    assert (watcher.updates, watcher.closed) == (2, True)
    assert dispatcher.polls == [0.5, 0.5, 0.5]


def test_a_watcher_is_shown_a_job_that_has_restarted_however_soon_it_ended() -> None:
    watcher = CountingWatcher()
    session, _ = client(replace(ended(JobState.FINISHED), restarts=1), watcher=watcher)
    session.submit(JobGraph(JOB_ID, "wc", [])).result()
    assert (watcher.updates, watcher.closed) == (1, True)


def test_a_job_is_found_by_the_first_digits_of_its_id() -> None:
    session, _ = client()
    assert session.find_job("c").job_id == "cd56"
    with pytest.raises(ProgramError, match="2 jobs begin with ab"):
        session.find_job("ab")
    with pytest.raises(ProgramError, match="no job ef"):
        session.find_job("ef")
    # `flinkpy cancel "$ID"` without one must not end the only job there is
    with pytest.raises(ProgramError, match="name the job by its id"):
        session.find_job("")


class ComingBack:
    """The JobManager is away for a number of looks; then another Dispatcher leads."""

    def __init__(self, clock: ManualClock, after: ScriptedDispatcher, looks: int) -> None:
        self.clock = clock
        self.after = after
        self.looks = looks
        self.may_come_back = True

    def find_leader(self) -> Future[DispatcherGateway]:
        self.clock.advance(20.0)
        self.looks -= 1
        if self.looks >= 0:
            return Future.failed(RecipientUnreachableError("not yet"))
        return Future.completed(cast(DispatcherGateway, self.after))


def client_of_two(
    looks: int, *answers: JobResult | BaseException | None
) -> tuple[ClusterClient, ComingBack]:
    clock = ManualClock()
    leaders = ComingBack(clock, ScriptedDispatcher(clock, ended(JobState.FINISHED)), looks)
    dispatcher = cast(DispatcherGateway, ScriptedDispatcher(clock, *answers))
    return ClusterClient(
        dispatcher, ClientConfig(gone="the session went away"), clock, Session(leaders)
    ), leaders


@pytest.mark.parametrize(
    "error",
    [
        RecipientUnreachableError("gone"),
        RpcTimeoutError("no answer"),
        FencingError("another leads"),
    ],
)
def test_a_wait_goes_on_at_the_next_job_manager(
    error: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    session, leaders = client_of_two(0 if isinstance(error, FencingError) else 2, None, error)
    assert session.job(JOB_ID).result().state is JobState.FINISHED
    assert len(leaders.after.polls) == 1
    said = capsys.readouterr().err
    expected = (
        ""
        if isinstance(error, FencingError)
        else (
            "the JobManager died, and is started again: waiting for it, 60 s at most "
            "(client.timeout)\n"
        )
    )
    assert said == expected


def test_a_job_manager_that_does_not_come_back_in_time_is_waited_for_no_longer() -> None:
    session, _ = client_of_two(5, RecipientUnreachableError("gone"))
    with pytest.raises(ResourceUnavailableError, match="the session went away"):
        session.job(JOB_ID).result()


def test_a_session_that_was_stopped_is_not_waited_for() -> None:
    session, leaders = client_of_two(1, RecipientUnreachableError("gone"))
    leaders.may_come_back = False
    with pytest.raises(ResourceUnavailableError, match="the session went away"):
        session.job(JOB_ID).result()
    assert leaders.looks == 1
