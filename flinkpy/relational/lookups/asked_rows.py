"""Lookups that ask a function of the user, once for each key of a batch that is not kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.columns.sql.row_errors import row_error
from flinkpy.columns.sql.user_code import FailingValue
from flinkpy.common.types import Row
from flinkpy.operators.context import OperatorContext
from flinkpy.relational.functions.python_values import arguments_of, results_of
from flinkpy.relational.functions.scalar_code import closed, opened
from flinkpy.relational.lookups.kept_answers import KeptAnswers, Key, Rows
from flinkpy.relational.lookups.lookup_port import AskedTable, Found


class AskedRows:
    """Asks the function of a table, opened for this subtask."""

    def __init__(self, table: AskedTable, context: OperatorContext) -> None:
        self._table = table
        self._function = opened(table.function, context)
        self._call = getattr(self._function, "eval", self._function)
        self._types = [table.row.fields[table.row.names.index(each)].type for each in table.keys]
        self._places = [table.row.names.index(each) for each in table.wanted]
        self._compared = [
            (table.row.names.index(name), at)
            for at, name in enumerate(table.keys)
            if name not in table.arguments
        ]
        self._wanted = [table.row.fields[place].type for place in self._places]
        self._kept = None if table.cache is None else KeptAnswers(table.cache, context.clock)

    def close(self) -> None:
        closed(self._function)

    def free_memory(self) -> None:
        """The process is short of memory: what was kept is asked again."""
        if self._kept is not None:
            self._kept.clear()

    def find(self, keys: pa.RecordBatch) -> Found:
        """The rows of these keys."""
        answers: dict[Key, Rows] = {}
        listed = self._listed(keys)
        for key in dict.fromkeys(listed):
            known = self._known(key)
            answers[key] = self._asked(key) if known is None else known
        return self._found(listed, answers)

    async def find_together(self, keys: pa.RecordBatch, turn: asyncio.Semaphore) -> Found:
        """The same for a coroutine function: all keys are asked at once, as ``turn`` lets them."""
        listed = self._listed(keys)
        distinct = list(dict.fromkeys(listed))
        found = await asyncio.gather(*(self._awaited(key, turn) for key in distinct))
        return self._found(listed, dict(zip(distinct, found)))

    def _listed(self, keys: pa.RecordBatch) -> list[Key]:
        columns = [
            arguments_of(column, type, keys.num_rows)
            for column, type in zip(keys.columns, self._types)
        ]
        return list(zip(*columns))

    def _known(self, key: Key) -> Rows | None:
        return None if self._kept is None else self._kept.get(key)

    def _asked(self, key: Key) -> Rows:
        arguments = self._arguments(key)
        for left in range(self._table.retries, -1, -1):
            try:
                return self._answer(key, self._call(**arguments))
            except FailingValue as failure:
                raise self._failure(key, failure.cause) from failure.cause
            except Exception as error:
                if not left:
                    raise self._failure(key, error) from error
        raise AssertionError("the last attempt returns or raises")

    async def _awaited(self, key: Key, turn: asyncio.Semaphore) -> Rows:
        known = self._known(key)
        if known is not None:
            return known
        arguments = self._arguments(key)
        async with turn:
            for left in range(self._table.retries, -1, -1):
                try:
                    return self._answer(key, await self._call(**arguments))
                except FailingValue as failure:
                    raise self._failure(key, failure.cause) from failure.cause
                except Exception as error:
                    if not left:
                        raise self._failure(key, error) from error
        raise AssertionError("the last attempt returns or raises")

    def _arguments(self, key: Key) -> dict[str, object]:
        given = dict(zip(self._table.keys, key))
        return {name: given[name] for name in self._table.arguments}

    def _answer(self, key: Key, given: object) -> Rows:
        rows = [
            tuple(row[place] for place in self._places)
            for row in map(self._row, rows_given(given))
            if all(row[place] == key[at] for place, at in self._compared)
        ]
        if self._kept is not None:
            self._kept.keep(key, rows)
        return rows

    def _row(self, row: object) -> Sequence[Any]:
        """A row that the function gave, in the order of the table's columns."""
        names = self._table.row.names
        if isinstance(row, Mapping):
            row = [row.get(name) for name in names]
        elif isinstance(row, Row):
            row = _by_name(row, names)
        values: Sequence[Any] = row if isinstance(row, (tuple, list)) else (row,)
        if len(values) != len(names):
            wrong = TypeError(f"it gave {row!r:.60}, and the table has the columns {names}")
            raise FailingValue(wrong)
        return values

    def _found(self, listed: Sequence[Key], answers: Mapping[Key, Rows]) -> Found:
        counts = [len(answers[key]) for key in listed]
        rows = [(key, row) for key in listed for row in answers[key]]
        columns = []
        for at, type in enumerate(self._wanted):
            try:
                columns.append(results_of([row[at] for _, row in rows], type))
            except FailingValue as failure:
                key = rows[failure.position or 0][0]
                raise self._failure(key, failure.cause) from failure.cause
        data = pa.RecordBatch.from_arrays(columns, names=list(self._table.wanted))
        return Found(np.repeat(np.arange(len(listed)), counts), data)

    def _failure(self, key: Key, error: BaseException) -> Exception:
        function = self._table.function
        name = getattr(function, "__name__", type(function).__name__)
        return row_error(f"{name}(...)", error, dict(zip(self._table.keys, key)))


def _by_name(row: Row, names: Sequence[str]) -> list[Any]:
    """The values in the order of the table; those of a Row without names are in it."""
    try:
        return row.get_fields_by_names(names)
    except KeyError:
        return list(row)


def rows_given(given: object) -> Iterable[object]:
    """What a function gave as rows: None is no row, a tuple, a Row and a dict are one."""
    if given is None:
        return ()
    if isinstance(given, (tuple, Row, str, bytes, Mapping)) or not isinstance(given, Iterable):
        return (given,)
    return given
