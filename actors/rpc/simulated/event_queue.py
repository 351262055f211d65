"""One queue of events with virtual time: everything happens here, in an order that only the seed
decides.

An event belongs to a *place* (one endpoint's main thread, or a process outside of any) and does not
run when that place is gone. Time jumps from event to event; nothing waits. A hook is called after
each event, and a digest over all events tells whether two runs were the same."""

from __future__ import annotations

import heapq
import random
import zlib
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeVar

from flinkpy.core.errors import EngineError
from flinkpy.core.futures import Future

T = TypeVar("T")


class Place(Protocol):
    """Where an event runs."""

    alive: bool

    def escaped(self, error: Exception) -> bool:
        """Called with an error that escaped from an event of this place. Returns True when it is
        handled."""
        ...


class Event:
    """Something that will happen; ``action`` is None when cancelled."""

    __slots__ = ("action", "label", "place")

    def __init__(self, place: Place | None, action: Callable[[], object], label: str) -> None:
        self.place, self.label = place, label
        self.action: Callable[[], object] | None = action

    def cancel(self) -> None:
        self.action = None


class SimulationError(EngineError):
    """An event raised: a bug. The message has the seed that repeats the run and the events that led
    to it. The cause is chained."""


class SimulatedClock:
    """The clock of all endpoints in a simulation."""

    __slots__ = ("_simulation",)

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def monotonic(self) -> float:
        return self._simulation.now

    def time_ms(self) -> int:
        return int(self._simulation.now * 1000)

    def time_ns(self) -> int:
        return self.time_ms() * 1_000_000


class Simulation:
    """The queue. ``after_event`` is called after each event, for invariants; ``random`` is the only
    source of randomness.

    >>> simulation = Simulation(seed=1)
    >>> seen = []
    >>> _ = simulation.schedule(5.0, lambda: seen.append(simulation.now))
    >>> simulation.run_for(60)
    >>> seen
    [5.0]
    """

    REMEMBERED = 64  # how many of the last events a failure shows

    def __init__(self, seed: int = 0, after_event: Callable[[], object] | None = None) -> None:
        self.seed, self.after_event = seed, after_event
        self.random = random.Random(seed)
        self.now = 0.0
        self.clock = SimulatedClock(self)
        self.current: Place | None = None
        self.events = 0
        self._queue: list[tuple[float, int, Event]] = []
        self._sequence = 0
        self._digest = 0
        self._last: deque[tuple[float, str]] = deque(maxlen=self.REMEMBERED)

    def schedule(
        self,
        delay_s: float,
        action: Callable[[], object],
        label: str = "",
        place: Place | None = None,
    ) -> Event:
        """Runs the action in ``delay_s`` virtual seconds; actions for the same time run in the
        order in which they were scheduled."""
        return self.schedule_at(self.now + delay_s, action, label, place)

    def schedule_at(
        self, time: float, action: Callable[[], object], label: str = "", place: Place | None = None
    ) -> Event:
        if time < self.now:
            raise EngineError(
                f"{label or 'event'}: time does not go back (from {self.now} s to {time} s)"
            )
        event = Event(place, action, label)
        self._sequence += 1
        heapq.heappush(self._queue, (time, self._sequence, event))
        return event

    # -- running -----------------------------------------------------------------------------------

    def step(self) -> bool:
        """Runs the next event. Returns False when there is none. Raises SimulationError when the
        event raises."""
        if self._next_time() is None:
            return False
        self._happen()
        return True

    def _happen(self) -> None:
        self.now, _, event = heapq.heappop(self._queue)
        action, event.action = event.action, None
        assert action is not None
        self.events += 1
        self._digest = zlib.crc32(
            event.label.encode(), self._digest ^ (hash(self.now) & 0xFFFFFFFF)
        )
        self._last.append((self.now, event.label))
        self.run_at(event.place, action)
        if self.after_event is not None:
            self._check(self.after_event)

    def run_at(self, place: Place | None, action: Callable[[], object]) -> None:
        """Runs the action now, as part of the current event, in that place."""
        before, self.current = self.current, place
        try:
            action()
        except SimulationError:
            raise
        except Exception as error:
            if place is None or not place.escaped(error):
                raise self._failure(error) from error
        finally:
            self.current = before

    def _check(self, hook: Callable[[], object]) -> None:
        try:
            hook()
        except Exception as error:
            raise self._failure(error) from error

    def _failure(self, error: Exception) -> SimulationError:
        return SimulationError(
            f"seed {self.seed}, event {self.events} at {self.now:.6f} s raised {error!r}; the "
            f"last events were\n{self.story()}"
        )

    def _next_time(self) -> float | None:
        """Returns the time of the next event that was not cancelled and whose place still
        exists."""
        queue = self._queue
        while queue:
            event = queue[0][2]
            if event.action is not None and (event.place is None or event.place.alive):
                return queue[0][0]
            heapq.heappop(queue)
        return None

    def run_until(self, condition: Callable[[], bool], max_time_s: float = 3600.0) -> bool:
        """Runs events until the condition holds. Returns False when it does not within
        ``max_time_s`` of virtual time, or no event is left."""
        end = self.now + max_time_s
        while not condition():
            due = self._next_time()
            if due is None or due > end:
                return False
            self._happen()
        return True

    def run_for(self, seconds: float) -> None:
        """Runs the events of the next ``seconds`` of virtual time."""
        end = self.now + seconds
        while (due := self._next_time()) is not None and due <= end:
            self._happen()
        self.now = end

    def result(self, future: Future[T], max_time_s: float = 3600.0) -> T:
        """Runs until the future is done and returns its value or raises its error; RpcTimeoutError
        when it stays open."""
        self.run_until(lambda: future.done, max_time_s)
        return future.result(timeout=0)

    # -- telling -----------------------------------------------------------------------------------

    def trace_digest(self) -> str:
        """Returns a digest that is the same for two runs if and only if (chance aside) the same
        events happened at the same times."""
        return f"{self.events}-{self._digest:08x}"

    @property
    def last_event(self) -> tuple[float, str]:
        """The time and the label of the last event."""
        return self._last[-1]

    def story(self) -> str:
        """Returns the last events, one per line."""
        return "\n".join(f"  {time:12.6f}  {label}" for time, label in self._last)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} seed {self.seed}: {self.now:.3f} s, {self.events} "
            f"events, {len(self._queue)} to come>"
        )
