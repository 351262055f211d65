"""Slices of columns with the aggregates of SQL: the store of a SliceOperator. Event time is a
column; keys and aggregates stand in the order of the plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.aggregates.of_columns import ColumnAggregate
from flinkpy.aggregates.wide_integers import WIDE
from flinkpy.core.elements import Batch
from flinkpy.core.errors import ProgramError
from flinkpy.operators.columnar.column_operators import columns
from flinkpy.relational.aggregates.group_counts import averages
from flinkpy.relational.aggregates.group_decimals import decimal_averages, decimals_or_null
from flinkpy.relational.aggregates.present_values import all_present, numbers_of, wrapped
from flinkpy.relational.relational_operator import plain
from flinkpy.relational.windows.meanings import check_meaning, meaning_in, meaning_of, with_meaning
from flinkpy.relational.windows.wall_clock import AS_IT_IS, WallClock
from flinkpy.relational.windows.window_times import times_in, with_times
from flinkpy.relational.windows.windows_in_time import moments_of
from flinkpy.sql.rex.relational_terms import WindowKind, WindowSpec
from flinkpy.sql.rex.rex_nodes import AggregateCall
from flinkpy.windowing.slices.column_slices import ColumnSlices
from flinkpy.windowing.slices.grouped_parts import Part
from flinkpy.windowing.windows import TimeWindow

if TYPE_CHECKING:
    import numpy.typing as npt

# The aggregates of slices that the functions of SQL are computed from
KINDS = {
    "COUNT": "count",
    "SUM": "sum",
    "$SUM0": "sum",
    "AVG": "sum",
    "MIN": "min",
    "MAX": "max",
    "FIRST_VALUE": "first_value",
    "LAST_VALUE": "last_value",
    "VAR_POP": "var_pop",
    "VAR_SAMP": "var_samp",
    "VARIANCE": "var_samp",
    "STDDEV_POP": "stddev_pop",
    "STDDEV_SAMP": "stddev_samp",
    "STDDEV": "stddev_samp",
}
_MASK = (1 << 64) - 1


def are_in_slices(calls: Sequence[AggregateCall], schema: pa.Schema) -> bool:
    """Whether these aggregates of columns of this schema can be put together from those of
    slices."""
    for call in calls:
        if call.function.upper() not in KINDS or call.distinct or call.order_by:
            return False
        try:
            _aggregate_of(call, schema)
        except (ProgramError, TypeError):
            return False
    return True


def _aggregate_of(call: AggregateCall, schema: pa.Schema) -> ColumnAggregate:
    return ColumnAggregate(KINDS[call.function.upper()], _argument_type(call, schema))


class SqlAggregateSlices(ColumnSlices):
    """For each window and key: the key's columns, the aggregates, and of the window what
    ``properties`` names. ``schema`` is that of the results, ``inputs`` that of the rows."""

    gives_timestamps = False
    fires_at_end = True

    def __init__(
        self,
        keys: Sequence[str],
        calls: Sequence[AggregateCall],
        window: WindowSpec,
        properties: Sequence[str],
        schema: pa.Schema,
        clock: WallClock = AS_IT_IS,
        inputs: pa.Schema | None = None,
    ) -> None:
        super().__init__(keys)
        self.inputs = inputs  # of the rows, if they are known from the plan
        self.calls = tuple(calls)
        self.window = window
        self.properties = tuple(properties)
        self.schema = schema
        self.clock = clock

    def prepare(self, schema: pa.Schema) -> None:
        schema = schema if self.inputs is None else self.inputs
        self._result = self.schema
        self._aggregates = [_aggregate_of(call, schema) for call in self.calls]

    def described(self, schema: pa.Schema) -> pa.Schema:
        return with_meaning(schema, self._meaning(schema))

    def check_saved(self, schema: pa.Schema) -> None:
        """Sums are no greatest values: state goes on under the aggregates and windows that it was
        made by."""
        if saved := meaning_in(schema):
            check_meaning(self._context.name, saved, self._meaning(schema))

    def _meaning(self, schema: pa.Schema) -> str:
        names = (schema if self.inputs is None else self.inputs).names
        return meaning_of(self.calls, self.keys, self.window, names)

    def times(self, batch: Batch) -> npt.NDArray[np.int64] | None:
        return moments_of(self.window, self.clock, columns(batch, self._context).data)

    def passed(self, watermark: int) -> int:
        return self.clock.passed(watermark)

    def local(self, now: int) -> int:
        return int(self.clock.local(np.array([now]))[0])

    def moment(self, local: int) -> int:
        return self.clock.moment(local)

    def taken_in(self, data: pa.RecordBatch, ids: npt.NDArray[np.int64]) -> Part:
        taken = [
            aggregate.values_of(aggregated_column(call, data))
            for aggregate, call in zip(self._aggregates, self.calls)
        ]
        return Part(
            data.num_rows, ids, [counts for counts, _ in taken], [values for _, values in taken]
        )

    def evaluate(self, starts: list[int], survives: Callable[[int], bool]) -> Part:
        """Windows of CUMULATE that are still to come take all slices of this one together."""
        part = super().evaluate(starts, survives)
        if self.window.kind is WindowKind.CUMULATE and self.window.bounds is None:
            self.fold(starts, part)
        return part

    def result(self, part: Part, window: TimeWindow) -> Any:
        width = len(self.keys)
        kinds = [field.type for field in self.schema]
        arrays = self.known_keys.columns(part.ids)
        arrays = [plain(each).cast(kind) for each, kind in zip(arrays, kinds)]
        for call, each, counts, values, kind in zip(
            self.calls, self._aggregates, part.counts, part.values, kinds[width:]
        ):
            arrays.append(_result(call, each, counts, values, kind))
        time = int(self.clock.instants(np.array([window.end - 1]))[0])
        if self.window.is_processing:
            time = self._context.timers.now_ms()
        times = times_in(self.window, window.end, time, part.size)
        return with_times(arrays, self.properties, times, self.schema)


def _argument_type(call: AggregateCall, schema: pa.Schema) -> pa.DataType:
    if not call.arguments:
        return pa.bool_()
    kind = schema.field(call.arguments[0]).type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def aggregated_column(call: AggregateCall, data: pa.RecordBatch) -> pa.Array:
    """What is aggregated: null in rows that do not count."""
    if call.arguments:
        column = plain(data.column(call.arguments[0]))
    else:
        column = pa.array(np.ones(data.num_rows, np.bool_))
    others = [data.column(at) for at in call.arguments[1:]]
    wanted = all_present(others)
    mask = None if wanted is None else pa.array(wanted)
    if call.filter is not None:
        chosen = plain(data.column(call.filter)).fill_null(False)
        mask = chosen if mask is None else pc.and_(mask, chosen)
    if mask is None:
        return column
    return pc.if_else(mask, column, pa.scalar(None, column.type))


def _result(
    call: AggregateCall,
    aggregate: ColumnAggregate,
    counts: npt.NDArray[Any],
    values: npt.NDArray[Any],
    kind: pa.DataType,
) -> pa.Array:
    function = call.function.upper()
    if function == "COUNT":
        return wrapped(counts, kind, None)
    is_null = counts == 0
    if KINDS[function] == "sum":
        if pa.types.is_decimal(kind):
            scale = aggregate.computed_in.scale
            if function == "AVG":
                return decimal_averages(values, counts, scale, kind)
            return decimals_or_null(values, kind, None if function == "$SUM0" else is_null)
        values = _of_64_bits(values)
        if function == "AVG":
            return averages(values, counts, kind)
        return wrapped(values, kind, None if function == "$SUM0" else is_null)
    found = aggregate.results(counts, values)
    if found.type == kind:
        return found
    if pa.types.is_floating(found.type) and pa.types.is_integer(kind):
        numbers, present = numbers_of(found)
        return wrapped(numbers, kind, None if present is None else ~present)
    return found.cast(kind, safe=False)


def _of_64_bits(values: npt.NDArray[Any]) -> Any:
    """Sums beyond 64 bits wrap round."""
    if values.dtype != object or values.dtype == WIDE:
        return values
    wrapped_round = [(value + (1 << 63) & _MASK) - (1 << 63) for value in values.tolist()]
    return np.array(wrapped_round, np.int64)
