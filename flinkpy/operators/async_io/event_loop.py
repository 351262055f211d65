"""The event loop that runs asynchronous functions, in a thread of its own. It takes calls and
delivers outcomes in batches.

A batch costs two hand-overs between threads, not two per record: one wake-up begins all calls that
come together, and the outcomes of one round of the event loop are delivered together."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias

from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.operators.async_io.output_queues import Entry

_LOG = engine_logger(__name__)

CANCEL_S = 1.0  # how long cancelled calls may take to end
JOIN_S = 5.0  # how long the thread may take to end: a call that blocks cannot be cancelled

Outcome: TypeAlias = tuple[Entry, Any, "BaseException | None"]
Invoke: TypeAlias = Callable[[Any], Awaitable[Any]]
Deliver: TypeAlias = Callable[[list[Outcome]], None]


class CallLoop(Protocol):
    """Calls the function for entries and delivers the outcomes."""

    def submit(self, entries: Sequence[Entry]) -> None:
        """Begins the calls; the outcome of each is delivered once, unless it is cancelled first."""
        ...

    def cancel(self, entries: Sequence[Entry]) -> None:
        """Cancels the calls; their outcomes are not delivered."""
        ...

    def close(self) -> None:
        """Cancels the calls under way and ends the loop."""
        ...


class EventLoopThread:
    """A CallLoop over asyncio. ``deliver`` is called in the loop's thread."""

    def __init__(self, name: str, invoke: Invoke, deliver: Deliver) -> None:
        self._invoke, self._deliver = invoke, deliver
        # keeps the tasks alive: asyncio holds only weak references
        self._tasks: dict[Entry, asyncio.Task[None]] = {}
        self._cancelled: set[asyncio.Task[None]] = set()
        self._outcomes: list[Outcome] = []
        self._closing: asyncio.Task[None] | None = None
        self._loop = asyncio.new_event_loop()
        # a daemon, so that a call that blocks does not keep the process alive
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    # -- the task's thread -------------------------------------------------------------------------

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
            _LOG.warning(
                (
                    "%s: an asynchronous function blocks, %g s after it was cancelled; it is left "
                    "alone"
                ),
                self._thread.name,
                JOIN_S,
            )

    # -- the event loop's thread -------------------------------------------------------------------

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
        except BaseException as raised:  # the task's thread decides what it means
            error = raised
        if self._tasks.pop(entry, None) is None:
            return  # this loop cancelled it
        if not self._outcomes:  # the first of this round: delivers after all that finish in it
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
        self._tasks.clear()  # outcomes are no longer delivered
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=CANCEL_S)
        await self._loop.shutdown_asyncgens()
        self._loop.stop()

    def __repr__(self) -> str:
        return f"<EventLoopThread {self._thread.name}: {len(self._tasks)} calls under way>"
