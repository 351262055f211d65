"""The calls of aggregate functions over groups: which columns each takes, of which rows, and what
another phase needs of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.operators.columnar.key_index import KeyIndex
from flinkpy.relational.aggregates.accumulator_port import Accumulator, AggregateSite
from flinkpy.relational.aggregates.group_functions import COUNTS_DISTINCT, accumulator_of
from flinkpy.relational.key_columns import key_batch, key_names
from flinkpy.relational.relational_operator import plain
from flinkpy.sql.rex.rex_nodes import AggregateCall


def sites_of(
    calls: Sequence[AggregateCall], inputs: pa.Schema, results: Sequence[pa.DataType]
) -> tuple[AggregateSite, ...]:
    """Where each call is called, over columns of this schema."""
    return tuple(
        AggregateSite(
            call.function,
            tuple(plain_type(inputs.field(at).type) for at in columns_of(call)),
            result,
            tuple(
                replace(key, index=len(call.arguments) + number)
                for number, key in enumerate(call.order_by)
            ),
            dict(call.options),
        )
        for call, result in zip(calls, results)
    )


def columns_of(call: AggregateCall) -> tuple[int, ...]:
    """The columns that a call takes: its arguments, and those it is ordered by."""
    return (*call.arguments, *(key.index for key in call.order_by))


def plain_type(kind: pa.DataType) -> Any:
    """The type of the values, whether they are encoded as a dictionary or not."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def partial_schema(
    keys: Sequence[int], calls: Sequence[AggregateCall], inputs: pa.Schema
) -> pa.Schema | None:
    """The schema of what a LOCAL aggregate gives; None if a call cannot be computed in parts.
    ``results`` of the whole do not matter for it but for MIN, MAX and the like."""
    fields = [inputs.field(at).with_name(f"key {number}") for number, at in enumerate(keys)]
    for number, call in enumerate(calls):
        if call.distinct or call.order_by:
            return None
        arguments = [plain_type(inputs.field(at).type) for at in call.arguments]
        site = AggregateSite(
            call.function, tuple(arguments), own_type(arguments), options=dict(call.options)
        )
        types = accumulator_of(site).partial_types
        if not types:
            return None
        fields += [pa.field(f"part {number} {at}", kind) for at, kind in enumerate(types)]
    return pa.schema(fields)


def own_type(arguments: Sequence[pa.DataType]) -> pa.DataType:
    """The result's type where only parts of it are computed: that of the first argument."""
    return arguments[0] if arguments else pa.int64()


class CallOfGroups:
    """One call: chooses its rows (FILTER, DISTINCT), and accumulates their arguments."""

    def __init__(self, call: AggregateCall, accumulator: Accumulator) -> None:
        self._columns = columns_of(call)
        self._arguments = call.arguments
        self._filter = call.filter
        self._is_distinct = call.distinct or call.function.upper() == COUNTS_DISTINCT
        self._seen = KeyIndex(("group", *key_names(len(call.arguments))))
        self.accumulator = accumulator

    def add(self, data: pa.RecordBatch, groups: npt.NDArray[Any], size: int) -> None:
        """Takes the rows of a batch; ``groups`` has the number of each row's group."""
        if self._filter is not None:
            chosen = plain(data.column(self._filter)).fill_null(False)
            data, groups = data.filter(chosen), groups[chosen.to_numpy(zero_copy_only=False)]
        if self._is_distinct and self._arguments:
            fresh = self._fresh(data, groups)
            data, groups = data.take(pa.array(fresh)), groups[fresh]
        columns = [data.column(at) for at in self._columns]
        if len(groups):
            self.accumulator.add(columns, groups, size)

    def _fresh(self, data: pa.RecordBatch, groups: npt.NDArray[Any]) -> Any:
        """The positions of rows whose arguments are new in their group."""
        keys = key_batch([data.column(at) for at in self._arguments])
        keys = pa.RecordBatch.from_arrays(
            [pa.array(groups), *keys.columns], names=["group", *keys.schema.names]
        )
        return np.sort(self._seen.numbers(keys).fresh)
