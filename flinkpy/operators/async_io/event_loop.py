"""Where asynchronous functions run: an event loop in a thread of its own, which takes calls by the batch and gives outcomes by the batch.

Two crossings between threads for a batch, not for a record: calls that come together are started by one wake-up, and outcomes of one round
of the event loop are handed over together.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias

from flinkpy.operators.async_io.output_queues import Entry

_LOG = logging.getLogger(__name__)

CANCEL_S = 1.0  # how long cancelled calls may take to end
JOIN_S = 5.0  # how long the thread may: a call that blocks cannot be cancelled

Outcome: TypeAlias = tuple[Entry, Any, "BaseException | None"]
Invoke: TypeAlias = Callable[[Any], Awaitable[Any]]
Deliver: TypeAlias = Callable[[list[Outcome]], None]


class CallLoop(Protocol):
    """Calls the function for entries, and delivers what came of it."""

    def submit(self, entries: Sequence[Entry]) -> None:
        """Starts the calls; each is delivered once, unless it is cancelled before."""
        ...

    def cancel(self, entries: Sequence[Entry]) -> None:
        """Nobody waits for these any more."""
        ...

    def close(self) -> None:
        """Cancels what is under way, and ends."""
        ...


class EventLoopThread:
    """A CallLoop over asyncio. ``deliver`` is called in the loop's thread."""

    def __init__(self, name: str, invoke: Invoke, deliver: Deliver) -> None:
        self._invoke, self._deliver = invoke, deliver
        self._tasks: dict[Entry, asyncio.Task[None]] = {}  # asyncio itself holds tasks only weakly
        self._cancelled: set[asyncio.Task[None]] = set()
        self._outcomes: list[Outcome] = []
        self._closing: asyncio.Task[None] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)  # a call that blocks must not keep the process alive
        self._thread.start()

    # -- the task's thread ------------------------------------------------------------------------------------------------------

    def submit(self, entries: Sequence[Entry]) -> None:
        self._loop.call_soon_threadsafe(self._begin, entries)

    def cancel(self, entries: Sequence[Entry]) -> None:
        self._loop.call_soon_threadsafe(self._cancel, entries)

    def close(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._begin_to_end)
        except RuntimeError:  # it is closed already
            return
        self._thread.join(JOIN_S)
        if self._thread.is_alive():
            _LOG.warning("%s: an asynchronous function blocks, %g s after it was cancelled; it is left alone", self._thread.name, JOIN_S)

    # -- the event loop's thread ------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            asyncio.set_event_loop(None)
            self._loop.close()

    def _begin(self, entries: Sequence[Entry]) -> None:
        create_task, run, tasks = self._loop.create_task, self._run, self._tasks
        for entry in entries:
            tasks[entry] = create_task(run(entry))

    async def _run(self, entry: Entry) -> None:
        result, error = None, None
        try:
            result = await self._invoke(entry.value)
        except BaseException as raised:  # whatever it is, the task's thread says what it means
            error = raised
        if self._tasks.pop(entry, None) is None:
            return  # cancelled by us
        if not self._outcomes:  # behind all that is finished in this round
            self._loop.call_soon(self._hand_over)
        self._outcomes.append((entry, result, error))

    def _hand_over(self) -> None:
        outcomes, self._outcomes = self._outcomes, []
        self._deliver(outcomes)

    def _cancel(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            task = self._tasks.pop(entry, None)
            if task is not None:
                self._cancelled.add(task)
                task.add_done_callback(self._cancelled.discard)
                task.cancel()

    def _begin_to_end(self) -> None:
        if self._closing is None:
            self._closing = self._loop.create_task(self._end())

    async def _end(self) -> None:
        self._tasks.clear()  # nobody waits for them any more
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=CANCEL_S)
        await self._loop.shutdown_asyncgens()
        self._loop.stop()

    def __repr__(self) -> str:
        return f"<EventLoopThread {self._thread.name}: {len(self._tasks)} calls under way>"
