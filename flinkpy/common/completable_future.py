"""A future with PyFlink's interface for clients."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from flinkpy.core.errors import RpcTimeoutError

T = TypeVar("T")


class CompletableFuture(Generic[T]):
    """A future that fetches its value only when it is asked: ``fetch(timeout)`` blocks until there
    is a value, and raises the failure, or RpcTimeoutError after the timeout.

    >>> CompletableFuture(lambda timeout: 42).result()
    42
    """

    def __init__(
        self, fetch: Callable[[float | None], T], cancel: Callable[[], None] | None = None
    ) -> None:
        self._fetch, self._cancel = fetch, cancel
        self._lock = threading.Lock()
        self._is_done = self._is_cancelled = False
        self._value: T | None = None
        self._error: BaseException | None = None

    def result(self, timeout: float | None = None) -> T:
        """The value, after waiting at most ``timeout`` seconds (None: for ever). Raises the
        failure, or RpcTimeoutError."""
        with self._lock:
            if not self._is_done:
                self._settle(timeout)
            if self._error is not None:
                raise self._error
            # done without an error: the value is there
            return self._value  # type: ignore[return-value]

    def done(self) -> bool:
        """Whether ``result`` would return or raise at once."""
        if not self._is_done and self._lock.acquire(blocking=False):
            try:
                self._settle(0.0)
            except RpcTimeoutError:
                pass
            finally:
                self._lock.release()
        return self._is_done

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """The error that ``result`` would raise, or None. Raises RpcTimeoutError if there is no
        result in time."""
        try:
            self.result(timeout)
        except RpcTimeoutError:
            if not self._is_done:
                raise
        except Exception as error:
            return error
        return self._error

    def cancel(self) -> bool:
        """Gives up on the result; False if it is there already, or cannot be cancelled."""
        if self._is_done or self._cancel is None:
            return False
        self._cancel()
        self._is_cancelled = True
        return True

    def cancelled(self) -> bool:
        """Whether ``cancel`` was called in time."""
        return self._is_cancelled

    def _settle(self, timeout: float | None) -> None:
        if self._is_done:
            return
        try:
            self._value = self._fetch(timeout)
        except RpcTimeoutError:
            raise
        except Exception as error:
            self._error = error
        self._is_done = True

    def __await__(self) -> Generator[Any, None, T]:
        import asyncio

        return asyncio.get_running_loop().run_in_executor(None, self.result).__await__()

    def __repr__(self) -> str:
        return (
            "<CompletableFuture "
            f"{'open' if not self._is_done else 'failed' if self._error is not None else 'done'}>"
        )
