"""Asynchronous I/O on streams, under PyFlink's names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, TypeAlias

from flinkpy.common.time import Time
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.core.program.coroutines import refuse_coroutines
from flinkpy.datastream.checks import check_arity, check_type, located, refuse
from flinkpy.datastream.data_stream import DataStream
from flinkpy.datastream.verbs.typed_functions import declared
from flinkpy.operators.async_io.async_functions import AsyncFunction, AsyncFunctionDescriptor
from flinkpy.operators.async_io.retry import NO_RETRY_STRATEGY, AsyncRetryStrategy

AsyncFunctionLike: TypeAlias = "AsyncFunction | Callable[[Any], Awaitable[list[Any]]]"
Timeout: TypeAlias = "Time | timedelta | int"

_ORDERED = AsyncFunctionDescriptor.OutputMode.ORDERED
_UNORDERED = AsyncFunctionDescriptor.OutputMode.UNORDERED


class AsyncDataStream:
    """Calls an :class:`AsyncFunction`, or a function declared with ``async def``, for each record
    of a stream. Each subtask makes up to ``capacity`` calls at a time. The function returns a list
    of results, which get the record's timestamp.

    ``timeout`` (a Time, a timedelta, or milliseconds; 0: none) covers all attempts for a record. A
    record that exceeds it fails the job, unless the function's ``timeout(value)`` returns results
    instead. Checkpoints contain the records whose calls have not finished. After a failure they are
    called again, so each record is called at least once. Raises ProgramError for invalid arguments.

    >>> from flinkpy.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> async def twice(value):
    ...     return [2 * value]
    >>> AsyncDataStream.ordered_wait(env.from_collection([1, 2]), twice, Time.seconds(5)).get_name()
    'async wait operator'
    """

    @staticmethod
    def unordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunctionLike,
        timeout: Timeout,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Emits results as the calls finish, but never past a watermark."""
        return _async_wait(
            "unordered_wait()",
            data_stream,
            async_function,
            timeout,
            NO_RETRY_STRATEGY,
            capacity,
            output_type,
            _UNORDERED,
        )

    @staticmethod
    def unordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunctionLike,
        timeout: Timeout,
        async_retry_strategy: AsyncRetryStrategy,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Like ``unordered_wait``, with retries: the strategy says after which failures and results
        a call is made again, and when.

        >>> from flinkpy.datastream.async_retry_predicates import empty_result_predicate
        >>> strategy = AsyncRetryStrategy.fixed_delay(3, 100, empty_result_predicate)
        >>> AsyncDataStream.unordered_wait_with_retry(
        ...     stream, lookup, Time.seconds(5), strategy
        ... )  # doctest: +SKIP
        """
        return _async_wait(
            "unordered_wait_with_retry()",
            data_stream,
            async_function,
            timeout,
            async_retry_strategy,
            capacity,
            output_type,
            _UNORDERED,
        )

    @staticmethod
    def ordered_wait(
        data_stream: DataStream,
        async_function: AsyncFunctionLike,
        timeout: Timeout,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Emits results in the order of their records, so a slow call delays the results of later
        records."""
        return _async_wait(
            "ordered_wait()",
            data_stream,
            async_function,
            timeout,
            NO_RETRY_STRATEGY,
            capacity,
            output_type,
            _ORDERED,
        )

    @staticmethod
    def ordered_wait_with_retry(
        data_stream: DataStream,
        async_function: AsyncFunctionLike,
        timeout: Timeout,
        async_retry_strategy: AsyncRetryStrategy,
        capacity: int = 100,
        output_type: TypeInformation | None = None,
    ) -> DataStream:
        """Like ``ordered_wait``, with retries: the strategy says after which failures and results a
        call is made again, and when."""
        return _async_wait(
            "ordered_wait_with_retry()",
            data_stream,
            async_function,
            timeout,
            async_retry_strategy,
            capacity,
            output_type,
            _ORDERED,
        )


def _async_wait(
    call: str,
    stream: DataStream,
    function: AsyncFunctionLike,
    timeout: Timeout,
    strategy: AsyncRetryStrategy,
    capacity: int,
    output_type: TypeInformation | None,
    mode: AsyncFunctionDescriptor.OutputMode,
) -> DataStream:
    from flinkpy.operators.async_io.async_wait import AsyncWaitOperator

    if not isinstance(stream, DataStream):
        raise refuse(f"{call} takes a stream first, this is {stream!r:.80}")
    with located():
        descriptor = AsyncFunctionDescriptor(function, timeout, capacity, strategy, mode)
    check_arity(descriptor.invoke, 1, call)
    if isinstance(function, AsyncFunction):
        refuse_coroutines(function, call)  # its other methods
    refuse_coroutines(strategy, call)
    output_type = check_type(output_type, call)
    rows = stream.recorded.as_rows()
    made = rows.apply(
        "async wait operator", declared(AsyncWaitOperator(descriptor), output_type), output_type
    )
    return DataStream(stream.get_execution_environment(), made)
