"""SchedulerDriver: feeds the scheduler events, one at a time, and has its commands carried out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from flinkpy.actors.rpc.service import Cancellable
from flinkpy.core.clock import Clock
from flinkpy.scheduler.protocol import Command, Event, SetTimer, TimerFired
from flinkpy.scheduler.scheduler import Scheduler


class SchedulerDriver:
    """All calls come from the JobMaster's main thread. Carrying out a command may cause further
    events: they are queued behind it.

    ``carry_out(commands)`` does what the scheduler decided, ``schedule(delay_s, action)`` is the
    main thread's timer, ``on_error`` gets the error that the scheduler or a command raised, and
    ``handled`` is called when an event was handled, before its commands are carried out."""

    def __init__(
        self,
        scheduler: Scheduler,
        clock: Clock,
        schedule: Callable[[float, Callable[[], None]], Cancellable],
        carry_out: Callable[[list[Command]], None],
        on_error: Callable[[Exception], object],
        handled: Callable[[], None] = lambda: None,
    ) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._schedule = schedule
        self._carry_out = carry_out
        self._on_error = on_error
        self._handled = handled
        self._events: deque[Event] = deque()
        self._timers: dict[str, Cancellable] = {}
        self._feeding = False
        self._closed = False

    def feed(self, *events: Event) -> None:
        """Hands these events to the scheduler and carries out its commands. Once closed, the driver
        drops events."""
        self._events.extend(events)
        if self._feeding:
            return
        self._feeding = True
        try:
            while self._events and not self._closed:
                commands = self._scheduler.handle(self._events.popleft(), self._clock.monotonic())
                self._handled()
                if commands:
                    self._carry_out(commands)
        except Exception as error:
            self._on_error(error)
        finally:
            self._feeding = False

    def set_timer(self, command: SetTimer) -> None:
        """Feeds TimerFired after the command's delay. An earlier timer of the same id is
        cancelled."""
        earlier = self._timers.pop(command.timer_id, None)
        if earlier is not None:
            earlier.cancel()

        def fire() -> None:
            self._timers.pop(command.timer_id, None)
            self.feed(TimerFired(command.timer_id))

        self._timers[command.timer_id] = self._schedule(command.delay_s, fire)

    def close(self) -> None:
        """Feeds the scheduler nothing more."""
        self._closed = True
        self._events.clear()
        for timer in self._timers.values():
            timer.cancel()
