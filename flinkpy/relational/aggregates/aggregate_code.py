"""Aggregate functions of users: an accumulator for each group, or all values of a group at once."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.columns.sql.row_errors import row_error
from flinkpy.columns.sql.user_code import FailingValue
from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.common.types import Row
from flinkpy.core.errors import BadRecordError
from flinkpy.relational.aggregates.accumulator_port import Accumulator, ChangingAccumulator, Groups
from flinkpy.relational.aggregates.group_functions import CODE
from flinkpy.relational.functions.python_values import arguments_of, results_of
from flinkpy.relational.functions.scalar_code import closed, opened
from flinkpy.relational.relational_operator import plain
from flinkpy.sql.rex.rex_nodes import AggregateCall
from flinkpy.state.snapshots.operator_snapshots import dump_pieces, load_piece


class AggregateCode:
    """The function of one call, and its types. ``form``: ``general``, an AggregateFunction;
    ``table``, a TableAggregateFunction, whose value is the array of its rows; ``pandas`` and
    ``arrow``, a callable of the columns of a group."""

    _opened: Any = None

    def __init__(
        self,
        function: Any,
        form: str,
        arguments: tuple[LogicalType, ...] = (),
        result: LogicalType | None = None,
    ) -> None:
        self.function = function
        self.form = form
        self.arguments = arguments
        self.result = result

    def of_call(self, arguments: Iterable[LogicalType], result: LogicalType) -> AggregateCode:
        """The same function where it is called with these types."""
        return AggregateCode(self.function, self.form, tuple(arguments), result)

    @property
    def name(self) -> str:
        """The function as errors show it."""
        return str(getattr(self.function, "__name__", type(self.function).__name__))

    @property
    def takes_whole_groups(self) -> bool:
        """Whether it is called with all values of a group, and not row by row."""
        return self.form in ("pandas", "arrow")

    def open(self, context: object) -> None:
        """Called before the first row."""
        self._opened = opened(self.function, context)

    def close(self) -> None:
        """Called at the end."""
        closed(self._opened)
        self._opened = None

    def accumulator(self) -> Accumulator:
        """For the groups of one operator."""
        called = self.function if self._opened is None else self._opened
        assert self.result is not None, "of_call() says the types"
        if self.form == "general":
            return _ByRow(called, self)
        if self.form == "table":
            return _ByRow(_GivesRows(called), self)
        return _ByGroup(getattr(called, "accumulate", called), self)

    def failure(self, error: Exception, values: Sequence[object]) -> BadRecordError:
        """The error of a row with these arguments."""
        named = {f"argument {at + 1}": value for at, value in enumerate(values)}
        return row_error(f"{self.name}(...)", error, named)

    def column(self, values: list[Any]) -> Any:
        """Results as a column. Raises BadRecordError for one that is not of the type."""
        assert self.result is not None
        try:
            return results_of(values, self.result.with_nullable(True))
        except FailingValue as failure:
            raise row_error(f"{self.name}(...)", failure.cause, {}) from failure.cause


def code_of(call: AggregateCall) -> AggregateCode | None:
    """The function of a call, if it is a user's."""
    found = dict(call.options).get(CODE)
    return found if isinstance(found, AggregateCode) else None


def with_code(call: AggregateCall, code: AggregateCode) -> AggregateCall:
    """The call with the function itself."""
    return replace(call, options=(*call.options, (CODE, code)))


class OpenedCalls:
    """The functions of users among an operator's calls, from ``open`` to ``close``."""

    def __init__(self, calls: Iterable[AggregateCall], context: object) -> None:
        self._open: list[AggregateCode] = []
        for code in filter(None, map(code_of, calls)):
            code.open(context)
            self._open.append(code)

    def close(self) -> None:
        """Closes them."""
        while self._open:
            self._open.pop().close()


class _GivesRows:
    """A TableAggregateFunction as one that gives an array of its rows."""

    def __init__(self, function: Any) -> None:
        self.create_accumulator = function.create_accumulator
        self.accumulate = function.accumulate
        self.retract = function.retract
        self._emit = function.emit_value

    def get_value(self, accumulator: Any) -> list[Any]:
        return [
            row if isinstance(row, (tuple, list, dict, Row)) else (row,)
            for row in self._emit(accumulator)
        ]


