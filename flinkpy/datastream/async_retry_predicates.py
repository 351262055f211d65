"""Predicates for retry strategies, under PyFlink's module path.

>>> from functools import partial
>>> from flinkpy.datastream.async_retry_strategies import FixedDelayRetryStrategy
>>> refused = partial(exception_type_predicate, expected_error_type=ConnectionRefusedError)
>>> FixedDelayRetryStrategy(3, 100, empty_result_predicate, refused).can_retry(1)
True
"""

from __future__ import annotations

from typing import Any


def empty_result_predicate(result: list[Any] | None) -> bool:
    """Whether there is no result."""
    return not result


def has_exception_predicate(error: BaseException | None) -> bool:
    """Whether the call raised any exception."""
    return error is not None


def exception_type_predicate(
    error: BaseException | None, expected_error_type: type[BaseException]
) -> bool:
    """Whether the call raised an exception of this type; bind the type with
    ``functools.partial``."""
    return isinstance(error, expected_error_type)
