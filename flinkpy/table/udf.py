"""Functions of your own for tables and SQL, at PyFlink's module path.

>>> from flinkpy.table import DataTypes
>>> from flinkpy.table.udf import udf
>>> @udf(result_type=DataTypes.BIGINT())
... def twice(n):
...     return 2 * n
>>> from flinkpy.table.expressions import col
>>> twice(col("a"))
twice(col('a'))
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias, overload

from flinkpy.common.logical_types.logical_type import ArrayType, LogicalType
from flinkpy.core.program.program_line import refuse
from flinkpy.core.program.public_names import publish
from flinkpy.relational.functions.user_defined import (
    AggregateFunction,
    AsyncScalarFunction,
    FunctionContext,
    ImperativeAggregateFunction,
    ScalarFunction,
    TableAggregateFunction,
    TableFunction,
    UserDefinedFunction,
)
from flinkpy.sql.functions.function_port import FunctionKind
from flinkpy.sql.functions.user_function import UserFunction
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.expression_trees.user_calls import UserCall
from flinkpy.table.udf_types import row_of, type_list, type_of, type_of_annotation

__all__ = [
    "AggregateFunction",
    "AsyncScalarFunction",
    "FunctionContext",
    "ImperativeAggregateFunction",
    "ScalarFunction",
    "TableAggregateFunction",
    "TableFunction",
    "UserDefinedFunction",
    "UserDefinedFunctionWrapper",
    "udaf",
    "udf",
    "udtaf",
    "udtf",
]

Types: TypeAlias = Sequence[LogicalType | str] | LogicalType | str | None
Code: TypeAlias = Callable[..., Any] | UserDefinedFunction | type

FORMS = ("general", "pandas", "arrow")


class UserDefinedFunctionWrapper:
    """What ``udf``, ``udtf``, ``udaf`` and ``udtaf`` make: a function of tables with its types.
    Called with expressions it is one; ``create_temporary_function`` gives it a name in SQL."""

    def __init__(self, function: UserFunction, written: object) -> None:
        self.function = function
        self._columns: tuple[str, ...] = ()
        if callable(written) and not isinstance(written, type):
            functools.update_wrapper(self, written)

    def __call__(self, *args: object) -> UserCall:
        """The call as an expression; values that are none are constants."""
        return UserCall(self.function, args, self._columns)

    def alias(self, *alias_names: str) -> UserDefinedFunctionWrapper:
        """The same function with other names for what it gives."""
        other = UserDefinedFunctionWrapper(self.function, None)
        other._columns = alias_names
        return other

    def __repr__(self) -> str:
        return f"<{self.function.kind.value.lower()} function {self.function.shown}>"


@overload
def udf(
    f: None = None,
    input_types: Types = None,
    result_type: LogicalType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Callable[[Any], UserDefinedFunctionWrapper]: ...
@overload
def udf(
    f: Code,
    input_types: Types = None,
    result_type: LogicalType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> UserDefinedFunctionWrapper: ...
def udf(
    f: Code | None = None,
    input_types: Types = None,
    result_type: LogicalType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> UserDefinedFunctionWrapper | Callable[[Any], UserDefinedFunctionWrapper]:
    """A scalar function: one value for each row. ``func_type`` says what it takes: values
    (``general``), a ``pandas`` series or an ``arrow`` array for each argument, and it gives one
    back. A coroutine function waits for many rows at once. The result's type may also be the
    annotation of the function.

    >>> add = udf(lambda a, b: a + b, result_type="BIGINT")
    >>> @udf(result_type="DOUBLE", func_type="pandas")
    ... def scaled(values):
    ...     return values / 100
    """
    if f is None:
        return lambda given: udf(given, input_types, result_type, deterministic, name, func_type)
    from flinkpy.relational.functions.scalar_code import ScalarCode

    code = _code(f, "udf", "eval")
    if func_type not in FORMS:
        raise refuse(f"udf(): func_type is one of {', '.join(FORMS)}, not {func_type!r}")
    is_async = inspect.iscoroutinefunction(getattr(code, "eval", code))
    if is_async and func_type != "general":
        raise refuse(f"udf(): a coroutine function takes values; leave func_type={func_type!r} out")
    result = type_of(result_type, "udf()") if result_type is not None else type_of_annotation(code)
    if result is None:
        raise refuse('udf(): say what it gives, for example result_type="BIGINT"')
    return _wrapped(
        f,
        UserFunction(
            _name(code, name),
            ScalarCode(code, "async" if is_async else func_type),
            result,
            type_list(input_types, "udf()"),
            FunctionKind.SCALAR,
            _is_deterministic(code, deterministic),
        ),
    )


@overload
def udtf(
    f: None = None,
    input_types: Types = None,
    result_types: Types = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> Callable[[Any], UserDefinedFunctionWrapper]: ...
@overload
def udtf(
    f: Code,
    input_types: Types = None,
    result_types: Types = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> UserDefinedFunctionWrapper: ...
def udtf(
    f: Code | None = None,
    input_types: Types = None,
    result_types: Types = None,
    deterministic: bool | None = None,
    name: str | None = None,
) -> UserDefinedFunctionWrapper | Callable[[Any], UserDefinedFunctionWrapper]:
    """A table function: any number of rows for each row. It yields tuples, or returns a list of
    them; with one column plain values. A tuple, a text or None that it returns is one row, or none.
    ``result_types`` is a ROW, or a type for each column.

    >>> @udtf(result_types=["STRING", "INT"])
    ... def words(text):
    ...     for word in text.split():
    ...         yield word, len(word)
    """
    if f is None:
        return lambda given: udtf(given, input_types, result_types, deterministic, name)
    code = _code(f, "udtf", "eval")
    if result_types is None:
        raise refuse('udtf(): say what its rows are, for example result_types=["STRING", "INT"]')
    return _wrapped(
        f,
        UserFunction(
            _name(code, name),
            code,
            row_of(result_types, "udtf()"),
            type_list(input_types, "udtf()"),
            FunctionKind.TABLE,
            _is_deterministic(code, deterministic),
        ),
    )


@overload
def udaf(
    f: None = None,
    input_types: Types = None,
    result_type: LogicalType | str | None = None,
    accumulator_type: LogicalType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Callable[[Any], UserDefinedFunctionWrapper]: ...
@overload
def udaf(
    f: Code,
    input_types: Types = None,
    result_type: LogicalType | str | None = None,
    accumulator_type: LogicalType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> UserDefinedFunctionWrapper: ...
def udaf(
    f: Code | None = None,
    input_types: Types = None,
    result_type: LogicalType | str | None = None,
    accumulator_type: LogicalType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> UserDefinedFunctionWrapper | Callable[[Any], UserDefinedFunctionWrapper]:
    """An aggregate: one value for many rows. It is an ``AggregateFunction``, or with ``func_type``
    ``pandas`` or ``arrow`` a function of all values of a group. An accumulator may be any object
    that can be pickled, so ``accumulator_type`` is not looked at.

    >>> @udaf(result_type="DOUBLE", func_type="pandas")
    ... def spread(values):
    ...     return values.max() - values.min()
    """
    if f is None:
        return lambda given: udaf(
            given, input_types, result_type, accumulator_type, deterministic, name, func_type
        )
    from flinkpy.relational.aggregates.aggregate_code import AggregateCode

    code = _code(f, "udaf", "accumulate")
    if func_type not in FORMS:
        raise refuse(f"udaf(): func_type is one of {', '.join(FORMS)}, not {func_type!r}")
    if func_type == "general" and not isinstance(code, AggregateFunction):
        raise refuse(
            "udaf() takes an AggregateFunction; for a function of all values of a group say "
            'func_type="pandas"'
        )
    if result_type is None and isinstance(code, AggregateFunction):
        result_type = code.get_result_type()
    if result_type is None:
        raise refuse('udaf(): say what it gives, for example result_type="BIGINT"')
    return _wrapped(
        f,
        UserFunction(
            _name(code, name),
            AggregateCode(code, func_type),
            type_of(result_type, "udaf()"),
            type_list(input_types, "udaf()"),
            FunctionKind.AGGREGATE,
            _is_deterministic(code, deterministic),
        ),
    )


@overload
def udtaf(
    f: None = None,
    input_types: Types = None,
    result_type: LogicalType | str | None = None,
    accumulator_type: LogicalType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> Callable[[Any], UserDefinedFunctionWrapper]: ...
@overload
def udtaf(
    f: Code,
    input_types: Types = None,
    result_type: LogicalType | str | None = None,
    accumulator_type: LogicalType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> UserDefinedFunctionWrapper: ...
def udtaf(
    f: Code | None = None,
    input_types: Types = None,
    result_type: LogicalType | str | None = None,
    accumulator_type: LogicalType | str | None = None,
    deterministic: bool | None = None,
    name: str | None = None,
    func_type: str = "general",
) -> UserDefinedFunctionWrapper | Callable[[Any], UserDefinedFunctionWrapper]:
    """A table aggregate, for ``flat_aggregate``: any number of rows for many rows. It is a
    ``TableAggregateFunction``; ``result_type`` is the ROW of its columns, or the type of one. An
    accumulator may be any object that can be pickled, so ``accumulator_type`` is not looked at.

    >>> class Both(TableAggregateFunction):
    ...     def create_accumulator(self):
    ...         return []
    ...
    ...     def accumulate(self, accumulator, value):
    ...         accumulator.append(value)
    ...
    ...     def emit_value(self, accumulator):
    ...         yield min(accumulator), "least"
    ...         yield max(accumulator), "most"
    >>> both = udtaf(Both(), result_type="ROW<price BIGINT, what STRING>")
    """
    if f is None:
        return lambda given: udtaf(
            given, input_types, result_type, accumulator_type, deterministic, name, func_type
        )
    from flinkpy.relational.aggregates.aggregate_code import AggregateCode

    code = _code(f, "udtaf", "emit_value")
    if func_type != "general":
        raise refuse(f"udtaf(): func_type is general only, not {func_type!r}")
    if not isinstance(code, TableAggregateFunction):
        raise refuse("udtaf() takes a TableAggregateFunction")
    if result_type is None:
        result_type = code.get_result_type()
    rows = row_of(type_of(result_type, "udtaf()"), "udtaf()")
    return _wrapped(
        f,
        UserFunction(
            _name(code, name),
            AggregateCode(code, "table"),
            ArrayType(rows, is_nullable=False),
            type_list(input_types, "udtaf()"),
            FunctionKind.AGGREGATE,
            _is_deterministic(code, deterministic),
        ),
    )


def _wrapped(written: object, function: UserFunction) -> UserDefinedFunctionWrapper:
    return UserDefinedFunctionWrapper(function, written)


def _code(f: Any, call: str, method: str) -> Any:
    """The function, or an object of a class of functions."""
    if isinstance(f, type):
        try:
            f = f()
        except TypeError as error:
            raise refuse(f"{call}(): {f.__name__} cannot be made without arguments: {error}") from (
                None
            )
    if isinstance(f, UserDefinedFunction):
        if not hasattr(f, method):
            raise refuse(f"{call}() takes a function with {method}(), and {f!r:.80} has none")
        return f
    if isinstance(f, UserDefinedFunctionWrapper) or not callable(f):
        raise refuse(f"{call}() takes a function or an object with {method}(), this is {f!r:.80}")
    return f


def _name(code: Any, name: str | None) -> str:
    if name:
        return name
    while isinstance(code, functools.partial):
        code = code.func
    found = getattr(code, "__name__", type(code).__name__)
    return "lambda" if found == "<lambda>" else str(found)


def _is_deterministic(code: Any, said: bool | None) -> bool:
    own = code.is_deterministic() if isinstance(code, UserDefinedFunction) else None
    if said is not None and own is not None and said is not own and own is not True:
        raise refuse("deterministic is another than what is_deterministic() says")
    return said if said is not None else own is not False


def function_of(found: Any, *, name: str | None = None, shown: str | None = None) -> UserFunction:
    """The function of a wrapper, of a function object, or of a plain function with an annotation.
    Raises ProgramError for anything else."""
    if not isinstance(found, UserDefinedFunctionWrapper):
        found = _from_code(found, shown)
    function: UserFunction = found.function
    return function if name is None else replace(function, name=name)


def _from_code(found: Any, shown: str | None) -> UserDefinedFunctionWrapper:
    where = shown or f"{found!r:.80}"
    wrong = refuse if shown is None else ValidationError  # a statement has named it
    code = found() if isinstance(found, type) and issubclass(found, UserDefinedFunction) else found
    if isinstance(code, (ScalarFunction, AsyncScalarFunction)) or (
        callable(code) and not isinstance(code, (type, UserDefinedFunction))
    ):
        if type_of_annotation(code) is None:
            raise wrong(
                f"{where} does not say what it gives: make it with udf(..., result_type=...), or "
                "annotate its result, as in 'def f(a) -> int'"
            )
        return udf(code)
    raise wrong(f"{where} is no function of tables: make it with udf, udtf, udaf or udtaf")


publish(__name__)
