"""Copies a DataFrame from Spark into Ray's object store while the program runs: each partition is
fetched as soon as Spark has computed it.

A thread of the program tells the keeper of the blocks (``flinkpy.connectors.ray.block_keeper``)
which partitions Spark has; jobs ask the keeper."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Callable
from contextlib import suppress

from flinkpy.connectors.ray.object_store import Store
from flinkpy.core.clock import SystemClock
from flinkpy.spark.computation import Computation

PAUSE_S = 0.03  # at least, between two calls to Spark
# the pause in multiples of the time that a call takes, and at most
PAUSE_PER_LOOK = 5
LONGEST_PAUSE_S = 0.5
WAIT_S = 0.2
EXIT_TIMEOUT_S = 3.0

_under_way: set[HandOver] = set()  # those of this program


class HandOver:
    """Ends when all blocks are in the store, when Spark has failed, or when no job and no stream
    can ask for them any more."""

    def __init__(self, computation: Computation, store: Store) -> None:
        self._computation, self._store = computation, store
        self._lock = threading.Lock()
        self._is_forgotten = self._is_over = False
        self._is_given_up = threading.Event()
        self._thread = threading.Thread(target=self._run, name="from_spark", daemon=True)

    def start(self) -> None:
        """Starts the hand-over, and returns. Spark computes under the job description and with the
        settings of the calling thread."""
        self._computation.begin()
        _under_way.add(self)
        atexit.unregister(_give_up_all)
        # To run before the exit functions of Spark and Ray: the last registered runs first
        atexit.register(_give_up_all)
        self._thread.start()

    def wait(self) -> None:
        """Returns when the hand-over has ended or failed. Ctrl-C ends the wait."""
        while self._thread.is_alive():
            # without a bound, a signal that another thread receives would go unnoticed
            self._thread.join(WAIT_S)

    def forget(self) -> None:
        """The program has dropped the stream: Spark drops its partitions once no job can need
        them."""
        with self._lock:
            self._is_forgotten = True
            is_over = self._is_over
        if is_over:
            self._computation.release()

    def give_up(self) -> None:
        """The program ends: cancels Spark's computation, silently."""
        self._is_given_up.set()
        self._computation.silence()
        self._computation.cancel()

    def _run(self) -> None:
        try:
            self._carry()
        except Exception as error:
            self._fail(error)
        with self._lock:
            self._is_over = True
            is_forgotten = self._is_forgotten
        _under_way.discard(self)
        if is_forgotten and not self._is_given_up.is_set():
            _try(self._computation.release)

    def _carry(self) -> None:
        clock = SystemClock()
        while True:
            began = clock.monotonic()
            if (
                self._store.gather_blocks(self._computation.found())
                == self._computation.partitions.count
            ):
                return
            look = clock.monotonic() - began
            if self._is_given_up.wait(min(max(PAUSE_S, PAUSE_PER_LOOK * look), LONGEST_PAUSE_S)):
                raise InterruptedError("the program that hands it over has ended")

    def _fail(self, error: Exception) -> None:
        reason = self._computation.advice(error)
        _try(lambda: self._store.fail_missing(reason))
        if not self._is_given_up.is_set():  # else Spark ends with the program
            _try(self._computation.cancel)
            _try(self._computation.release)


def _try(action: Callable[[], object]) -> None:
    with suppress(Exception):  # Ray or Spark is gone, and what it kept with it
        action()


def wait_for_all() -> None:
    """Returns when no hand-over is in progress."""
    for each in list(_under_way):
        each.wait()


def _give_up_all() -> None:
    for each in list(_under_way):
        _try(each.give_up)
    for each in list(_under_way):
        each._thread.join(EXIT_TIMEOUT_S)
