"""A thread of its own for a task: it runs actions one after the other, in the order in which they
came."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import Context
from queue import SimpleQueue

from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.runtime.loop.loop_port import LoopTask

LOG = engine_logger(__name__)

Action = Callable[[], None]


class _Here(threading.local):
    task: LoopTask | None = None


_HERE = _Here()


def task_of_this_thread() -> LoopTask | None:
    """The task whose own thread the caller is in."""
    return _HERE.task


class TaskThread:
    """Starts at once, in ``context``, so that what belongs to a thread's context (such as
    ``decimal``'s) is as in the slot loop's thread. Ends behind what it was given before ``end``."""

    def __init__(self, task: LoopTask, name: str, context: Context) -> None:
        self._actions: SimpleQueue[Action | None] = SimpleQueue()
        self._task = task
        self._thread = threading.Thread(
            target=context.run, args=(self._run,), name=name, daemon=True
        )
        self._thread.start()
        self.thread_id = self._thread.ident

    def put(self, action: Action) -> None:
        """From any thread."""
        self._actions.put(action)

    def end(self) -> None:
        """From any thread."""
        self._actions.put(None)

    def join(self, timeout_s: float) -> bool:
        """Whether it has ended, within so many seconds."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        _HERE.task = self._task
        while (action := self._actions.get()) is not None:
            try:
                action()
            except BaseException:  # what a user's function raises in a step, the task takes
                LOG.exception("%s: an action raised", self._thread.name)

    def __repr__(self) -> str:
        return f"<TaskThread {self._thread.name}>"
