"""What a program gives to asynchronous I/O: an asynchronous function, and the limits within which
it is called."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from enum import Enum
from typing import Any, cast

from flinkpy.common.time import Time, to_milliseconds
from flinkpy.core.errors import ProgramError
from flinkpy.operators.async_io.retry import NO_RETRY_STRATEGY, AsyncRetryStrategy, NoRetryStrategy
from flinkpy.operators.functions import Function


class AsyncFunction(Function):
    """Looks something up for each record, with many calls at a time: while one waits, others go on.

    ``async_invoke`` runs on an event loop in a separate thread of the operator. It must not block
    that thread: use asynchronous clients, or ``asyncio.to_thread``. ``open``, ``close`` and
    ``timeout`` run in the task's thread.

    >>> class Names(AsyncFunction):
    ...     async def async_invoke(self, value):
    ...         return [(value, await database.name_of(value))]
    ...     def timeout(self, value):
    ...         return [(value, None)]
    """

    @abstractmethod
    async def async_invoke(self, value: Any) -> list[Any]:
        """The results for one record, as a list of any length; they get the record's timestamp. An
        exception fails the job unless the retry strategy retries it."""

    def timeout(self, value: Any) -> list[Any]:
        """The results for a record whose call took too long and was cancelled. By default raises
        TimeoutError, which fails the job."""
        raise TimeoutError(
            "the asynchronous call did not come back in time; allow it more, or override "
            "timeout(value)"
        )


class AsyncFunctionDescriptor:
    """An asynchronous function and the limits within which it is called. Raises ProgramError for
    invalid arguments.

    ``timeout`` is a Time, a timedelta or milliseconds, and covers all attempts for one record; 0
    means no timeout. ``capacity`` is how many records may be under way, including those whose
    results wait for earlier ones."""

    awaits_functions = True  # what it holds is not searched for functions that nobody awaits

    class OutputMode(Enum):
        """Whether results keep the order of their records (ORDERED), or only stay between the same
        watermarks (UNORDERED)."""

        ORDERED = 0
        UNORDERED = 1

    def __init__(
        self,
        async_function: AsyncFunction | Callable[[Any], Awaitable[list[Any]]],
        timeout: Time | timedelta | int,
        capacity: int = 100,
        async_retry_strategy: AsyncRetryStrategy = NO_RETRY_STRATEGY,
        output_mode: OutputMode = OutputMode.ORDERED,
    ) -> None:
        self.invoke = async_method(async_function)
        self.async_function = async_function
        self.timeout_s = _seconds(timeout)
        if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1:
            raise ProgramError(
                "capacity is how many records may be under way, a whole number from 1 on; "
                f"this is {capacity!r:.80}"
            )
        if not isinstance(async_retry_strategy, AsyncRetryStrategy):
            raise ProgramError(
                "the retry strategy is an AsyncRetryStrategy, such as "
                "AsyncRetryStrategy.fixed_delay(...); "
                f"this is {async_retry_strategy!r:.80}"
            )
        if not isinstance(async_retry_strategy, NoRetryStrategy) and not self.timeout_s:
            raise ProgramError(
                "retries need a timeout, which covers all attempts at a record together; give "
                "one greater than 0"
            )
        if not isinstance(async_retry_strategy, NoRetryStrategy) and _retries_nothing(
            async_retry_strategy
        ):
            raise ProgramError(
                "the retry strategy names no outcome to retry: give it exception_predicate=, "
                "such as lambda error: True, or "
                "result_predicate=; or leave retries out"
            )
        self.capacity = capacity
        self.async_retry_strategy = async_retry_strategy
        self.output_mode = output_mode

    def results_after_timeout(self, value: object) -> Iterable[Any]:
        """The program's results for a record that timed out; raises TimeoutError if the program
        defines none."""
        if isinstance(self.async_function, AsyncFunction):
            return self.async_function.timeout(value)
        raise TimeoutError(
            f"no result within {self.timeout_s:g} s; allow more, or use an AsyncFunction with "
            "timeout(value)"
        )

    def __repr__(self) -> str:
        return (
            f"<AsyncFunctionDescriptor {self.output_mode.name}, timeout {self.timeout_s:g} s, "
            f"capacity {self.capacity}>"
        )


def _retries_nothing(strategy: AsyncRetryStrategy) -> bool:
    predicate = strategy.get_retry_predicate()
    return predicate.result_predicate() is None and predicate.exception_predicate() is None


def async_method(function: object) -> Callable[[Any], Awaitable[Any]]:
    """The method or function to call for each record; raises ProgramError if it is not
    asynchronous."""
    if isinstance(function, type):
        raise ProgramError(f"a function object is needed, not a class: write {function.__name__}()")
    if isinstance(function, Function):
        method = getattr(function, "async_invoke", None)
        if method is None:
            raise ProgramError(
                f"an AsyncFunction is needed, a {type(function).__name__} has no async_invoke()"
            )
        if not inspect.iscoroutinefunction(method):
            raise ProgramError(
                f"{type(function).__name__}.async_invoke is no coroutine function: declare it "
                "with 'async def'"
            )
        if inspect.iscoroutinefunction(getattr(function, "timeout", None)):
            raise ProgramError(
                f"{type(function).__name__}.timeout gives its results at once: declare it "
                "with 'def', not 'async def'"
            )
        return cast("Callable[[Any], Awaitable[Any]]", method)
    called = getattr(type(function), "__call__", None)  # noqa: B004  # the method itself is needed
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
        return cast("Callable[[Any], Awaitable[Any]]", function)
    hint = (
        "declare it with 'async def'"
        if callable(function)
        else "pass an AsyncFunction, or a function declared with 'async def'"
    )
    raise ProgramError(f"{function!r:.80} is not asynchronous: {hint}")


def _seconds(timeout: object) -> float:
    if isinstance(timeout, bool) or not isinstance(timeout, (Time, timedelta, int)):
        raise ProgramError(
            f"the timeout is a Time, such as Time.seconds(5), this is {timeout!r:.80}"
        )
    milliseconds = to_milliseconds(timeout)
    if milliseconds < 0:
        raise ProgramError(f"the timeout cannot be negative ({timeout})")
    return milliseconds / 1000
