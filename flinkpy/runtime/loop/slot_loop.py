"""The slot loop: one thread that runs the mailboxes of all tasks of a slot, with one poller for
sockets, timers and wake-ups.

A task that has work stands in the ready queue and gets one bounded step per round. When no task is
ready the loop waits in its poller, and nowhere else, until a socket, a timer or another thread has
work for it. While tasks are ready it polls the sockets only every now and then, without waiting: a
system call after every step would cost more than most steps do, and it releases the interpreter
lock each time.

Polling often also starves the other threads of the process. A thread that wants the interpreter
lock waits for the switch interval (``sys.setswitchinterval``); when the lock is released for a
moment in between, it wakes up too late to get it and starts to wait again. So a busy loop polls
less often when there is nothing to be found, in the end less often than the switch interval."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from flinkpy.core.clock import SYSTEM_CLOCK, Clock
from flinkpy.core.errors import EngineError
from flinkpy.core.reactor import P, Pollable
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.runtime.loop.loop_port import LoopTask
from flinkpy.runtime.loop.poller import Poller, make_poller
from flinkpy.runtime.loop.socket_watcher import SocketWatcher
from flinkpy.runtime.loop.timer_heap import LoopTimer, TimerHeap
from flinkpy.runtime.loop.yield_policy import YieldPolicy

LOG = engine_logger(__name__)

POLL_INTERVAL_S = 200e-6  # after a poll that found something
# after many that found nothing: longer than Python's switch interval of 5 ms
QUIET_POLL_INTERVAL_S = 6.4e-3
MAX_WAIT_S = 3600.0

Action = Callable[[], None]


@dataclass(frozen=True)
class LoopStatistics:
    """What a loop holds now, and what it has done."""

    ready: int
    timers: int
    sockets: int
    steps: int
    waits: int


class _PollPacing:
    """When a loop that has tasks to step looks at its sockets: ``next``, which is found out in the
    first round after a poll."""

    __slots__ = ("interval", "next")

    def __init__(self) -> None:
        self.interval = POLL_INTERVAL_S
        self.next: float | None = None


class SlotLoop:
    """Implements ``flinkpy.runtime.loop.loop_port.Loop``.

    Its thread starts with ``start`` and ends with ``stop``; in between, other threads may call only
    ``call_soon_threadsafe`` and ``schedule_threadsafe``. A test may run rounds itself instead, with
    ``run_once``."""

    def __init__(
        self,
        name: str = "slot-loop",
        clock: Clock = SYSTEM_CLOCK,
        yield_policy: YieldPolicy | None = None,
        poller: Poller | None = None,
    ) -> None:
        self.name, self.clock = name, clock
        self._ready: deque[LoopTask] = deque()
        self._soon: deque[Action] = deque()
        self._timers = TimerHeap()
        self._watcher = SocketWatcher(name, poller or make_poller())
        self.stepping: LoopTask | None = None
        self._stopping = False
        self._thread: threading.Thread | None = None
        self.thread_id: int | None = None
        self._polls = _PollPacing()
        self._steps = self._waits = 0
        self._yield_policy = yield_policy or YieldPolicy()
        self.maybe_yield: Callable[[], None] = self._yield_policy.maybe_yield  # a part of Reactor

    # -- Reactor -----------------------------------------------------------------------------------

    def add_reader(self, stream: Pollable, callback: Action) -> None:
        self._watcher.add_reader(stream, callback)

    def remove_reader(self, stream: Pollable) -> None:
        self._watcher.remove_reader(stream)

    def add_writer(self, stream: Pollable, callback: Action) -> None:
        self._watcher.add_writer(stream, callback)

    def remove_writer(self, stream: Pollable) -> None:
        self._watcher.remove_writer(stream)

    def call_later(self, delay_s: float, action: Action) -> LoopTimer:
        return self._timers.add(
            self.clock.monotonic() + (delay_s if delay_s > 0.0 else 0.0), action
        )

    def call_soon(self, action: Action) -> None:
        self._soon.append(action)

    def call_soon_threadsafe(self, action: Action) -> None:
        self._soon.append(action)
        self._watcher.interrupt()

    def bind(self, callback: Callable[P, None]) -> Callable[P, None]:
        def call(*args: P.args, **keywords: P.kwargs) -> None:
            if self.is_here():
                callback(*args, **keywords)
            else:
                self.call_soon_threadsafe(partial(callback, *args, **keywords))

        return call

    def is_here(self) -> bool:
        """Whether the caller is in the loop's thread. A loop without one belongs to whoever runs
        its rounds."""
        return self.thread_id is None or self.thread_id == threading.get_ident()

    # -- tasks -------------------------------------------------------------------------------------

    def schedule(self, task: LoopTask) -> None:
        """In the loop's thread: the task has something to do."""
        if not task.scheduled:
            task.scheduled = True
            self._ready.append(task)

    def schedule_threadsafe(self, task: LoopTask) -> None:
        """The same from any thread."""
        if self.thread_id is not None and self.thread_id != threading.get_ident():
            self.call_soon_threadsafe(lambda: self.schedule(task))
        elif (
            not task.scheduled
        ):  # inlined from schedule(): every batch from another process passes here
            task.scheduled = True
            self._ready.append(task)

    # -- running -----------------------------------------------------------------------------------

    def start(self) -> None:
        if self._thread is not None:
            raise EngineError(f"{self.name} was started already")
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()
        self.thread_id = self._thread.ident

    def stop(self, timeout_s: float = 10.0) -> bool:
        """Ends the thread behind the calls that are queued now, and closes the poller; False if
        user code blocks the thread for longer."""
        self.call_soon_threadsafe(self._stop)
        if self._thread is None:
            self._stop()
            self._watcher.close()
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _stop(self) -> None:
        self._stopping = True

    def _run(self) -> None:
        self.thread_id = threading.get_ident()
        try:
            while not self._stopping:
                self.run_once()
            # what came with the end, such as a connection that is to be closed
            for _ in range(len(self._soon)):
                self._call(self._soon.popleft())
        finally:
            self._watcher.close()

    def run_once(self, may_wait: bool = True) -> None:
        """One round: calls, due timers, a step for each ready task, then the poller."""
        for _ in range(len(self._soon)):
            self._call(self._soon.popleft())
        if self._timers.heap:
            now = self.clock.monotonic()
            while (action := self._timers.take_due(now)) is not None:
                self._call(action)
        ready = self._ready
        for _ in range(len(ready)):
            task = self.stepping = ready.popleft()
            task.scheduled = False
            self._steps += 1
            try:
                more = task.step()
            except BaseException as error:  # the loop serves other tasks too
                more = False
                self._crash(task, error)
            if more and not task.scheduled:
                task.scheduled = True
                ready.append(task)
        self.stepping = None
        self._yield_policy.has_slept = False
        if not (ready or self._soon or self._stopping) and may_wait:
            self._wait()
        elif not ready:
            self._look()
        else:
            now, polls = self.clock.monotonic(), self._polls
            if polls.next is None:  # the first round after a poll
                polls.next = now + polls.interval
            if now >= polls.next:
                self._look()

    def _look(self) -> None:
        """Polls between two rounds, without waiting. If that found nothing, the next poll comes
        after twice the time."""
        found, polls = self._poll(0.0), self._polls
        polls.interval = (
            POLL_INTERVAL_S if found else min(2 * polls.interval, QUIET_POLL_INTERVAL_S)
        )

    def _wait(self) -> None:
        due = self._timers.next_due() if self._timers.heap else None
        timeout = (
            MAX_WAIT_S if due is None else min(MAX_WAIT_S, max(0.0, due - self.clock.monotonic()))
        )
        self._waits += 1
        self._yield_policy.has_slept = True
        # set before ``_soon`` is read: a thread that appends to it after that interrupts the poller
        self._watcher.waiting = True
        self._poll(0.0 if self._soon else timeout)

    def _poll(self, timeout: float) -> bool:
        """Serves the sockets; gives whether there were any to serve."""
        events = self._watcher.poll(timeout)
        self._watcher.waiting = False
        self._polls.next = None
        self._watcher.dispatch(events)
        return bool(events)

    def _call(self, action: Action) -> None:
        """Calls it; what it raises is logged and does not end the loop."""
        try:
            action()
        except Exception:
            LOG.exception("%s: a callback raised", self.name)

    def _crash(self, task: LoopTask, error: BaseException) -> None:
        # a bug; or the user's code wants to exit, which the task reports
        level = logging.ERROR if isinstance(error, Exception) else logging.DEBUG
        LOG.log(level, "the step of %r raised", task, exc_info=True)
        self._call(lambda: task.crashed(error))

    @property
    def current_task(self) -> LoopTask | None:
        """The task whose step the calling thread is in."""
        return self.stepping if self.thread_id == threading.get_ident() else None

    def statistics(self) -> LoopStatistics:
        return LoopStatistics(
            len(self._ready), self._timers.pending, self._watcher.sockets, self._steps, self._waits
        )

    def __repr__(self) -> str:
        return f"<SlotLoop {self.name}: {self.statistics()}>"
