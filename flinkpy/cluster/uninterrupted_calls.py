"""Calls from the program's main thread that Ctrl-C cannot leave half done.

A KeyboardInterrupt can occur between any two steps of the main thread's Python code. Inside the RPC
code it can leave a lock taken, for which an endpoint then waits for ever: the session would be
unusable for the next job. So the main thread makes no calls itself. Another thread, which gets no
interrupts, makes them; the main thread waits at a queue, which is a single step."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar, cast

from flinkpy.core.errors import RpcTimeoutError
from flinkpy.core.futures import Future

G = TypeVar("G")
T = TypeVar("T")

_Call = Callable[[], "Future[Any]"]

_calls: queue.SimpleQueue[tuple[_Call, queue.SimpleQueue[Future[Any]]]] = queue.SimpleQueue()
_starting = threading.Lock()
_thread: threading.Thread | None = None


def uninterrupted(gateway: G) -> G:
    """Returns a gateway that is safe to call where Ctrl-C may occur. Its answers offer
    ``result(timeout)`` only."""
    return cast(G, _Gateway(gateway))


class Answer(Generic[T]):
    """The answer of a call."""

    def __init__(self, box: queue.SimpleQueue[Future[T]]) -> None:
        self._box = box

    def result(self, timeout: float | None = None) -> T:
        """Returns the value. Raises the call's error, or RpcTimeoutError when there is none in
        time. May be called once."""
        try:
            return self._box.get(timeout=timeout).result(0)
        except queue.Empty:
            raise RpcTimeoutError(f"no result within {timeout} s") from None


class _Gateway:
    def __init__(self, gateway: object) -> None:
        self._gateway = gateway

    def __getattr__(self, name: str) -> Callable[..., Answer[Any]]:
        return partial(_ask, getattr(self._gateway, name))


def _ask(method: Callable[..., Future[Any]], *arguments: Any) -> Answer[Any]:
    box: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
    call = partial(method, *arguments)
    if threading.current_thread() is threading.main_thread():
        _start()
        _calls.put((call, box))
    else:
        _make(call, box)
    return Answer(box)


def _start() -> None:
    global _thread
    if _thread is None or not _thread.is_alive():
        with _starting:
            if _thread is None or not _thread.is_alive():
                _thread = threading.Thread(
                    target=_run, name="calls of the main thread", daemon=True
                )
                _thread.start()


def _run() -> None:
    while True:
        _make(*_calls.get())


def _make(call: _Call, box: queue.SimpleQueue[Future[Any]]) -> None:
    try:
        call().add_done_callback(box.put)
    except BaseException as error:
        box.put(Future.failed(error))
