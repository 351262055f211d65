"""A slot loop, as the tasks in it and their runner see it: one thread, in which each task with work
gets one bounded step in turn. A task may have its steps run in a thread of its own meanwhile
(``task_home``).

``flinkpy.runtime.loop.slot_loop`` is a thread with a poller; the one of
``flinkpy.testing.simulation`` turns in virtual time, when a seed decides."""

from __future__ import annotations

from typing import Protocol

from flinkpy.core.reactor import Reactor


class LoopTask(Protocol):
    """What the loop runs, one bounded step at a time."""

    scheduled: bool  # set by the loop: the task is in the ready queue

    def step(self) -> bool:
        """Does some work; True if there is more to do now."""
        ...

    def crashed(self, error: BaseException) -> None:
        """Called when ``step`` raised, which it must not: the task has to end."""
        ...


class Loop(Reactor, Protocol):
    """Runs tasks, beside what a reactor does.

    Any thread may read ``thread_id``, None while the loop has no thread, and ``stepping``, the task
    whose step it is in. Both may be old at once."""

    thread_id: int | None
    stepping: LoopTask | None

    def start(self) -> None:
        """From now on the loop turns."""
        ...

    def stop(self, timeout_s: float = 10.0) -> bool:
        """Ends it behind the calls that are queued now; False if user code blocks it for longer
        than ``timeout_s`` seconds."""
        ...

    def schedule_threadsafe(self, task: LoopTask) -> None:
        """From any thread: the task has something to do."""
        ...

    @property
    def current_task(self) -> LoopTask | None:
        """The task whose step the caller is in."""
        ...
