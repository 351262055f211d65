"""Actions of other threads for the operators of a harness: results of asynchronous functions."""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, SimpleQueue

from flinkpy.core.errors import ProgramError

PATIENCE_S = 30


class HarnessMail:
    """Actions from any thread, which run at the test's next step."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.put = self._queue.put

    def run_all(self) -> None:
        """Runs what has arrived so far."""
        while not self._queue.empty():
            self._queue.get()()

    def wait_and_run(self, operator: str) -> None:
        """Waits for one action and runs it. Raises ProgramError, with the operator's name, if none
        arrives."""
        try:
            self._queue.get(timeout=PATIENCE_S)()
        except Empty:
            raise ProgramError(
                f"{operator} has not ended {PATIENCE_S} s after its input: a call of its "
                "function takes longer, or it waits for a time "
                "that set_processing_time() has yet to set"
            ) from None
