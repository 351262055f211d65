"""When, and after what pause, an asynchronous call is retried: strategies, and predicates that say
which outcomes to retry.

All are pure and keep nothing between records, so one object serves all. Attempts are counted from
1."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

from flinkpy.core.program.program_line import refuse

ResultPredicate: TypeAlias = Callable[[list[Any]], bool]
ExceptionPredicate: TypeAlias = Callable[[Exception], bool]


class AsyncRetryPredicate(ABC):
    """Says which outcomes to retry. A predicate of None retries no outcome of its kind."""

    @abstractmethod
    def result_predicate(self) -> ResultPredicate | None:
        """A function that says whether to retry after these results, or None."""

    @abstractmethod
    def exception_predicate(self) -> ExceptionPredicate | None:
        """A function that says whether to retry after this exception, or None."""


class AsyncRetryStrategy(ABC):
    """Says whether, after what pause and for which outcomes a call is retried. Derive from it, or
    use one of the strategies made here.

    The timeout of the operator covers all attempts and the pauses between them.

    >>> strategy = AsyncRetryStrategy.fixed_delay(
    ...     3, 100, exception_predicate=lambda error: isinstance(error, ConnectionError)
    ... )
    >>> strategy.can_retry(3), strategy.can_retry(4), strategy.get_backoff_time_millis(1)
    (True, False, 100)
    """

    @abstractmethod
    def can_retry(self, current_attempts: int) -> bool:
        """Whether another attempt may follow after this many."""

    @abstractmethod
    def get_backoff_time_millis(self, current_attempts: int) -> int:
        """The pause before the next attempt, in milliseconds."""

    @abstractmethod
    def get_retry_predicate(self) -> AsyncRetryPredicate:
        """The predicate that says which outcomes to retry."""

    @staticmethod
    def no_restart() -> AsyncRetryStrategy:
        """No retries: one attempt only."""
        return NO_RETRY_STRATEGY

    @staticmethod
    def fixed_delay(
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate | None = None,
        exception_predicate: ExceptionPredicate | None = None,
    ) -> AsyncRetryStrategy:
        """At most ``max_attempts`` retries, each after a pause of ``backoff_time_millis``."""
        return FixedDelayRetryStrategy(
            max_attempts, backoff_time_millis, result_predicate, exception_predicate
        )

    @staticmethod
    def exponential_backoff(
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate | None = None,
        exception_predicate: ExceptionPredicate | None = None,
    ) -> AsyncRetryStrategy:
        """At most ``max_attempts`` retries. The first pause is ``initial_delay`` ms; each further
        one is ``multiplier`` times as long as the one before, but at most ``max_retry_delay``
        ms."""
        return ExponentialBackoffDelayRetryStrategy(
            max_attempts,
            initial_delay,
            max_retry_delay,
            multiplier,
            result_predicate,
            exception_predicate,
        )


class RetryPredicate(AsyncRetryPredicate):
    """A predicate of two functions, either of which may be None."""

    def __init__(
        self,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> None:
        for predicate in (result_predicate, exception_predicate):
            if predicate is not None and not callable(predicate):
                raise refuse(
                    "a retry predicate is a function that says True or False, this is "
                    f"{predicate!r:.80}"
                )
        self._result_predicate, self._exception_predicate = result_predicate, exception_predicate

    def result_predicate(self) -> ResultPredicate | None:
        return self._result_predicate

    def exception_predicate(self) -> ExceptionPredicate | None:
        return self._exception_predicate


class NoRetryStrategy(AsyncRetryStrategy):
    """No retries: one attempt only."""

    def can_retry(self, current_attempts: int) -> bool:
        return False

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return -1

    def get_retry_predicate(self) -> AsyncRetryPredicate:
        return RetryPredicate(None, None)


NO_RETRY_STRATEGY = NoRetryStrategy()


class _LimitedRetryStrategy(AsyncRetryStrategy):
    """The base class of the strategies that count attempts."""

    def __init__(
        self,
        max_attempts: int,
        result_predicate: ResultPredicate | None,
        exception_predicate: ExceptionPredicate | None,
    ) -> None:
        self._max_attempts: int = _positive(max_attempts, "max_attempts")
        self._predicate = RetryPredicate(result_predicate, exception_predicate)

    def can_retry(self, current_attempts: int) -> bool:
        return current_attempts <= self._max_attempts

    def get_retry_predicate(self) -> AsyncRetryPredicate:
        return self._predicate


class FixedDelayRetryStrategy(_LimitedRetryStrategy):
    """At most ``max_attempts`` retries, each after ``backoff_time_millis``."""

    def __init__(
        self,
        max_attempts: int,
        backoff_time_millis: int,
        result_predicate: ResultPredicate | None = None,
        exception_predicate: ExceptionPredicate | None = None,
    ) -> None:
        super().__init__(max_attempts, result_predicate, exception_predicate)
        self._backoff_time_millis: int = _positive(backoff_time_millis, "backoff_time_millis")

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        return self._backoff_time_millis


class ExponentialBackoffDelayRetryStrategy(_LimitedRetryStrategy):
    """At most ``max_attempts`` retries, after pauses that grow from ``initial_delay`` to
    ``max_retry_delay`` (milliseconds).

    >>> strategy = ExponentialBackoffDelayRetryStrategy(5, 100, 1000, 3.0)
    >>> [strategy.get_backoff_time_millis(attempt) for attempt in (1, 2, 3, 4)]
    [100, 300, 900, 1000]
    """

    def __init__(
        self,
        max_attempts: int,
        initial_delay: int,
        max_retry_delay: int,
        multiplier: float,
        result_predicate: ResultPredicate | None = None,
        exception_predicate: ExceptionPredicate | None = None,
    ) -> None:
        super().__init__(max_attempts, result_predicate, exception_predicate)
        self._initial_delay: int = _positive(initial_delay, "initial_delay")
        self._max_retry_delay: int = _positive(max_retry_delay, "max_retry_delay")
        self._multiplier: float = _positive(multiplier, "multiplier")

    def get_backoff_time_millis(self, current_attempts: int) -> int:
        delay = float(self._initial_delay)
        for _ in range(current_attempts - 1):
            if delay >= self._max_retry_delay or self._multiplier == 1:
                break
            delay *= self._multiplier
        return (
            int(min(delay, self._max_retry_delay)) if current_attempts > 1 else self._initial_delay
        )


def _positive(number: object, name: str) -> Any:
    if isinstance(number, bool) or not isinstance(number, (int, float)) or number <= 0:
        raise refuse(f"{name} must be a number greater than zero, this is {number!r:.80}")
    return number


class Retries:
    """Applies a strategy to outcomes; asked once per outcome."""

    def __init__(self, strategy: AsyncRetryStrategy) -> None:
        self._strategy = strategy
        predicate = strategy.get_retry_predicate()
        self._bad_result = predicate.result_predicate()
        self._bad_exception = predicate.exception_predicate()

    @property
    def never(self) -> bool:
        """Whether no outcome can lead to another attempt."""
        return self._bad_result is None and self._bad_exception is None

    def delay_ms(
        self, attempts: int, results: list[Any], error: BaseException | None
    ) -> int | None:
        """The pause before the next attempt in milliseconds; None if the call is not retried."""
        predicate: Callable[[Any], bool] | None = (
            self._bad_result if error is None else self._bad_exception
        )
        if predicate is None or (error is not None and not isinstance(error, Exception)):
            return None
        if not self._strategy.can_retry(attempts) or not predicate(
            results if error is None else error
        ):
            return None
        return max(0, int(self._strategy.get_backoff_time_millis(attempts)))
