"""What clients have asked of the job's savepoints, and how it went."""

from __future__ import annotations

from flinkpy.actors.gateways import SavepointRequest, SavepointStatus
from flinkpy.actors.job_master.checkpoint_actions import CheckpointActions
from flinkpy.actors.job_master.job_report import JobStatusBook
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.core.elements import CheckpointOptions, SnapshotType
from flinkpy.core.errors import ConfigurationError, FlinkpyError, SavepointError
from flinkpy.core.futures import Future
from flinkpy.core.ids import JobId
from flinkpy.core.options.checkpointing import SAVEPOINT_DIRECTORY
from flinkpy.core.options.schema import read
from flinkpy.graph.job_graph import JobGraph
from flinkpy.scheduler.checkpointing.checkpoint_coordinator import CheckpointCoordinator
from flinkpy.scheduler.protocol import SnapshotEnded, SnapshotRequested
from flinkpy.state.checkpoints.locations import join


class SavepointBook:
    """All calls come from the main thread of ``endpoint``, the JobMaster. ``actions`` have the
    scheduler decide, ``checkpoints`` say how far it is, and ``status_book`` keeps what is over."""

    def __init__(
        self,
        job_graph: JobGraph,
        endpoint: RpcEndpoint,
        actions: CheckpointActions,
        checkpoints: CheckpointCoordinator,
        status_book: JobStatusBook,
    ) -> None:
        self._job_id: JobId = job_graph.job_id
        self._directory: str | None = read(job_graph.configuration, SAVEPOINT_DIRECTORY)
        self._endpoint = endpoint
        self._actions = actions
        self._checkpoints = checkpoints
        self._status_book = status_book
        self._statuses: dict[str, SavepointStatus] = {}
        self._waiting: dict[str, list[Future[SavepointStatus]]] = {}
        self._closed = False

    def request(self, request: SavepointRequest, wait_s: float) -> Future[SavepointStatus]:
        """Begins with what is asked for, unless it has begun. Answered when it is over, at the
        latest in so many seconds."""
        trigger_id = request.trigger_id
        if trigger_id not in self._statuses:
            if self._closed:
                raise SavepointError(f"job {self._job_id} has ended")
            options = CheckpointOptions(
                request.snapshot_type, self._folder(request), format_type=request.format_type
            )
            event = SnapshotRequested(trigger_id, options)
            self._statuses[trigger_id] = SavepointStatus(trigger_id)
            self._actions.begin_snapshot(event)
        if self._statuses[trigger_id].is_over or wait_s <= 0:
            return Future.completed(self._status(trigger_id))
        answer: Future[SavepointStatus] = Future()
        self._waiting.setdefault(trigger_id, []).append(answer)
        self._endpoint.schedule_run_async(wait_s, lambda: self._give_up_waiting(trigger_id, answer))
        return answer

    def _folder(self, request: SavepointRequest) -> str | None:
        if request.snapshot_type is SnapshotType.CHECKPOINT:
            return None
        directory = request.directory or self._directory
        if directory is None:
            raise ConfigurationError(
                f"name the folder for the savepoint, or set {SAVEPOINT_DIRECTORY.key}"
            )
        return join(directory, f"savepoint-{self._job_id[:6]}-{self._endpoint.service.ids.hex(12)}")

    def _give_up_waiting(self, trigger_id: str, answer: Future[SavepointStatus]) -> None:
        if answer.complete(self._status(trigger_id)):
            self._waiting[trigger_id].remove(answer)

    def _status(self, trigger_id: str) -> SavepointStatus:
        status = self._statuses[trigger_id]
        progress = self._checkpoints.summary()
        if status.is_over or progress.requested_id != trigger_id:
            return status
        return SavepointStatus(
            trigger_id,
            acknowledged=progress.requested_acknowledged,
            subtasks=progress.requested_subtasks,
        )

    def ended(self, command: SnapshotEnded) -> None:
        """The scheduler answers a request. The first answer counts: who asks another JobMaster once
        more may be heard by the scheduler when the job has ended with that savepoint."""
        trigger_id, error = command.request_id, command.error
        before = self._statuses.get(trigger_id)
        if before is not None and before.is_over:
            return
        if error is not None and not isinstance(error, FlinkpyError):
            error = SavepointError(f"{type(error).__name__}: {error}")
        self._statuses[trigger_id] = status = SavepointStatus(
            trigger_id, True, command.location, error, checkpoint_id=command.checkpoint_id
        )
        for answer in self._waiting.pop(trigger_id, ()):
            answer.complete(status)
        self._status_book.record_savepoint(status)

    def close(self) -> None:
        """The job ends: what is still open never will be."""
        self._closed = True
        for trigger_id in [each for each, status in self._statuses.items() if not status.is_over]:
            self.ended(
                SnapshotEnded(trigger_id, None, SavepointError(f"job {self._job_id} has ended"))
            )

    def __repr__(self) -> str:
        return f"<SavepointBook: {len(self._statuses)} requests>"
