"""The snapshots that somebody has asked for: savepoints, also those that stop the job, and
checkpoints out of turn.

Requests wait for each other, and each is answered once: with the snapshot's folder, or with the
reason why there is none. A request to stop is answered when the job has ended, for only then the
stop has succeeded."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from flinkpy.core.elements import CheckpointOptions
from flinkpy.core.errors import SavepointError
from flinkpy.core.lifecycles import JobState
from flinkpy.graph.checkpoints import CompletedCheckpoint
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.protocol import Command, SetTimer, SnapshotEnded, SnapshotRequested

_ENDS = (
    JobState.FINISHED,
    JobState.CANCELLING,
    JobState.CANCELED,
    JobState.FAILING,
    JobState.FAILED,
)


class RequestedSnapshots:
    """The requests of one job. ``waiting`` have not begun; at most one is ``under_way`` at a
    time."""

    TIMEOUT = "snapshot-request-timeout"  # a timer
    EARLY_S = 0.001  # that a timer may fire before its time

    def __init__(
        self,
        job_graph: JobGraph,
        takes_checkpoints: bool,
        timeout_s: float,
        commands: list[Command],
    ) -> None:
        self._job_graph = job_graph
        self._takes_checkpoints = takes_checkpoints
        self._timeout_s = timeout_s
        self._commands = commands
        # with the time at which the request gives up
        self.waiting: deque[tuple[SnapshotRequested, float]] = deque()
        self.under_way: SnapshotRequested | None = None
        self._tries = 0  # of the one under way
        self._stopping: tuple[SnapshotRequested, CompletedCheckpoint] | None = None
        self._stop_answered: str | None = None  # the request with which the job has ended

    @property
    def is_stopping(self) -> bool:
        """Whether the savepoint to stop with is complete: the job's tasks end, and nothing else is
        snapshotted."""
        return self._stopping is not None

    @property
    def blocks_checkpoints(self) -> bool:
        """Whether a checkpoint that is due has to wait."""
        return bool(self.waiting) or self.under_way is not None or self.is_stopping

    def add(self, request: SnapshotRequested, state: JobState, now: float) -> None:
        """Somebody asks; perhaps once more for the savepoint that the job stops with, after another
        JobManager has taken it over."""
        stops = self._stop_answered if self._stopping is None else self._stopping[0].request_id
        if stops == request.request_id:
            return
        refusal = self._refusal(request, state)
        if refusal is not None or request.refused is not None:
            self._answer(request, request.refused or SavepointError(refusal))
        else:
            self.waiting.append((request, now + self._timeout_s))
            self._set_timer(now)

    def _refusal(self, request: SnapshotRequested, state: JobState) -> str | None:
        name = f"job {self._job_graph.name!r}"
        if self._job_graph.no_savepoints:
            return f"{name} takes no savepoints: {self._job_graph.no_savepoints}"
        if state is not JobState.RUNNING:
            return f"{name} is {state.name}: ask again when it is RUNNING"
        if not request.options.snapshot_type.is_savepoint and not self._takes_checkpoints:
            return (
                f"{name} takes no checkpoints: set execution.checkpointing.interval, or take "
                "a savepoint"
            )
        asked = [each for each, _ in self.waiting] + (
            [self.under_way] if self.under_way is not None else []
        )
        if self.is_stopping or any(each.options.snapshot_type.stops_job for each in asked):
            return f"{name} is being stopped with a savepoint"
        return None

    def begin(self) -> SnapshotRequested:
        """The next one begins. A second try has a folder of its own: what the first has left is
        still being removed."""
        assert self.under_way is None
        request, _ = self.waiting.popleft()
        self.under_way = request
        target = request.options.target
        if self._tries and target is not None:
            return replace(
                request, options=replace(request.options, target=f"{target}-{self._tries + 1}")
            )
        return request

    def try_again(self) -> None:
        """The one under way could not succeed, for no fault of anybody: it is the next to begin."""
        assert self.under_way is not None
        self.waiting.appendleft((self.under_way, float("inf")))
        self.under_way = None
        self._tries += 1

    def succeed(self, checkpoint: CompletedCheckpoint) -> None:
        """The one under way is complete."""
        assert self.under_way is not None
        request, self.under_way, self._tries = self.under_way, None, 0
        if request.options.snapshot_type.stops_job:
            self._stopping = request, checkpoint
        else:
            self._commands.append(
                SnapshotEnded(
                    request.request_id, checkpoint.location, checkpoint_id=checkpoint.checkpoint_id
                )
            )

    def go_on_stopping(self, request: SnapshotRequested, savepoint: CompletedCheckpoint) -> None:
        """The job was being stopped with this savepoint, which is complete, when another JobManager
        took it over."""
        self._stopping = request, savepoint

    def fail(self, why: str) -> None:
        """The one under way has failed."""
        assert self.under_way is not None
        request, self.under_way, self._tries = self.under_way, None, 0
        self._answer(
            request,
            SavepointError(
                f"{_called(request.options)} of job {self._job_graph.name!r} failed: {why}"
            ),
        )

    def timer_fired(self, timer_id: str, now: float) -> None:
        """Gives up requests that have waited too long. Ignores timers that belong to other parts of
        the scheduler."""
        if timer_id != self.TIMEOUT:
            return
        for request in [request for request, end in self.waiting if end <= now + self.EARLY_S]:
            self._answer(
                request,
                SavepointError(
                    f"{_called(request.options)} of job {self._job_graph.name!r} could not begin "
                    "within "
                    f"{self._timeout_s:g} s: not all of its "
                    "tasks run"
                ),
            )
        self.waiting = deque(each for each in self.waiting if each[1] > now + self.EARLY_S)
        self._set_timer(now)

    def _set_timer(self, now: float) -> None:
        ends = [end for _, end in self.waiting if end != float("inf")]
        if ends:
            self._commands.append(SetTimer(self.TIMEOUT, min(ends) - now))

    def job_left(self, state: JobState, cause: BaseException | None) -> None:
        """The job does not run as a whole any more: it restarts, or ends. What was asked for is
        answered now, but for a stop that goes on."""
        name, why = f"job {self._job_graph.name!r}", f": {cause}" if cause is not None else ""
        self._tries = 0
        while self.waiting:
            request, _ = self.waiting.popleft()
            self._answer(request, SavepointError(f"{name} is {state.name}{why}"))
        if self._stopping is None or state not in _ENDS:  # a job that restarts stops all the same
            return
        (request, checkpoint), self._stopping = self._stopping, None
        self._stop_answered = request.request_id
        if state is JobState.FINISHED:
            self._commands.append(
                SnapshotEnded(
                    request.request_id, checkpoint.location, checkpoint_id=checkpoint.checkpoint_id
                )
            )
            return
        self._answer(
            request,
            SavepointError(
                f"{name} is {state.name} and did not stop as it should{why}; the savepoint "
                f"{checkpoint.location} is complete, and what sinks have "
                "not committed yet is committed when a job starts from it"
            ),
        )

    def _answer(self, request: SnapshotRequested, error: SavepointError) -> None:
        self._commands.append(SnapshotEnded(request.request_id, None, error))

    def __repr__(self) -> str:
        return f"<RequestedSnapshots: {len(self.waiting)} waiting, under way {self.under_way}>"


def _called(options: CheckpointOptions) -> str:
    return "a savepoint" if options.snapshot_type.is_savepoint else "a checkpoint"
