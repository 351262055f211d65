"""A slot loop in virtual time. Each turn is an event of the simulation, which comes when the seed
decides.

In one turn it runs the calls, serves the streams that are ready, and gives each ready task one
step, in a random order. All loops of a simulated process end with it: their events belong to the
process, and those of a dead one do not happen."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from flinkpy.actors.rpc.simulated.event_queue import Event
from flinkpy.actors.rpc.simulated.simulated_service import SimulatedRpcService
from flinkpy.core.clock import Clock
from flinkpy.core.errors import EngineError
from flinkpy.core.reactor import P, Pollable
from flinkpy.runtime.loop.loop_port import LoopTask
from flinkpy.testing.simulation.machine.data_faults import DataFaults
from flinkpy.testing.simulation.machine.simulated_stream import SimulatedStream

Action = Callable[[], None]


class SimulatedTimer:
    """One call to come."""

    __slots__ = ("_action", "_loop", "event")

    def __init__(self, loop: SimulatedLoop, action: Action) -> None:
        self._loop = loop
        self._action: Action | None = action
        self.event: Event | None = None

    def cancel(self) -> None:
        self._action = None
        self._loop.forget(self)
        if self.event is not None:
            self.event.cancel()

    def due(self) -> None:
        """The time has come: the loop makes the call in its next turn."""
        self._loop.call_soon(self._fire)

    def _fire(self) -> None:
        self._loop.forget(self)
        action, self._action = self._action, None
        if action is not None:
            action()


class SimulatedLoop:
    """Implements ``flinkpy.runtime.loop.loop_port.Loop``. What raises in it is a bug, and ends the
    simulation."""

    def __init__(self, name: str, process: SimulatedRpcService, faults: DataFaults) -> None:
        self.name = name
        self.clock: Clock = process.network.clock
        self._process = process
        self._network = process.network
        self._faults = faults
        self._soon: deque[Action] = deque()
        self._ready: list[LoopTask] = []
        self._readers: dict[SimulatedStream, Action] = {}
        self._writers: dict[SimulatedStream, Action] = {}
        self._to_serve: dict[SimulatedStream, None] = {}
        self._timers: dict[SimulatedTimer, None] = {}
        self._turns = self._started = self._stopping = self._ended = False
        self.stepping: LoopTask | None = None
        self.thread_id: int | None = None

    # -- Reactor -----------------------------------------------------------------------------------

    def add_reader(self, stream: Pollable, callback: Action) -> None:
        known = self._own(stream)
        self._readers[known] = callback
        self._watch(known)

    def remove_reader(self, stream: Pollable) -> None:
        known = self._own(stream)
        self._readers.pop(known, None)
        self._watch(known)

    def add_writer(self, stream: Pollable, callback: Action) -> None:
        known = self._own(stream)
        self._writers[known] = callback
        self._watch(known)

    def remove_writer(self, stream: Pollable) -> None:
        known = self._own(stream)
        self._writers.pop(known, None)
        self._watch(known)

    def call_later(self, delay_s: float, action: Action) -> SimulatedTimer:
        timer = SimulatedTimer(self, action)
        self._timers[timer] = None
        timer.event = self._network.schedule(
            max(0.0, delay_s), timer.due, f"{self.name} timer", self._process
        )
        return timer

    def forget(self, timer: SimulatedTimer) -> None:
        self._timers.pop(timer, None)

    def call_soon(self, action: Action) -> None:
        self._soon.append(action)
        self._turn_soon()

    call_soon_threadsafe = call_soon

    def maybe_yield(self) -> None:
        """Does nothing: the seed decides who runs next."""

    # -- Loop --------------------------------------------------------------------------------------

    def start(self) -> None:
        if self._started:
            raise EngineError(f"{self.name} was started already")
        self._started = True
        self._turn_soon()

    def stop(self, timeout_s: float = 10.0) -> bool:
        def end_soon() -> None:
            self._stopping = True

        self.call_soon(end_soon)
        return True

    def bind(self, callback: Callable[P, None]) -> Callable[P, None]:
        return callback

    def schedule_threadsafe(self, task: LoopTask) -> None:
        if not task.scheduled:
            task.scheduled = True
            self._ready.append(task)
            self._turn_soon()

    @property
    def current_task(self) -> LoopTask | None:
        return self.stepping

    # -- readiness ---------------------------------------------------------------------------------

    @staticmethod
    def _own(stream: Pollable) -> SimulatedStream:
        if not isinstance(stream, SimulatedStream):
            raise EngineError(f"{stream!r} is not of the simulation")
        return stream

    def _watch(self, stream: SimulatedStream) -> None:
        """Brings it in line with the callbacks of the stream."""
        if stream in self._readers or stream in self._writers:
            stream.set_listener(self.stream_changed)
            self.stream_changed(stream)
        else:
            stream.set_listener(None)
            self._to_serve.pop(stream, None)

    def stream_changed(self, stream: SimulatedStream) -> None:
        """It may be readable or writable now."""
        if self._wants(stream):
            self._to_serve[stream] = None
            self._turn_soon()

    def _wants(self, stream: SimulatedStream) -> bool:
        return (stream in self._readers and stream.is_readable) or (
            stream in self._writers and stream.is_writable
        )

    def _serve(self, stream: SimulatedStream) -> None:
        reader = self._readers.get(stream)
        if reader is not None and stream.is_readable:
            reader()
        writer = self._writers.get(stream)
        if writer is not None and stream.is_writable:
            writer()
        if self._wants(stream):
            self._to_serve[stream] = None

    # -- turning -----------------------------------------------------------------------------------

    def _turn_soon(self) -> None:
        if self._turns or self._ended or not self._started:
            return
        self._turns = True
        faults, chance = self._faults, self._network.random.random
        is_slow = bool(faults.slow) and faults.strike(faults.slow, chance(), self._network.now)
        self._network.schedule(
            (faults.slow_s if is_slow else faults.turn_s) * chance(),
            self._turn,
            self.name,
            self._process,
        )

    def _turn(self) -> None:
        self._turns = False
        for _ in range(len(self._soon)):
            self._soon.popleft()()
        to_serve, self._to_serve = self._to_serve, {}
        for stream in to_serve:
            self._serve(stream)
        ready, self._ready = self._ready, []
        if len(ready) > 1:
            self._network.random.shuffle(ready)
        for task in ready:
            self._step(task)
        if self._stopping:
            self._end()
        elif self._soon or self._to_serve or self._ready:
            self._turn_soon()

    def _step(self, task: LoopTask) -> None:
        if not self._process.alive:  # it died within this turn
            return
        task.scheduled, self.stepping = False, task
        try:
            more = task.step()
        except (Exception, SystemExit) as error:  # of the user's code
            more = False
            task.crashed(error)
        finally:
            self.stepping = None
        if more:
            self.schedule_threadsafe(task)

    def _end(self) -> None:
        """Behind the calls that came with the end, such as a connection that is to be closed."""
        for _ in range(len(self._soon)):
            self._soon.popleft()()
        self._ended = True
        for timer in list(self._timers):
            timer.cancel()

    # -- inspection --------------------------------------------------------------------------------

    @property
    def timers(self) -> int:
        """How many have not come yet."""
        return len(self._timers)

    @property
    def streams(self) -> int:
        """How many are watched."""
        return len({**self._readers, **self._writers})

    def __repr__(self) -> str:
        return (
            f"<SimulatedLoop {self.name}: {len(self._ready)} ready, {self.timers} timers, "
            f"{self.streams} streams>"
        )
