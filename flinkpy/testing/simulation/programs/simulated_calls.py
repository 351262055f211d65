"""Asynchronous calls in virtual time. A call pauses with ``await Pause(seconds)``, and with nothing
else."""

from __future__ import annotations

from collections.abc import Coroutine, Generator, Sequence
from functools import partial
from typing import Any, cast

from flinkpy.operators.async_io.event_loop import Deliver, Invoke
from flinkpy.operators.async_io.output_queues import Entry
from flinkpy.testing.simulation.programs.outside_world import world_named
from flinkpy.testing.simulation.programs.program_inputs import WORLD


class Pause:
    """Awaited by an asynchronous function: so many virtual seconds pass."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __await__(self) -> Generator[float, None, None]:
        yield self._seconds


class SimulatedCalls:
    """Implements ``flinkpy.operators.async_io.event_loop.CallLoop``."""

    def __init__(self, invoke: Invoke, deliver: Deliver) -> None:
        self._invoke, self._deliver = invoke, deliver
        self._under_way: dict[Entry, Coroutine[float, None, Any]] = {}

    def submit(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            self._under_way[entry] = cast("Coroutine[float, None, Any]", self._invoke(entry.value))
            self._go_on(entry)

    def cancel(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            call = self._under_way.pop(entry, None)
            if call is not None:
                call.close()

    def close(self) -> None:
        self.cancel(list(self._under_way))

    def _go_on(self, entry: Entry) -> None:
        call = self._under_way.get(entry)
        if call is None:
            return
        result: Any = None
        error: BaseException | None = None
        try:
            pause_s = call.send(None)
        except StopIteration as ended:
            result = ended.value
        except Exception as raised:
            error = raised
        else:
            world_named(WORLD).later(pause_s, partial(self._go_on, entry))
            return
        del self._under_way[entry]
        self._deliver([(entry, result, error)])


def simulated_calls(name: str, invoke: Invoke, deliver: Deliver) -> SimulatedCalls:
    """A LoopFactory of ``flinkpy.operators.async_io.async_wait``."""
    return SimulatedCalls(invoke, deliver)
