"""The slot loop: one thread that runs the mailboxes of all tasks placed in it, with one selector for sockets, timers and wake-ups.

A task that has work stands in the ready queue and gets one bounded step per round. When nothing is ready the loop waits in its selector,
and nowhere else, until a socket, a timer or another thread has something for it. While tasks are ready it looks at the sockets every so
often, without waiting: a system call per step would cost more than most steps do, and gives the interpreter lock away each time.

That also starves the other threads of the process: each time, who waits for the lock begins its patience (``sys.setswitchinterval``) anew, and is too
late for the moment in which it was free. So a busy loop looks less often when there is nothing to be seen: in the end less often than patience lasts.
"""

from __future__ import annotations

import heapq
import itertools
import logging
import socket
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from flinkpy.core.clock import SYSTEM_CLOCK, Clock
from flinkpy.core.errors import EngineError
from flinkpy.runtime.loop.poller import READABLE, WRITABLE, make_poller
from flinkpy.runtime.loop.yield_policy import Courtesy

LOG = logging.getLogger(__name__)

POLL_INTERVAL_S = 200e-6  # after a look that found something
QUIET_POLL_INTERVAL_S = 6.4e-3  # after many that found nothing: longer than Python's switch interval of 5 ms
MAX_WAIT_S = 3600.0

Action = Callable[[], None]


class LoopTask(Protocol):
    """What the loop runs: one bounded step at a time, which says whether there is more to do now."""

    scheduled: bool  # kept by the loop: stands in the ready queue

    def step(self) -> bool: ...

    def crashed(self, error: BaseException) -> None:
        """Its step raised, which it must not: the task has to end."""
        ...


class _Watched:
    """A socket's callbacks."""

    __slots__ = ("fd", "reader", "writer")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.reader: Action | None = None
        self.writer: Action | None = None

    @property
    def events(self) -> int:
        return (READABLE if self.reader is not None else 0) | (WRITABLE if self.writer is not None else 0)


class LoopTimer:
    """One call to come."""

    __slots__ = ("action", "when")

    def __init__(self, when: float, action: Action) -> None:
        self.when = when
        self.action: Action | None = action

    def cancel(self) -> None:
        self.action = None


@dataclass(frozen=True)
class LoopStatistics:
    """What a loop holds now, and what it has done."""

    ready: int
    timers: int
    sockets: int
    steps: int
    waits: int


