"""Computes the event times of a whole batch: the program's assigner is called once per record with
nothing else per record, or one kernel runs over a column."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import repeat
from operator import length_hint
from typing import TYPE_CHECKING, Any

from flinkpy.aggregates.fields import field_of
from flinkpy.common.watermark_strategy import AssignerLike, TimestampAssigner
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, Batch, ColumnBatch, RowBatch
from flinkpy.core.errors import ProgramError
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.event_time.valid_times import times_of
from flinkpy.operators.user_errors import user_code_error

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

_FIRST_YEAR, _YEAR_10000 = -62_135_596_800_000, 253_402_300_800_000
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


class TimestampExtractor:
    """Gives batches their event times. Raises ProgramError for what the assigner cannot do: while
    the program is built if there is a schema, else in ``open``."""

    def __init__(self, assigner: AssignerLike, context: OperatorContext) -> None:
        self._assigner, self._context = assigner, context
        self._is_columnar = is_columnar(assigner)
        self._row_function: Callable[..., Any] | None = None
        self._takes_previous = False
        if not is_expression(assigner):
            self._row_function, self._takes_previous = row_function(assigner)
            context.functions.append(self._row_function)
        self._schema: Any = None

    def stamped(self, batch: Batch) -> Batch:
        """The batch with its event times."""
        if isinstance(batch, RowBatch):
            return RowBatch(batch.values, self._of_rows(batch.values, batch.timestamps))
        if self._is_columnar:
            return batch.with_timestamps(self._of_columns(batch))
        import numpy as np

        from flinkpy.columns.values.conversion import rows_of_batch

        before = None if batch.timestamps is None else batch.timestamps.tolist()
        rows = rows_of_batch(batch.data, batch.kinds)
        moments = np.array(self._of_rows(rows, before), dtype=np.int64)
        try:
            _check_range(moments, "the assigner")
        except ValueError as error:
            raise _naming_record(error, self._context, batch) from error
        return batch.with_timestamps(moments)

    def _of_rows(self, values: list[Any], before: list[int] | None) -> list[int]:
        function = self._row_function
        if function is None:
            raise ProgramError(
                f"operator {self._context.name!r}: {self._assigner!r} needs columns, and "
                "these are rows"
            )
        upcoming = iter(values)
        try:
            if self._takes_previous:
                earlier = repeat(MIN_TIMESTAMP) if before is None else before
                stamps = [function(value, stamp) for value, stamp in zip(upcoming, earlier)]
            else:
                stamps = [function(value) for value in upcoming]
        except (
            BaseException
        ) as error:  # the iterator knows how far it got, so the loop need not count
            raise user_code_error(
                error, self._context, values[len(values) - length_hint(upcoming) - 1]
            ) from error
        # it may give on that a record has none
        return times_of(
            values,
            stamps,
            self._context,
            "the assigner",
            none=MIN_TIMESTAMP if self._takes_previous else None,
        )

    def _of_columns(self, batch: ColumnBatch) -> npt.NDArray[np.int64]:
        data = batch.data
        if self._schema is None or not self._schema.equals(data.schema):
            try:
                self._evaluate = column_function(self._assigner, data.schema)
            except ProgramError as error:
                raise ProgramError(f"operator {self._context.name!r}: {error}") from None
            self._schema = data.schema
        try:
            return self._evaluate(data)
        except BaseException as error:
            raise _naming_record(error, self._context, batch) from error


class NoTimeError(ValueError):
    """The record at this place of the batch has no event time, or one that is no time."""

    def __init__(self, message: str, place: int) -> None:
        super().__init__(message)
        self.place = place

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.place)


def _naming_record(error: BaseException, context: OperatorContext, batch: ColumnBatch) -> Exception:
    """The error to raise, with the record, if it knows its place."""
    if not isinstance(error, NoTimeError):
        return user_code_error(error, context)
    from flinkpy.columns.values.conversion import rows_of_batch

    try:
        row = batch.slice(error.place, 1)
        record = rows_of_batch(row.data, row.kinds)[0]
    except ProgramError:  # a time that Python's types do not hold
        return user_code_error(error, context)
    return user_code_error(error, context, record)


def is_columnar(assigner: object) -> bool:
    """Whether the assigner works on whole column batches."""
    return isinstance(assigner, str) or is_expression(assigner)


def is_expression(assigner: object) -> bool:
    """Whether it is an expression over columns."""
    from flinkpy.columns.expression import Expression

    return isinstance(assigner, Expression)


def zone_of(assigner: Any, schema: pa.Schema) -> str | None:
    """The time zone of the column that the assigner reads; None if it has none."""
    import pyarrow as pa

    from flinkpy.columns.compiler import compile_expression
    from flinkpy.columns.expression_functions import col

    kind = compile_expression(col(assigner) if isinstance(assigner, str) else assigner, schema).type
    return kind.tz if pa.types.is_timestamp(kind) else None


def row_function(assigner: Any) -> tuple[Callable[..., Any], bool]:
    """The function to call per record, and whether it takes the previous timestamp as well."""
    if isinstance(assigner, TimestampAssigner):
        return assigner.extract_timestamp, True
    if isinstance(assigner, str):
        return lambda value: field_of(value, assigner), False
    return assigner, _required_arguments(assigner) >= 2


def _required_arguments(function: Callable[..., Any]) -> int:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (ValueError, TypeError):
        return 1  # a function written in C without a signature
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(
        1
        for parameter in parameters
        if parameter.kind in positional and parameter.default is parameter.empty
    )


def column_function(assigner: object, schema: pa.Schema) -> Callable[[Any], npt.NDArray[np.int64]]:
    """The function from a record batch of the schema to event times. Raises ProgramError for
    unknown columns and for types that are no times."""
    import pyarrow as pa

    from flinkpy.columns.compiler import compile_expression
    from flinkpy.columns.expression_functions import col

    expression: Any = col(assigner) if isinstance(assigner, str) else assigner
    compiled = compile_expression(expression, schema)
    convert = _conversion(compiled.type, expression)
    evaluate = compiled.evaluate
    advice = _OF_NUMBERS if pa.types.is_integer(_plain(compiled.type)) else _OF_MOMENTS

    def stamps(data: object) -> npt.NDArray[np.int64]:
        found = evaluate(data)
        if found.null_count:
            first = found.is_null().index(True).as_py()
            raise NoTimeError(
                (
                    f"{found.null_count} of {len(found)} records have no timestamp: "
                    f"{expression!r} is null; filter them out before"
                ),
                first,
            )
        moments = convert(found)
        _check_range(moments, repr(expression), advice)
        return moments

    return stamps


_OF_NUMBERS = (
    "event time is in milliseconds: divide what is finer, microseconds by 1,000 and nanoseconds "
    "by 1,000,000, or cast it to a timestamp"
)
_OF_MOMENTS = "in milliseconds; event time over columns is in the years 1 to 9999"


def _check_range(moments: npt.NDArray[np.int64], given_by: str, advice: str = _OF_NUMBERS) -> None:
    """Raises NoTimeError for times outside the years 1 to 9999: windows over columns have
    timestamps as bounds, which end there."""
    for at in (int(moments.argmin()), int(moments.argmax())) if len(moments) else ():
        moment = int(moments[at])
        if not _FIRST_YEAR <= moment < _YEAR_10000:
            raise NoTimeError(
                f"{given_by} gives {moment} as event time"
                f"{', and ' if advice is _OF_NUMBERS else ', '}{advice}",
                at,
            )


def _conversion(kind: Any, expression: object) -> Callable[[Any], npt.NDArray[np.int64]]:
    """The function from an array of this type to milliseconds. Finer units are rounded down, also
    before 1970. Numbers that int64 does not hold become its end, which is no time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def integers(array: Any) -> npt.NDArray[np.int64]:
        whole: npt.NDArray[np.int64] = array.cast(pa.int64()).to_numpy(zero_copy_only=False)
        return whole

    if pa.types.is_dictionary(kind):
        of_values = _conversion(kind.value_type, expression)
        return lambda array: of_values(array.dictionary_decode())
    if pa.types.is_uint64(kind):
        return lambda array: integers(pc.min_element_wise(array, pa.scalar(MAX_TIMESTAMP, kind)))
    if pa.types.is_integer(kind):
        return integers
    if pa.types.is_date(kind):
        days = pa.types.is_date32(kind)
        return lambda array: (
            _multiplied(integers(array.cast(pa.int32())), 86_400_000) if days else integers(array)
        )
    if pa.types.is_timestamp(kind):
        per_second = _PER_SECOND[kind.unit]
        if per_second <= 1000:
            return lambda array: _multiplied(integers(array), 1000 // per_second)
        return lambda array: integers(array) // (per_second // 1000)
    raise ProgramError(
        f"{expression!r} is of type {kind}, and a timestamp must be whole milliseconds, a "
        "timestamp or a date"
    )


def _plain(kind: Any) -> Any:
    """The type of the values of a dictionary, or the type itself."""
    return getattr(kind, "value_type", kind)


def _multiplied(numbers: npt.NDArray[np.int64], factor: int) -> npt.NDArray[np.int64]:
    """The products; those that int64 does not hold become its ends, which are no times."""
    most = MAX_TIMESTAMP // factor
    return numbers.clip(-most, most) * factor
