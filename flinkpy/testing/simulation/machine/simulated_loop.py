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


class _WatchedStreams:
    """What a selector is to a loop. ``on_ready()`` is called when something is ``to_serve``."""

    def __init__(self, on_ready: Action) -> None:
        self._on_ready = on_ready
        self.readers: dict[SimulatedStream, Action] = {}
        self.writers: dict[SimulatedStream, Action] = {}
        self.to_serve: dict[SimulatedStream, None] = {}

    def watch(
        self, stream: Pollable, callbacks: dict[SimulatedStream, Action], callback: Action
    ) -> None:
        known = _own(stream)
        callbacks[known] = callback
        known.set_listener(self._stream_changed)
        self._stream_changed(known)

    def unwatch(self, stream: Pollable, callbacks: dict[SimulatedStream, Action]) -> None:
        known = _own(stream)
        callbacks.pop(known, None)
        if known in self.readers or known in self.writers:
            known.set_listener(self._stream_changed)
            self._stream_changed(known)
        else:
            known.set_listener(None)
            self.to_serve.pop(known, None)

    def _stream_changed(self, stream: SimulatedStream) -> None:
        """It may be readable or writable now."""
        if self._wants(stream):
            self.to_serve[stream] = None
            self._on_ready()

    def _wants(self, stream: SimulatedStream) -> bool:
        return (stream in self.readers and stream.is_readable) or (
            stream in self.writers and stream.is_writable
        )

    def serve(self) -> None:
        """Calls back for each stream that is ready, once."""
        to_serve, self.to_serve = self.to_serve, {}
        for stream in to_serve:
            self._serve(stream)

    def _serve(self, stream: SimulatedStream) -> None:
        reader = self.readers.get(stream)
        if reader is not None and stream.is_readable:
            reader()
        writer = self.writers.get(stream)
        if writer is not None and stream.is_writable:
            writer()
        if self._wants(stream):
            self.to_serve[stream] = None


def _own(stream: Pollable) -> SimulatedStream:
    if not isinstance(stream, SimulatedStream):
        raise EngineError(f"{stream!r} is not of the simulation")
    return stream


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
        self._streams = _WatchedStreams(self._turn_soon)
        self._timers: dict[SimulatedTimer, None] = {}
        self._turns = self._started = self._stopping = self._ended = False
        self.stepping: LoopTask | None = None
        self.thread_id: int | None = None

    # -- Reactor -----------------------------------------------------------------------------------

    def add_reader(self, stream: Pollable, callback: Action) -> None:
        self._streams.watch(stream, self._streams.readers, callback)

    def remove_reader(self, stream: Pollable) -> None:
        self._streams.unwatch(stream, self._streams.readers)

    def add_writer(self, stream: Pollable, callback: Action) -> None:
        self._streams.watch(stream, self._streams.writers, callback)

    def remove_writer(self, stream: Pollable) -> None:
        self._streams.unwatch(stream, self._streams.writers)

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
        self._streams.serve()
        ready, self._ready = self._ready, []
        if len(ready) > 1:
            self._network.random.shuffle(ready)
        for task in ready:
            self._step(task)
        if self._stopping:
            self._end()
        elif self._soon or self._streams.to_serve or self._ready:
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
        return len({**self._streams.readers, **self._streams.writers})

    def __repr__(self) -> str:
        return (
            f"<SimulatedLoop {self.name}: {len(self._ready)} ready, {self.timers} timers, "
            f"{self.streams} streams>"
        )
