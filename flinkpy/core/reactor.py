"""What a slot loop offers to the code that runs in it: readiness of connections, timers, and a way
in from other threads.

``flinkpy.runtime.loop.slot_loop`` implements it on one selector, ``flinkpy.testing.simulation`` in
virtual time. All calls except ``call_soon_threadsafe`` and ``bind`` must come from the loop's
thread; all callbacks run in it.

Two others give the same calls to whoever is not in that thread: ``flinkpy.runtime.loop.task_home``
to a task that may have a thread of its own, ``flinkpy.network.data_plane_reactor`` to connections,
which any task of the process may use."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, Protocol

from flinkpy.core.clock import Clock

P = ParamSpec("P")


class Pollable(Protocol):
    """What can become readable and writable: a socket, or its counterpart in the simulation."""

    def fileno(self) -> int: ...


class ReactorTimer(Protocol):
    def cancel(self) -> None: ...


class Reactor(Protocol):
    """``thread_id`` is that of its thread; None while it has none."""

    clock: Clock

    @property
    def thread_id(self) -> int | None: ...

    def add_reader(self, stream: Pollable, callback: Callable[[], None]) -> None:
        """Calls ``callback`` whenever the stream is readable."""
        ...

    def remove_reader(self, stream: Pollable) -> None: ...

    def add_writer(self, stream: Pollable, callback: Callable[[], None]) -> None:
        """Calls ``callback`` whenever the stream is writable; add it only while there is something
        left to send."""
        ...

    def remove_writer(self, stream: Pollable) -> None: ...

    def call_later(self, delay_s: float, action: Callable[[], None]) -> ReactorTimer: ...

    def call_soon(self, action: Callable[[], None]) -> None:
        """Runs the action in the loop's next round."""
        ...

    def maybe_yield(self) -> None:
        """Records were sent to another process: gives that process a chance to run first."""
        ...

    def call_soon_threadsafe(self, action: Callable[[], None]) -> None:
        """Wakes the loop and runs the action in its thread; may be called from any thread."""
        ...

    def bind(self, callback: Callable[P, None]) -> Callable[P, None]:
        """The callback, for callers in any thread: it runs in this one's, at once if the caller is
        in it, and soon otherwise."""
        ...
