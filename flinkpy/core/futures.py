"""A small future: thread-safe completion, callbacks, blocking ``result`` for clients, ``await`` for
endpoints.

Unlike in ``concurrent.futures``, an error that a callback raises is not swallowed but reaches
whoever completes the future. In an endpoint that is the endpoint's own main thread, where a bug
must not stay hidden. Services complete the futures they hand to an endpoint in that endpoint's main
thread, so callbacks registered there run there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable
from typing import Any, Generic, TypeVar, cast

from flinkpy.core.errors import RpcTimeoutError

T = TypeVar("T")
U = TypeVar("U")

# one for all futures: there are many, and it is held for a few instructions only
_LOCK = threading.Lock()


class Future(Generic[T]):
    """A value that is not there yet.

    >>> future = Future(); doubled = future.then(lambda value: value * 2)
    >>> future.complete(21), doubled.result()
    (True, 42)
    """

    __slots__ = ("_callbacks", "_done", "_error", "_event", "_value")

    def __init__(self) -> None:
        self._done = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], None]] = []
        self._event: threading.Event | None = None

    @staticmethod
    def completed(value: U) -> Future[U]:
        future: Future[U] = Future()
        future.complete(value)
        return future

    @staticmethod
    def failed(error: BaseException) -> Future[Any]:
        future: Future[Any] = Future()
        future.fail(error)
        return future

    @property
    def done(self) -> bool:
        return self._done

    @property
    def error(self) -> BaseException | None:
        """The error it failed with; None while it is open or if it has a value."""
        return self._error

    def complete(self, value: T) -> bool:
        """Sets the value; False if the future was done already."""
        return self._finish(value, None)

    def complete_with(self, function: Callable[[], T]) -> bool:
        """Sets what the function gives, or the exception that it raises; False if the future was
        done already."""
        try:
            value = function()
        except Exception as error:
            return self.fail(error)
        return self.complete(value)

    def fail(self, error: BaseException) -> bool:
        """Sets the error; False if the future was done already."""
        return self._finish(None, error)

    def _finish(self, value: T | None, error: BaseException | None) -> bool:
        with _LOCK:
            if self._done:
                return False
            self._value = value
            self._error = error
            self._done = True
            callbacks, self._callbacks = self._callbacks, []
            event = self._event
        if event is not None:
            event.set()
        for callback in callbacks:
            callback(self)
        return True

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Calls the callback when the future is done: at once if it already is, else in the thread
        that completes it."""
        with _LOCK:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def result(self, timeout: float | None = None) -> T:
        """The value, after waiting at most ``timeout`` seconds. The main thread of an endpoint must
        not wait.

        Raises the error it failed with, or :class:`RpcTimeoutError`.
        """
        if not self._done:
            with _LOCK:
                if self._event is None:
                    self._event = threading.Event()
                event = self._event
                done = self._done
            if not done and not event.wait(timeout):
                raise RpcTimeoutError(f"no result within {timeout} s")
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    def then(self, function: Callable[[T], U]) -> Future[U]:
        """A future for ``function(value)``; errors are passed on."""
        target: Future[U] = Future()

        def relay(source: Future[T]) -> None:
            if source._error is not None:
                target.fail(source._error)
                return
            try:
                value = function(cast(T, source._value))
            except Exception as error:
                target.fail(error)
            else:
                target.complete(value)

        self.add_done_callback(relay)
        return target

    def compose(self, function: Callable[[T], Future[U]]) -> Future[U]:
        """A future for what the future ``function(value)`` gives; errors are passed on.

        >>> Future.completed(21).compose(lambda value: Future.completed(value * 2)).result()
        42
        """
        target: Future[U] = Future()

        def relay(source: Future[Future[U]]) -> None:
            if source._error is not None:
                target.fail(source._error)
            else:
                source.result(timeout=0).forward_to(target)

        self.then(function).add_done_callback(relay)
        return target

    def forward_to(self, target: Future[T]) -> None:
        """Completes ``target`` with this future's value or error."""

        def relay(source: Future[T]) -> None:
            target._finish(source._value, source._error)

        self.add_done_callback(relay)

    def __await__(self) -> Generator[Future[T], None, T]:
        if not self._done:
            yield self
        return self.result(timeout=0)

    def __repr__(self) -> str:
        return (
            f"<Future {'failed' if self._error is not None else 'done' if self._done else 'open'}>"
        )


def all_of(futures: Iterable[Future[T]]) -> Future[list[T]]:
    """A future that is done when all are, with their values in order; it fails with the first
    error."""
    waited = list(futures)
    target: Future[list[T]] = Future()
    left = [len(waited)]

    def one_done(source: Future[T]) -> None:
        if source.error is not None:
            target.fail(source.error)
        with _LOCK:
            left[0] -= 1
            last = left[0] == 0
        if last and not target.done:
            target.complete([future.result(timeout=0) for future in waited])

    if not waited:
        target.complete([])
    for future in waited:
        future.add_done_callback(one_done)
    return target
