"""Processing-time timers of a task: they run as mail in the task's own step, and end with the
task."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.core.clock import Clock
from flinkpy.core.reactor import Reactor, ReactorTimer

Action = Callable[[], None]


class TaskTimer:
    """One call to come."""

    __slots__ = ("_action", "_owner", "due_s", "handle")

    def __init__(self, owner: TaskTimers, due_s: float, action: Action) -> None:
        self._owner = owner
        self._action: Action | None = action
        self.due_s = due_s  # of the monotonic clock
        self.handle: ReactorTimer | None = None

    def cancel(self) -> None:
        self._action = None
        self._owner.forget(self)
        if self.handle is not None:
            self.handle.cancel()

    def due(self) -> None:
        self._owner.post(self._fire)

    def fire_at_once(self) -> None:
        """Without waiting for the mail, which does nothing when it comes."""
        if self.handle is not None:
            self.handle.cancel()
        self._fire()

    def _fire(self) -> None:
        self._owner.forget(self)
        action, self._action = self._action, None
        if action is not None:  # it may have been cancelled while its mail was waiting
            action()


class TaskTimers:
    """Implements ProcessingTimeService. ``post`` puts an action into the task's mailbox."""

    def __init__(self, reactor: Reactor, post: Callable[[Action], object]) -> None:
        self._reactor, self.post = reactor, post
        self._clock: Clock = reactor.clock
        self._pending: dict[TaskTimer, None] = {}  # in the order they were set
        self._quiesced = False

    def now_ms(self) -> int:
        return self._clock.time_ms()

    def call_later(self, delay_s: float, action: Action) -> TaskTimer:
        """Calls the action in so many seconds; never, once quiesced."""
        timer = TaskTimer(self, self._clock.monotonic() + max(0.0, delay_s), action)
        if not self._quiesced:
            self._pending[timer] = None
            timer.handle = self._reactor.call_later(delay_s, timer.due)
        return timer

    def forget(self, timer: TaskTimer) -> None:
        self._pending.pop(timer, None)

    def fire_due(self) -> None:
        """Fires those that are due now, in the order of their moments. What they set anew has to
        wait."""
        now_s = self._clock.monotonic()
        for timer in sorted(
            (each for each in self._pending if each.due_s <= now_s), key=lambda each: each.due_s
        ):
            timer.fire_at_once()

    def quiesce(self) -> None:
        """Cancels all timers and takes no new ones."""
        self._quiesced = True
        for timer in list(self._pending):
            timer.cancel()

    @property
    def pending(self) -> int:
        return len(self._pending)

    def __repr__(self) -> str:
        return f"<TaskTimers: {len(self._pending)} pending{', quiesced' if self._quiesced else ''}>"
