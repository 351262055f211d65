"""SchedulerDriver: feeds the scheduler events, one at a time, and has its commands carried out."""

from __future__ import annotations

from collections import deque
from typing import Protocol

from flinkpy.actors.rpc.service import Cancellable, Timers
from flinkpy.core.clock import Clock
from flinkpy.scheduler.protocol import Command, Event, SetTimer, TimerFired
from flinkpy.scheduler.scheduler import Scheduler


class SchedulerOwner(Protocol):
    """Does what the scheduler decides."""

    def event_handled(self) -> None:
        """An event was handled. Its commands are carried out next."""
        ...

    def carry_out(self, commands: list[Command]) -> None: ...

    def on_uncaught_error(self, error: Exception) -> bool:
        """The scheduler or a command has raised this."""
        ...


class Feed(Protocol):
    """``SchedulerDriver.feed``, as the parts of a JobMaster have it."""

    def __call__(self, *events: Event) -> None: ...


class SchedulerDriver:
    """All calls come from the JobMaster's main thread, of which ``timers`` are. Carrying out a
    command may cause further events: they are queued behind it."""

    def __init__(
        self, scheduler: Scheduler, clock: Clock, timers: Timers, owner: SchedulerOwner
    ) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._main_thread = timers
        self._owner = owner
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
                self._owner.event_handled()
                if commands:
                    self._owner.carry_out(commands)
        except Exception as error:
            self._owner.on_uncaught_error(error)
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

        self._timers[command.timer_id] = self._main_thread.schedule(command.delay_s, fire)

    def close(self) -> None:
        """Feeds the scheduler nothing more."""
        self._closed = True
        self._events.clear()
        for timer in self._timers.values():
            timer.cancel()
