"""Compiles an expression for a schema into a function over record batches.

Types are known once the schema is, so kernels, casts and constants are chosen once; per batch there
is one call per node of the tree. The type of a node is found by running its kernel on empty arrays.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from flinkpy.columns.expression import Alias, Call, Column, Expression, Literal, refuse_sql
from flinkpy.common.logical_types.type_conversion import stream_type
from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

Evaluate: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True)
class Compiled:
    """``evaluate(batch)`` returns an array of ``type``, or a scalar if ``is_constant``."""

    type: pa.DataType
    evaluate: Evaluate
    is_constant: bool = False


def compile_expression(expression: Expression, schema: pa.Schema) -> Compiled:
    """The function that computes ``expression`` for batches of ``schema``, always as an array.

    Raises ProgramError for an unknown column (and names the nearest one), and for operands that a
    function does not take (and names the part of the expression and their types)."""
    compiled = _compile(expression, schema)
    if not compiled.is_constant:
        return compiled
    import pyarrow as pa

    constant = compiled.evaluate(None)
    repeated = pa.repeat(constant, 0)

    def column(batch: pa.RecordBatch) -> Any:
        """A slice of the longest one so far, which nobody can change."""
        nonlocal repeated
        if len(repeated) < batch.num_rows:
            repeated = pa.repeat(constant, batch.num_rows)
        return repeated if len(repeated) == batch.num_rows else repeated.slice(0, batch.num_rows)

    return Compiled(compiled.type, column)


def compile_selection(
    chosen: Sequence[tuple[str, Expression]], schema: pa.Schema
) -> tuple[pa.Schema, Evaluate]:
    """The schema that these named expressions make of ``schema``, and the function that makes a
    record batch of one."""
    import pyarrow as pa

    compiled = [compile_expression(expression, schema) for _, expression in chosen]
    evaluates = [each.evaluate for each in compiled]
    result = pa.schema([pa.field(name, each.type) for (name, _), each in zip(chosen, compiled)])
    return result, lambda batch: pa.RecordBatch.from_arrays(
        [evaluate(batch) for evaluate in evaluates], schema=result
    )


def _compile(expression: Expression, schema: pa.Schema) -> Compiled:
    if isinstance(expression, Alias):
        return _compile(expression.expression, schema)
    if isinstance(expression, Column):
        index = column_index(expression.column, schema)
        return Compiled(schema.field(index).type, lambda batch: batch.column(index))
    if isinstance(expression, Literal):
        return _literal(expression)
    if isinstance(expression, Call):
        return _call(
            expression, [_decoded(_compile(each, schema)) for each in expression.arguments]
        )
    raise ProgramError(f"{expression!r} cannot be computed row by row")


def column_index(name: str, schema: pa.Schema) -> int:
    """The position of the column. Raises ProgramError if there is none, and names the nearest
    one."""
    index: int = schema.get_field_index(name)
    if index >= 0:
        return index
    if name in schema.names:
        raise ProgramError(f"there are several columns called {name!r}")
    near = difflib.get_close_matches(name, schema.names, n=1)
    raise ProgramError(
        f"there is no column {name!r}"
        + (f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(schema.names)}")
    )


def _literal(expression: Literal) -> Compiled:
    import pyarrow as pa

    from flinkpy.columns.values.arrow_types import arrow_type
    from flinkpy.columns.values.exact_arrays import array_of

    value, declared = expression.value, expression.type_info
    try:
        if declared is None:
            scalar = pa.scalar(
                value, pa.uint64() if isinstance(value, int) and value >= 1 << 63 else None
            )
        else:
            exact = stream_type(declared, repr(expression))
            scalar = array_of([value], arrow_type(exact))[0]
    except OverflowError:
        raise ProgramError(
            f"{value!r:.80} cannot stand in an expression: whole numbers have 64 bits; write "
            f"Decimal({value!r:.80})"
        ) from None
    except (pa.ArrowException, ValueError) as error:
        raise ProgramError(f"{expression!r} cannot stand in an expression: {error}") from None
    return Compiled(scalar.type, lambda batch: scalar, is_constant=True)


def _decoded(operand: Compiled) -> Compiled:
    """Numbers and moments instead of a dictionary of them. Kernels take dictionaries of text, and
    other functions keep the column as it is."""
    import pyarrow as pa

    kind, evaluate = operand.type, operand.evaluate
    if (
        not pa.types.is_dictionary(kind)
        or pa.types.is_string(kind.value_type)
        or pa.types.is_large_string(kind.value_type)
    ):
        return operand
    return Compiled(kind.value_type, lambda batch: evaluate(batch).dictionary_decode())


def _call(expression: Call, arguments: list[Compiled]) -> Compiled:
    import pyarrow as pa

    from flinkpy.columns.kernels.kernel_table import KERNELS

    refuse_sql(expression)
    types = [each.type for each in arguments]
    options = expression.stream_options()
    try:
        if expression.function in ("asc", "desc"):
            raise ProgramError(
                f"{expression!r} says how order_by() of a table sorts; it is no value"
            )
        kernel = KERNELS[expression.function](types, **options)
        is_constant = all(each.is_constant for each in arguments)
        of_nothing = [
            each.evaluate(None) if each.is_constant and not is_constant else pa.array([], each.type)
            for each in arguments
        ]
        result = kernel(*of_nothing).type
    except (TypeError, IndexError, pa.ArrowException) as error:
        taken = " and ".join(map(str, types))
        raise ProgramError(
            f"{expression!r}: {expression.shown_function} cannot take {taken} "
            f"({_first_line(error)})"
        ) from None
    if is_constant:
        scalars = [each.evaluate(None) for each in arguments]
        try:
            constant = kernel(*[pa.array([each.as_py()], each.type) for each in scalars])[0]
        except (pa.ArrowException, ArithmeticError, IndexError) as error:
            raise ProgramError(f"{expression!r}: {_first_line(error)}") from None
        return Compiled(result, lambda batch: constant, is_constant=True)
    evaluate = _applied(kernel, [each.evaluate for each in arguments])
    return Compiled(
        result, _guarded(evaluate, kernel, arguments) if expression.function == "then" else evaluate
    )


def _guarded(evaluate: Evaluate, kernel: Callable[..., Any], arguments: list[Compiled]) -> Evaluate:
    """Evaluates ``then`` so that an error in a branch counts only where the branch is chosen. Both
    branches are computed for all rows, which is fast; if that fails, each is computed only for its
    own rows."""
    import pyarrow as pa
    import pyarrow.compute as pc

    condition, if_true, if_false = arguments

    def apart(batch: pa.RecordBatch) -> Any:
        truth = condition.evaluate(batch)
        truth = pa.repeat(truth, batch.num_rows) if condition.is_constant else truth
        truth = pc.fill_null(truth.cast(pa.bool_()), False)
        rest = pc.invert(truth)
        chosen, others = batch.filter(truth), batch.filter(rest)
        one = kernel(
            truth.filter(truth), if_true.evaluate(chosen), pa.nulls(chosen.num_rows, if_false.type)
        )
        other = kernel(
            truth.filter(rest), pa.nulls(others.num_rows, if_true.type), if_false.evaluate(others)
        )
        behind = pc.if_else(
            truth,
            pc.cumulative_sum(truth.cast(pa.int64())),
            pc.add(pc.cumulative_sum(rest.cast(pa.int64())), len(one)),
        )
        return pa.concat_arrays([one, other]).take(pc.subtract(behind, 1))

    def either(batch: pa.RecordBatch) -> Any:
        try:
            return evaluate(batch)
        except (pa.ArrowException, ArithmeticError):
            return apart(batch)

    return either


def _applied(kernel: Callable[..., Any], arguments: list[Evaluate]) -> Evaluate:
    if len(arguments) == 1:
        [only] = arguments
        return lambda batch: kernel(only(batch))
    if len(arguments) == 2:
        left, right = arguments
        return lambda batch: kernel(left(batch), right(batch))
    return lambda batch: kernel(*[each(batch) for each in arguments])


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
