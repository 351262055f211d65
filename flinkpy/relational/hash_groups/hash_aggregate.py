"""HashAggregate of BATCH: one row for each group when the input has ended.

Groups have numbers, and each call accumulates into arrays over these numbers. Batches wait until
there are as many rows as groups, so that the cost of a pass over all groups is shared by many rows.
In two phases the senders give what they have accumulated, and the rest is done behind the exchange:
a LOCAL aggregate gives its keys and then the partial columns of each call, whatever the plan's
schema says, and GLOBAL merges them.

All groups lie in memory; a LOCAL aggregate gives its groups away when there are many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.operators.columnar.key_index import KeyIndex
from flinkpy.relational.aggregates.accumulator_port import Accumulator, AggregateSite
from flinkpy.relational.aggregates.aggregate_code import OpenedCalls
from flinkpy.relational.aggregates.group_functions import COUNTS_DISTINCT, accumulator_of
from flinkpy.relational.group_numbers import GroupNumbers
from flinkpy.relational.key_columns import key_batch, key_names
from flinkpy.relational.relational_operator import BlockingOperator, one_record_batch, pieces, plain
from flinkpy.sql.physical.physical_nodes import Phase
from flinkpy.sql.rex.rex_nodes import AggregateCall

_WAITING_ROWS = 1 << 16
_LOCAL_GROUPS = 1 << 20


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
        site = AggregateSite(call.function, tuple(arguments), _own_type(arguments))
        types = accumulator_of(site).partial_types
        if not types:
            return None
        fields += [pa.field(f"part {number} {at}", kind) for at, kind in enumerate(types)]
    return pa.schema(fields)


def _own_type(arguments: Sequence[pa.DataType]) -> pa.DataType:
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


class HashAggregateOperator(BlockingOperator):
    """Aggregates groups by columns ``keys``. ``inputs`` is the schema of the rows that are
    aggregated: for GLOBAL, those that LOCAL has taken."""

    def __init__(
        self,
        keys: Sequence[int],
        calls: Sequence[AggregateCall],
        phase: Phase,
        inputs: pa.Schema,
        schema: pa.Schema,
    ) -> None:
        super().__init__(schema)
        self.keys = tuple(keys)
        self.calls = tuple(calls)
        self.phase = phase
        self.inputs = inputs

    def open(self) -> None:
        self._functions = OpenedCalls(self.calls, self.context)
        self._begin()

    def close(self) -> None:
        if hasattr(self, "_functions"):
            self._functions.close()
        super().close()

    def _begin(self) -> None:
        is_global, is_local = self.phase is Phase.GLOBAL, self.phase is Phase.LOCAL
        self._groups = GroupNumbers(range(len(self.keys)) if is_global else self.keys)
        arguments = [
            [plain_type(self.inputs.field(at).type) for at in call.arguments] for call in self.calls
        ]
        results = (
            [_own_type(each) for each in arguments]
            if is_local
            else [field.type for field in self.schema][len(self.keys) :]
        )
        sites = sites_of(self.calls, self.inputs, results)
        self._calls = [
            CallOfGroups(call, accumulator_of(site)) for call, site in zip(self.calls, sites)
        ]
        self._waiting: list[tuple[pa.RecordBatch, Any]] = []
        self._rows = 0

    def take(self, data: pa.RecordBatch) -> None:
        self._waiting.append((data, self._groups.of(data)))
        self._rows += data.num_rows
        if self._rows >= max(_WAITING_ROWS, len(self._groups)):
            self._accumulate()

    def process_columns(self, batch: ColumnBatch) -> Batch | None:
        self.take(batch.data)
        if self.phase is Phase.LOCAL and len(self._groups) > _LOCAL_GROUPS:
            for each in self.last_batches():
                self.output.emit(each)
            self._begin()
        return None

    def _accumulate(self) -> None:
        waiting, self._waiting, self._rows = self._waiting, [], 0
        if not waiting:
            return
        data = waiting[0][0]
        if len(waiting) > 1:
            schema = pa.schema([field.with_type(plain_type(field.type)) for field in data.schema])
            data = one_record_batch((each for each, _ in waiting), schema)
        groups = np.concatenate([each for _, each in waiting])
        size = len(self._groups)
        if self.phase is not Phase.GLOBAL:
            for each in self._calls:
                each.add(data, groups, size)
            return
        at = len(self.keys)
        for each in self._calls:
            width = len(each.accumulator.partial_types)
            each.accumulator.merge(data.columns[at : at + width], groups, size)
            at += width

    def last_batches(self) -> Iterator[ColumnBatch]:
        self._accumulate()
        size = len(self._groups)
        if not size:
            return
        columns = self._groups.key_columns()
        for each in self._calls:
            if self.phase is Phase.LOCAL:
                columns += each.accumulator.partial(size)
            else:
                columns.append(each.accumulator.results(size))
        arrays = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(columns, self.schema)
        ]
        yield from pieces(pa.RecordBatch.from_arrays(arrays, schema=self.schema))
