"""Groups of windows as tables of what they have accumulated. Rows of a table are merged with others
of their group at any time, so the rows of the input need not be held until a window closes.

The first table has a row for each group with the partial columns of its calls. For calls with
DISTINCT there is a table of the values that each group has seen, one for all calls with the same
arguments and FILTER. A group is a key at a ``place`` in time: in a slice, or a session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from flinkpy.operators.columnar.key_index import encoded
from flinkpy.relational.aggregates.accumulator_port import Accumulator
from flinkpy.relational.aggregates.calls_of_groups import CallOfGroups, plain_type, sites_of
from flinkpy.relational.aggregates.group_functions import COUNTS_DISTINCT, accumulator_of
from flinkpy.relational.group_numbers import GroupNumbers
from flinkpy.relational.key_columns import key_names
from flinkpy.relational.relational_operator import empty_batch, plain
from flinkpy.relational.windows.meanings import with_meaning
from flinkpy.sql.rex.rex_nodes import AggregateCall

if TYPE_CHECKING:
    import numpy.typing as npt

PLACE = "place in time"  # the first column of each table
Tables: TypeAlias = "list[pa.RecordBatch]"
# arguments and filter of calls with DISTINCT
_Values: TypeAlias = "tuple[tuple[int, ...], int | None]"


def are_partial(
    calls: Sequence[AggregateCall], inputs: pa.Schema, results: Sequence[pa.DataType]
) -> bool:
    """Whether these calls can be put together from parts."""
    return all(
        not call.order_by and (_is_distinct(call) or bool(accumulator_of(site).partial_types))
        for call, site in zip(calls, sites_of(calls, inputs, results))
    )


def _is_distinct(call: AggregateCall) -> bool:
    counts = call.function.upper() == COUNTS_DISTINCT
    return bool(call.arguments) and (call.distinct or counts)


class PartialGroups:
    """Groups by the columns ``keys`` of rows of the schema ``inputs``; ``results`` are the types of
    the calls. ``meaning`` says what is aggregated, and goes along with the tables."""

    def __init__(
        self,
        keys: Sequence[int],
        calls: Sequence[AggregateCall],
        inputs: pa.Schema,
        results: Sequence[pa.DataType],
        meaning: str,
    ) -> None:
        self._keys = tuple(keys)
        self._calls = tuple(zip(calls, sites_of(calls, inputs, results)))
        values = [(each.arguments, each.filter) for each in calls if _is_distinct(each)]
        self._values: list[_Values] = list(dict.fromkeys(values))
        self.schemas = [with_meaning(each, meaning) for each in self._schemas(inputs)]

    def _schemas(self, inputs: pa.Schema) -> list[pa.Schema]:
        keys = zip(key_names(len(self._keys)), _fields(inputs, self._keys))
        group = [pa.field(PLACE, pa.int64()), *(field.with_name(name) for name, field in keys)]
        parts = [
            pa.field(f"part {number} {at}", kind)
            for number, accumulator in enumerate(self._accumulators())
            for at, kind in enumerate(accumulator.partial_types)
        ]
        others = [
            [field.with_name(f"value {at}") for at, field in enumerate(_fields(inputs, arguments))]
            for arguments, _ in self._values
        ]
        return [pa.schema([*group, *each]) for each in (parts, *others)]

    def _accumulators(self) -> list[Accumulator]:
        """Of the calls that have parts."""
        return [accumulator_of(site) for call, site in self._calls if not _is_distinct(call)]

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the key columns in each table."""
        return key_names(len(self._keys))

    @property
    def width(self) -> int:
        """How many columns say the group, in each table."""
        return 1 + len(self._keys)

    # -- into tables -------------------------------------------------------------------------------

    def of(self, data: pa.RecordBatch, places: npt.NDArray[np.int64]) -> Tables:
        """The tables of these rows, each of which lies at its place. There is at least one."""
        numbers = GroupNumbers(range(self.width))
        groups = numbers.of(_columns_at(data, places, self._keys))
        size = len(numbers)
        columns = numbers.key_columns()
        plain_calls = [call for call, _ in self._calls if not _is_distinct(call)]
        for call, accumulator in zip(plain_calls, self._accumulators()):
            CallOfGroups(call, accumulator).add(data, groups, size)
            columns += accumulator.partial(size)
        tables = [_conformed(columns, self.schemas[0])]
        for (arguments, filter), schema in zip(self._values, self.schemas[1:]):
            rows = _columns_at(data, places, (*self._keys, *arguments))
            if filter is not None:
                rows = rows.filter(plain(data.column(filter)).fill_null(False))
            tables.append(_distinct(rows, schema))
        return tables

    def merged(self, number: int, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a table, of which several may be of one group, as one of each."""
        schema = self.schemas[number]
        if number or not rows.num_rows:
            return _distinct(rows, schema)
        numbers = GroupNumbers(range(self.width))
        groups = numbers.of(rows)
        size, at = len(numbers), self.width
        columns = numbers.key_columns()
        for accumulator in self._accumulators():
            width = len(accumulator.partial_types)
            accumulator.merge(rows.columns[at : at + width], groups, size)
            columns += accumulator.partial(size)
            at += width
        return _conformed(columns, schema)

    # -- out of them -------------------------------------------------------------------------------

    def numbers_of(self, tables: Tables) -> tuple[GroupNumbers, list[npt.NDArray[np.int64]]]:
        """The groups, and to which of them each row of each table belongs."""
        numbers = GroupNumbers(range(self.width))
        return numbers, [numbers.of(each) for each in tables]

    def results(self, tables: Tables) -> tuple[Any, list[pa.Array], list[pa.Array]]:
        """Of each group its place, its key columns, and the results of the calls. The tables are
        merged."""
        numbers, groups = self.numbers_of(tables)
        size, at = len(numbers), self.width
        results = []
        for call, site in self._calls:
            accumulator = accumulator_of(site)
            if _is_distinct(call):
                number = 1 + self._values.index((call.arguments, call.filter))
                if tables[number].num_rows:
                    values = tables[number].columns[self.width :]
                    accumulator.add(values, groups[number], size)
            else:
                width = len(accumulator.partial_types)
                accumulator.merge(tables[0].columns[at : at + width], groups[0], size)
                at += width
            results.append(accumulator.results(size))
        place, *keys = numbers.key_columns()
        return place.to_numpy(), keys, results


def with_places(rows: pa.RecordBatch, places: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """The rows of a table at other places."""
    arrays = [pa.array(places), *rows.columns[1:]]
    return pa.RecordBatch.from_arrays(arrays, schema=rows.schema)


def _fields(inputs: pa.Schema, places: Sequence[int]) -> list[pa.Field]:
    return [inputs.field(at).with_type(plain_type(inputs.field(at).type)) for at in places]


def _columns_at(
    data: pa.RecordBatch, places: npt.NDArray[np.int64], columns: Sequence[int]
) -> pa.RecordBatch:
    arrays = [pa.array(places), *(data.column(at) for at in columns)]
    return pa.RecordBatch.from_arrays(arrays, names=[str(at) for at in range(len(arrays))])


def _distinct(rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows, each once, in the order in which they first came."""
    if not rows.num_rows:
        return empty_batch(schema)
    columns = [plain(each) for each in rows.columns]
    if all(map(_is_told_by_code, columns)):
        # nobody asks again for their numbers, so there is no index of them
        firsts = pa.array(encoded(columns).firsts)
        return _conformed([each.take(firsts) for each in columns], schema)
    numbers = GroupNumbers(range(rows.num_columns))
    numbers.of(rows)
    return _conformed(numbers.key_columns(), schema)


def _is_told_by_code(column: pa.Array) -> bool:
    """Whether equal values have equal codes: NaNs and zeros may have several, also within rows."""
    kind = column.type
    return not (pa.types.is_nested(kind) or pa.types.is_floating(kind))


def _conformed(columns: Sequence[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    arrays = [
        each if each.type == field.type else plain(each).cast(field.type)
        for each, field in zip(columns, schema)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
