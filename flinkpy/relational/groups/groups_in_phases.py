"""GROUP BY in two phases: before the exchange the rows of a batch become one row for each of its
groups, which has what they add to it, and behind the exchange that is merged into the groups.

A part is no row of a result. Its group may lose more by it than it gains: the counts of a part may
be negative, and its lists have the values that go with those that come. So parts are sent as
inserts, whatever the rows were. Nothing of a batch stays in the first phase, which has no state;
that of the second is what one phase has, so a savepoint of one form is good for the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.common.changelog_mode import ALL_CHANGES, INSERT_ONLY
from flinkpy.core.elements import ColumnBatch
from flinkpy.operators.columnar.key_index import KeyedBatch, encoded
from flinkpy.relational.groups.changing_calls import BatchOfGroups, ChangingCalls
from flinkpy.relational.groups.changing_groups import (
    GroupAggregateOperator,
    GroupSpec,
    key_fields,
    signs_of,
)
from flinkpy.relational.key_columns import key_batch
from flinkpy.relational.relational_operator import RelationalOperator


def _calls_of(spec: GroupSpec, inputs: pa.Schema, results: Sequence[pa.DataType]) -> ChangingCalls:
    return ChangingCalls(spec.calls, inputs, results, takes_back=spec.takes_back)


def parts_schema(spec: GroupSpec, inputs: pa.Schema, results: Sequence[pa.DataType]) -> pa.Schema:
    """The columns of parts: the keys, how many rows come more than go, and what the calls make of
    them. ``results`` are the types of the calls' results."""
    rows = [pa.field("rows", pa.int64())] if spec.takes_back else []
    kinds = _calls_of(spec, inputs, results).part_types
    parts = [pa.field(f"part {at}", kind) for at, kind in enumerate(kinds)]
    return pa.schema([*key_fields(spec, inputs), *rows, *parts])


class LocalGroupsOperator(RelationalOperator):
    """The first phase. ``inputs`` is the schema of the input, ``results`` are the types of the
    calls' results."""

    keeps_timestamps = False
    emits_changes = INSERT_ONLY

    def __init__(self, spec: GroupSpec, inputs: pa.Schema, results: Sequence[pa.DataType]) -> None:
        super().__init__(parts_schema(spec, inputs, results))
        self.spec = spec
        self.inputs = inputs
        self.results = tuple(results)
        self.takes_changes = ALL_CHANGES if spec.takes_back else INSERT_ONLY

    def open(self) -> None:
        self._calls = _calls_of(self.spec, self.inputs, self.results)

    def process_columns(self, batch: ColumnBatch) -> ColumnBatch:
        data, signs = batch.data, signs_of(batch.kinds)
        keys = key_batch([data.column(at) for at in self.spec.keys]).columns
        groups, firsts = np.zeros(data.num_rows, np.int64), np.zeros(1, np.int64)
        if keys:
            found = encoded(keys)
            groups, firsts = found.codes.astype(np.int64, copy=False), found.firsts
        size = len(firsts)
        columns = [column.take(pa.array(firsts)) for column in keys]
        if self.spec.takes_back:
            rows = np.zeros(size, np.int64)
            np.add.at(rows, groups, 1 if signs is None else signs)
            columns.append(pa.array(rows))
        columns += self._calls.part(BatchOfGroups(data, groups, signs, size))
        return ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=self.schema), kinds=None)


class GlobalGroupsOperator(GroupAggregateOperator):
    """The second phase. ``inputs`` is the schema of what the first one takes."""

    def __init__(self, spec: GroupSpec, inputs: pa.Schema, schema: pa.Schema) -> None:
        super().__init__(spec, inputs, schema)
        self.takes_changes = INSERT_ONLY

    @property
    def key_places(self) -> Sequence[int]:
        return range(len(self.spec.keys))

    def _take(self, batch: ColumnBatch, keyed: KeyedBatch, was: npt.NDArray[np.bool_]) -> None:
        groups, size = keyed.ids[keyed.codes], self._groups.size
        columns = batch.data.columns[len(self.spec.keys) :]
        if self.spec.takes_back:
            rows, *columns = columns
            np.add.at(self._rows.reach(size), groups, rows.to_numpy())
        self._calls.take_part(columns, groups, size)
