"""Groups of BATCH in memory: groups have numbers, and each call accumulates into arrays over these
numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.elements import ColumnBatch
from flinkpy.operators.columnar.key_index import PLACES
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.relational.aggregates.calls_of_groups import (
    CallOfGroups,
    own_type,
    partial_schema,
    plain_type,
    sites_of,
)
from flinkpy.relational.aggregates.group_functions import accumulator_of
from flinkpy.relational.group_numbers import GroupNumbers
from flinkpy.relational.relational_operator import one_record_batch, pieces
from flinkpy.sql.physical.physical_nodes import Phase
from flinkpy.sql.rex.rex_nodes import AggregateCall

_WAITING_ROWS = 1 << 16
_MEASURED_ROWS = 1 << 14  # or more come between two looks at what the groups take


@dataclass(frozen=True)
class GroupPlan:
    """What is aggregated: ``calls`` of groups by the columns ``keys``. ``inputs`` is the schema of
    the rows that are aggregated: for GLOBAL, those that LOCAL has taken. ``schema`` is that of the
    results."""

    keys: tuple[int, ...]
    calls: tuple[AggregateCall, ...]
    phase: Phase
    inputs: pa.Schema
    schema: pa.Schema

    @property
    def taken_keys(self) -> Sequence[int]:
        """The key columns of the rows that come: those of partial results stand in front."""
        return range(len(self.keys)) if self.phase is Phase.GLOBAL else self.keys

    @property
    def taken_schema(self) -> pa.Schema | None:
        """Of the rows that come."""
        if self.phase is not Phase.GLOBAL:
            return self.inputs
        return partial_schema(self.keys, self.calls, self.inputs)

    @cached_property
    def grows(self) -> bool:
        """Whether a group takes more memory with each of its rows."""
        if self.phase is Phase.GLOBAL:
            return False
        return partial_schema(self.keys, self.calls, self.inputs) is None

    def accumulating(self) -> list[CallOfGroups]:
        """Each call, without any group."""
        arguments = [
            [plain_type(self.inputs.field(at).type) for at in call.arguments] for call in self.calls
        ]
        results = (
            [own_type(each) for each in arguments]
            if self.phase is Phase.LOCAL
            else [field.type for field in self.schema][len(self.keys) :]
        )
        sites = sites_of(self.calls, self.inputs, results)
        return [CallOfGroups(call, accumulator_of(site)) for call, site in zip(self.calls, sites)]


class GroupTable:
    """All groups of some rows. Batches wait until there are as many rows as groups, so that the
    cost of a pass over all groups is shared by many rows; or until they have ``waiting_limit``
    bytes."""

    def __init__(self, plan: GroupPlan, waiting_limit: int | None = None) -> None:
        self.plan = plan
        places = PLACES if waiting_limit is None else min(PLACES, waiting_limit // 8)
        self.groups = GroupNumbers(plan.taken_keys, places)
        self._calls = plan.accumulating()
        self._limit = waiting_limit
        self._waiting: list[tuple[pa.RecordBatch, Any]] = []
        self._rows = self._bytes = self._unmeasured = 0
        self.nbytes = 0
        """What the groups take, or took some rows ago."""

    def nbytes_with(self, rows: int) -> int:
        """What the groups may take for a moment if each of so many more rows is a group."""
        return self.nbytes * 5 // 4 + self.groups.growth(rows)

    def take(self, data: pa.RecordBatch) -> None:
        """Takes rows of any groups."""
        self.take_of(data, self.groups.of(data))

    def take_of(self, data: pa.RecordBatch, groups: Any) -> None:
        """Takes rows of these groups."""
        self._waiting.append((data, groups))
        self._rows += data.num_rows
        is_much = False
        if self._limit is not None:
            self._bytes += data.nbytes + groups.nbytes
            is_much = self._bytes > self._limit
        if is_much or self._rows >= max(_WAITING_ROWS, len(self.groups)):
            self._accumulate()
        if self._limit is not None:
            self._measure(data.num_rows)

    def _measure(self, rows: int) -> None:
        self._unmeasured += rows
        if self._unmeasured >= _MEASURED_ROWS or not self._waiting:
            self.nbytes = held_bytes(self.groups, self._calls)
            self._unmeasured = 0

    def _accumulate(self) -> None:
        waiting, self._waiting, self._rows, self._bytes = self._waiting, [], 0, 0
        if not waiting:
            return
        data = waiting[0][0]
        if len(waiting) > 1:
            schema = pa.schema([field.with_type(plain_type(field.type)) for field in data.schema])
            data = one_record_batch((each for each, _ in waiting), schema)
        groups = np.concatenate([each for _, each in waiting])
        size = len(self.groups)
        if self.plan.phase is Phase.GLOBAL:
            self._merge(data, groups, size)
        else:
            for each in self._calls:
                each.add(data, groups, size)

    def _merge(self, data: pa.RecordBatch, groups: Any, size: int) -> None:
        at = len(self.plan.keys)
        for each in self._calls:
            width = len(each.accumulator.partial_types)
            each.accumulator.merge(data.columns[at : at + width], groups, size)
            at += width

    def results(self) -> Iterator[ColumnBatch]:
        """One row for each group: of LOCAL, its keys and then the partial columns of each call. No
        rows can be taken any more."""
        self._accumulate()
        size = len(self.groups)
        if not size:
            return
        self.groups.forget_index()
        columns = self.groups.key_columns()
        for each in self._calls:
            if self.plan.phase is Phase.LOCAL:
                columns += each.accumulator.partial(size)
            else:
                columns.append(each.accumulator.results(size))
        schema = self.plan.schema
        arrays = [
            column if column.type == field.type else column.cast(field.type)
            for column, field in zip(columns, schema)
        ]
        yield from pieces(pa.RecordBatch.from_arrays(arrays, schema=schema))