class _ByRow(ChangingAccumulator):
    """An accumulator of the function's for each group."""

    retracts = True
    entries_schema = pa.schema([("accumulator", pa.binary())])

    def __init__(self, function: Any, code: AggregateCode) -> None:
        self._function = function
        self._code = code
        self._accumulators: list[Any] = []  # None of a group without rows

    def reach(self, size: int) -> None:
        self._accumulators += [None] * (size - len(self._accumulators))

    def change(
        self,
        columns: Sequence[pa.Array],
        groups: npt.NDArray[Any],
        signs: npt.NDArray[Any] | None,
        size: int,
    ) -> None:
        self.reach(size)
        function, accumulators = self._function, self._accumulators
        values = [
            arguments_of(column, kind, len(groups))
            for column, kind in zip(columns, self._code.arguments)
        ]
        rows: Iterable[tuple[Any, ...]] = zip(*values) if values else [()] * len(groups)
        comes = itertools.repeat(True) if signs is None else (signs > 0).tolist()
        for group, row, is_new in zip(groups.tolist(), rows, comes):
            accumulator = accumulators[group]
            if accumulator is None:
                accumulator = accumulators[group] = function.create_accumulator()
            try:
                (function.accumulate if is_new else function.retract)(accumulator, *row)
            except Exception as error:
                raise self._code.failure(error, row) from error

    def results_of(self, groups: Groups) -> pa.Array:
        chosen = (
            self._accumulators[groups]
            if isinstance(groups, slice)
            else [self._accumulators[group] for group in groups.tolist()]
        )
        create, value_of = self._function.create_accumulator, self._function.get_value
        return self._code.column([value_of(create() if each is None else each) for each in chosen])

    def partial_of(self, groups: Groups) -> list[pa.Array]:
        return []

    def clear(self, groups: npt.NDArray[np.int64]) -> None:
        for group in groups.tolist():
            self._accumulators[group] = None

    def freeze_entries(self) -> Callable[[], tuple[npt.NDArray[np.int64], pa.RecordBatch]]:
        """What gives the accumulators of now, each pickled: the next row may change them."""
        groups = [at for at, each in enumerate(self._accumulators) if each is not None]
        pickled = dump_pieces(self._code.name, [self._accumulators[at] for at in groups])
        column = pa.array(pickled, pa.binary())
        rows = pa.RecordBatch.from_arrays([column], schema=self.entries_schema)
        return lambda: (np.array(groups, np.int64), rows)

    def restore_entries(
        self, entries: tuple[npt.NDArray[np.int64], pa.RecordBatch], size: int
    ) -> None:
        """Takes back what ``freeze_entries`` has given."""
        self.reach(size)
        groups, rows = entries
        for group, pickled in zip(groups.tolist(), rows.column(0).to_pylist()):
            self._accumulators[group] = load_piece(pickled)


class _ByGroup(Accumulator):
    """All values of a group together, as series or arrays."""

    def __init__(self, call: Callable[..., Any], code: AggregateCode) -> None:
        self._call = call
        self._code = code
        self._columns: list[list[pa.Array]] = []
        self._groups: list[npt.NDArray[Any]] = []

    def add(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        self._columns.append([plain(column) for column in columns])
        self._groups.append(groups)

    def results(self, size: int) -> pa.Array:
        groups = np.concatenate([*self._groups, np.array([], np.int64)])
        order = np.argsort(groups, kind="stable")
        bounds = np.searchsorted(groups[order], np.arange(size + 1))
        columns = [pa.concat_arrays(parts).take(pa.array(order)) for parts in zip(*self._columns)]
        if self._code.form == "pandas":
            columns = [column.to_pandas() for column in columns]
        found = []
        for begin, end in zip(bounds.tolist(), bounds[1:].tolist()):
            found.append(self._of_group([_part(each, begin, end) for each in columns]))
        return self._code.column(found)

    def _of_group(self, parts: list[Any]) -> Any:
        try:
            value = self._call(*parts)
        except Exception as error:
            count = len(parts[0]) if parts else 0
            raise row_error(f"{self._code.name}(...)", error, {"rows of the group": count}) from (
                error
            )
        if isinstance(value, pa.Scalar):
            return value.as_py()
        return value.item() if isinstance(value, np.generic) else value


def _part(column: Any, begin: int, end: int) -> Any:
    """Some rows of a series or an array; a series of a group counts from 0."""
    if isinstance(column, pa.Array):
        return column.slice(begin, end - begin)
    return column.iloc[begin:end].reset_index(drop=True)
