"""What the JobMaster does about checkpoints when the scheduler says so: it tells the tasks, and
writes and deletes files off its thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import count

from flinkpy.actors.job_master.ordered_file_work import OrderedFileWork
from flinkpy.actors.job_master.recovery_point import where_to_go_on
from flinkpy.actors.job_master.source_coordinators import SourceCoordinators
from flinkpy.actors.job_master.task_executors import TaskExecutors
from flinkpy.actors.job_store import ArchivedJob, JobStore
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.core.errors import (
    ConfigurationError,
    FencingError,
    FlinkpyError,
    SavepointError,
    SavepointRestoreError,
)
from flinkpy.core.exhaustive import assert_never
from flinkpy.core.files.file_systems import is_lasting
from flinkpy.core.ids import ExecutionAttemptId, JobId, OperatorId
from flinkpy.core.options import checkpointing as options
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.checkpoint_messages import (
    BeginCheckpoint,
    CheckpointAborted,
    CheckpointCompleted,
    CheckpointFromTask,
    FinalCheckpointAwaited,
    SnapshotFailed,
    SnapshotTaken,
)
from flinkpy.scheduler.protocol import (
    CheckpointAcknowledged,
    CheckpointAwaited,
    CheckpointDeclined,
    CheckpointDiscarded,
    CheckpointStored,
    CheckpointStoreFailed,
    CoordinatorSnapshot,
    DiscardCheckpoint,
    DiscardOtherCheckpoints,
    DiscardSharedFiles,
    Event,
    FailJob,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    ResetCoordinators,
    RestoreFrom,
    SnapshotRequested,
    StartScheduling,
    StoreCheckpoint,
    TriggerCheckpoint,
)
from flinkpy.state.checkpoints.checkpoint_storage import CheckpointStorage

log = engine_logger("flinkpy.jobmaster")

# of a store that may answer later, before the job is said not to work; a second lies between two
_TRIES = 10


def event_of(attempt_id: ExecutionAttemptId, message: CheckpointFromTask) -> Event:
    """What a task says about checkpoints, as the scheduler hears it."""
    if isinstance(message, SnapshotTaken):
        return CheckpointAcknowledged(
            attempt_id, message.checkpoint_id, message.snapshot, message.metrics
        )
    if isinstance(message, SnapshotFailed):
        return CheckpointDeclined(attempt_id, message.checkpoint_id, message.reason)
    if not isinstance(message, FinalCheckpointAwaited):
        assert_never(message)
    return CheckpointAwaited(attempt_id)


class CheckpointActions:
    """Carries out the commands of the checkpoint coordinator. All calls come from the main
    thread of ``endpoint``, the JobMaster.

    With a ``store``, a checkpoint is complete only
    if no other JobManager leads when its manifest is there; and files are deleted only while none
    does."""

    def __init__(
        self,
        endpoint: RpcEndpoint,
        job_id: JobId,
        storage: CheckpointStorage,
        executors: TaskExecutors,
        coordinators: SourceCoordinators,
        feed: Callable[[Event], None],
        store: JobStore | None = None,
    ) -> None:
        self._job_id = job_id
        self._storage = storage
        self._executors = executors
        self._coordinators = coordinators
        self._feed = feed
        self._files = OrderedFileWork(endpoint, self._feed_result)
        self._endpoint = endpoint
        self._store = store
        self._until_begun: list[Callable[[], None]] | None = []  # None: the job has begun
        self._keeps_files = False  # somebody else needs them
        self._takes_over = False  # from a JobManager that had accepted the job
        self.is_deposed = False  # another JobManager leads, and runs the job

    def begin(
        self,
        path: str | None,
        allow_non_restored: bool,
        claim: bool,
        start: StartScheduling,
        *,
        takes_checkpoints: bool,
    ) -> None:
        """Has the job start, from the checkpoint at this path if there is one. If it takes
        checkpoints, and these cannot be written, it fails. What may be better a moment later is
        tried again for a while; without end for a job that an earlier JobManager has begun."""
        tries = count(1)

        def prepared() -> tuple[Event, ...]:
            try:
                if takes_checkpoints:
                    self._storage.try_out()
            except OSError as error:
                if not is_lasting(error) and (self._takes_over or next(tries) < _TRIES):
                    raise
                return _refused(error), start
            except Exception as error:  # of a URL that says nothing
                return _refused(error), start
            return (
                (start,) if path is None else (self._found(path, allow_non_restored, claim), start)
            )

        if path is None and not takes_checkpoints:
            self._feed_result(start)
        else:
            self._files.add_until_done(prepared)

    def when_begun(self, action: Callable[[], None]) -> None:
        """Calls the action when the scheduler knows what the job begins with: one that ended before
        would not know its own checkpoints, and delete those that are to be kept."""
        if self._until_begun is None:
            action()
        else:
            self._until_begun.append(action)

    def _feed_result(self, event: Event) -> None:
        self._feed(event)
        if isinstance(event, StartScheduling):
            waiting, self._until_begun = self._until_begun or [], None
            for action in waiting:
                action()

    def take_over(self, begin: Callable[[], None], start: StartScheduling, generation: int) -> None:
        """Has the job go on from its newest checkpoint; with none it begins as it would have
        begun."""
        store, self._takes_over = self._store, True
        assert store is not None

        def look() -> tuple[Event, ...]:
            try:
                found = where_to_go_on(self._job_id, self._storage, store, generation)
            except FencingError:
                self.is_deposed = self._keeps_files = True
                return ()
            except FlinkpyError as error:
                self._keeps_files = True
                return FailJob(
                    SavepointRestoreError(
                        f"the new JobManager cannot go on with the job, whose files stay: {error}"
                    )
                ), start
            if found is None:
                self._endpoint.schedule_run_async(0.0, begin)
                return ()
            return found, start

        self._files.add_until_done(look)

    def _found(self, path: str, allow_non_restored: bool, claim: bool) -> Event:
        try:
            return RestoreFrom(self._storage.find(path), allow_non_restored, claim)
        except (FlinkpyError, OSError) as error:
            return FailJob(SavepointRestoreError(f"the job cannot start from {path}: {error}"))

    def begin_snapshot(self, event: SnapshotRequested) -> None:
        """Has the scheduler decide on the request, once the job has begun and the savepoint's
        folder was tried out."""

        def begin() -> None:
            target = event.options.target
            if target is None:
                self._feed(event)
            else:
                self._files.add(lambda: (_tried_out(self._storage.of_snapshot(target), event),))

        self.when_begun(begin)

    def trigger_checkpoint(self, command: TriggerCheckpoint) -> None:
        """The enumerators' state is that of now: splits that they assign later are behind the
        barriers of their readers."""
        try:
            states = self._coordinators.snapshot(command.checkpoint_id, command.coordinators)
        except FlinkpyError as error:
            self._feed(CheckpointStoreFailed(command.checkpoint_id, error))
            return
        for attempt_id in command.attempts:
            self._executors.send_to_task(
                attempt_id,
                BeginCheckpoint(command.checkpoint_id, command.timestamp_ms, command.options),
            )
        storage = self._storage.of_snapshot(command.options.target)
        self._files.add(lambda: _write_coordinators(storage, command.checkpoint_id, states))

    def store_checkpoint(self, command: StoreCheckpoint) -> None:
        storage = self._storage.of_snapshot(command.target)

        def store() -> tuple[Event, ...]:
            try:
                if command.stops is not None and self._store is not None:
                    self._store.stop(self._job_id, command.stops)
                location = storage.store(command.checkpoint).location
                if self._still_leads():
                    return (CheckpointStored(command.checkpoint.checkpoint_id, location),)
                return ()
            except Exception as error:
                return (CheckpointStoreFailed(command.checkpoint.checkpoint_id, error),)

        self._files.add(store)

    def discard_checkpoint(self, command: DiscardCheckpoint) -> None:
        checkpoint, storage = command.checkpoint, self._storage.of_snapshot(command.target)

        def discard() -> None:
            if checkpoint.location is not None:
                storage.discard(checkpoint)
                return
            storage.discard_unfinished(checkpoint.checkpoint_id)
            if command.target is not None and self._store is not None:
                self._store.go_on(self._job_id)

        self._delete(
            discard,
            *([CheckpointDiscarded(checkpoint.checkpoint_id)] if command.is_awaited else []),
        )

    def discard_shared(self, command: DiscardSharedFiles) -> None:
        self._delete(partial(self._storage.discard_shared, command.files, command.location))

    def discard_others(self, command: DiscardOtherCheckpoints) -> None:
        self._delete(partial(self._storage.discard_others, command.kept, command.shared))

    def _delete(self, action: Callable[[], None], *then: Event) -> None:
        """A store that does not say who leads is asked again. What it fails to delete stays, unless
        something waits for it (``then``): that is tried again, until it is done or the job ends."""

        def work() -> tuple[Event, ...]:
            if not self._still_leads():
                return ()
            try:
                action()
            except (ConfigurationError, OSError) as error:
                if then and not self._files.is_last and isinstance(error, OSError):
                    raise
                log.warning("a file of a checkpoint could not be deleted: %s", error)
            return then

        self._files.add_until_done(work)

    def _still_leads(self) -> bool:
        """Called beside the main thread. Once another JobManager leads, its files are left
        alone."""
        if self._store is not None and not self._keeps_files:
            try:
                self._store.confirm()
            except FencingError:
                self.is_deposed = self._keeps_files = True
        return not self._keeps_files

    def record_end(self, job: ArchivedJob) -> None:
        """The job has ended, and is never run again. Files are deleted only after that is
        recorded."""
        store = self._store
        if store is None:
            return

        def record() -> None:
            try:
                store.end(job)
            except FencingError:
                self.is_deposed = self._keeps_files = True

        self._files.add_until_done(record)

    def notify_complete(self, command: NotifyCheckpointComplete) -> None:
        self._coordinators.checkpoint_completed(command.checkpoint_id)
        for attempt_id in command.attempts:
            self._executors.send_to_task(attempt_id, CheckpointCompleted(command.checkpoint_id))

    def notify_aborted(self, command: NotifyCheckpointAborted) -> None:
        for attempt_id in command.attempts:
            self._executors.send_to_task(attempt_id, CheckpointAborted(command.checkpoint_id))

    def reset_coordinators(self, command: ResetCoordinators) -> None:
        """Their state is small, so the main thread reads it."""
        reader = self._storage.reader(command.location)
        try:
            states = {
                operator_id: reader.read(handle) for operator_id, handle in command.states.items()
            }
        except (FlinkpyError, OSError) as error:
            self._feed(FailJob(error))
        else:
            self._coordinators.reset_attempts(command, states)

    def when_idle(self, action: Callable[[], None]) -> None:
        """Calls the action when all files are written and deleted."""
        self._files.when_idle(action)


def _tried_out(storage: CheckpointStorage, event: SnapshotRequested) -> Event:
    try:
        storage.try_out()
    except Exception as error:
        return replace(
            event,
            refused=SavepointError(
                f"the savepoint cannot be written to {event.options.target}: {error}"
            ),
        )
    return event


def _refused(error: Exception) -> Event:
    """The job fails, as nothing can be written where its checkpoints are to be."""
    return FailJob(
        ConfigurationError(
            f"option {options.CHECKPOINT_DIRECTORY.key}: no checkpoint can be written there: "
            f"{error}"
        )
    )


def _write_coordinators(
    storage: CheckpointStorage, checkpoint_id: int, states: Mapping[OperatorId, bytes]
) -> tuple[Event, ...]:
    try:
        with storage.state_writer(checkpoint_id, "coordinators", 0) as writer:
            handles = {operator_id: writer.write(state) for operator_id, state in states.items()}
    except Exception as error:
        return (CheckpointStoreFailed(checkpoint_id, error),)
    return (CoordinatorSnapshot(checkpoint_id, handles),)
