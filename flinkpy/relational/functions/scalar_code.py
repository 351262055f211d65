"""Scalar functions of users as kernels: by row, by pandas series, by Arrow arrays."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flinkpy.columns.sql.arrays_of_values import values_of_array
from flinkpy.columns.sql.call_site import CallSite, Kernel
from flinkpy.columns.sql.user_code import FailingValue
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.functions import RuntimeContext
from flinkpy.relational.functions.python_values import arguments_of, conformed, results_of
from flinkpy.relational.functions.user_defined import FunctionContext, UserDefinedFunction
from flinkpy.relational.relational_operator import plain

if TYPE_CHECKING:
    import asyncio

MOST_AT_ONCE = 64  # calls of a coroutine function that wait together


def opened(function: Any, context: object) -> Any:
    """The function, opened; a plain callable needs it not. A function object is a copy, so that two
    operators of a task do not open the same one."""
    if not isinstance(function, UserDefinedFunction):
        return function
    assert isinstance(context, OperatorContext), "an operator opens functions"
    own = copy.copy(function)
    own.open(FunctionContext(RuntimeContext(context)))
    return own


def closed(function: object) -> None:
    """Closes a function object."""
    if isinstance(function, UserDefinedFunction):
        function.close()


class ScalarCode:
    """A scalar function (UserCode): a callable, or an object with ``eval``. ``form`` says what it
    takes: ``general`` values, ``pandas`` series, ``arrow`` arrays; ``async``: it is a coroutine
    function of values, and the rows of a batch wait together."""

    _opened: Any = None
    _loop: asyncio.AbstractEventLoop | None = None

    def __init__(self, function: Any, form: str) -> None:
        self.function = function
        self.form = form

    @property
    def awaits_functions(self) -> bool:
        """Whether its function may be declared with ``async def``."""
        return self.form == "async"

    def open(self, context: object) -> None:
        self._opened = opened(self.function, context)

    def close(self) -> None:
        closed(self._opened)
        self._opened = None
        if self._loop is not None:
            self._loop.close()
            self._loop = None

    @property
    def function_opened(self) -> Any:
        """What is called for a row."""
        called = self.function if self._opened is None else self._opened
        return getattr(called, "eval", called)

    def kernel(self, site: CallSite) -> Kernel:
        call = self.function_opened
        if self.form == "pandas":
            return _by_batch(call, site, _series)
        if self.form == "arrow":
            return _by_batch(call, site, _array)
        if self.form == "async":
            import asyncio  # late: few queries need it, and it takes a tenth of a small one's time

            self._loop = self._loop or asyncio.new_event_loop()
            return _together(call, site, self._loop)
        return _by_row(call, site)


def _by_row(call: Callable[..., Any], site: CallSite) -> Kernel:
    def kernel(rows: int, *operands: Any) -> Any:
        columns = [arguments_of(each, kind, rows) for each, kind in zip(operands, site.arguments)]
        found: list[Any] = []
        try:
            if columns:
                found.extend(map(call, *columns))
            else:
                found.extend(call() for _ in range(rows))
        except Exception as error:
            raise FailingValue(error, len(found)) from error
        if len(found) < rows:  # map() takes it for its end
            raise FailingValue(RuntimeError("it raised StopIteration"), len(found))
        return results_of(found, site.result)

    return kernel


def _by_batch(
    call: Callable[..., Any], site: CallSite, given: Callable[[Any, CallSite, int], Any]
) -> Kernel:
    def kernel(rows: int, *operands: Any) -> Any:
        arguments = [given(each, site, at) for at, each in enumerate(operands)]
        try:
            found = call(*arguments)
        except Exception as error:
            raise FailingValue(error) from error
        return conformed(found, site.result, rows)

    return kernel


def _series(operand: Any, site: CallSite, at: int) -> Any:
    """A series; a constant as its value, as in PyFlink."""
    if isinstance(operand, pa.Scalar):
        return values_of_array(pa.repeat(operand, 1), site.arguments[at])[0]
    return plain(operand).to_pandas()


def _array(operand: Any, site: CallSite, at: int) -> Any:
    """An array; a constant as an Arrow scalar."""
    return operand if isinstance(operand, pa.Scalar) else plain(operand)


def _together(call: Callable[..., Any], site: CallSite, loop: asyncio.AbstractEventLoop) -> Kernel:
    import asyncio

    async def answers(calls: list[tuple[Any, ...]]) -> list[Any]:
        turn = asyncio.Semaphore(MOST_AT_ONCE)

        async def one(values: tuple[Any, ...]) -> Any:
            async with turn:
                return await call(*values)

        return await asyncio.gather(*map(one, calls), return_exceptions=True)

    def kernel(rows: int, *operands: Any) -> Any:
        columns = [arguments_of(each, kind, rows) for each, kind in zip(operands, site.arguments)]
        calls = list(zip(*columns)) if columns else [()] * rows
        found = loop.run_until_complete(answers(calls))
        for place, each in enumerate(found):
            if isinstance(each, BaseException):
                if not isinstance(each, Exception):
                    raise each
                raise FailingValue(each, place) from each
        return results_of(found, site.result)

    return kernel
