"""The client's side of a session: blocking calls to its Dispatcher, and the handle of a submitted
job.

A client waits for a job's end in long polls: the Dispatcher answers each when the job has ended, or
after a few seconds. So no call stays open for longer than its timeout, and the next call at the
latest notices a dead cluster."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import Protocol, TypeVar

from flinkpy.actors.gateways import (
    ClusterOverview,
    DispatcherGateway,
    JobDetails,
    JobMetrics,
    JobOverview,
    JobResult,
)
from flinkpy.actors.killed_for_memory import why_lost
from flinkpy.cluster.display.job_picture import JobPicture, JobPictures
from flinkpy.cluster.display.watcher import Watcher
from flinkpy.cluster.requested_savepoint import RequestedSavepoint, savepoint_request
from flinkpy.cluster.uninterrupted_calls import uninterrupted
from flinkpy.core.clock import SYSTEM_CLOCK, Clock
from flinkpy.core.elements import SnapshotType
from flinkpy.core.errors import (
    EndpointNotRunningError,
    EngineError,
    FencingError,
    FlinkpyError,
    JobCancelledError,
    JobExecutionError,
    OutputClosedError,
    ProcessEndedError,
    ProgramError,
    RecipientUnreachableError,
    ResourceUnavailableError,
    RpcTimeoutError,
    TaskExecutorLostError,
    UserCodeError,
)
from flinkpy.core.futures import Future
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import JOB, ExecutionState, JobState
from flinkpy.core.program.code import loads
from flinkpy.core.program.exit_codes import READER_GONE
from flinkpy.core.source_places import shorten
from flinkpy.graph.job_graph import JobGraph

T = TypeVar("T")

DEPLOYMENT_LOOK_S = 0.02
FIRST_INITIALISATION_LOOK_S, INITIALISATION_LOOK_S = 0.002, 0.5  # twice as long from look to look
_ON_THE_WAY = {ExecutionState.SCHEDULED, ExecutionState.DEPLOYING, ExecutionState.INITIALIZING}
LOOK_S = 1.0  # how often a wait for an answer checks whether the cluster still exists
CANCEL_GRACE_S = 10.0  # how long an interrupted wait gives the job to end
SILENT_GRACE_S = 1.0  # before it says that it waits
LEADER_LOOK_S = 0.2  # between two looks for the next JobManager
_LEADER_LOST = (
    RecipientUnreachableError,
    EndpointNotRunningError,
    FencingError,
    ProcessEndedError,
    RpcTimeoutError,
)


class Output(Protocol):
    """Shows what the tasks of a job print, from before it is submitted to its end."""

    def attach(self, job_graph: JobGraph) -> JobGraph: ...

    def close(self) -> None: ...


class Head(Protocol):
    """Tells whether the cluster still exists, even if calls are still answered."""

    def check(self, now: float) -> None:
        """Raises ResourceUnavailableError when the cluster has been gone for a while."""
        ...

    def check_now(self) -> None:
        """Raises ResourceUnavailableError when the cluster is gone."""
        ...


class Leaders(Protocol):
    """Finds the Dispatcher of a session whose JobManager has died."""

    @property
    def may_come_back(self) -> bool:
        """Whether there will be another JobManager."""
        ...

    def find_leader(self) -> Future[DispatcherGateway]:
        """Looks once, and fails with an RpcError if none leads yet."""
        ...


class ClientSession:
    """What a kind of session adds to its clients; this one adds nothing."""

    head: Head | None = None
    leaders: Leaders | None = None

    def prepare(self, job_graph: JobGraph) -> JobGraph:
        """The job as it is submitted."""
        return job_graph

    def watcher(self) -> Watcher | None:
        """Shows how a job goes on that somebody waits for."""
        return None

    def output(self) -> Output | None:
        """Shows what the tasks of one job print."""
        return None


@dataclass(frozen=True)
class ClientConfig:
    """``gone`` is the message for the user when the session does not answer; with
    ``ends_with_program`` the session ends with this program."""

    ask_timeout_s: float = 10.0
    gone: str = "the flinkpy session does not answer any more"
    ends_with_program: bool = False
    reached_by: str = ""  # options that a command needs to find this session
    patience_s: float = 60.0  # for a JobManager that is busy, or comes back

    @property
    def poll_s(self) -> float:
        """How long one poll for a result may stay open."""
        return self.ask_timeout_s / 2


class ClusterClient:
    """A session as its clients see it: every call blocks, and raises an error when it fails.

    >>> client.list_jobs()[0].state  # doctest: +SKIP
    <JobState.RUNNING: 'RUNNING'>
    """

    def __init__(
        self,
        dispatcher: DispatcherGateway,
        config: ClientConfig | None = None,
        clock: Clock = SYSTEM_CLOCK,
        session: ClientSession | None = None,
    ) -> None:
        self._session = session = session or ClientSession()
        self._leaders = session.leaders
        self._head = session.head
        self._dispatcher = uninterrupted(dispatcher)
        self.clock = clock
        self.config = config or ClientConfig()
        self._has_said_so = False

    def submit(self, job_graph: JobGraph) -> ClusterJob:
        """Submits the job; it runs when this returns."""
        ready = self._session.prepare(job_graph)
        output = self._session.output()
        try:
            attached = ready if output is None else output.attach(ready)
            self.ask(lambda dispatcher: dispatcher.submit_job(attached))
        except BaseException as error:
            if output is not None:
                output.close()
            # the job may have been accepted, and no client would wait for it
            if isinstance(error, KeyboardInterrupt):
                self._dispatcher.cancel_job(job_graph.job_id)
                shorten(error, f"job {job_graph.name!r} was cancelled")
            raise
        return ClusterJob(self, job_graph.job_id, job_graph.name, self._session.watcher, output)

    def job(self, job_id: JobId, name: str = "") -> ClusterJob:
        """The handle of a job submitted earlier, or by another process."""
        return ClusterJob(self, job_id, name or job_id, lambda: None)

    def list_jobs(self) -> list[JobOverview]:
        """Running and ended jobs, in the order they were submitted."""
        return self.ask(lambda dispatcher: dispatcher.list_jobs())

    def find_job(self, prefix: str) -> JobOverview:
        """Returns the one job whose id begins with ``prefix``. Raises ProgramError when there is
        none, or several, or ``prefix`` is empty."""
        if not prefix:
            raise ProgramError(
                "name the job by its id, or the first digits of it; `flinkpy list` shows them"
            )
        found = [job for job in self.list_jobs() if job.job_id.startswith(prefix)]
        if len(found) != 1:
            raise ProgramError(
                f"no job {prefix} in this session; `flinkpy list` shows what there is"
                if not found
                else f"{len(found)} jobs begin with {prefix}; give more digits"
            )
        return found[0]

    def overview(self) -> ClusterOverview:
        """Counts of TaskExecutors, slots and running jobs."""
        return self.ask(lambda dispatcher: dispatcher.request_cluster_overview())

    @property
    def poll_s(self) -> float:
        """How long one call may stay open."""
        return self.config.poll_s

    def ask(self, call: Callable[[DispatcherGateway], Future[T]], extra_s: float = 0.0) -> T:
        """Makes the call and returns its value. If the answer is late, or the JobManager has died
        and comes back, the call is made again: all calls of a Dispatcher can be repeated. If the
        session is gone, raises an error with one clear message."""
        end: float | None = None
        while True:
            try:
                return self._answer(call(self._dispatcher), self.config.ask_timeout_s + 1 + extra_s)
            except _LEADER_LOST as error:
                if end is None:
                    end = self.clock.monotonic() + self.config.patience_s
                is_late = isinstance(error, RpcTimeoutError) and self.clock.monotonic() < end
                # else nobody says that it is gone: it may be busy
                if not is_late or self._another_may_lead:
                    self._await_leader(error, end)

    @property
    def _another_may_lead(self) -> bool:
        return self._leaders is not None and self._leaders.may_come_back

    def _await_leader(self, lost: BaseException, end: float) -> None:
        """Returns when another JobManager leads. Raises if none comes."""
        leaders, error = self._leaders, lost
        while leaders is not None and self._another_may_lead and self.clock.monotonic() < end:
            self._say_that_it_waits(error)
            try:
                self._dispatcher = uninterrupted(
                    self._answer(
                        uninterrupted(leaders).find_leader(), self.config.ask_timeout_s + 1
                    )
                )
                self._has_said_so = False
                return
            except _LEADER_LOST as still:
                error = still
                threading.Event().wait(LEADER_LOOK_S)
        # The text of Ray's errors is long; --verbose shows it
        told = str(error)
        if not isinstance(error, ProcessEndedError):
            for_memory = why_lost(told, None)
            told = self.config.gone if for_memory == told else f"{self.config.gone}: {for_memory}"
        raise ResourceUnavailableError(told) from error

    def _say_that_it_waits(self, error: BaseException) -> None:
        """Prints once for each JobManager that died, unless the next one leads already."""
        if not self._has_said_so and not isinstance(error, FencingError) and sys.stderr is not None:
            self._has_said_so = True
            print(
                (
                    "the JobManager died, and is started again: waiting for it, "
                    f"{self.config.patience_s:.0f} s at most (client.timeout)"
                ),
                file=sys.stderr,
                flush=True,
            )

    def explain(self, result: JobResult) -> None:
        """Raises ResourceUnavailableError if the job failed because the cluster goes away: workers
        may die before their JobManager does."""
        if self._head is not None and isinstance(result.error, TaskExecutorLostError):
            self._head.check_now()

    def _answer(self, future: Future[T], timeout: float) -> T:
        if self._head is None:
            return future.result(timeout)
        end = self.clock.monotonic() + timeout
        while True:
            now = self.clock.monotonic()
            self._head.check(now)
            try:
                return future.result(max(0.0, min(LOOK_S, end - now)))
            except RpcTimeoutError:
                if self.clock.monotonic() >= end:
                    raise


class ClusterJob:
    """A submitted job: query it, cancel it, wait for its end."""

    def __init__(
        self,
        client: ClusterClient,
        job_id: JobId,
        name: str,
        make_watcher: Callable[[], Watcher | None],
        output: Output | None = None,
    ) -> None:
        self._client = client
        self.job_id = job_id
        self.name = name
        self._make_watcher, self._output = make_watcher, output
        self._result: JobResult | None = None
        # whether the program knows that the job has ended, and so may handle it as it likes
        self.end_was_told = False
        self._pictures = JobPictures()

    @property
    def ends_with_program(self) -> bool:
        """Whether the job ends with the program: it runs in this process, or in the program's own
        cluster."""
        return self._client.config.ends_with_program

    @property
    def runs_on(self) -> str:
        """The message of a program that leaves the job in a session: where it runs, and how to end
        it."""
        return (
            f"job {self.name!r} runs on in the session on Ray; to end it: flinkpy "
            f"cancel{self._client.config.reached_by} {self.job_id[:8]}"
        )

    def status(self) -> JobState:
        """The job's current state."""
        state = self._result.state if self._result is not None else self._state_now()
        self.end_was_told = self.end_was_told or JOB.is_terminal(state)
        return state

    def details(self) -> JobDetails:
        """States and record counts of every vertex."""
        return self._client.ask(lambda dispatcher: dispatcher.request_job_details(self.job_id))

    def metrics(self) -> JobMetrics:
        """Accumulators, with the current counts of running subtasks."""
        return self._client.ask(lambda dispatcher: dispatcher.request_job_metrics(self.job_id))

    def picture(self) -> JobPicture:
        """The job's progress now; throughput is measured since the last picture."""
        details = self.details()
        if JOB.is_terminal(details.overview.state):
            self._close_output()  # the program may never wait for the result
        return self._pictures.picture(details, self._client.clock.time_ms())

    def request_savepoint(
        self,
        snapshot_type: SnapshotType,
        directory: str | PathLike[str] | None = None,
        format_type: str | None = None,
    ) -> RequestedSavepoint:
        """A savepoint, or with CHECKPOINT a checkpoint out of turn; it begins when its result is
        asked for. Raises ConfigurationError for a ``format_type`` that does not exist."""
        return RequestedSavepoint(
            self._client, self.job_id, savepoint_request(snapshot_type, directory, format_type)
        )

    def cancel(self) -> None:
        """Cancels the job. Returns when the JobMaster has received the request. A job that has
        ended stays as it is."""
        if self._result is None:
            self._client.ask(lambda dispatcher: dispatcher.cancel_job(self.job_id))

    def result(self, timeout: float | None = None, *, watched: bool = True) -> JobResult:
        """Waits for the end of the job, at most ``timeout`` seconds (for ever with None). Ctrl-C or
        SIGTERM meanwhile cancels the job.

        Without ``watched`` no progress is drawn.

        Raises JobExecutionError when the job failed, JobCancelledError when it was cancelled,
        RpcTimeoutError when it has not ended in time, SystemExit when the reader of the program's
        output has gone."""
        if self._result is None:
            try:
                self._result = self._wait(timeout, self._make_watcher() if watched else None)
            except KeyboardInterrupt as interrupt:
                self._cancel_and_wait()
                shorten(interrupt, f"job {self.name!r} was cancelled")
                raise
            except SystemExit:  # on Ray, SIGTERM becomes one
                self._cancel_and_wait()
                raise
            except ResourceUnavailableError as gone:
                if isinstance(gone.__cause__, ProcessEndedError) and gone.__cause__.is_bug:
                    raise JobExecutionError(self.name, EngineError(str(gone))) from gone
                raise
            finally:
                if self._result is not None:
                    self._close_output()
        self.end_was_told = True
        self._client.explain(self._result)
        return _checked(self._result)

    def wait_until_initialised(self) -> None:
        """Returns when the job's first tasks are being scheduled. Ctrl-C meanwhile cancels the job.

        Raises JobExecutionError if the job fails before: the savepoint that it starts from is not
        there, say, or has state for other operators."""
        pause_s = FIRST_INITIALISATION_LOOK_S
        try:
            while (state := self._state_now()) in (JobState.INITIALIZING, JobState.CREATED):
                threading.Event().wait(pause_s)
                pause_s = min(2 * pause_s, INITIALISATION_LOOK_S)
            if state in (JobState.FAILING, JobState.FAILED):
                end = self._client.clock.monotonic() + CANCEL_GRACE_S
                while self._result is None and self._client.clock.monotonic() < end:
                    self._result = self._poll(None, end)
        except KeyboardInterrupt as interrupt:
            self._cancel_and_wait()
            shorten(interrupt, f"job {self.name!r} was cancelled")
            raise
        if self._result is not None and not self._result.was_initialised:
            self.result()

    def _state_now(self) -> JobState:
        return self._client.ask(lambda dispatcher: dispatcher.request_job_status(self.job_id))

    def wait_until_deployed(self) -> None:
        """Returns when the tasks that start first run, or the job has ended."""
        while self._result is None and not self._is_deployed():
            self._result = self._poll(None, self._client.clock.monotonic() + DEPLOYMENT_LOOK_S)

    def _is_deployed(self) -> bool:
        states = {state for vertex in self.details().vertices for state in vertex.states}
        return not states & _ON_THE_WAY and states != {ExecutionState.CREATED}

    def _close_output(self) -> None:
        output, self._output = self._output, None
        if output is not None:
            output.close()

    def _wait(self, timeout: float | None, watcher: Watcher | None) -> JobResult:
        deadline = None if timeout is None else self._client.clock.monotonic() + timeout
        try:
            while True:
                result = self._poll(watcher, deadline)
                if result is not None:
                    if watcher is not None and result.restarts:  # perhaps since its last look
                        self._show_end(watcher)
                    return result
                if deadline is not None and self._client.clock.monotonic() >= deadline:
                    raise RpcTimeoutError(f"job {self.name!r} has not ended within {timeout:g} s")
                if watcher is not None:
                    watcher.update(self.details())
        finally:
            if watcher is not None:
                watcher.close()

    def _show_end(self, watcher: Watcher) -> None:
        try:
            watcher.update(self.details())
        except FlinkpyError:  # the result matters more
            pass

    def _poll(self, watcher: Watcher | None, deadline: float | None) -> JobResult | None:
        wait_s = (
            self._client.config.poll_s
            if watcher is None
            else min(watcher.interval_s, self._client.config.poll_s)
        )
        if deadline is not None:
            wait_s = max(0.0, min(wait_s, deadline - self._client.clock.monotonic()))
        return self._client.ask(
            lambda dispatcher: dispatcher.request_job_result(self.job_id, wait_s), wait_s
        )

    def _cancel_and_wait(self) -> None:
        """Cancels the job, if the cluster answers soon: a user who interrupted must not wait for a
        cluster in trouble."""
        try:
            self.cancel()
            now = self._client.clock.monotonic()
            self._result = self._poll(None, now + SILENT_GRACE_S)
            if self._result is None:
                print(
                    (
                        f"cancelling job {self.name!r}: waiting for its functions to return; "
                        "Ctrl-C again ends the wait"
                    ),
                    file=sys.stderr,
                )
            while self._result is None and self._client.clock.monotonic() < now + CANCEL_GRACE_S:
                self._result = self._poll(None, now + CANCEL_GRACE_S)
        except ResourceUnavailableError:
            pass

    def __repr__(self) -> str:
        return (
            f"<ClusterJob {self.name!r} "
            f"{self.job_id}{'' if self._result is None else ' ' + self._result.state.name}>"
        )


def _checked(result: JobResult) -> JobResult:
    if result.state is JobState.CANCELED:
        raise JobCancelledError(
            f"job {result.name!r} was "
            f"cancelled{'' if result.error is None else f': {result.error}'}"
        )
    if result.state is not JobState.FINISHED:
        assert JOB.is_terminal(result.state)
        if isinstance(result.error, OutputClosedError):
            raise SystemExit(READER_GONE)
        cause = result.error or JobCancelledError(f"it was {result.state.value.lower()}")
        raise JobExecutionError(result.name, cause) from _raised_by_user(cause)
    return result


def _raised_by_user(cause: BaseException) -> BaseException | None:
    """The exception of the user's function, if it could be pickled. Otherwise nothing is chained:
    the message has the cause, and a traceback would repeat it."""
    original = cause.original if isinstance(cause, UserCodeError) else None
    try:
        raised = None if original is None else loads(original)
    except Exception:  # it cannot be unpickled here
        return None
    return raised if isinstance(raised, BaseException) else None