class SlotLoop:
    """Implements ``flinkpy.core.reactor.Reactor``.

    Its thread starts with ``start`` and ends with ``stop``; in between, only ``call_soon_threadsafe`` and ``schedule_threadsafe`` may be
    called from other threads. A test may run rounds itself instead, with ``run_once``.
    """

    def __init__(self, name: str = "slot-loop", clock: Clock = SYSTEM_CLOCK, courtesy: Courtesy | None = None) -> None:
        self.name, self.clock = name, clock
        self._ready: deque[LoopTask] = deque()
        self._soon: deque[Action] = deque()
        self._timers: list[tuple[float, int, LoopTimer]] = []
        self._order = itertools.count()
        self._sockets: dict[socket.socket, _Watched] = {}
        self._by_fd: dict[int, _Watched] = {}
        self._poller = make_poller()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._wake_receiver.setblocking(False)
        self._wake_sender.setblocking(False)
        self.add_reader(self._wake_receiver, self._drain_wake_ups)
        self._waiting = False
        self._stepping: LoopTask | None = None
        self._stopping = False
        self._closed = False
        self._thread: threading.Thread | None = None
        self._thread_id: int | None = None
        self._next_poll: float | None = None
        self._poll_interval = POLL_INTERVAL_S
        self._steps = self._waits = 0
        self._courtesy = courtesy or Courtesy()
        self.give_way = self._courtesy.give_way  # type: ignore[method-assign]  # one call less per message

    # -- Reactor ---------------------------------------------------------------------------------------------------------

    def add_reader(self, sock: socket.socket, callback: Action) -> None:
        self._watch(sock, callback, self._watched(sock).writer)

    def remove_reader(self, sock: socket.socket) -> None:
        if sock in self._sockets:
            self._watch(sock, None, self._sockets[sock].writer)

    def add_writer(self, sock: socket.socket, callback: Action) -> None:
        self._watch(sock, self._watched(sock).reader, callback)

    def remove_writer(self, sock: socket.socket) -> None:
        if sock in self._sockets:
            self._watch(sock, self._sockets[sock].reader, None)

    def _watched(self, sock: socket.socket) -> _Watched:
        return self._sockets.get(sock) or _Watched(sock.fileno())

    def _watch(self, sock: socket.socket, reader: Action | None, writer: Action | None) -> None:
        """Brings the poller in line with the callbacks of one socket."""
        watched = self._watched(sock)
        known = watched.events
        watched.reader, watched.writer = reader, writer
        wanted = watched.events
        if not known:
            self._poller.register(watched.fd, wanted)
            self._sockets[sock] = self._by_fd[watched.fd] = watched
        elif not wanted:
            self._poller.unregister(watched.fd)
            del self._sockets[sock], self._by_fd[watched.fd]
        elif known != wanted:
            self._poller.modify(watched.fd, wanted)

    def call_later(self, delay_s: float, action: Action) -> LoopTimer:
        timer = LoopTimer(self.clock.monotonic() + (delay_s if delay_s > 0.0 else 0.0), action)
        heapq.heappush(self._timers, (timer.when, next(self._order), timer))
        return timer

    def call_soon(self, action: Action) -> None:
        self._soon.append(action)

    def give_way(self) -> None:
        self._courtesy.give_way()

    def call_soon_threadsafe(self, action: Action) -> None:
        self._soon.append(action)
        if self._waiting:
            self._wake_up()

    def _wake_up(self) -> None:
        try:
            self._wake_sender.send(b"\0")
        except BlockingIOError:
            pass  # so many wake-ups are under way that this one is not needed
        except OSError:
            pass  # closed: nobody is there to wake

    # -- tasks -----------------------------------------------------------------------------------------------------------

    def schedule(self, task: LoopTask) -> None:
        """The task has something to do; in the loop's thread."""
        if not task.scheduled:
            task.scheduled = True
            self._ready.append(task)

    def schedule_threadsafe(self, task: LoopTask) -> None:
        """The same from any thread."""
        if self._thread_id is not None and self._thread_id != threading.get_ident():
            self.call_soon_threadsafe(lambda: self.schedule(task))
        elif not task.scheduled:  # as in schedule(): every batch that comes from another process passes here
            task.scheduled = True
            self._ready.append(task)

    # -- running -----------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        if self._thread is not None:
            raise EngineError(f"{self.name} was started already")
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self._thread.start()
        self._thread_id = self._thread.ident

    def stop(self, timeout_s: float = 10.0) -> bool:
        """Ends the thread after what is queued now and gives back the selector; False if it did not end in time (user code that blocks)."""
        self.call_soon_threadsafe(self._stop)
        if self._thread is None:
            self._stop()
            self._close()
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _stop(self) -> None:
        self._stopping = True

    def _run(self) -> None:
        self._thread_id = threading.get_ident()
        try:
            while not self._stopping:
                self.run_once()
            for _ in range(len(self._soon)):  # what came with the end, such as a connection that is to be closed
                self._guarded(self._soon.popleft())
        finally:
            self._close()

    def run_once(self, may_wait: bool = True) -> None:
        """One round: calls, due timers, a step for each ready task, then the selector."""
        for _ in range(len(self._soon)):
            self._guarded(self._soon.popleft())
        if self._timers:
            self._fire_timers()
        ready = self._ready
        for _ in range(len(ready)):
            task = self._stepping = ready.popleft()
            task.scheduled = False
            self._steps += 1
            try:
                more = task.step()
            except BaseException as error:  # the loop serves others too
                more = False
                self._crashed(task, error)
            if more and not task.scheduled:
                task.scheduled = True
                ready.append(task)
        self._stepping = None
        self._courtesy.has_slept = False
        if ready or self._soon or self._stopping or not may_wait:
            if not ready or self._poll_is_due():
                self._look()
        else:
            self._wait()

    def _poll_is_due(self) -> bool:
        """Whether enough time has passed since the first round after the last look at the sockets."""
        now = self.clock.monotonic()
        if self._next_poll is None:
            self._next_poll = now + self._poll_interval
        return now >= self._next_poll

    def _look(self) -> None:
        """At the sockets, between two steps; twice as long to the next look after one that found nothing."""
        found = self._poll(0.0)
        self._poll_interval = POLL_INTERVAL_S if found else min(2 * self._poll_interval, QUIET_POLL_INTERVAL_S)

    def _crashed(self, task: LoopTask, error: BaseException) -> None:
        level = logging.ERROR if isinstance(error, Exception) else logging.DEBUG  # a bug; or an exit of the user's, which the task tells
        LOG.log(level, "the step of %r raised", task, exc_info=True)
        self._guarded(partial(task.crashed, error))

    @property
    def current_task(self) -> LoopTask | None:
        """The task whose step the calling thread is in."""
        return self._stepping if self._thread_id == threading.get_ident() else None

    def _fire_timers(self) -> None:
        now = self.clock.monotonic()
        timers = self._timers
        while timers and (timers[0][0] <= now or timers[0][2].action is None):
            action = heapq.heappop(timers)[2].action
            if action is not None:
                self._guarded(action)

    def _wait(self) -> None:
        while self._timers and self._timers[0][2].action is None:
            heapq.heappop(self._timers)
        timeout = min(MAX_WAIT_S, self._timers[0][0] - self.clock.monotonic()) if self._timers else MAX_WAIT_S
        self._waits += 1
        self._courtesy.has_slept = True
        self._waiting = True  # said before looking: who appends after this look wakes the selector
        self._poll(0.0 if self._soon else max(0.0, timeout))
        self._waiting = False

    def _poll(self, timeout: float) -> bool:
        """Whether there was something."""
        events = self._poller.poll(timeout)
        self._waiting = False
        self._next_poll = None
        for fd, mask in events:
            watched = self._by_fd.get(fd)
            if watched is None:
                continue  # another callback of this round closed it
            if watched.reader is not None and mask & ~WRITABLE:  # an error or a hang-up is for both
                try:
                    watched.reader()  # guarded too, without the call: every frame comes this way
                except Exception:
                    LOG.exception("%s: a callback raised", self.name)
            if watched.writer is not None and mask & ~READABLE:
                self._guarded(watched.writer)
        return bool(events)

    def _drain_wake_ups(self) -> None:
        try:
            while len(self._wake_receiver.recv(4096)) == 4096:
                pass
        except BlockingIOError:
            pass

    def _guarded(self, action: Action) -> None:
        """Calls it; what it raises is logged and does not end the loop."""
        try:
            action()
        except Exception:
            LOG.exception("%s: a callback raised", self.name)

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            self._poller.close()
            self._wake_receiver.close()
            self._wake_sender.close()

    def statistics(self) -> LoopStatistics:
        timers = sum(timer.action is not None for _, _, timer in list(self._timers))
        sockets = len(self._sockets) - 1  # without the loop's own
        return LoopStatistics(len(self._ready), timers, sockets, self._steps, self._waits)

    def __repr__(self) -> str:
        return f"<SlotLoop {self.name}: {self.statistics()}>"
