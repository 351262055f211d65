"""The thread in which a task's code runs: the slot loop's, in turn with the other tasks, or one of
its own.

A step in a thread of its own still has its turn. The loop gives it the turn and waits until it is
back, so that two threads do not fight for the interpreter lock. A handover costs some ten
microseconds, so a turn has as many short steps as fit into half a millisecond. The loop waits for
50 ms at most if the task's steps compute, and for 5 ms otherwise: then it goes on with the others,
and the step ends when it ends. For a task whose steps wait, it does not wait at all. So a function
that sleeps holds up nobody, and several of them sleep at the same time.

What happens to a task between its steps (an event, a cancellation, room in an output) is an action
in its thread: see ``run`` and ``bind``. A task changes its thread only between two actions, and
takes its actions with it."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from functools import partial

from flinkpy.core.clock import Clock, thread_time
from flinkpy.core.errors import TaskInterrupted
from flinkpy.core.reactor import P, Pollable, ReactorTimer
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.network.data_plane_reactor import HandedOverTimer
from flinkpy.runtime.loop.loop_port import Loop, LoopTask
from flinkpy.runtime.loop.step_pace import StepPace
from flinkpy.runtime.loop.task_thread import TaskThread

LOG = engine_logger(__name__)

Action = Callable[[], None]
# of short steps in a thread of its own, while there is more to do and nothing else for the task
TURN_S = 0.0005


class TaskHome:
    """The home of one task of ``loop``. Implements ``flinkpy.core.reactor.Reactor`` for the task;
    nothing there watches sockets."""

    def __init__(self, loop: Loop, task: LoopTask, name: str) -> None:
        self._loop = loop
        self._task = task
        self._name = name
        self.clock: Clock = loop.clock
        self._thread: TaskThread | None = None
        self._moves = False
        # it is in the loop's thread, and its steps need not be looked at: the task may run them
        # itself
        self.is_plain = True
        self._pace = StepPace()
        self._actions: deque[Action] = deque()
        self._lock = threading.Lock()  # of the four below
        self._is_away = False  # a step runs in the task's thread
        self._is_awaited = False  # and the loop waits for it
        self._is_wanted = False  # and another one is to follow
        self._has_more = False
        self._back = threading.Lock()  # the loop waits for this one
        self._back.acquire()

    # -- its thread --------------------------------------------------------------------------------

    def begin(self, *, has_thread: bool, moves: bool) -> None:
        """In the loop's thread, before the first step that runs the user's functions. With
        ``moves`` it may change its thread later, as its steps are; otherwise it stays where it
        begins."""
        self._moves = moves
        if has_thread and self._thread is None:
            self._move_out()

    @property
    def own_thread_id(self) -> int | None:
        """From any thread: the id of its own thread, if it has one."""
        thread = self._thread
        return None if thread is None else thread.thread_id

    @property
    def blocked_thread_id(self) -> int | None:
        """From any thread: its own thread, if a step runs there for which nobody waits."""
        return self.own_thread_id if self._is_away and not self._is_awaited else None

    @property
    def stepping_thread_id(self) -> int | None:
        """From any thread: its own thread, if a step runs there."""
        return self.own_thread_id if self._is_away else None

    @property
    def thread_id(self) -> int | None:
        return self.own_thread_id or self._loop.thread_id

    def is_here(self) -> bool:
        """Whether the caller is in the task's thread."""
        thread = self._thread
        if thread is not None:
            return thread.thread_id == threading.get_ident()
        return self._loop.thread_id is None or self._loop.thread_id == threading.get_ident()

    def _move_out(self) -> None:
        self._pace.settle()
        self.is_plain = False
        self._thread = TaskThread(self._task, self._name, copy_context())

    def _move_in(self) -> None:
        """In its own thread, at the end of an action, with the lock: from now on it belongs to the
        loop's thread."""
        thread, self._thread = self._thread, None
        self._pace.settle()
        self.is_plain = True
        if thread is not None:
            thread.end()

    def leave(self) -> None:
        """In the task's thread: it has ended. What still comes for it is told so in the loop's
        thread."""
        self._moves = False
        with self._lock:
            self._move_in()

    def join(self, timeout_s: float) -> bool:
        """Whether its own thread has ended, within so many seconds."""
        thread = self._thread
        return thread is None or thread.join(timeout_s)

    # -- steps -------------------------------------------------------------------------------------

    def step(self, step: Callable[[], bool]) -> bool:
        """In the loop's thread, when it is the task's turn: runs a step; True if there is more to
        do now."""
        if self._thread is None:
            return self._step_in_loop(step)
        patience_s = self._pace.patience_s
        with self._lock:
            if self._is_away:
                self._is_wanted = True
                return False
            thread = self._current_thread()
            if thread is not None:
                self._is_away, self._is_awaited = True, patience_s > 0
                thread.put(partial(self._step_in_thread, step))
        if thread is None:  # it moved in just now
            return self._step_in_loop(step)
        if not patience_s:
            return False
        if not self._back.acquire(timeout=patience_s):
            if self._goes_on_alone():
                return False
            self._back.acquire()  # it came back just now
        return self._has_more

    def _current_thread(self) -> TaskThread | None:
        return self._thread

    def _goes_on_alone(self) -> bool:
        """The loop waits no longer for the step. False, if there is nothing to wait for any
        more."""
        with self._lock:
            was_awaited, self._is_awaited = self._is_awaited, False
            return was_awaited

    def _step_in_loop(self, step: Callable[[], bool]) -> bool:
        if self.is_plain:
            return step()
        pace, clock = self._pace, self.clock
        began, used = clock.monotonic(), thread_time()
        try:
            return step()
        finally:
            pace.step_took(clock.monotonic() - began, thread_time() - used)
            self._look_at_pace()

    def step_was_long(self, seconds: float) -> None:
        """In the task's thread, at the end of a step that took at least ``NOTABLE_S``: it may be
        time for a thread of its own."""
        if self.is_plain and self._moves:
            self._pace.step_took(seconds)
            self._look_at_pace()

    def _look_at_pace(self) -> None:
        if self._moves and self._pace.needs_thread:
            self._move_out()
        else:
            self.is_plain = not (self._moves and self._pace.wants_cpu)

    def _step_in_thread(self, step: Callable[[], bool]) -> None:
        more = self._turn(step)
        with self._lock:
            if self._moves and self._pace.is_calm:
                self._move_in()
            self._is_away = False
            is_awaited, self._is_awaited = self._is_awaited, False
            more = more or self._is_wanted
            self._is_wanted = False
            self._has_more = more
        if is_awaited:
            self._back.release()
        elif more:
            self._loop.schedule_threadsafe(self._task)

    def _turn(self, step: Callable[[], bool]) -> bool:
        """As many short steps as fit into a turn, or a long one; True if there is more to do
        now."""
        clock, more = self.clock, True
        began, used = clock.monotonic(), thread_time()
        try:
            while more and not self._actions:
                more = step()
                if clock.monotonic() - began >= TURN_S:
                    break
        except TaskInterrupted:
            more = False  # its cancellation follows
        except BaseException as error:
            more = False
            # a bug; or the user's code wants to exit
            level = logging.ERROR if isinstance(error, Exception) else logging.DEBUG
            LOG.log(level, "the step of %r raised", self._task, exc_info=True)
            self._task.crashed(error)
        self._pace.step_took(clock.monotonic() - began, thread_time() - used)
        return more

    # -- actions between steps ---------------------------------------------------------------------

    def run(self, action: Action) -> None:
        """From any thread: runs the action in the task's, between two steps, behind the actions
        that came before."""
        self._actions.append(action)
        self._have_one_run()

    def _have_one_run(self) -> None:
        while True:
            thread = self._thread
            if thread is None:
                self._loop.call_soon_threadsafe(self._run_next)
            else:
                thread.put(self._run_next)
            # otherwise it moved meanwhile, and its old thread may have ended
            if self._thread is thread:
                return

    def _run_next(self) -> None:
        if not self.is_here():
            self._have_one_run()
        elif self._actions:
            self._actions.popleft()()

    def bind(self, callback: Callable[P, None]) -> Callable[P, None]:
        def call(*args: P.args, **keywords: P.kwargs) -> None:
            if self.is_here():
                callback(*args, **keywords)
            else:
                self.run(partial(callback, *args, **keywords))

        return call

    # -- the other calls of a reactor --------------------------------------------------------------

    def call_later(self, delay_s: float, action: Action) -> ReactorTimer:
        if self._thread is None and self.is_here():
            return self._loop.call_later(delay_s, self.bind(action))
        return HandedOverTimer(self._loop, delay_s, self.bind(action))

    def call_soon(self, action: Action) -> None:
        self.run(action)

    def call_soon_threadsafe(self, action: Action) -> None:
        self.run(action)

    def maybe_yield(self) -> None:
        if self._thread is None:
            self._loop.maybe_yield()

    def add_reader(self, stream: Pollable, callback: Action) -> None:
        raise NotImplementedError("tasks watch no sockets")

    def add_writer(self, stream: Pollable, callback: Action) -> None:
        raise NotImplementedError("tasks watch no sockets")

    def remove_reader(self, stream: Pollable) -> None:
        raise NotImplementedError("tasks watch no sockets")

    def remove_writer(self, stream: Pollable) -> None:
        raise NotImplementedError("tasks watch no sockets")

    def __repr__(self) -> str:
        return f"<TaskHome of {self._name}: {self._thread or self._loop!r}>"
