"""When a TaskExecutor reports to a JobMaster. It only decides.

What somebody waits for goes at once. What counts only together with the same of all tasks here
waits for these, at most a tick: that they run, and that they have taken their part in a checkpoint.
So ten tasks make one message, and nothing comes later for it: the last of them is what the
JobMaster waits for, and it does not wait."""

from __future__ import annotations

from flinkpy.core.ids import ExecutionAttemptId
from flinkpy.core.lifecycles import ExecutionState
from flinkpy.graph.checkpoint_messages import SnapshotTaken
from flinkpy.graph.deployment import TaskExecutionState
from flinkpy.runtime.task_messages import MessageFromTask
from flinkpy.scheduler.execution_model import TERMINAL

TICK_S = 0.1
CHECKPOINTS = 8  # so many are looked at, of those under way the newest


class ReportPace:
    """Of one job. ``sent`` says that a report has all that came before."""

    def __init__(self) -> None:
        self._running: set[ExecutionAttemptId] = set()
        self._taken: dict[int, set[ExecutionAttemptId]] = {}  # by checkpoint, who took part
        self._goes_at_once = False
        self._has_starts = False
        self._checkpoints: set[int] = set()  # of which something waits
        self._waits_since: float | None = None

    def state_changed(self, state: TaskExecutionState, now: float) -> None:
        """A task's new state is to be reported."""
        self._wait_from(now)
        self._has_starts = True
        if state.state is ExecutionState.RUNNING:
            self._running.add(state.attempt_id)
        elif state.state in TERMINAL:
            self._running.discard(state.attempt_id)
            self._goes_at_once = True

    def message_said(
        self, attempt_id: ExecutionAttemptId, message: MessageFromTask, now: float
    ) -> None:
        """A task's message is to be sent."""
        self._wait_from(now)
        if not isinstance(message, SnapshotTaken):
            self._goes_at_once = True
            return
        checkpoint_id = message.checkpoint_id
        self._taken.setdefault(checkpoint_id, set()).add(attempt_id)
        self._checkpoints.add(checkpoint_id)
        if len(self._taken) > CHECKPOINTS:
            del self._taken[min(self._taken)]

    def wait_s(self, tasks: int, now: float) -> float:
        """For how long to wait with the next report, if nothing more comes. ``tasks`` of the job
        are here."""
        if self._goes_at_once or self._waits_since is None or self._is_whole(tasks):
            return 0.0
        return max(0.0, self._waits_since + TICK_S - now)

    def _is_whole(self, tasks: int) -> bool:
        if self._has_starts and len(self._running) < tasks:
            return False
        return all(
            self._running <= self._taken.get(checkpoint_id, self._running)
            for checkpoint_id in self._checkpoints
        )

    def sent(self) -> None:
        for checkpoint_id in self._checkpoints:
            if self._running <= self._taken.get(checkpoint_id, self._running):
                self._taken.pop(checkpoint_id, None)
        self._checkpoints.clear()
        self._goes_at_once = self._has_starts = False
        self._waits_since = None

    def _wait_from(self, now: float) -> None:
        if self._waits_since is None:
            self._waits_since = now
