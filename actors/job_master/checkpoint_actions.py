"""What the JobMaster does about checkpoints when the scheduler says so: it tells the tasks, and writes and deletes files off its thread."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from flinkpy.actors.job_master.source_coordinators import SourceCoordinators
from flinkpy.core.errors import FlinkpyError, SavepointRestoreError
from flinkpy.core.futures import Future
from flinkpy.core.ids import ExecutionAttemptId, OperatorId
from flinkpy.graph.checkpoint_messages import (
    BeginCheckpoint,
    CheckpointAborted,
    CheckpointCompleted,
    FinalCheckpointAwaited,
    FromTask,
    SnapshotFailed,
    SnapshotTaken,
)
from flinkpy.scheduler.protocol import (
    CheckpointAcknowledged,
    CheckpointAwaited,
    CheckpointDeclined,
    CheckpointStored,
    CheckpointStoreFailed,
    CoordinatorSnapshot,
    DiscardCheckpoint,
    DiscardOtherCheckpoints,
    Event,
    FailJob,
    NotifyCheckpointAborted,
    NotifyCheckpointComplete,
    ResetCoordinators,
    RestoreFrom,
    StartScheduling,
    StoreCheckpoint,
    TriggerCheckpoint,
)
from flinkpy.state.checkpoints.checkpoint_storage import CheckpointStorage

log = logging.getLogger("flinkpy.jobmaster")

RunInBackground = Callable[[Callable[[], None]], "Future[None]"]
Work = Callable[[], "tuple[Event, ...] | None"]  # gives the events that follow from it


def event_of(attempt_id: ExecutionAttemptId, message: FromTask) -> Event:
    """What a task says about checkpoints, as the scheduler hears it."""
    if isinstance(message, SnapshotTaken):
        return CheckpointAcknowledged(attempt_id, message.checkpoint_id, message.snapshot)
    if isinstance(message, SnapshotFailed):
        return CheckpointDeclined(attempt_id, message.checkpoint_id, message.reason)
    assert isinstance(message, FinalCheckpointAwaited)
    return CheckpointAwaited(attempt_id)


class FileWork:
    """Work with files, off the main thread and in order. The events that a piece of work names are fed in the main thread when it is done."""

    def __init__(self, run_in_background: RunInBackground, feed: Callable[[Event], None]) -> None:
        self._run_in_background, self._feed = run_in_background, feed
        self._todo: deque[Work] = deque()
        self._done: deque[Event] = deque()
        self._one_at_a_time = threading.Lock()
        self._running = False
        self._when_idle: Callable[[], None] | None = None

    def add(self, work: Work) -> None:
        self._todo.append(work)
        self._go_on()

    def when_idle(self, action: Callable[[], None]) -> None:
        """Calls the action when all is done; at once if nothing is left."""
        self._when_idle = action
        self._go_on()

    def _go_on(self) -> None:
        if self._running:
            return
        if self._todo:
            self._running = True
            self._run_in_background(self._work).add_done_callback(lambda future: self._worked())
        elif self._when_idle is not None:
            action, self._when_idle = self._when_idle, None
            action()

    def _work(self) -> None:
        with self._one_at_a_time:
            while self._todo:
                work = self._todo.popleft()
                try:
                    self._done.extend(work() or ())
                except Exception:
                    log.warning("a file of a checkpoint could not be deleted", exc_info=True)

    def _worked(self) -> None:
        self._running = False
        while self._done:
            self._feed(self._done.popleft())
        self._go_on()


class CheckpointActions:
    """Carries out the commands of the checkpoint coordinator. All calls come from the main thread.

    ``send(attempt, None, message)`` tells a task.
    """

    def __init__(
        self, storage: CheckpointStorage, send: Callable[[ExecutionAttemptId, OperatorId | None, Any], None],
        coordinators: SourceCoordinators, run_in_background: RunInBackground, feed: Callable[[Event], None],
    ) -> None:
        self._storage, self._send, self._coordinators, self._feed = storage, send, coordinators, feed
        self._files = FileWork(run_in_background, feed)

    def begin(self, path: str | None, allow_non_restored: bool, claim: bool, start: StartScheduling) -> None:
        """Has the job start, from the checkpoint at this path if there is one."""
        if path is None:
            self._feed(start)
        else:
            self._files.add(lambda: (self._found(path, allow_non_restored, claim), start))

    def _found(self, path: str, allow_non_restored: bool, claim: bool) -> Event:
        try:
            return RestoreFrom(self._storage.find(path), allow_non_restored, claim)
        except (FlinkpyError, OSError) as error:
            return FailJob(SavepointRestoreError(f"the job cannot start from {path}: {error}"))

    def trigger_checkpoint(self, command: TriggerCheckpoint) -> None:
        """The enumerators' state is that of now: splits that they assign later are behind the barriers of their readers."""
        try:
            states = self._coordinators.snapshot(command.checkpoint_id, command.coordinators)
        except FlinkpyError as error:
            self._feed(FailJob(error))
            return
        for attempt_id in command.attempts:
            self._send(attempt_id, None, BeginCheckpoint(command.checkpoint_id, command.timestamp_ms))
        self._files.add(lambda: self._write_coordinators(command.checkpoint_id, states))

    def _write_coordinators(self, checkpoint_id: int, states: Mapping[OperatorId, bytes]) -> tuple[Event, ...]:
        try:
            with self._storage.state_writer(checkpoint_id, "coordinators", 0) as writer:
                handles = {operator_id: writer.write(state) for operator_id, state in states.items()}
        except Exception as error:
            return (CheckpointStoreFailed(checkpoint_id, error),)
        return (CoordinatorSnapshot(checkpoint_id, handles),)

    def store_checkpoint(self, command: StoreCheckpoint) -> None:
        def store() -> tuple[Event, ...]:
            try:
                return (CheckpointStored(command.checkpoint.checkpoint_id, self._storage.store(command.checkpoint).location),)
            except Exception as error:
                return (CheckpointStoreFailed(command.checkpoint.checkpoint_id, error),)

        self._files.add(store)

    def discard_checkpoint(self, command: DiscardCheckpoint) -> None:
        checkpoint, storage = command.checkpoint, self._storage
        if checkpoint.location is not None:
            self._files.add(partial(storage.discard, checkpoint))
        else:
            self._files.add(partial(storage.discard_unfinished, checkpoint.checkpoint_id))

    def discard_others(self, command: DiscardOtherCheckpoints) -> None:
        self._files.add(partial(self._storage.discard_others, command.kept))

    def notify_complete(self, command: NotifyCheckpointComplete) -> None:
        self._coordinators.checkpoint_completed(command.checkpoint_id)
        for attempt_id in command.attempts:
            self._send(attempt_id, None, CheckpointCompleted(command.checkpoint_id))

    def notify_aborted(self, command: NotifyCheckpointAborted) -> None:
        for attempt_id in command.attempts:
            self._send(attempt_id, None, CheckpointAborted(command.checkpoint_id))

    def reset_coordinators(self, command: ResetCoordinators) -> None:
        """Their state is small, so the main thread reads it."""
        reader = self._storage.reader(command.location)
        try:
            states = {operator_id: reader.read(handle) for operator_id, handle in command.states.items()}
        except (FlinkpyError, OSError) as error:
            self._feed(FailJob(error))
        else:
            self._coordinators.reset_attempts(command, states)

    def when_idle(self, action: Callable[[], None]) -> None:
        """Calls the action when all files are written and deleted."""
        self._files.when_idle(action)
