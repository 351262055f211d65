"""Work of a JobMaster with files: off its thread, one piece after the other, in the order in which
it was given."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.scheduler.protocol import Event

log = engine_logger("flinkpy.jobmaster")

Work = Callable[[], "tuple[Event, ...] | None"]  # gives the events that follow from it


class OrderedFileWork:
    """Work with files, off the main thread and in order. The events that a piece of work names are
    fed in the main thread when it is done."""

    RETRY_S = 1.0

    def __init__(self, endpoint: RpcEndpoint, feed: Callable[[Event], None]) -> None:
        self._endpoint = endpoint
        self._feed = feed
        self._failed: Work | None = None  # one that is to be tried again, before all others
        self._todo: deque[Work] = deque()
        self._done: deque[Event] = deque()
        self._one_at_a_time = threading.Lock()
        self._running = False
        self._when_idle: Callable[[], None] | None = None

    def add(self, work: Work) -> None:
        self._todo.append(work)
        self._go_on()

    def add_until_done(self, work: Work) -> None:
        """Adds work that is repeated while the store fails. What comes behind it waits."""

        def again() -> tuple[Event, ...] | None:
            try:
                return work()
            except OSError as error:
                log.warning(
                    "the file store fails, and is asked again in %g s: %s", self.RETRY_S, error
                )
                self._failed = again
                return None

        self.add(again)

    def when_idle(self, action: Callable[[], None]) -> None:
        """Calls the action when all is done; at once if nothing is left."""
        self._when_idle = action
        self._go_on()

    @property
    def is_last(self) -> bool:
        """Whether somebody waits for the end of all work."""
        return self._when_idle is not None

    def _go_on(self) -> None:
        if self._running:
            return
        if self._todo:
            self._running = True
            self._endpoint.run_in_background(self._work).add_done_callback(
                lambda future: self._worked()
            )
        elif self._when_idle is not None:
            action, self._when_idle = self._when_idle, None
            action()

    def _work(self) -> None:
        with self._one_at_a_time:
            while self._todo and self._failed is None:
                work = self._todo.popleft()
                try:
                    self._done.extend(work() or ())
                except Exception:
                    log.warning(
                        "a step of the work with the files of checkpoints failed", exc_info=True
                    )

    def _worked(self) -> None:
        while self._done:
            self._feed(self._done.popleft())
        if self._failed is None:
            self._running = False
            self._go_on()
        else:
            self._endpoint.schedule_run_async(self.RETRY_S, self._try_again)

    def _try_again(self) -> None:
        assert self._failed is not None
        self._todo.appendleft(self._failed)
        self._failed, self._running = None, False
        self._go_on()
